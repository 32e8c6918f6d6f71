"""Every node can end, whatever text a model, a program or an exception gives; no text is lost."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from agiraph.core.domain.agents import Limits
from agiraph.core.domain.errors import ModelRefused
from agiraph.core.domain.messages import Draft, Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.text import fence
from agiraph.core.domain.work import Budget, NodeStatus, StopReason, WorkNode
from agiraph.core.services.board import texts
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.services.members.roster import Hirer
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.rows import to_text
from agiraph.core.store.teams import AGENTS
from agiraph.core.store.tx import Tx
from agiraph.features.research.verbs.starting import start as research
from agiraph.testing import World, call, says
from agiraph.testing.scripted import Line
from tests.runtime.programs import run_program
from tests.runtime.reflecting_model import ReflectingModel, briefing, create_node
from tests.services.teams import add_child, created_ids, found_waiting_team

LIMIT = bus.TEXT_LIMIT
SIZES = (LIMIT - 1, LIMIT, LIMIT + 1, 10 * LIMIT)
ODD = {
    "blanks": " \n\t ",
    "nul": "before\0after",
    "half a pair": "before\ud800after",
    "long and odd": "é\0\ud800" * (LIMIT // 2),
}
RESULT = "_result.md"


def of_size(size: int) -> str:
    """Return a text of this many characters that ends differently than it starts."""
    return "x" * (size - 4) + " end"


SILENT = "The model made no tool call in 3 replies in a row.\n\nWhat there is so far:\n"
TEXTS = [*map(of_size, SIZES), *ODD.values()]
KINDS = [*map(of_size, SIZES[1:]), ODD["blanks"], ODD["long and odd"]]
"""A text of each kind; the others are left to the long runs."""
ODDEST = [ODD["blanks"], ODD["long and odd"]]
"""On PostgreSQL: it takes no NUL and no half pair; sizes are judged before the database."""
EndNode = Callable[[World, str], Awaitable[WorkNode]]


_numbers = count(1)


def scripted(world: World, *lines: Line) -> str:
    """Return the name of a new model with these lines; models are cached by name."""
    name = f"model{next(_numbers)}"
    world.script(name, *lines)
    return f"scripted/{name}"


async def first_node(world: World, founded: NewTeam) -> WorkNode:
    await world.settle()
    return (await world.board(founded.team.id))[0]


async def in_a_text_reply(world: World, text: str) -> WorkNode:
    ada = scripted(world, says(text), says(text), says(text))
    return await first_node(world, await world.found("Answer", model=ada))


async def at_its_last_turn(world: World, text: str) -> WorkNode:
    ada = scripted(world, says(call("list_files")), says(text))
    return await first_node(world, await world.found("Answer", model=ada, budget=Budget(turns=2)))


async def by_finish(world: World, text: str) -> WorkNode:
    short = says(call("finish", summary="short"))
    ada = scripted(world, says(call("finish", summary=text)), short)
    return await first_node(world, await world.found("Answer", model=ada))


async def by_an_exception(world: World, text: str) -> WorkNode:
    ada = scripted(world, RuntimeError(text))
    return await first_node(world, await world.found("Answer", model=ada))


async def by_a_checkpoint(world: World, text: str) -> WorkNode:
    ada = scripted(world, says(call("checkpoint", summary=text)), says(text))
    return await first_node(world, await world.found("Answer", model=ada, budget=Budget(turns=2)))


async def of_a_child(world: World, text: str, **more: Any) -> WorkNode:
    """End a child node with this text while its parent waits for a person."""
    asks = scripted(world, says(call("ask_human", question="Shall we?")))
    founded = await world.found("Answer", model=asks, **more)
    model = scripted(world, says(text), says(text), says(text))
    bob = await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model=model
    )
    node_id = await add_child(world, founded, "Help", to=bob)
    await world.settle()
    return await world.node(node_id)


async def of_an_awaited_child(world: World, text: str) -> WorkNode:
    bob = scripted(world, says(text), says(text), says(text))
    task = call("assign_task", agent=f"new:{bob}", task="Help", description="Help")
    ada = scripted(world, says(task), says(call("finish", summary="all done")))
    founded = await world.found("Answer", model=ada)
    await world.settle()
    goal, child = await world.board(founded.team.id)
    assert goal.result == "all done"
    return child


async def in_a_stage(world: World, text: str) -> WorkNode:
    bob = scripted(world, says(text), says(text), says(text))
    ada = scripted(
        world,
        says(call("create_work_node", task="Help", assigned_to=f"new:{bob}")),
        lambda request: says(call("start_stage", name="one", nodes=created_ids(request))),
        says(call("finish", summary="all done")),
    )
    founded = await world.found("Answer", model=ada)
    await world.settle()
    goal, child = await world.board(founded.team.id)
    assert goal.result == "all done"
    return child


def ask_for_research(tx: Tx, founded: NewTeam) -> WorkNode:
    # With an address, because there is no search engine.
    asked = "What does http://nowhere.invalid/ say?"
    return research(tx, Hirer(founded.coordinator, None, {}, lambda _: None), asked)  # type: ignore[arg-type]


async def of_research(world: World, text: str) -> WorkNode:
    rob = scripted(world, *[says(text)] * 8)
    founded = await world.found("Look", model=rob, start=False)
    node = await world.store.write(ask_for_research, founded)
    await world.settle()
    return await world.node(node.id)


async def of_a_reply(world: World, text: str) -> WorkNode:
    ada = scripted(world, says(text, call("no_work_needed")), *[says(text)] * 6)
    founded = await world.found("Talk", model=ada, start=False)
    await world.chat(founded.coordinator.id, "How are you?")
    await world.settle()
    where = "team_id = :team and lane = 'reply'"
    [node] = await world.store.read(NODES.select, where, team=founded.team.id)
    return node


async def of_a_briefing(world: World, text: str) -> WorkNode:
    name = f"thinker{next(_numbers)}"
    world.model(name, ReflectingModel(name=f"scripted/{name}", verdict=[briefing(text, text)]))
    founded = await world.found(
        "Watch", model=f"scripted/{name}", learns=True, start=False, mode="infinite"
    )
    await create_node(world, founded.team.id, founded.coordinator.id)
    await world.settle()
    where = "team_id = :team and lane = 'reflection'"
    [node] = await world.store.read(NODES.select, where, team=founded.team.id)
    return node


async def of_a_program(world: World, text: str) -> WorkNode:
    file = world.path / "said"
    file.write_bytes(text.encode(errors="surrogatepass"))
    return await run_program(world, f"cat {file} > _result.md")


WAYS: list[EndNode] = [
    in_a_text_reply,
    at_its_last_turn,
    by_finish,
    by_an_exception,
    by_a_checkpoint,
    of_a_child,
    of_an_awaited_child,
    in_a_stage,
    of_research,
    of_a_reply,
    of_a_briefing,
    of_a_program,
]


async def messages_of(world: World, node: WorkNode) -> list[Message]:
    return await world.store.read(MESSAGES.select, "team_id = :team order by id", team=node.team_id)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_any_text_lets_a_node_end(world: World, way: EndNode, database_url: str) -> None:
    for text in KINDS if database_url.startswith("sqlite") else ODDEST:
        await check_that_it_ends(world, way, text)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_text_of_ten_million_characters_lets_a_node_end(world: World, way: EndNode) -> None:
    for text in (*TEXTS, of_size(100 * LIMIT)):
        await check_that_it_ends(world, way, text)


async def check_that_it_ends(world: World, way: EndNode, text: str) -> None:
    node = await way(world, text)

    assert node.status.is_final, (node.status, len(text))
    said = await messages_of(world, node)
    assert all(m.text.strip() and len(m.text) <= LIMIT for m in said), len(text)
    assert all(len(m.title) <= 200 for m in said), len(text)
    events = await world.events(node.team_id)
    longest = max(len(str(value)) for e in events for value in e.data.values())
    assert longest <= 2 * LIMIT, len(text)


@pytest.mark.slow
@pytest.mark.parametrize("way", [in_a_text_reply, at_its_last_turn, of_a_child, of_a_reply])
async def test_a_text_over_the_limit_is_published_in_a_file_that_the_result_names(
    world: World, way: EndNode
) -> None:
    for text in (of_size(LIMIT), of_size(LIMIT + 1), of_size(10 * LIMIT), ODD["long and odd"]):
        node = await way(world, text)

        if len(text) > LIMIT:
            assert world.published(node) == {RESULT: to_text(text)}
            assert node.result is not None
            assert node.result.endswith(
                f" The whole text is in nodes/{node.id}/published/{RESULT}.)"
            )
            assert len(node.result) < LIMIT
        else:
            assert node.result == text


async def test_a_result_up_to_the_limit_reaches_the_person_whole(world: World) -> None:
    text = of_size(LIMIT // 2)
    node = await in_a_text_reply(world, text)

    [message] = await world.inbox()
    assert (message.kind, message.text, message.node_id) == ("failure", SILENT + text, node.id)


async def test_a_result_over_the_limit_reaches_the_person_shortened_with_the_files_path(
    world: World,
) -> None:
    text = of_size(LIMIT + 1)
    node = await in_a_text_reply(world, text)

    [message] = await world.inbox()
    assert message.text == SILENT + (
        f"{'x' * 20_000}\n\n… (80,001 characters more. The whole text is in "
        f"nodes/{node.id}/published/{RESULT}.)"
    )
    assert message.text == f"{SILENT}{node.result}"


async def test_an_existing_result_file_is_not_overwritten(world: World) -> None:
    text = of_size(LIMIT + 1)
    write = says(call("write_file", path=f"scratch/{RESULT}", content="mine"))
    world.script("ada", write, says(text), says(text), says(text))
    node = await first_node(world, await world.found("Answer"))

    assert world.published(node) == {RESULT: "mine", "_result-2.md": text}
    assert node.result is not None
    assert "_result-2.md" in node.result


async def test_a_model_error_with_a_very_long_message_still_becomes_a_question(
    world: World,
) -> None:
    world.script("ada", ModelRefused(of_size(LIMIT + 1)), says(call("finish", summary="ok")))
    founded = await world.found("Answer")
    node = await first_node(world, founded)

    [question] = await world.questions(founded.team.id)
    assert (node.status, len(question.text) <= LIMIT) == (NodeStatus.WAITING, True)
    await world.answer(question, "Go on.")
    assert (await first_node(world, founded)).result == "ok"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("many", "size"),
    [
        (1, 10 * LIMIT),
        (1, LIMIT),
        (20, 201),
        (21, 2000),
        pytest.param(21, LIMIT + 1, marks=pytest.mark.long),
        pytest.param(1, 100 * LIMIT, marks=pytest.mark.long),
        pytest.param(60, 2000, marks=pytest.mark.long),
    ],
)
async def test_dependents_end_however_long_the_titles_of_their_dependencies(
    world: World, many: int, size: int
) -> None:
    founded, _ = await found_waiting_team(world, limits=Limits(children=1000, nodes=1000))
    needed = [await add_child(world, founded, of_size(size)) for _ in range(many - 1)]
    last = await add_child(world, founded, of_size(size))
    waits = await add_child(world, founded, "All", depends_on=[*needed, last], if_unmet="ask")
    fails = await add_child(world, founded, "\0\ud800" * (LIMIT // 2), depends_on=[last])
    for node_id in [*needed, last]:
        await world.store.write(endings.cancel, node_id)
    await world.settle()

    assert (await world.node(fails)).stop_reason is StopReason.UNMET
    waiting = await world.node(waits)
    assert waiting.waiting_reason is not None
    assert len(waiting.waiting_reason) < 10_000
    said = await messages_of(world, waiting)
    assert all(len(m.text) <= LIMIT and len(m.title) <= 200 for m in said)


@pytest.mark.slow
async def test_long_evidence_and_many_files_do_not_keep_a_node_from_ending(world: World) -> None:
    founded, _ = await found_waiting_team(world)
    files = "for i in $(seq 300); do touch $(printf 'f%.0s' $(seq 200))$i; done"
    evidence = [f"file:{of_size(LIMIT)}"]
    submit = says(call("publish", summary="Done.", evidence=evidence))
    world.script("bob", says(call("bash", command=files)), submit, submit)
    bob = await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/bob"
    )
    node_id = await add_child(world, founded, "Help", to=bob, acceptance=("It is there",))
    await world.settle()

    node = await world.node(node_id)
    assert (node.status, len(node.manifest)) == (NodeStatus.COMPLETED, 300)
    [doubt] = node.doubts
    assert len(doubt.words) == 4000
    [result] = [m for m in await messages_of(world, node) if m.kind == "result"]
    assert len(result.text) < 20_000


def retire(tx: Tx, agent_id: str) -> None:
    AGENTS.update(tx, agent_id, retired_at=tx.now)


async def test_a_cancelled_node_is_reported_to_the_person_when_no_agent_is_left(
    world: World,
) -> None:
    founded, workers = await found_waiting_team(world, "bob")
    node_id = await add_child(world, founded, "wonder", to=workers["bob"])
    await world.settle()
    for agent in (founded.coordinator, workers["bob"]):
        await world.store.write(retire, agent.id)
    await world.store.write(endings.cancel, node_id)

    said = [m for m in await messages_of(world, await world.node(node_id)) if m.node_id == node_id]
    assert [(m.kind, m.recipient) for m in said if m.kind == "failure"] == [("failure", OWNER)]


async def test_unread_mail_for_a_retired_agent_of_a_full_team_does_not_block_the_end(
    world: World,
) -> None:
    founded, workers = await found_waiting_team(world, "bob", limits=Limits(agents=1 + 1))
    bob = workers["bob"]
    node_id = await add_child(world, founded, "wonder", to=bob)
    await world.settle()
    await world.store.write(  # from a teammate: a person's message would end the wait
        bus.send,
        Draft(
            team_id=founded.team.id,
            sender=founded.coordinator.id,
            recipient=bob.id,
            text="And then?",
        ),
    )
    await world.store.write(retire, bob.id)
    await world.store.write(
        roster.hire, founded.team.id, name="cyd", role="worker", model="scripted/hand"
    )
    await world.store.write(endings.cancel, node_id)

    assert (await world.node(node_id)).status is NodeStatus.CANCELLED
    [unread] = await world.store.read(
        MESSAGES.select, "recipient = :bob and seen_at is null", bob=bob.id
    )
    assert unread.text == "And then?"


async def test_a_research_report_for_a_node_is_delivered_once(world: World) -> None:
    founded, _ = await found_waiting_team(world)
    world.script("rob", says("Two."), says("Four."), says(call("done", summary="It is 4.")))

    def begin(tx: Tx) -> WorkNode:
        assert founded.node is not None
        agent = AGENTS.get(tx, founded.coordinator.id)
        hirer = Hirer(agent, None, {}, lambda _: None)  # type: ignore[arg-type]
        asked = "How much is it on http://nowhere.invalid/?"
        node = research(tx, hirer, asked, parent_id=founded.node.id)
        AGENTS.update(tx, node.assignee_id or "", model="scripted/rob")
        return node

    node = await world.store.write(begin)
    await world.settle()

    assert [m.kind for m in await world.inbox() if m.node_id == node.id] == ["report"]


async def test_a_result_that_repeats_a_fence_is_stored_and_reported_without_its_marks(
    world: World,
) -> None:
    page = fence.enclose_foreign("Bread: 2 €.", thread="thread_1", source="the file prices.txt")
    world.script("ada", says(call("finish", summary=f"The file says:\n{page}\nThat is all.")))
    founded = await world.found("Read the prices")
    await world.settle()

    said = "The file says:\nBread: 2 €.\nThat is all."
    [node] = await world.board(founded.team.id)
    [message] = await world.store.read(
        lambda tx: MESSAGES.select(tx, "node_id = :id and kind = 'result'", id=node.id)
    )
    [ended] = [e for e in await world.events(founded.team.id) if e.type == "node.completed"]
    assert (node.result, message.text, ended.data["result"]) == (said, said, said)
    assert (message.title, node.title) == ("Read the prices", "Get to work on the goal")


def test_of_very_many_doubts_the_last_point_gives_the_number_of_the_rest() -> None:
    doubts = [Doubt(kind="file", words=f"{n} " + "x" * 500) for n in range(130)]
    kept = texts.fit_doubts(doubts)
    assert [len(doubt.words) for doubt in kept[:-1]] == [200] * 99
    assert (kept[-1].kind, kept[-1].words) == ("more", "and 31 more points")
    assert texts.fit_doubts(doubts[:2]) == tuple(doubts[:2])
