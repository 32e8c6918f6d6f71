"""Seed scenario 3: models of two vendors research in parallel and write a report."""

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path

from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.clock import ManualClock
from agiraph.testing.model_server import Seen, Step
from tests.doubts import doubts_of
from tests.fences import opened
from tests.local_web import Page, local_web
from tests.scenarios.endings import ACCEPTS, defines, finishes
from tests.scenarios.thread_queries import (
    agent_name,
    event_number,
    new_text,
    reply_count,
    seen_created_nodes,
)
from tests.services.stages import accepts

GOAL = (
    "Research the current state of AI hardware — compare NVIDIA, AMD, and Intel's latest AI chips. "
    "Produce a structured report with technical specs, market position, and recommendation."
)
COMPANIES = {"alice": "NVIDIA", "bob": "AMD", "carol": "Intel"}
MODELS = {
    "coordinator": "anthropic/claude-lead",
    "alice": "anthropic/claude-worker",
    "bob": "openai/gpt-worker",
    "carol": "anthropic/claude-worker",
    "gpt-writer": "openai/gpt-writer",
    "reviewer": "anthropic/claude-lead",
}
FACTS = {
    "NVIDIA": "NVIDIA B300: 288 GB HBM3e; the market leader.",
    "AMD": "AMD MI355X: 288 GB HBM3e; a strong second.",
    "Intel": "Intel Gaudi 3: 128 GB HBM2e; far behind, and cheap.",
}
DONE = ("`report.md` compares all three", "the report recommends one")
FORM = "Please give memory first, market position second, so that I can compare."


SITES = {
    "chips.example": {
        f"/{company}": Page(f"# {company}\n\nWhat {company} sells for AI:\n\n- {fact}\n", company)
        for company, fact in FACTS.items()
    }
}


@dataclass
class Cast:
    """The models. A barrier makes all three researchers start before any of them continues."""

    at_work: asyncio.Barrier = field(default_factory=lambda: asyncio.Barrier(3))

    async def play(self, seen: Seen) -> Step:
        match agent_name(seen):
            case "coordinator":
                return coordinates(seen)
            case "gpt-writer":
                return synthesizes(seen)
            case "reviewer":
                return reviews(seen)
            case who:
                if reply_count(seen) == 0:
                    await self.at_work.wait()
                return researches(seen, COMPANIES[who])


def coordinates(seen: Seen) -> Step:
    nodes = seen_created_nodes(seen)
    match reply_count(seen):
        case 0:
            return says(
                "Three companies, three researchers.",
                defines(*DONE),
                *(call("spawn_worker", name=who, model=MODELS[who]) for who in COMPANIES),
            )
        case 1:
            return says(
                *(
                    call(
                        "create_work_node",
                        title=f"Research {company} AI chips",
                        task=f"Find out what {company} sells for AI, and how it stands.",
                        acceptance=[f"`{company}.md` says memory and market position"],
                        kinds=["file"],
                        assigned_to=who,
                    )
                    for who, company in COMPANIES.items()
                ),
                call("send_message", to="everyone", content=FORM),
            )
        case 2:
            return says(call("start_stage", name="research", nodes=nodes))
        case 3:
            assert "Stage 'research' is over: its contract is met" in new_text(seen)
            files = zip(nodes, COMPANIES.values(), strict=True)
            return says(
                *(call("read_file", path=f"nodes/{id}/published/{of}.md") for id, of in files)
            )
        case 4:
            assert all(fact in new_text(seen) for fact in FACTS.values())
            return says(
                accepts("All three are complete and comparable.", nodes),
                call(
                    "create_work_node",
                    title="Synthesize findings into a comparison report",
                    task="Compare the three and recommend one, in `report.md`.",
                    refs=dict(zip(COMPANIES.values(), nodes, strict=True)),
                    acceptance=["`report.md` compares all three"],
                    kinds=["file"],
                    assigned_to=f"new:{MODELS['gpt-writer']}",
                ),
            )
        case 5:
            return says(call("start_stage", name="synthesis", nodes=nodes[-1:]))
        case 6:
            return says(call("read_file", path=f"nodes/{nodes[-1]}/published/report.md"))
        case 7:
            return says(
                accepts("The report is sound.", nodes[-1:], decision="finish"),
                call("bash", command=f"cp ../../{nodes[-1]}/published/report.md ."),
            )
        case _:
            summary = "NVIDIA for speed, AMD for the price: report.md."
            return finishes(summary, "file:report.md", "report.md ends with what to buy")


