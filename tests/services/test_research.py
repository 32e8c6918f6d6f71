"""Research: a question, a budget, a report; and the list of background jobs."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph.domain.agents import Agent, Specialist
from agiraph.domain.errors import ModelRefused, Refused
from agiraph.domain.ids import ThreadId
from agiraph.domain.labels import SEARCH, of_page
from agiraph.domain.messages import Message
from agiraph.domain.persons import OWNER
from agiraph.domain.search import Hit
from agiraph.domain.work import Budget, NodeStatus
from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.services.board import jobs, planning
from agiraph.services.lifecycle import conversation, endings, research
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.services.members import roster
from agiraph.services.members.hiring import Hirer
from agiraph.store import messages
from agiraph.testing import World, call, says
from agiraph.testing.scripted import Line, ScriptedModel
from agiraph.tools.toolsets import PUBLIC
from agiraph.web.access import Web
from agiraph.web.search import LocalEngine
from tests.web.sites import Site, fetcher, html, site

REPORT = """\
## Summary

Bread is baked at 230 degrees.

## Key findings

- Most recipes say 230 degrees [1].

## Sources

1. How to bake, http://127.0.0.1/bread, 2026-01-01
"""


@pytest.fixture
async def bakery() -> AsyncIterator[Site]:
    async with site(
        bread=html("<h1>Bread</h1><p>Bake it at 230 degrees.</p>", "How to bake")
    ) as it:
        yield it


@pytest.fixture
async def world(tmp_path: Path, database_url: str, bakery: Site) -> AsyncIterator[World]:
    hit = Hit(title="How to bake bread", url=bakery.url("/bread"), snippet="bread in the oven")
    web = Web(fetcher=fetcher(), engine=LocalEngine([hit]))
    # The researcher has its own model, so that both sides can be scripted.
    agents = tmp_path / "home" / "agents"
    agents.mkdir(parents=True)
    (agents / "researcher.md").write_text(
        "---\nname: researcher\ndescription: Finds out.\nmodel: scripted/rob\n---\nFind out.\n"
    )
    async with World(
        tmp_path / "home", database_url=database_url, web=web, easy_endings=True
    ) as opened:
        yield opened


async def found_researching_team(world: World, *lines: Line, **more: int) -> NewTeam:
    """Found an idle team whose coordinator is asked for research and starts it."""
    start = call("research_start", goal="How is bread baked?", **more)
    world.script("ada", says("I look into it.", start))
    world.script("rob", *lines)
    team = await world.found("Bake", start=False)
    await world.store.write(
        conversation.say, team.coordinator.id, "Research how bread is baked", person_id=OWNER
    )
    return team


def hirer_of(team: NewTeam) -> Hirer:
    """Return the coordinator as a hirer of a researcher that `rob` plays."""
    researcher = Specialist(name="researcher", description="", prompt="", model="scripted/rob")
    known = {"researcher": researcher}
    return Hirer(team.coordinator, ThreadId("t_none"), known, lambda name: None)


async def messages_to_person(world: World, team: NewTeam) -> list[Message]:
    """Return the coordinator's messages to the person, after its first reply."""
    said = await world.store.read(messages.conversation, team.team.id, team.coordinator.id, OWNER)
    return [m for m in said if m.sender == team.coordinator.id][1:]


def research_lines(bakery: Site) -> tuple[Line, ...]:
    return (
        says(call("knowledge_search", query="bread")),
        says(call("web_search", query="bake bread")),
        says(call("web_fetch", url=bakery.url("/bread"))),
        says(call("publish", summary=REPORT)),
    )


