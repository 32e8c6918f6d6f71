"""An extension raises the limits of a node: of one that a limit ended, and of one that works."""

from dataclasses import dataclass

import pytest

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.work import Budget, Extension, NodeStatus, StopReason, WorkNode
from agiraph.core.services.lifecycle import continuations, teams
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import World, call, says
from agiraph.testing.scripted import Line, ScriptedModel
from tests.services.teams import add_child, found_waiting_team
from tests.services.test_retries import CALL, FINISH, LOOK, create_child, fail_at_limit
from tests.wording import Wording

R, S = StopReason, NodeStatus
LAST_WORDS = says("That is all.")


async def extend(world: World, node_id: str, more: Extension) -> WorkNode:
    await world.store.write(continuations.extend, NodeId(node_id), more, by="human")
    await world.settle()
    return await world.node(NodeId(node_id))


async def refusal(world: World, node_id: str, more: Extension) -> str:
    with pytest.raises(Refused) as refused:
        await world.store.write(continuations.extend, NodeId(node_id), more, by="human")
    return str(refused.value)


async def spend(world: World, node_id: str, tokens: int) -> None:
    def write(tx: Tx) -> None:
        tx.run("update spend set input_tokens = :t where node_id = :id", t=tokens, id=node_id)

    await world.store.write(write)


async def test_a_partial_goal_goes_on_in_its_thread_and_reopens_the_team(world: World) -> None:
    node = await fail_at_limit(world, Budget(turns=3), LAST_WORDS, FINISH)
    assert (node.status, node.stop_reason, node.result) == (
        S.PARTIAL,
        R.TURNS_SPENT,
        "That is all.",
    )
    assert (await world.team(node.team_id)).status == "stopped"

    after = await extend(world, node.id, Extension(turns=10))
    assert (after.status, after.result, after.thread_id) == (S.COMPLETED, "done", node.thread_id)
    assert after.budget == Budget(turns=13, given={"turns": 3}, chosen={})
    notices = [t.text for t in await world.turns(node.id) if (t.ref or "").startswith("again:")]
    assert notices == [continuations.RAISED + " You have more room: 10 more turns."]
    events = [e for e in await world.events(node.team_id) if e.type == "node.extended"]
    assert [(e.data["by"], e.data["added"]) for e in events] == [("human", {"turns": 10})]
    assert (await world.team(node.team_id)).status == "completed"


@pytest.mark.parametrize(
    ("budget", "more", "limits"),
    [
        (Budget(tokens=1500), Extension(tokens=3000), {"tokens": 5000}),
        (Budget(model_calls=2), Extension(turns=5), {"turns": 105, "model_calls": 7}),
    ],
)
async def test_an_extension_is_room_beyond_what_is_used(
    world: World, budget: Budget, more: Extension, limits: dict[str, int]
) -> None:
    node = await fail_at_limit(world, budget, FINISH)
    after = await extend(world, node.id, more)
    assert (after.status, after.result) == (S.COMPLETED, "done")
    assert {name: getattr(after.budget, name) for name in limits} == limits


@dataclass(slots=True)
class Extending:
    """A scripted model; while it writes its reply number `at`, a person extends its node."""

    world: World
    script: ScriptedModel
    at: int
    node_id: NodeId = NodeId("")
    name: str = "scripted/ada"

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        if len(self.script.requests) == self.at - 1:
            more = Extension(turns=20)
            await self.world.store.write(continuations.extend, self.node_id, more, by="human")
        return await self.script.reply(request, on_delta)


async def run_extended(world: World, at: int, budget: Budget, *lines: Line) -> WorkNode:
    model = Extending(world, ScriptedModel("scripted/ada", list(lines), insists=True), at)
    world.model("ada", model)
    founded = await world.found("Reach it", budget=budget)
    assert founded.node is not None
    model.node_id = founded.node.id
    await world.settle()
    return await world.node(founded.node.id)


async def test_a_running_node_finds_the_new_limit_at_its_next_yield_point(world: World) -> None:
    steps = [says(call("checkpoint", summary=f"step {n}")) for n in range(6)]
    node = await run_extended(world, 2, Budget(turns=4), LOOK, CALL, *steps, FINISH)
    assert (node.status, node.result, node.budget.turns) == (S.COMPLETED, "done", 24)


async def test_an_extension_during_the_last_answer_lets_the_node_go_on(world: World) -> None:
    node = await run_extended(world, 3, Budget(turns=3), LOOK, CALL, LAST_WORDS, FINISH)
    assert (node.status, node.result) == (S.COMPLETED, "done")
    assert "node.partial" not in [e.type for e in await world.events(node.team_id)]


async def test_a_waiting_node_keeps_waiting_with_higher_limits(world: World) -> None:
    founded, _ = await found_waiting_team(world, budget=Budget(turns=5, tokens=1000))
    assert founded.node is not None
    node = await extend(world, founded.node.id, Extension(turns=5, tokens=500))
    assert (node.status, node.budget.turns, node.budget.tokens) == (S.WAITING, 10, 1500)


WRONG_AMOUNTS = [
    Extension(),
    Extension(turns=-1),
    Extension(usd=float("nan")),
    Extension(usd=1.0),
    Extension(turns=1),
    Extension(tokens=100),
]


async def test_wrong_amounts_are_refused_and_change_nothing(world: World, wording: Wording) -> None:
    node = await fail_at_limit(world, Budget(turns=3, tokens=100_000), LAST_WORDS, FINISH)
    wording({str(more): await refusal(world, node.id, more) for more in WRONG_AMOUNTS})
    assert await world.node(node.id) == node