def researches(seen: Seen, company: str) -> Step:
    match reply_count(seen):
        case 0:
            return says("I look it up.", call("web_search", query=f"{company} AI chips"))
        case 1:
            [hit] = re.findall(rf"^   (http\S+/{company})$", new_text(seen), re.MULTILINE)
            return says(call("web_fetch", url=hit))
        case 2:
            [fact] = re.findall(rf"^- ({company} .*)", new_text(seen), re.MULTILINE)
            note = f"# {company}\n\n{fact}\n"
            return says(call("write_file", path=f"{company}.md", content=note))
        case 3:
            return says(call("checkpoint", summary=f"{company} is written down."))
        case _:
            proof = [f"file:{company}.md"]
            return says(call("publish", summary=f"{company} is in {company}.md.", evidence=proof))


def reviews(seen: Seen) -> Step:
    """Reads the report that the coordinator submits, and accepts it."""
    if reply_count(seen) == 0:
        [files] = re.findall(r"nodes/\w+/scratch", seen.messages[0].text)
        return says(call("read_file", path=f"{files}/report.md"))
    assert "Buy what you can get." in new_text(seen)
    return ACCEPTS


def synthesizes(seen: Seen) -> Step:
    match reply_count(seen):
        case 0:
            return says(*(call("read_ref", ref_name=f"{of}/{of}.md") for of in FACTS))
        case 1:
            facts = opened(new_text(seen))
            report = f"# AI hardware\n\n{facts}\n## Recommendation\n\nBuy what you can get.\n"
            return says(call("write_file", path="report.md", content=report))
        case _:
            return says(call("publish", summary="All three compared.", evidence=["file:report.md"]))


async def test_a_team_of_two_vendors_researches_in_parallel_and_reports(
    tmp_path: Path, database_url: str
) -> None:
    clock = ManualClock()
    async with local_web(clock, SITES) as served, ModelServer(Cast().play) as server:
        keys = Keys(
            {
                "openai": Account(key="sk-test", base_url=server.openai_url),
                "anthropic": Account(key="sk-test", base_url=server.anthropic_url),
            }
        )
        home = tmp_path / "home"
        async with World(
            home, database_url=database_url, clock=clock, keys=keys, web=served.access
        ) as world:
            founded = await world.found(GOAL, model=MODELS["coordinator"])
            await world.settle()

            goal, *research, report, review = await world.board(founded.team.id)
            events = await world.events(founded.team.id)
            names = {
                node.id: (await world.agent(node.assignee_id)).name
                for node in (goal, *research, report, review)
            }
            published = {node.id: world.published(node) for node in (goal, *research, report)}

    assert {n.status for n in (goal, *research, report)} == {NodeStatus.COMPLETED}
    assert (goal.stop_reason, goal.result) == (
        StopReason.FINISHED,
        "NVIDIA for speed, AMD for the price: report.md.",
    )
    assert [doubts_of(n) for n in (goal, *research, report)] == [None] * 5
    assert review.stop_reason is StopReason.ACCEPTED  # only a reader can judge a recommendation

    # The three ran in parallel: all started before the first ended, and their calls overlapped.
    begun = [event_number(events, "node.started", node_id=n.id) for n in research]
    ended = [event_number(events, "node.completed", node_id=n.id) for n in research]
    assert max(begun) < min(ended)
    assert server.most_at_once >= 3

    # Each searched and read the page of its company, and has published what stands there.
    assert sorted(served.visited("chips.example")) == [f"/{of}" for of in sorted(FACTS)]
    assert [published[n.id] for n in research] == [
        {f"{company}.md": f"# {company}\n\n{FACTS[company]}\n"} for company in COMPANIES.values()
    ]

    # The coordinator's message reached all three workers.
    told = [e.data for e in events if e.type == "message.sent" and e.data["text"] == FORM]
    assert [(m["sender"], m["recipient"]) for m in told] == [
        (founded.coordinator.id, n.assignee_id) for n in research
    ]
    for who in COMPANIES:
        asked = [seen for seen in server.requests if agent_name(seen) == who]
        assert any(FORM in new_text(seen) for seen in asked), who

    # The final report contains all three facts.
    assert all(fact in published[goal.id]["report.md"] for fact in FACTS.values())
    assert published[report.id]["report.md"] == published[goal.id]["report.md"]

    # Two stages; the first was assessed before the second was planned.
    staged = [(e.type, e.data["name"]) for e in events if e.type.startswith("stage.")]
    assert staged == [
        (f"stage.{what}", stage)
        for stage in ("research", "synthesis")
        for what in ("started", "ended", "reconvened")
    ]
    assert event_number(events, "stage.reconvened", name="research") < event_number(
        events, "node.created", node_id=report.id
    )

    # Different models, of different vendors, over their own wires.
    used = {(agent_name(seen), f"{seen.wire}/{seen.model}") for seen in server.requests}
    assert used == set(MODELS.items())
    assert [names[n.id] for n in (goal, *research, report, review)] == list(MODELS)
    assert server.refused == []
