"""Tool calls: each one gets one answer, be it valid, invalid or interrupted by a crash."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from agiraph.core.domain.errors import Misconfigured, Refused
from agiraph.core.domain.events.work import NodeCheckpoint
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.work import NodeStatus, Queue, StopReason
from agiraph.core.run_context import RunContext
from agiraph.core.services.lifecycle import claims
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import CUT_OFF, Effect, Tool, tool
from agiraph.core.tools.toolsets import toolset
from agiraph.testing import Call, PowerCut, World, call, says
from tests.tools.tool_calls import ToolAnswer, node_folder, refused, run_calls

FINISH = says(call("finish", summary="done"))
IN_DOUBT = (
    "The runtime was cut off while this call was under way. It may or may not have happened. "
    "Find out before you make it again."
)
CUT_OFF_THREE_TIMES = (
    "This call was cut off 3 times by a crash of the server. It is not made again. Go on without "
    "it."
)
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
WorldWith = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
def world_with(tmp_path: Path, database_url: str) -> WorldWith:
    """Return a function that opens a world with the test's own tools."""

    @asynccontextmanager
    async def open_world(*tools: Tool) -> AsyncGenerator[World]:
        async with World(
            tmp_path / "home", database_url=database_url, tools=tools, easy_endings=True
        ) as world:
            yield world

    return open_world


async def test_an_invalid_tool_call_is_answered_with_an_error_and_the_others_run(
    world: World,
) -> None:
    goal, told = await run_calls(
        world,
        call("write_file", path="a.md", content="x"),
        call("fly", to="the moon"),
        Call("write_file", raw='{"path": "b.md", "content'),
        call("write_file", path="b.md"),
        call("write_file", path="b.md", content=5),
        call("write_file", path="b.md", content="x", mode="w"),
        Call("write_file", {"path": "c.md", "content": "y"}),
    )

    usage = "It takes: path, content."
    tools = toolset(await world.agent(goal.assignee_id)).tools
    assert told == [
        ToolAnswer("Wrote a.md (1 bytes)."),
        refused(f"There is no tool called 'fly'. Your tools: {', '.join(tools)}."),
        refused(f"write_file: {CUT_OFF}"),
        refused(f"write_file: 'content' is missing. {usage}"),
        refused(f"write_file: 'content' is wrong (Input should be a valid string). {usage}"),
        refused(f"write_file: there is no argument 'mode'. {usage}"),
        ToolAnswer("Wrote c.md (1 bytes)."),
    ]
    assert world.published(goal) == {"a.md": "x", "c.md": "y"}


async def test_calls_with_the_same_id_get_an_answer_each(world: World) -> None:
    ada = world.script(
        "ada",
        says(*(Call("checkpoint", {"summary": f"{n}"}, id="same") for n in range(3))),
        says(Call("bash", {"command": "echo hello"}, id="same")),
        says(Call("bash", {"command": "echo again"}, id="../../same")),
        FINISH,
    )
    founded = await world.found("Repeat yourself")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    turns = await world.turns(goal.id)
    made_ids = [c.id for t in turns for c in t.calls]
    answered = [(t.ref, t.text) for t in turns if t.role == "tool"]
    assert len(set(made_ids)) == len(made_ids) == 6
    assert [ref for ref, _ in answered] == made_ids
    assert [text for _, text in answered] == [
        "Noted.",
        "Noted.",
        "Noted.",
        "[exit code 0]\nhello",
        "[exit code 0]\nagain",
        "Published: no files.",
    ]
    assert goal.checkpoint == "2"
    assert len(ada.requests) == 4


async def test_of_two_hundred_calls_in_one_reply_only_thirty_two_run(world: World) -> None:
    calls = [call("checkpoint", summary=f"{n}") for n in range(200)]
    goal, told = await run_calls(world, *calls)

    over = refused("Not made: at most 32 calls a turn. Make it again.")
    assert told == [ToolAnswer("Noted.")] * 32 + [over] * 168
    assert goal.checkpoint == "31"


