"""Research: a question, a budget, a report; and the list of background jobs."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph.core.domain.agents import Agent, Specialist
from agiraph.core.domain.errors import ModelRefused, Refused
from agiraph.core.domain.ids import TeamId, ThreadId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import SEARCH, of_page
from agiraph.core.domain.records.search import Hit
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.board import jobs, planning
from agiraph.core.services.lifecycle import conversation, endings
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.core.services.members.roster import Hirer
from agiraph.core.store import messages, nodes
from agiraph.core.store.tx import Tx
from agiraph.features.research.routes import research_view
from agiraph.features.research.tools import READER
from agiraph.features.research.verbs import delivery, starting
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import World, call, says
from agiraph.testing.script import Says
from agiraph.testing.scripted import Line, ScriptedModel
from agiraph.web.access import DefaultEngine, Web
from agiraph.web.search import LocalEngine
from tests.web.sites import Site, fetcher, html, site

PLAN = (
    '{"question": "How is bread baked?", "language": "English", "kind": "fact", '
    '"sub_questions": [{"question": "How hot is bread baked?", "answer": "degrees"}]}'
)
REPORT = """\
## Summary

Bread is baked at 230 degrees [e1].

## Key findings

- A recipe says 230 degrees [e1].
"""
DELIVERED = "## Summary\n\nBread is baked at 230 degrees [1].\n\n## Key findings\n\n"


@pytest.fixture
async def bakery() -> AsyncIterator[Site]:
    async with site(
        bread=html("<h1>Bread</h1><p>Bake it at 230 degrees.</p>", "How to bake")
    ) as it:
        yield it


def set_researcher(home: Path) -> None:
    """Give the researcher its own model, so that both sides can be scripted."""
    agents = home / "agents"
    agents.mkdir(parents=True)
    (agents / "researcher.md").write_text(
        "---\nname: researcher\ndescription: Finds out.\nmodel: scripted/rob\n---\nFind out.\n"
    )


@pytest.fixture
async def world(tmp_path: Path, database_url: str, bakery: Site) -> AsyncIterator[World]:
    hit = Hit(title="How to bake bread", url=bakery.url("/bread"), snippet="bread in the oven")
    web = Web(fetcher=fetcher(), engine=LocalEngine([hit]))
    set_researcher(tmp_path / "home")
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
    return (says(PLAN), *reading_lines(bakery), says(REPORT))


def reading_lines(bakery: Site) -> tuple[Line, ...]:
    page, words = bakery.url("/bread"), "Bake it at 230 degrees."
    return (
        says(call("web_search", query="bake bread")),
        says(call("web_fetch", url=page)),
        says(call("note_evidence", claim="It is baked at 230 degrees.", quote=words, url=page)),
        says(call("done")),
    )


@pytest.mark.slow
async def test_research_agent_execution(world: World, bakery: Site) -> None:
    """It plans, a public reader searches, reads and notes, and the report cites what was noted."""
    team = await found_researching_team(world)
    rob = world.script("rob", *research_lines(bakery))
    await world.settle()
    node, reader, writing = await world.board(team.team.id)
    assert (node.status, node.source, node.title) == (
        NodeStatus.COMPLETED,
        "user",
        "Research: How is bread baked?",
    )
    assert node.budget.calls == {"web_search": 4, "web_fetch": 6}
    assert [(not n.kind.sees_team) for n in (node, reader, writing)] == [False, True, True]
    assert set(rob.requests[1].tools) == set(READER)
    answers = [t.text for t in rob.requests[4].turns if t.role == "tool"]
    assert bakery.url("/bread") in answers[0]
    assert "Bake it at 230 degrees." in answers[1]
    assert len(bakery.requests) == 1


async def test_a_report_names_the_engine_that_searched(
    tmp_path: Path, database_url: str, bakery: Site
) -> None:
    """A person may enter a key after the brief."""
    hit = Hit(title="How to bake bread", url=bakery.url("/bread"), snippet="bread in the oven")
    in_use = [LocalEngine([hit], name="first")]
    web = Web(fetcher=fetcher(), engine=DefaultEngine(vendor_engine=lambda: in_use[-1]))
    plan, _, *others = research_lines(bakery)
    set_researcher(tmp_path / "home")

    def search_after_a_change(_: Request) -> Says:
        in_use.append(LocalEngine([hit], name="second"))
        return says(call("web_search", query="bake bread"))

    async with World(
        tmp_path / "home", database_url=database_url, web=web, easy_endings=True
    ) as world:
        team = await found_researching_team(world)
        world.script("rob", plan, search_after_a_change, *others)
        await world.settle()
        job, *_ = await world.board(team.team.id)
        shown = await world.store.read(research_view, job.id)
        assert (shown.searches, shown.engine) == (1, "second")
        assert "1 search (second)," in world.published(job)["report.md"]


@pytest.mark.slow
async def test_budget_enforcement_of_searches_and_pages(world: World, bakery: Site) -> None:
    search = call("web_search", query="bake bread")
    fetch = call("web_fetch", url=bakery.url("/bread"))
    plan, _, _, note, done, report = research_lines(bakery)
    team = await found_researching_team(
        world,
        plan,
        says(search, search, search),
        says(fetch, fetch),
        note,
        done,
        report,
        max_searches=2,
        max_pages=1,
    )
    await world.settle()
    node, reader, _ = await world.board(team.team.id)
    answers = [t for t in await world.turns(reader.id) if t.role == "tool"]
    refused = [t.text for t in answers if t.failed]
    assert len(bakery.requests) == 1
    assert [text.partition(" All")[0] for text in refused] == [
        "Not allowed: Budget exhausted — synthesise your findings now."
    ] * 2
    assert node.status is NodeStatus.COMPLETED
    found = await world.store.read(jobs.of_team, team.team.id)
    [job] = [each for each in found if each.node.id == node.id]
    assert job.used == {"web_search": 2, "web_fetch": 1}


@pytest.mark.slow
async def test_report_to_inbox_creation(world: World, bakery: Site) -> None:
    team = await found_researching_team(world, *research_lines(bakery))
    await world.settle()
    node, *_ = await world.board(team.team.id)
    [item] = [m for m in await world.inbox() if m.node_id == node.id]
    assert (item.kind, item.title) == ("report", "Research: How is bread baked?")
    assert item.text.startswith(DELIVERED)
    assert bakery.url("/bread") in item.text
    assert item.label == SEARCH | of_page("http://127.0.0.1")


@pytest.mark.slow
async def test_thread_reply_on_completion(world: World, bakery: Site) -> None:
    """The conversation that asked for it gets the summary, once, even across a restart."""
    team = await found_researching_team(world, *research_lines(bakery))
    await world.settle()
    await world.restart()
    await world.settle()
    [message] = await messages_to_person(world, team)
    assert message.text == (
        "The research is done (Research: How is bread baked?); all of it is in your inbox."
        "\n\nBread is baked at 230 degrees [1]."
    )
    assert len([m for m in await world.inbox() if m.kind == "report"]) == 1


async def test_failure_is_delivered_to_the_inbox_and_the_conversation(
    tmp_path: Path, database_url: str
) -> None:
    """Without a search engine nothing can be found, and nothing is made up."""
    async with World(tmp_path / "other", database_url=database_url) as world:
        world.script("rob")
        team = await world.found("Bake", start=False)
        node = await world.store.write(starting.start, hirer_of(team), "How is bread baked?")
        await world.settle()
        assert (await world.node(node.id)).status is NodeStatus.FAILED
        [item] = [m for m in await world.inbox() if m.node_id == node.id]
        assert (item.kind, item.title) == ("failure", "Research: How is bread baked?")
        assert item.text.startswith("There is no report. No search engine is set up")
        said = await world.store.read(
            messages.conversation, team.team.id, team.coordinator.id, OWNER
        )
        assert said[-1].text.startswith("I could not finish the research you asked for")


async def test_a_refused_model_call_becomes_a_question(world: World) -> None:
    team = await found_researching_team(world, *[ModelRefused("wrong key")] * 2)
    await world.settle()
    [question] = await world.questions(team.team.id)
    assert "wrong key" in question.text


@pytest.mark.slow
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
    work, node, *_ = await world.board(team.team.id)
    assert (node.parent_id, node.source, node.status) == (work.id, "delegation", "completed")
    assert [m.kind for m in await world.inbox() if m.node_id == node.id] == ["report"]
    answer = [t for t in await world.turns(work.id) if t.role == "tool"][1]
    assert DELIVERED in answer.text
    assert answer.label == SEARCH | of_page("http://127.0.0.1")


@pytest.mark.slow
async def test_research_that_its_starter_does_not_wait_for_is_delivered_once(
    world: World, bakery: Site
) -> None:
    """The person gets one report and one summary, the agent that asked one message."""
    ada = world.script(
        "ada",
        says(call("research_start", goal="How is bread baked?")),
        says(call("ask_human", question="Which oven?")),
        says(call("finish", summary="I know now.")),
    )
    world.script("rob", *research_lines(bakery))
    team = await world.found("Bake")
    await world.settle()
    await world.restart()
    [question] = await world.questions(team.team.id)
    await world.answer(question, "The old one.")
    await world.settle()
    _, node, *_ = await world.board(team.team.id)
    about = [m for m in await world.inbox() if m.node_id == node.id]
    assert [m.kind for m in about] == ["report"]
    said = await world.store.read(messages.conversation, team.team.id, team.coordinator.id, OWNER)
    assert len([m for m in said if m.node_id == node.id]) == 1
    heard = [t.text for t in ada.requests[-1].turns if t.role == "user" and node.id in t.text]
    assert len(heard) == 1


def _node_id_in(asked: Request) -> str:
    found = re.search(r"node_\w+", asked.transcript.turns[-2].text)
    assert found is not None
    return found[0]


@pytest.mark.slow
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
        ("Write the report", "done", None, "", {}),
        ("Read: How hot is bread baked?", "done", None, "", {"web_search": 1, "web_fetch": 1}),
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
    rob = world.script("rob", says(PLAN))
    rob.gate = asyncio.Event()
    await world.store.write(starting.start, hirer_of(team), "How is bread baked?")
    bob = await world.store.write(
        roster.hire, team.team.id, name="bob", role="worker", model="scripted/bob"
    )
    world.script("bob", says(call("ask_human", question="How?")))
    await _create_node(world, bob, "Clean")
    answered = asyncio.Event()

    def end(request: Request) -> Says:
        answered.set()
        return says("That is all.", call("no_work_needed"))

    ada = world.script("ada", says("Let me see.", call("job_status")), end)
    await world.chat(team.coordinator.id, "How far are you?")
    await answered.wait()
    answer = next(t.text for t in ada.requests[-1].turns if t.role == "tool")
    assert re.sub(r"node_\w+", "ID", answer).splitlines()[0] == (
        "- Research: How is bread baked? (ID, researcher): running, 0 of 16 searches used, "
        "0 of 24 pages used"
    )
    assert "- Clean (ID, bob): " in re.sub(r"node_\w+", "ID", answer)
    await world.store.write(_cancel_all, team.team.id)
    rob.gate.set()
    await world.settle()


def _cancel_all(tx: Tx, team_id: TeamId) -> None:
    for node in nodes.still_open(tx, team_id):
        endings.cancel(tx, node.id)


WRONG_REQUESTS = [
    ({"goal": " "}, "the goal is empty"),
    ({"goal": "x" * 20_001}, "holds 20,000 characters"),
    ({"goal": "x", "searches": -1}, "0 to 100 searches"),
    ({"goal": "x", "pages": 151}, "0 to 150 pages"),
]


async def test_an_invalid_research_request_is_refused(world: World) -> None:
    team = await world.found("Bake", start=False)
    hire = Hirer(team.coordinator, ThreadId("t_none"), {}, lambda name: None)
    for given, says_what in WRONG_REQUESTS:
        with pytest.raises(Refused, match=says_what):
            await world.store.write(starting.start, hire, **given)
    assert await world.board(team.team.id) == []


def test_a_summary_is_the_summary_section_or_the_beginning_of_the_report() -> None:
    assert delivery.summary(REPORT) == "Bread is baked at 230 degrees [e1]."
    assert delivery.summary("Just words.") == "Just words."
    assert len(delivery.summary("long " * 1000)) <= delivery.SUMMARY
    assert delivery.summary("# Antwort\n\nJa [1].\n\n# Mehr\n\nx") == "Ja [1]."
    assert delivery.summary("# Only\n# Headings") == "# Only\n# Headings"