async def test_research_agent_execution(world: World, bakery: Site) -> None:
    """It searches, reads and reports as a public reader, with the tools of one and no others."""
    team = await found_researching_team(world)
    rob = world.script("rob", *research_lines(bakery))
    await world.settle()
    [node] = await world.board(team.team.id)
    assert (node.status, node.source, node.title) == (
        NodeStatus.COMPLETED,
        "user",
        "Research: How is bread baked?",
    )
    assert node.budget.calls == {"web_search": 5, "web_fetch": 3}
    assert (node.is_public, set(rob.requests[-1].tools)) == (True, set(PUBLIC))
    answers = [t.text for t in rob.requests[-1].turns if t.role == "tool"]
    assert bakery.url("/bread") in answers[1]
    assert "Bake it at 230 degrees." in answers[2]
    assert len(bakery.requests) == 1


async def test_budget_enforcement_of_searches_and_pages(world: World, bakery: Site) -> None:
    search = call("web_search", query="bake bread")
    fetch = call("web_fetch", url=bakery.url("/bread"))
    team = await found_researching_team(
        world,
        says(search, search, search),
        says(fetch, fetch),
        says(call("publish", summary=REPORT)),
        max_searches=2,
        max_pages=1,
    )
    await world.settle()
    [node] = await world.board(team.team.id)
    answers = [t for t in await world.turns(node.id) if t.role == "tool"]
    refused = [t.text for t in answers if t.failed]
    assert len(bakery.requests) == 1
    assert [text.partition(" All")[0] for text in refused] == [
        "Not allowed: Budget exhausted — synthesise your findings now."
    ] * 2
    assert node.status is NodeStatus.COMPLETED
    [job] = await world.store.read(jobs.of_team, team.team.id)
    assert job.used == {"web_search": 2, "web_fetch": 1}


async def test_report_to_inbox_creation(world: World, bakery: Site) -> None:
    team = await found_researching_team(world, *research_lines(bakery))
    await world.settle()
    [node] = await world.board(team.team.id)
    [item] = [m for m in await world.inbox() if m.node_id == node.id]
    assert (item.kind, item.title, item.text) == (
        "report",
        "Research: How is bread baked?",
        REPORT.strip(),
    )
    assert item.label == SEARCH | of_page("http://127.0.0.1")


async def test_thread_reply_on_completion(world: World, bakery: Site) -> None:
    """The conversation that asked for it gets the summary, once, even across a restart."""
    team = await found_researching_team(world, *research_lines(bakery))
    await world.settle()
    await world.restart()
    await world.settle()
    [message] = await messages_to_person(world, team)
    assert message.text == (
        "The research is done (Research: How is bread baked?); the whole report is in your inbox."
        "\n\nBread is baked at 230 degrees."
    )
    assert len([m for m in await world.inbox() if m.kind == "report"]) == 1


async def test_failure_is_delivered_to_the_inbox_and_the_conversation(world: World) -> None:
    team = await found_researching_team(world, *[says("")] * 3)
    await world.settle()
    [node] = await world.board(team.team.id)
    assert node.status is NodeStatus.FAILED
    [item] = [m for m in await world.inbox() if m.node_id == node.id]
    assert (item.kind, item.title) == ("failure", "Research: How is bread baked?")
    assert item.text.startswith("There is no report. The model made no tool call")
    [message] = await messages_to_person(world, team)
    assert message.text.startswith("I could not finish the research you asked for")


@pytest.mark.parametrize("empty", [" ", "\n\n"])
async def test_an_empty_report_is_a_failure(world: World, empty: str) -> None:
    team = await found_researching_team(world, says(call("publish", summary=empty)))
    await world.settle()
    [item] = await world.inbox()
    assert (item.kind, item.text) == ("failure", "There is no report. It ended without a report.")
    [message] = await messages_to_person(world, team)
    assert "It ended without a report." in message.text