async def test_calls_after_a_question_run_before_the_node_parks(world: World) -> None:
    ada = world.script(
        "ada",
        says(
            call("ask_human", question="Which?"),
            call("write_file", path="a.md", content="x"),
            call("ask_human", question="When?"),
        ),
        FINISH,
    )
    founded = await world.found("Ask and go on")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.waiting_reason) == (
        NodeStatus.WAITING,
        "asked the human: Which?; asked the human: When?",
    )
    assert (node_folder(world, goal) / "scratch" / "a.md").read_text() == "x"
    for question in await world.questions(founded.team.id):
        await world.answer(question, f"{question.text} Now.")
    await world.settle()
    answers = {t.ref: t.text for t in ada.requests[-1].turns if t.role == "tool"}
    assert answers == {
        "call_1": "Which? Now.",
        "call_2": "Wrote a.md (1 bytes).",
        "call_3": "When? Now.",
    }


async def test_an_answer_that_comes_while_other_calls_run_is_not_missed(
    world_with: WorldWith,
) -> None:
    @tool(effect="repeatable")
    async def dawdle(ctx: RunContext) -> Answer:
        """Take so long that the person answers meanwhile."""
        [question] = await world.questions(ctx.team.id)
        await world.answer(question, "This one.")
        return Done("Done dawdling.")

    async with world_with(dawdle) as world:
        ada = world.script(
            "ada", says(call("ask_human", question="Which?"), call("dawdle")), FINISH
        )
        founded = await world.found("Ask and dawdle")
        await world.settle()

        [goal] = await world.board(founded.team.id)
        answers = {t.ref: t.text for t in ada.requests[-1].turns if t.role == "tool"}
        assert (goal.status, goal.result) == (NodeStatus.COMPLETED, "done")
        assert answers == {"call_1": "This one.", "call_2": "Done dawdling."}


@on_sqlite
@pytest.mark.parametrize("error", [Refused("Not like this."), Misconfigured("No key is set.")])
async def test_a_tools_refusal_is_shown_to_the_model(
    world_with: WorldWith, error: Exception
) -> None:
    @tool(effect="repeatable")
    async def refuse(ctx: RunContext) -> Answer:
        """Refuse."""
        raise error

    async with world_with(refuse) as world:
        goal, told = await run_calls(world, call("refuse"))

        assert (told, goal.result) == ([refused(str(error))], "done")


@on_sqlite
async def test_an_exception_in_a_tool_fails_the_node_with_its_message(
    world_with: WorldWith,
) -> None:
    @tool(effect="repeatable")
    async def stumble(ctx: RunContext) -> Answer:
        """Stumble."""
        raise ZeroDivisionError("stumbled")

    async with world_with(stumble) as world:
        world.script("ada", says(call("stumble")))
        founded = await world.found("Stumble")
        await world.settle()

        [goal] = await world.board(founded.team.id)
        [told] = await world.inbox()
        assert (goal.status, goal.stop_reason) == (NodeStatus.FAILED, StopReason.BROKEN)
        assert (told.kind, told.text) == ("failure", "ZeroDivisionError: stumbled")


@on_sqlite
@pytest.mark.parametrize(
    ("effect", "answer", "times"),
    [("repeatable", "Tried 2 times.", 2), ("once", IN_DOUBT, 1)],
)
async def test_a_call_interrupted_by_a_crash_is_repeated_or_reported_as_in_doubt(
    world_with: WorldWith, effect: Effect, answer: str, times: int
) -> None:
    tried: list[str] = []

    @tool(effect=effect)
    async def attempt(ctx: RunContext) -> Answer:
        """Try."""
        tried.append(ctx.current_call_id)
        if len(tried) == 1:
            raise PowerCut
        return Done(f"Tried {len(tried)} times.")

    async with world_with(attempt) as world:
        ada = world.script(
            "ada",
            says(
                call("checkpoint", summary="before"),
                call("attempt"),
                call("write_file", path="after.md", content="x"),
            ),
            FINISH,
        )
        founded = await world.found("Try")
        await world.settle()
        await world.restart()
        await world.settle()

        [goal] = await world.board(founded.team.id)
        answers = [t.text for t in ada.requests[-1].turns if t.role == "tool"]
        assert answers == ["Noted.", answer, "Wrote after.md (1 bytes)."]
        assert (len(tried), len(ada.requests), goal.attempt) == (times, 2, 2)
        noted = [e for e in await world.events(goal.team_id) if e.type == "node.checkpoint"]
        assert len(noted) == 1