async def test_what_more_room_cannot_help_is_refused(world: World) -> None:
    founded, _ = await found_waiting_team(world)
    world.script("bob", says(call("publish", summary="Helped.")))
    child = await world.store.write(create_child, founded, Budget())
    await world.settle()
    assert await refusal(world, child, Extension(turns=5)) == (
        "'Help' is completed, so there is nothing to extend. Give a new task that says what is "
        "missing."
    )


async def test_a_node_that_failed_for_another_reason_is_not_extended(world: World) -> None:
    waiting, _ = await found_waiting_team(world)
    world.script("bob", RuntimeError("no"))
    child = await world.store.write(create_child, waiting, Budget())
    await world.settle()
    assert "did not fail because of a limit: an error in agiraph itself" in await refusal(
        world, child, Extension(turns=5)
    )


async def test_an_older_goal_is_not_extended_beside_a_newer_one(world: World) -> None:
    node = await fail_at_limit(world, Budget(turns=3), LAST_WORDS, FINISH)
    await world.store.write(teams.set_goal, node.team_id, "Another goal")
    await world.settle()
    assert "has a newer goal" in await refusal(world, node.id, Extension(turns=5))


async def test_a_refusal_names_the_ancestor_that_must_be_extended_first(world: World) -> None:
    founded, _ = await found_waiting_team(world, budget=Budget(tokens=10_000))
    assert founded.node is not None
    world.script("bob", LOOK, CALL, says(call("publish", summary="Helped.")))
    child = await world.store.write(create_child, founded, Budget(tokens=2000))
    await world.settle()
    assert (await world.node(child)).stop_reason is R.TOKENS_SPENT
    await spend(world, founded.node.id, 20_000)

    assert await refusal(world, child, Extension(tokens=5000)) == (
        "'Get it done', above 'Help', has used up its own tokens. Extend 'Get it done' by tokens "
        "first."
    )
    await extend(world, founded.node.id, Extension(tokens=50_000))
    after = await extend(world, child, Extension(tokens=5000))
    assert (after.status, after.stop_reason) == (S.COMPLETED, R.PUBLISHED)


async def test_a_person_extends_a_task_and_the_budget_of_the_goal_above_it_at_once(
    world: World,
) -> None:
    founded, _ = await found_waiting_team(world, budget=Budget(tokens=2000, usd=9.0))
    assert founded.node is not None
    world.script("bob", LOOK, CALL, says(call("publish", summary="Helped.")))
    child = await world.store.write(create_child, founded, Budget())
    await world.settle()
    assert (await world.node(child)).stop_reason is R.TOKENS_SPENT

    more = Extension(tokens=5000)
    await world.store.write(continuations.extend_for_person, child, more, by="human")
    await world.settle()
    after, goal = await world.node(child), await world.node(founded.node.id)
    assert (after.status, after.result, after.budget.tokens) == (S.COMPLETED, "Helped.", None)
    assert (goal.budget.tokens, goal.budget.usd) == (7000 + 120, 9.0)


async def test_a_person_raises_two_limits_of_the_goal_above_a_task_at_once(world: World) -> None:
    founded, hands = await found_waiting_team(world, "hand", budget=Budget(tokens=2000, usd=9.0))
    assert founded.node is not None
    world.script("bob", LOOK, CALL, says(call("publish", summary="Helped.")))
    child = await world.store.write(create_child, founded, Budget())
    await world.settle()
    beside = await add_child(world, founded, "Help too", to=hands["hand"], budget=Budget())
    await world.store.write(NODES.update, beside, parent_id=None, payer_id=founded.node.id)
    await world.settle()
    assert (await world.node(beside)).stop_reason is R.TOKENS_SPENT

    more = Extension(tokens=50_000, usd=1.0)
    await world.store.write(continuations.extend_for_person, child, more, by="human")
    await world.settle()
    goal = await world.node(founded.node.id)
    assert (goal.budget.tokens, goal.budget.usd) == (52_000 + 120, 10.0)
    # The goal pays for it as well, so that it goes on too.
    assert (await world.node(beside)).status is S.COMPLETED


ASK = says(call("ask_human", question="Shall we?"))


async def test_a_coordinator_extends_a_task_that_a_limit_ended(world: World) -> None:
    ada = ScriptedModel("scripted/ada", [ASK], insists=True)
    founded, _ = await found_waiting_team(world, lead=ada)
    world.script("bob", LOOK, CALL, LAST_WORDS, says(call("publish", summary="Helped.")))
    child = await world.store.write(create_child, founded, Budget(turns=3))
    await world.settle()
    assert (await world.node(child)).status is S.PARTIAL

    ada.lines += [
        says(call("extend_task", id=child, turns=10)),
        says(call("task_output", id=child, blocking=True)),
        FINISH,
    ]
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Go on.")
    await world.settle()
    node = await world.node(child)
    assert (node.status, node.result, node.budget.turns) == (S.COMPLETED, "Helped.", 13)


async def test_a_coordinator_gives_no_more_than_it_has(world: World) -> None:
    ada = ScriptedModel("scripted/ada", [ASK], insists=True)
    founded, _ = await found_waiting_team(world, lead=ada, budget=Budget(tokens=10_000))
    assert founded.node is not None
    world.script("bob", LOOK, CALL)
    child = await world.store.write(create_child, founded, Budget(tokens=2000))
    await world.settle()
    ada.lines += [
        says(call("extend_task", id=child, tokens=9_000)),
        says(call("extend_task", id=founded.node.id, turns=5)),
        FINISH,
    ]
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Go on.")
    await world.settle()
    refused = [t.text for t in await world.turns(founded.node.id) if t.role == "tool" and t.failed]
    assert "tokens left yourself; give less than that" in refused[0]
    assert "Only the giver of your work can raise your own limits" in refused[1]
    assert (await world.node(child)).budget.tokens == 2000