async def test_when_the_turns_are_used_up_the_findings_so_far_are_reported(world: World) -> None:
    """Landing uses the last turn to ask for the report, without tools."""
    searching = [says(call("web_search", query=f"bread {n}")) for n in range(research.STEPS - 1)]
    team = await found_researching_team(
        world, *searching, says(REPORT), max_searches=0, max_pages=0
    )
    await world.settle()
    [node] = await world.board(team.team.id)
    assert (node.status, node.stop_reason) == (NodeStatus.PARTIAL, "turns_spent")
    [item] = await world.inbox()
    assert (item.kind, item.title) == ("report", "Research: How is bread baked? (incomplete)")
    assert item.text.endswith(REPORT.strip())
    [message] = await messages_to_person(world, team)
    assert message.text.endswith("Bread is baked at 230 degrees.")


async def test_a_refused_model_call_becomes_a_question(world: World) -> None:
    team = await found_researching_team(world, ModelRefused("wrong key"))
    await world.settle()
    [question] = await world.questions(team.team.id)
    assert "wrong key" in question.text


async def test_research_started_by_a_node_reports_to_that_node(world: World, bakery: Site) -> None:
    world.script(
        "ada",
        says(call("research_start", goal="How is bread baked?")),
        lambda asked: says(call("task_output", id=_node_id_in(asked), blocking=True)),
        says(call("finish", summary="I know now.")),
    )
    world.script("rob", *research_lines(bakery))
    team = await world.found("Bake")
    await world.settle()
    work, node = await world.board(team.team.id)
    assert (node.parent_id, node.source, node.status) == (work.id, "delegation", "completed")
    assert node.budget.calls == {"web_search": 5, "web_fetch": 3}
    assert [m.kind for m in await world.inbox() if m.node_id == node.id] == ["report"]
    answer = [t for t in await world.turns(work.id) if t.role == "tool"][1]
    assert REPORT.strip() in answer.text
    assert answer.label == SEARCH | of_page("http://127.0.0.1")


@pytest.mark.parametrize("ends", ["published", "failed"])
async def test_research_that_its_starter_does_not_wait_for_is_delivered_once(
    world: World, bakery: Site, ends: str
) -> None:
    """The person gets one report and one summary, the agent that asked one message."""
    ada = world.script(
        "ada",
        says(call("research_start", goal="How is bread baked?")),
        says(call("ask_human", question="Which oven?")),
        says(call("finish", summary="I know now.")),
    )
    world.script("rob", *(research_lines(bakery) if ends == "published" else [says("")] * 3))
    team = await world.found("Bake")
    await world.settle()
    await world.restart()
    [question] = await world.questions(team.team.id)
    await world.answer(question, "The old one.")
    await world.settle()
    _, node = await world.board(team.team.id)
    about = [m for m in await world.inbox() if m.node_id == node.id]
    assert [m.kind for m in about] == ["report" if ends == "published" else "failure"]
    said = await world.store.read(messages.conversation, team.team.id, team.coordinator.id, OWNER)
    assert len([m for m in said if m.node_id == node.id]) == 1
    heard = [t.text for t in ada.requests[-1].turns if t.role == "user" and node.id in t.text]
    assert len(heard) == 1


def _node_id_in(asked: Request) -> str:
    found = re.search(r"node_\w+", asked.transcript.turns[-2].text)
    assert found is not None
    return found[0]


async def test_job_status_tracking(world: World, bakery: Site) -> None:
    """The list shows running, waiting, queued and ended jobs, with reasons and usage."""
    team = await found_researching_team(world, *research_lines(bakery))
    await world.settle()
    bob = await world.store.write(
        roster.hire, team.team.id, name="bob", role="worker", model="scripted/bob"
    )
    model = _SignallingModel("scripted/bob", [says(call("ask_human", question="How?"))])
    world.model("bob", model)
    for title in ("Clean", "Sweep", "Dust"):
        await _create_node(world, bob, title)
        if title == "Clean":
            await world.settle()
            model.lines += [says(call("publish", summary=done)) for done in ("Swept.", "Dusted.")]
            model.gate = asyncio.Event()
            model.begun.clear()
    await model.begun.wait()
    found = await world.store.read(jobs.of_team, team.team.id)
    assert [(j.node.title, j.state, j.position, j.progress, dict(j.used)) for j in found] == [
        ("Sweep", "running", None, "", {}),
        ("Clean", "waiting", None, "asked the human: How?", {}),
        ("Dust", "queued", 3, "", {}),
        ("Research: How is bread baked?", "done", None, "", {"web_search": 1, "web_fetch": 1}),
    ]
    assert model.gate is not None
    model.gate.set()
    await world.settle()


