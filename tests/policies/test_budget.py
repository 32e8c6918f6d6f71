"""A node stops at its budget: warned before, landed with its files so far, no call too many."""

import json
from dataclasses import dataclass, field, replace

import pytest

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.work import Budget, NodeStatus, StopReason, Usage, WorkNode
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import Call, PowerCut, Says, World, call, says
from tests.tools.tool_calls import ToolAnswer, node_folder, run_calls

LANDING = (
    "[Budget] The budget of this work is spent ({}) and your tools are gone. Write the final "
    "answer now: what you achieved, where it is, and what whoever goes on should do next."
)
SPENT = "It stopped at a limit before it was done: {}."


def note(number: int) -> Says:
    return says(f"Note {number}.", call("write_file", path=f"{number}.md", content="x"))


async def run(world: World, budget: Budget) -> WorkNode:
    founded = await world.found("Take notes", budget=budget)
    await world.settle()
    return await only_node(world, founded)


async def only_node(world: World, founded: NewTeam) -> WorkNode:
    [node] = await world.board(founded.team.id)
    return node


def is_partial(world: World, node: WorkNode) -> bool:
    manifest = node_folder(world, node) / "published" / "_manifest.json"
    return json.loads(manifest.read_text())["partial"]


async def test_the_last_turn_is_for_landing_and_publishes_the_files_so_far(world: World) -> None:
    ada = world.script("ada", note(1), note(2), says("Two notes; a third is missing."))
    node = await run(world, Budget(turns=3))

    [told] = await world.inbox()
    assert (node.status, node.stop_reason, node.result) == (
        NodeStatus.PARTIAL,
        StopReason.TURNS_SPENT,
        "Two notes; a third is missing.",
    )
    assert (world.published(node), is_partial(world, node)) == ({"1.md": "x", "2.md": "x"}, True)
    assert (ada.heard, ada.requests[-1].tools) == (LANDING.format("turns_spent"), ())
    so_far = "\n\nWhat there is so far:\nTwo notes; a third is missing."
    assert (told.kind, told.text) == ("failure", SPENT.format("its turns are used up") + so_far)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("turns", [1, 2, 7])
async def test_a_model_is_called_as_often_as_the_turn_limit_allows(
    world: World, turns: int
) -> None:
    ada = world.script("ada", *(note(n) for n in range(20)))
    node = await run(world, Budget(turns=turns))

    assert (node.stop_reason, len(ada.requests)) == (StopReason.TURNS_SPENT, turns)
    assert node.result == f"Note {turns - 1}."


async def test_when_the_tokens_are_used_up_landing_makes_no_call(world: World) -> None:
    ada = world.script("ada", *(note(n) for n in range(1, 9)))
    node = await run(world, Budget(tokens=300))

    assert (node.stop_reason, node.result) == (StopReason.TOKENS_SPENT, "Note 3.")
    assert len(ada.requests) == 3  # of 120 tokens each
    assert (sorted(world.published(node)), is_partial(world, node)) == (
        ["1.md", "2.md", "3.md"],
        True,
    )


@dataclass
class PricedModel:
    """Costs 40 cents a call."""

    name: str = "scripted/ada"
    asked: int = field(default=0)

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        self.asked += 1
        made = ToolCall(id="", name="checkpoint", arguments={"summary": f"{self.asked}"})
        return Reply(text=f"Call {self.asked}.", calls=(made,), usage=Usage(usd=0.4))


async def test_when_the_money_is_used_up_landing_makes_no_call(world: World) -> None:
    model = PricedModel()
    world.model("ada", model)
    node = await run(world, Budget(usd=1.0))

    assert (node.stop_reason, node.result) == (StopReason.MONEY_SPENT, "Call 3.")
    assert model.asked == 3


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(tokens=0), StopReason.TOKENS_SPENT),
        (Budget(usd=0.0), StopReason.MONEY_SPENT),
        (Budget(tokens=0, turns=1), StopReason.TOKENS_SPENT),
    ],
)
async def test_an_empty_envelope_starts_no_call(
    world: World, budget: Budget, reason: StopReason
) -> None:
    ada = world.script("ada", note(1))
    node = await run(world, budget)

    assert (ada.requests, node.status, node.stop_reason, node.result) == (
        [],
        NodeStatus.FAILED,
        reason,
        None,
    )
    assert world.published(node) == {}


