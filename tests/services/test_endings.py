"""An end is never refused, whatever a model, a program or a bug said; and nothing of it is lost."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from agiraph.domain.agents import Limits
from agiraph.domain.errors import ModelRefused
from agiraph.domain.messages import Message
from agiraph.domain.persons import OWNER
from agiraph.domain.work import Budget, NodeStatus, StopReason, WorkNode
from agiraph.services.lifecycle import endings
from agiraph.services.lifecycle.research import start as research
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.services.mail import bus
from agiraph.services.members import roster
from agiraph.services.members.hiring import Hirer
from agiraph.store.messages import MESSAGES
from agiraph.store.nodes import NODES
from agiraph.store.rows import to_text
from agiraph.store.teams import AGENTS
from agiraph.store.tx import Tx
from agiraph.testing import World, call, says
from agiraph.testing.scripted import Line
from tests.runtime.programs import run_program
from tests.runtime.reflecting_model import ReflectingModel, briefing, create_node
from tests.services.team import created, gathered, put

LIMIT = bus.TEXT_LIMIT
SIZES = (LIMIT - 1, LIMIT, LIMIT + 1, 100 * LIMIT)
ODD = {
    "blanks": " \n\t ",
    "nul": "before\0after",
    "half a pair": "before\ud800after",
    "long and odd": "é\0\ud800" * LIMIT,
}
RESULT = "_result.md"


def of_size(size: int) -> str:
    """So many characters whose end can be told from their beginning."""
    return "x" * (size - 4) + " end"


TEXTS = [*map(of_size, SIZES), *ODD.values()]
Ending = Callable[[World, str], Awaitable[WorkNode]]


_numbers = count(1)


def scripted(world: World, *lines: Line) -> str:
    """The name of a model that says these lines; a new one, because models are kept by name."""
    name = f"model{next(_numbers)}"
    world.script(name, *lines)
    return f"scripted/{name}"


async def sole(world: World, founded: NewTeam) -> WorkNode:
    await world.settle()
    return (await world.board(founded.team.id))[0]


async def in_words(world: World, text: str) -> WorkNode:
    ada = scripted(world, says(text), says(text), says(text))
    return await sole(world, await world.found("Answer", model=ada))


async def at_its_last_turn(world: World, text: str) -> WorkNode:
    ada = scripted(world, says(call("list_files")), says(text))
    return await sole(world, await world.found("Answer", model=ada, budget=Budget(turns=2)))


async def by_finish(world: World, text: str) -> WorkNode:
    short = says(call("finish", summary="short"))
    ada = scripted(world, says(call("finish", summary=text)), short)
    return await sole(world, await world.found("Answer", model=ada))


async def by_a_bug(world: World, text: str) -> WorkNode:
    ada = scripted(world, RuntimeError(text))
    return await sole(world, await world.found("Answer", model=ada))


async def by_a_checkpoint(world: World, text: str) -> WorkNode:
    ada = scripted(world, says(call("checkpoint", summary=text)), says(text))
    return await sole(world, await world.found("Answer", model=ada, budget=Budget(turns=2)))


async def of_a_child(world: World, text: str, **more: Any) -> WorkNode:
    """A child that ends in these words; whoever gave it waits for a person meanwhile."""
    asks = scripted(world, says(call("ask_human", question="Shall we?")))
    founded = await world.found("Answer", model=asks, **more)
    model = scripted(world, says(text), says(text), says(text))
    bob = await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model=model
    )
    node_id = await put(world, founded, "Help", to=bob)
    await world.settle()
    return await world.node(node_id)


async def of_a_child_waited_for(world: World, text: str) -> WorkNode:
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
        lambda request: says(call("start_stage", name="one", nodes=created(request))),
        says(call("finish", summary="all done")),
    )
    founded = await world.found("Answer", model=ada)
    await world.settle()
    goal, child = await world.board(founded.team.id)
    assert goal.result == "all done"
    return child


def ask_for_research(tx: Tx, founded: NewTeam) -> WorkNode:
    return research(tx, Hirer(founded.coordinator, None, {}, lambda _: None), "How?")  # type: ignore[arg-type]


async def of_research(world: World, text: str) -> WorkNode:
    rob = scripted(world, says(text), says(text), says(text))
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


WAYS: list[Ending] = [
    in_words,
    at_its_last_turn,
    by_finish,
    by_a_bug,
    by_a_checkpoint,
    of_a_child,
    of_a_child_waited_for,
    in_a_stage,
    of_research,
    of_a_reply,
    of_a_briefing,
    of_a_program,
]


async def told(world: World, node: WorkNode) -> list[Message]:
    return await world.store.read(MESSAGES.select, "team_id = :team order by id", team=node.team_id)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_no_text_keeps_a_node_from_ending(world: World, way: Ending) -> None:
    for text in TEXTS:
        node = await way(world, text)

        assert node.status.is_final, (node.status, len(text))
        said = await told(world, node)
        assert all(m.text.strip() and len(m.text) <= LIMIT for m in said), len(text)
        assert all(len(m.title) <= 200 for m in said), len(text)
        events = await world.events(node.team_id)
        longest = max(len(str(value)) for e in events for value in e.data.values())
        assert longest <= 2 * LIMIT, len(text)


@pytest.mark.parametrize("way", [in_words, at_its_last_turn, of_a_child, of_research, of_a_reply])
async def test_the_whole_of_a_long_text_is_in_a_file_that_the_message_names(
    world: World, way: Ending
) -> None:
    for text in (of_size(LIMIT), of_size(LIMIT + 1), of_size(100 * LIMIT), ODD["long and odd"]):
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


async def test_a_person_gets_a_long_answer_whole_up_to_the_limit(world: World) -> None:
    text = of_size(LIMIT)
    node = await in_words(world, text)

    [message] = await world.inbox()
    assert (message.kind, message.text, message.node_id) == ("result", text, node.id)


async def test_a_person_gets_the_beginning_of_a_longer_one_and_where_the_rest_is(
    world: World,
) -> None:
    text = of_size(LIMIT + 1)
    node = await in_words(world, text)

    [message] = await world.inbox()
    assert message.text == (
        f"{'x' * 20_000}\n\n… (80,001 characters more. The whole text is in "
        f"nodes/{node.id}/published/{RESULT}.)"
    )
    assert message.text == node.result


async def test_a_file_of_the_same_name_is_left_alone(world: World) -> None:
    text = of_size(LIMIT + 1)
    write = says(call("write_file", path=f"scratch/{RESULT}", content="mine"))
    world.script("ada", write, says(text), says(text))
    node = await sole(world, await world.found("Answer"))

    assert world.published(node) == {RESULT: "mine", "_result-2.md": text}
    assert node.result is not None
    assert "_result-2.md" in node.result


async def test_a_model_that_cannot_be_asked_for_a_long_reason_puts_the_work_before_a_person(
    world: World,
) -> None:
    world.script("ada", ModelRefused(of_size(LIMIT + 1)), says(call("finish", summary="ok")))
    founded = await world.found("Answer")
    node = await sole(world, founded)

    [question] = await world.questions(founded.team.id)
    assert (node.status, len(question.text) <= LIMIT) == (NodeStatus.WAITING, True)
    await world.answer(question, "Go on.")
    assert (await sole(world, founded)).result == "ok"


@pytest.mark.parametrize(
    ("many", "size"), [(1, 100 * LIMIT), (1, LIMIT), (20, 201), (21, LIMIT + 1), (60, 2000)]
)
async def test_dependents_end_whatever_the_titles_of_what_they_needed(
    world: World, many: int, size: int
) -> None:
    founded, _ = await gathered(world, limits=Limits(children=1000, nodes=1000))
    needed = [await put(world, founded, of_size(size)) for _ in range(many - 1)]
    last = await put(world, founded, of_size(size))
    waits = await put(world, founded, "All", depends_on=[*needed, last], if_unmet="ask")
    fails = await put(world, founded, "\0\ud800" * LIMIT, depends_on=[last])
    for node_id in [*needed, last]:
        await world.store.write(endings.cancel, node_id)
    await world.settle()

    assert (await world.node(fails)).stop_reason is StopReason.UNMET
    waiting = await world.node(waits)
    assert waiting.waiting_reason is not None
    assert len(waiting.waiting_reason) < 10_000
    said = await told(world, waiting)
    assert all(len(m.text) <= LIMIT and len(m.title) <= 200 for m in said)


async def test_long_evidence_and_many_files_do_not_keep_a_node_from_ending(world: World) -> None:
    founded, _ = await gathered(world)
    files = "for i in $(seq 300); do touch $(printf 'f%.0s' $(seq 200))$i; done"
    evidence = [f"file:{of_size(100 * LIMIT)}"]
    submit = says(call("publish", summary="Done.", evidence=evidence))
    world.script("bob", says(call("bash", command=files)), submit, submit)
    bob = await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/bob"
    )
    node_id = await put(world, founded, "Help", to=bob, acceptance=("It is there",))
    await world.settle()

    node = await world.node(node_id)
    assert (node.status, len(node.manifest)) == (NodeStatus.COMPLETED, 300)
    assert node.doubts is not None
    assert len(node.doubts) == 4000
    [result] = [m for m in await told(world, node) if m.kind == "result"]
    assert len(result.text) < 20_000


def retire(tx: Tx, agent_id: str) -> None:
    AGENTS.update(tx, agent_id, retired_at=tx.now)


async def test_an_end_is_told_to_somebody_when_nobody_is_left(world: World) -> None:
    founded, workers = await gathered(world, "bob")
    node_id = await put(world, founded, "wonder", to=workers["bob"])
    await world.settle()
    for agent in (founded.coordinator, workers["bob"]):
        await world.store.write(retire, agent.id)
    await world.store.write(endings.cancel, node_id)

    said = [m for m in await told(world, await world.node(node_id)) if m.node_id == node_id]
    assert [(m.kind, m.recipient) for m in said if m.kind == "failure"] == [("failure", OWNER)]


async def test_mail_that_a_full_team_cannot_take_up_does_not_keep_a_node_from_ending(
    world: World,
) -> None:
    founded, workers = await gathered(world, "bob", limits=Limits(agents=1 + 1))
    bob = workers["bob"]
    node_id = await put(world, founded, "wonder", to=bob)
    await world.settle()
    await world.store.write(  # a teammate: a person's words would end the wait for a person
        bus.send,
        team_id=founded.team.id,
        sender=founded.coordinator.id,
        recipient=bob.id,
        text="And then?",
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


async def test_a_report_of_research_that_a_node_started_comes_once(world: World) -> None:
    founded, _ = await gathered(world)
    world.script("rob", says("It is 4."), says("It is 4."))

    def begin(tx: Tx) -> WorkNode:
        assert founded.node is not None
        agent = AGENTS.get(tx, founded.coordinator.id)
        hirer = Hirer(agent, None, {}, lambda _: None)  # type: ignore[arg-type]
        node = research(tx, hirer, "How much?", parent_id=founded.node.id)
        AGENTS.update(tx, node.assignee_id or "", model="scripted/rob")
        return node

    node = await world.store.write(begin)
    await world.settle()

    assert [m.kind for m in await world.inbox() if m.node_id == node.id] == ["report"]