class _SignallingModel(ScriptedModel):
    """A model that sets `begun` when it is called."""

    def __init__(self, name: str, lines: list[Line]) -> None:
        super().__init__(name, lines)
        self.begun = asyncio.Event()

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        self.begun.set()
        return await super().reply(request, on_delta)


async def _create_node(world: World, agent: Agent, title: str) -> None:
    given = {"team_id": agent.team_id, "task": title, "title": title, "assignee_id": agent.id}
    await world.store.write(planning.create, source="user", **given)


async def test_crawl_migration_all_background_work_is_in_one_tracker(world: World) -> None:
    """Tasks and research are nodes, so one list and one tool show both."""
    team = await world.found("Bake", start=False)
    world.script("rob", says(call("ask_human", question="Which bread?")))
    # A public researcher asks nobody; this one began in words that strangers may have written.
    await world.store.write(research.start, hirer_of(team), "How is bread baked?")
    await world.settle()
    bob = await world.store.write(
        roster.hire, team.team.id, name="bob", role="worker", model="scripted/bob"
    )
    world.script("bob", says(call("ask_human", question="How?")))
    await _create_node(world, bob, "Clean")
    ada = world.script(
        "ada", says("Let me see.", call("job_status")), says("That is all.", call("no_work_needed"))
    )
    await world.settle()
    await world.store.write(
        conversation.say, team.coordinator.id, "How far are you?", person_id=OWNER
    )
    await world.settle()
    answer = next(t.text for t in ada.requests[-1].turns if t.role == "tool")
    assert re.sub(r"node_\w+", "ID", answer).splitlines() == [
        "- Research: How is bread baked? (ID, researcher): waiting, 0 of 5 searches used, "
        "0 of 3 pages used: asked the human: Which bread?",
        "- Clean (ID, bob): waiting: asked the human: How?",
    ]


@pytest.mark.parametrize(
    ("given", "says_what"),
    [
        ({"goal": " "}, "the goal is empty"),
        ({"goal": "x" * 20_001}, "holds 20,000 characters"),
        ({"goal": "x", "searches": -1}, "0 to 50 searches"),
        ({"goal": "x", "pages": 31}, "0 to 30 pages"),
    ],
)
async def test_an_invalid_research_request_is_refused(
    world: World, given: dict[str, object], says_what: str
) -> None:
    team = await world.found("Bake", start=False)
    hire = Hirer(team.coordinator, ThreadId("t_none"), {}, lambda name: None)
    with pytest.raises(Refused, match=says_what):
        await world.store.write(research.start, hire, **given)
    assert await world.board(team.team.id) == []


async def test_cancelled_research_reports_nothing(world: World) -> None:
    team = await world.found("Bake", start=False)
    world.script("rob", says(call("ask_human", question="Which bread?")))
    node = await world.store.write(research.start, hirer_of(team), "How is bread baked?")
    await world.settle()
    await world.store.write(endings.cancel, node.id)
    assert [m.kind for m in await world.inbox()] == ["question"]
    calls = {"web_search": 5, "web_fetch": 3}
    assert node.budget == Budget(turns=16, calls=calls, given={"turns": 16})


def test_a_summary_is_the_summary_section_or_the_beginning_of_the_report() -> None:
    assert research.summary(REPORT) == "Bread is baked at 230 degrees."
    assert research.summary("Just words.") == "Just words."
    assert len(research.summary("long " * 1000)) <= research.SUMMARY
    assert (
        research.summary("## Summary\n\n## Sources\n\n1. x") == "## Summary\n\n## Sources\n\n1. x"
    )