async def test_when_the_time_is_used_up_a_last_answer_is_requested(world: World) -> None:
    def slowly(number: int) -> Says:
        world.clock.advance(seconds=50)
        return note(number)

    ada = world.script(
        "ada", lambda _: slowly(1), lambda _: slowly(2), says("Out of time with two notes.")
    )
    node = await run(world, Budget(seconds=60))

    assert (node.stop_reason, node.result) == (
        StopReason.TIME_SPENT,
        "Out of time with two notes.",
    )
    assert (ada.heard, len(ada.requests)) == (LANDING.format("time_spent"), 3)


async def test_a_tool_may_be_called_as_often_as_its_limit_allows(world: World) -> None:
    _, told = await run_calls(
        world,
        call("bash", command="echo 1"),
        call("checkpoint", summary="Half."),
        call("bash", command="echo 2"),
        budget=Budget(calls={"bash": 2}),
    )
    assert told == [
        ToolAnswer("[exit code 0]\n1"),
        ToolAnswer("Noted."),
        ToolAnswer("[exit code 0]\n2"),
    ]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_calls_of_a_tool_are_counted_over_turns_and_restarts(world: World) -> None:
    world.script(
        "ada",
        says(call("bash", command="echo 1")),
        says(call("bash", command="echo 2"), call("ask_human", question="On?")),
        says(call("bash", command="echo 3 > a")),
        says(call("finish", summary="done")),
    )
    founded = await world.found("Run", budget=Budget(calls={"bash": 2}))
    await world.settle()
    await world.restart()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Yes.")
    await world.settle()

    node = await only_node(world, founded)
    answers = [t.text for t in await world.turns(node.id) if t.role == "tool"]
    used = "all 2 calls of bash that this work had are used; go on without it."
    assert answers[3] == f"Not allowed: {used}"
    assert world.published(node) == {}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_many_calls_in_one_reply_do_not_exceed_a_tools_limit(world: World) -> None:
    calls: list[Call] = [call("bash", command=f"echo {n} >> a") for n in range(6)]
    node, told = await run_calls(world, *calls, budget=Budget(calls={"bash": 2}))

    assert world.published(node) == {"a": "0\n1\n"}
    assert [t.failed for t in told] == [False] * 2 + [True] * 4


async def test_near_the_end_the_model_is_warned_once_for_each_limit(world: World) -> None:
    dear = [replace(note(n), input_tokens=8980) for n in range(9)]
    world.script("ada", *dear, note(10), says("Ten notes."))
    founded = await world.found("Take notes", budget=Budget(turns=11, tokens=100_000))
    await world.settle()

    node = await only_node(world, founded)
    heard = [t.text for t in await world.turns(node.id) if t.role == "user"]
    advice = "Bring the most important part to an end now, and submit before the rest is gone."
    assert heard == [
        "Take notes",
        f"[Budget] 8 of 10 turns are used. {advice}",
        f"[Budget] 81,000 of 100,000 tokens are used. {advice}",
        LANDING.format("turns_spent"),
    ]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_warning_is_not_repeated_after_a_restart(world: World) -> None:
    ask = says(call("ask_human", question="On?"))
    world.script("ada", note(1), note(2), note(3), note(4), ask, says("Four notes."))
    founded = await world.found("Take notes", budget=Budget(turns=6))
    await world.settle()
    await world.restart()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Yes.")
    await world.settle()

    node = await only_node(world, founded)
    warned = [t for t in await world.turns(node.id) if (t.ref or "").startswith("budget:")]
    assert (len(warned), node.result) == (1, "Four notes.")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_crash_during_landing_does_not_prevent_it(world: World) -> None:
    ada = world.script("ada", note(1), PowerCut(), says("One note."))
    founded = await world.found("Take notes", budget=Budget(turns=2))
    await world.settle()
    await world.restart()
    await world.settle()

    node = await only_node(world, founded)
    landings = [t for t in await world.turns(node.id) if t.ref == "landing"]
    assert (node.stop_reason, node.result) == (StopReason.TURNS_SPENT, "One note.")
    assert (len(landings), len(ada.requests), node.attempt) == (1, 3, 2)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_tool_calls_in_the_last_answer_are_not_made(world: World) -> None:
    world.script("ada", note(1), note(2))
    node = await run(world, Budget(turns=2))

    assert (node.result, world.published(node)) == ("Note 2.", {"1.md": "x"})