@pytest.mark.parametrize(
    ("effect", "answer", "times"),
    [("repeatable", CUT_OFF_THREE_TIMES, 3), ("once", IN_DOUBT, 1)],
)
async def test_after_three_crashes_a_call_is_answered_and_those_after_it_are_made(
    world_with: WorldWith, effect: Effect, answer: str, times: int
) -> None:
    """Also if finding out what came of the call is what crashes."""
    tried: list[str] = []

    async def crash(*_: object) -> None:
        raise PowerCut

    @tool(effect=effect, resolve=crash)
    async def attempt(ctx: RunContext) -> Answer:
        """Try."""
        tried.append(ctx.current_call_id)
        raise PowerCut

    async with world_with(attempt) as world:
        after = call("write_file", path="after.md", content="x")
        ada = world.script("ada", says(call("attempt"), after), FINISH)
        founded = await world.found("Try")
        for _ in range(3):
            await world.settle()
            await world.restart()
        await world.settle()

        answers = [(t.text, t.failed) for t in ada.requests[-1].turns if t.role == "tool"]
        assert answers == [(answer, True), ("Wrote after.md (1 bytes).", False)]
        [goal] = await world.board(founded.team.id)
        assert (goal.status, len(tried)) == (NodeStatus.COMPLETED, times)
        assert await world.questions(founded.team.id) == []


@on_sqlite
async def test_a_transaction_interrupted_by_a_crash_leaves_nothing_and_runs_again(
    world_with: WorldWith,
) -> None:
    tried: list[int] = []

    @tool(effect="transaction")
    def note(tx: Tx, ctx: RunContext) -> Answer:
        """Note something."""
        tx.emit(ctx.team.id, NodeCheckpoint(node_id=ctx.node.id, summary="noted"))
        tried.append(1)
        if len(tried) == 1:
            raise PowerCut
        return Done("Noted.")

    async with world_with(note) as world:
        world.script("ada", says(call("note")), FINISH)
        founded = await world.found("Note")
        await world.settle()
        await world.restart()
        await world.settle()

        events = await world.events(founded.team.id)
        assert len(tried) == 2
        assert len([e for e in events if e.type == "node.checkpoint"]) == 1
        assert (await world.board(founded.team.id))[0].result == "done"


@on_sqlite
async def test_a_persons_message_never_stands_between_a_call_and_its_answer(
    world_with: WorldWith,
) -> None:
    tried: list[int] = []

    @tool(effect="repeatable")
    async def attempt(ctx: RunContext) -> Answer:
        """Try."""
        tried.append(1)
        if len(tried) == 1:
            raise PowerCut
        return Done("It worked.")

    async with world_with(attempt) as world:
        ada = world.script("ada", says(call("attempt")), FINISH)
        founded = await world.found("Try")
        await world.settle()
        await world.runtime.stop()
        # The next runs die before they settle the call.
        [goal] = await world.board(founded.team.id)
        await world.store.write(NODES.update, goal.id, owner=None)
        queue = Queue(founded.coordinator.id, "work")
        while not await world.questions(founded.team.id):
            await world.store.write(claims.claim, queue, owner="one that dies at once")
        [question] = await world.questions(founded.team.id)
        await world.restart()
        await world.answer(question, "Try again.")
        await world.settle()

        [goal] = await world.board(founded.team.id)
        last = [(t.role, t.text) for t in ada.requests[-1].turns if t.role != "intent"][-2:]
        assert goal.result == "done"
        assert last[0] == ("tool", "It worked.")
        assert last[1][0] == "user"
        assert "Try again." in last[1][1]
