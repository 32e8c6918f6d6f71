"""The budget of a team: a person raises and lowers it at any time; what waited for it goes on."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
import pytest

from agiraph.api.routes import board
from agiraph.core.domain.agents import Limits
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.work import Budget, Extension, NodeStatus, StopReason
from agiraph.core.services.board import budgets
from agiraph.core.services.lifecycle import continuations, settings
from agiraph.core.services.lifecycle import teams as lifecycle
from agiraph.core.store import spend
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.tx import Tx
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import World, call, says
from agiraph.testing.scripted import ScriptedModel
from tests.services.stages import pass_time
from tests.services.teams import found_waiting_team
from tests.services.test_retries import create_child

R, S = StopReason, NodeStatus
DONE = says(call("finish", summary="done"))
NOTE = says(call("checkpoint", summary="half"))
DEAR = says(call("checkpoint", summary="half"), input_tokens=900, output_tokens=100)


async def give(world: World, team_id: TeamId, **totals: float) -> None:
    await world.store.write(settings.change, team_id, budget=totals)
    await world.settle()


async def refusal(world: World, team_id: TeamId, **totals: float) -> str:
    with pytest.raises(Refused) as refused:
        await world.store.write(settings.change, team_id, budget=totals)
    return str(refused.value)


async def waits(world: World, team_id: TeamId) -> str | None:
    budget = await world.store.read(continuations.goal_budget, team_id)
    assert budget is not None
    return budget.waits


async def test_a_raised_budget_lets_a_goal_go_on_that_the_limit_had_ended(world: World) -> None:
    world.script("ada", NOTE, says("Half of it."), DONE)
    founded = await world.found("Count the beans", budget=Budget(turns=2))
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert (goal.stop_reason, await waits(world, founded.team.id)) == (R.TURNS_SPENT, "goal")

    await give(world, founded.team.id, usd=5.0)  # not the limit that ended it
    assert (await world.node(goal.id)).status is S.PARTIAL
    await give(world, founded.team.id, turns=10)
    goal = await world.node(goal.id)
    assert (goal.status, goal.budget.turns, goal.budget.usd) == (S.COMPLETED, 10, 5.0)
    assert await waits(world, founded.team.id) is None


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_budget_is_set_raised_and_lowered_but_not_below_what_is_used(world: World) -> None:
    world.script("ada", says(call("ask_human", question="Which?")), DONE)
    founded = await world.found("Count the beans")
    await world.settle()
    for budget in ({"tokens": 5000, "usd": 2.0}, {"tokens": 9000}, {"usd": 1.0, "tokens": 120}):
        await give(world, founded.team.id, **budget)
    [goal] = await world.board(founded.team.id)
    assert (goal.budget.tokens, goal.budget.usd) == (120, 1.0)

    assert await refusal(world, founded.team.id, tokens=100) == (
        "The goal of 'Count the beans' has used 120 tokens already. Give it at least that much."
    )
    changes = [e.data for e in await world.events(founded.team.id) if e.type == "node.extended"]
    assert [change["added"] for change in changes] == [
        {"tokens": 4000},
        {"usd": -1.0, "tokens": -8880},
    ]


async def test_the_budget_of_a_completed_team_is_changed_and_nothing_else_happens(
    world: World,
) -> None:
    world.script("ada", DONE)
    founded = await world.found("Count the beans", budget=Budget(usd=2.0))
    await world.settle()
    for usd in (900.0, 1.0):
        await give(world, founded.team.id, usd=usd)
        [goal] = await world.board(founded.team.id)
        assert (goal.status, goal.budget.usd) == (S.COMPLETED, usd)
    assert (await world.team(founded.team.id)).status == "completed"
    later = await world.found("Count the peas", start=False)
    assert "'Count the peas' has no goal yet" in await refusal(world, later.team.id, turns=900)


async def test_a_task_from_a_message_counts_apart_from_the_goal_whose_budget_is_used_up(
    world: World,
) -> None:
    world.script("ada", DEAR, says("Half of it."), says("Gladly."), DONE)
    founded = await world.found("Count the beans", budget=Budget(tokens=1000))
    await world.settle()
    await world.chat(founded.coordinator.id, "Count the peas.")
    await world.settle()
    goal, task = await world.board(founded.team.id)
    assert (goal.stop_reason, task.status) == (R.TOKENS_SPENT, S.COMPLETED)
    budget = await world.store.read(continuations.goal_budget, founded.team.id)
    team = (await world.store.read(board.costs_of_team, founded.team.id)).total
    [reply] = await world.store.read(NODES.select, "lane = 'reply'")
    of_task, of_reply = [await world.store.read(spend.spent, n.id) for n in (task, reply)]
    other = of_task.tokens + of_reply.tokens
    assert budget is not None
    [used] = [limit.used for limit in budget.limits if limit.name == "tokens"]
    assert (used > 0, other > 0) == (True, True)
    assert used + other == team.input_tokens + team.output_tokens


async def test_an_endless_team_goes_on_with_the_cycle_that_its_budget_ended(world: World) -> None:
    world.script("ada", DONE, DEAR, says(call("finish", summary="cycled")))
    founded = await world.found(
        "Watch the beans", mode="infinite", heartbeat=600, budget=Budget(tokens=1000)
    )
    await world.settle()
    await world.store.write(settings.change, founded.team.id, interval_s=600)
    await pass_time(world, 601)
    goal, cycle = await world.board(founded.team.id)
    assert (goal.status, cycle.stop_reason) == (S.COMPLETED, R.TOKENS_SPENT)
    assert await waits(world, founded.team.id) == "paid_work"

    await give(world, founded.team.id, tokens=50_000)
    cycle = await world.node(cycle.id)
    assert (cycle.status, cycle.result) == (S.COMPLETED, "cycled")
    assert await waits(world, founded.team.id) is None


async def test_a_heartbeat_that_waited_for_the_budget_is_due_at_once(world: World) -> None:
    world.script("ada", says(call("finish", summary="done"), input_tokens=900), DONE)
    founded = await world.found(
        "Watch the beans", mode="infinite", heartbeat=600, budget=Budget(tokens=500)
    )
    await world.settle()
    await pass_time(world, 601)
    assert len(await world.board(founded.team.id)) == 1
    assert await waits(world, founded.team.id) == "paid_work"
    await give(world, founded.team.id, tokens=50_000)
    await pass_time(world, 1)
    assert [node.title for node in await world.board(founded.team.id)][1:] == ["Cycle 2"]


async def test_the_time_of_an_ended_goal_counts_its_last_run(world: World) -> None:
    world.script("ada", NOTE, says("Half of it."))
    founded = await world.found("Count the beans", budget=Budget(turns=2, seconds=120))
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert goal.ended_at is not None
    began = goal.ended_at - timedelta(seconds=90.4)
    await world.store.write(NODES.update, goal.id, claimed_at=began)

    budget = await world.store.read(continuations.goal_budget, founded.team.id)
    assert budget is not None
    assert {use.name: use.used for use in budget.limits}["seconds"] == 90.4
    assert "has used 91 seconds already" in await refusal(world, founded.team.id, seconds=80)


async def test_a_goal_that_its_time_ended_does_not_start_again_without_more_time(
    world: World,
) -> None:
    def takes_long(_: Any) -> Any:
        world.clock.advance(seconds=61)
        return NOTE

    world.script("ada", takes_long, says("Half of it."), DONE)
    founded = await world.found("Count the beans", budget=Budget(usd=1.0, seconds=60))
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert goal.stop_reason is R.TIME_SPENT

    await give(world, founded.team.id, usd=5.0)
    assert (await world.node(goal.id)).attempt == goal.attempt
    await give(world, founded.team.id, seconds=600)
    assert (await world.node(goal.id)).status is S.COMPLETED


async def test_a_lower_budget_does_not_start_a_goal_again(world: World) -> None:
    world.script("ada", NOTE, says("Half of it."))
    budget = Budget(turns=2, usd=5.0, tokens=9000, model_calls=4)
    founded = await world.found("Count the beans", budget=budget)
    await world.settle()
    [goal] = await world.board(founded.team.id)
    await world.store.write(NODES.update, goal.id, stop_reason=R.LOOPING)

    await give(world, founded.team.id, usd=1.0)
    await give(world, founded.team.id, turns=100)  # more turns do not end a loop
    await give(world, founded.team.id, turns=10)
    after = await world.node(goal.id)
    assert (after.status, after.attempt) == (goal.status, goal.attempt)
    assert (after.budget.turns, after.budget.model_calls) == (10, 102)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_budget_is_raised_although_a_full_team_has_no_place_for_an_agent_that_left(
    world: World,
) -> None:
    world.script("ada", DONE, DEAR)
    founded = await world.found(
        "Watch the beans", mode="infinite", heartbeat=600, budget=Budget(tokens=1000)
    )
    await world.settle()
    await pass_time(world, 601)
    _, cycle = await world.board(founded.team.id)
    assert cycle.stop_reason is R.TOKENS_SPENT
    assert cycle.assignee_id is not None
    await world.store.write(AGENTS.update, cycle.assignee_id, retired_at=world.clock.now())
    await world.store.write(TEAMS.update, founded.team.id, limits=Limits(agents=0))

    await give(world, founded.team.id, tokens=50_000)
    goal, after = await world.board(founded.team.id)
    assert (goal.budget.tokens, after.status) == (50_000, cycle.status)


async def test_a_budget_that_is_given_later_binds_the_cycles_of_an_endless_team(
    world: World,
) -> None:
    world.script("ada", DONE, DEAR, DEAR, DONE)
    founded = await world.found("Watch the beans", mode="infinite", heartbeat=600)
    await world.settle()
    await give(world, founded.team.id, tokens=1000)
    await pass_time(world, 601)
    _, cycle = await world.board(founded.team.id)
    assert cycle.stop_reason is R.TOKENS_SPENT


async def test_a_new_goal_pays_for_the_cycles_that_follow_it(world: World) -> None:
    world.script("ada", says(call("finish", summary="done"), input_tokens=900), DONE, DONE)
    founded = await world.found(
        "Watch the beans", mode="infinite", heartbeat=600, budget=Budget(tokens=500)
    )
    await world.settle()
    await pass_time(world, 601)
    await world.store.write(lifecycle.set_goal, founded.team.id, "Peas", budget=Budget(tokens=9000))
    await world.settle()
    await pass_time(world, 601)
    _, peas, *cycles = await world.board(founded.team.id)
    assert [(node.title, node.payer_id) for node in cycles] == [("Cycle 2", peas.id)]


async def test_a_new_goal_starts_with_the_limits_that_a_person_set_not_with_grown_ones(
    world: World,
) -> None:
    asks = says(call("ask_human", question="Which?"))
    world.script("ada", DEAR, says("Half of it."), asks, insists=True)
    founded = await world.found("Count", budget=Budget(turns=30, tokens=500, usd=2.0))
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert goal.stop_reason is R.TOKENS_SPENT
    goal = await world.store.write(continuations.retry, goal.id)
    await world.settle()
    more = Extension(turns=5, usd=3.0)
    await world.store.write(continuations.extend_for_person, goal.id, more, by="human")
    grown = (await world.node(goal.id)).budget
    assert (grown.turns, grown.tokens == 500, grown.usd) == (35, False, 5.0)
    first = await world.store.read(budgets.for_next_goal, founded.team.id, {})
    assert (first.turns, first.tokens, first.usd) == (30, 500, 2.0)

    await world.store.write(settings.change, founded.team.id, budget={"usd": 8.0})
    await world.store.write(continuations.extend_for_person, goal.id, more, by="human")
    assert (await world.node(goal.id)).budget.usd == 11.0
    later = await world.store.read(budgets.for_next_goal, founded.team.id, {"turns": 7})
    assert (later.turns, later.tokens, later.usd) == (7, 500, 8.0)
    await world.store.write(lifecycle.set_goal, founded.team.id, "Peas")
    peas = (await world.board(founded.team.id))[-1].budget
    assert (peas.turns, peas.tokens, peas.usd) == (30, 500, 8.0)
    await world.store.write(lifecycle.stop, founded.team.id)


async def test_a_new_goal_gets_the_calls_that_the_last_one_got_with_its_turns(world: World) -> None:
    world.script("ada", NOTE, DONE)
    founded = await world.found("Count", budget=Budget(turns=10, model_calls=10))
    await world.settle()
    [goal] = await world.board(founded.team.id)
    more = Extension(turns=5)
    await world.store.write(continuations.extend_for_person, goal.id, more, by="human")
    await give(world, founded.team.id, turns=100)
    following = await world.store.read(budgets.for_next_goal, founded.team.id, {})
    assert (following.turns, following.model_calls) == (100, 100)


async def test_a_new_goal_keeps_the_limits_of_one_that_an_earlier_release_stored(
    world: World,
) -> None:
    world.script("ada", DONE)
    founded = await world.found("Count", budget=Budget(turns=30, usd=2.0))
    await world.settle()
    [goal] = await world.board(founded.team.id)
    # A person had set $9 there; that release kept only the first amount beside it.
    stored = {"turns": 40, "tokens": 700, "usd": 9.0, "given": {"turns": 30, "usd": 2.0}}

    def store_as_before(tx: Tx) -> None:
        sql = "update nodes set budget = :budget where id = :id"
        tx.run(sql, budget=orjson.dumps(stored).decode(), id=goal.id)

    await world.store.write(store_as_before)
    following = await world.store.read(budgets.for_next_goal, founded.team.id, {})
    assert (following.turns, following.tokens, following.usd) == (40, 700, 9.0)
    await give(world, founded.team.id, turns=50)
    following = await world.store.read(budgets.for_next_goal, founded.team.id, {})
    assert (following.turns, following.tokens, following.usd) == (50, 700, 9.0)


async def test_a_raised_budget_resumes_paid_work_beside_a_goal_that_goes_on(world: World) -> None:
    founded, _ = await found_waiting_team(world, budget=Budget(tokens=2000))
    assert founded.node is not None
    world.script("bob", DEAR, DEAR, says(call("publish", summary="Helped.")))
    child = await world.store.write(create_child, founded, Budget())
    await world.store.write(NODES.update, child, parent_id=None, payer_id=founded.node.id)
    await world.settle()
    assert (await world.node(child)).stop_reason is R.TOKENS_SPENT

    await give(world, founded.team.id, tokens=50_000)
    assert (await world.node(child)).status is S.COMPLETED


@dataclass(slots=True)
class Interrupted:
    """A scripted model; while it writes its first reply, a person changes the team's budget."""

    world: World
    script: ScriptedModel
    totals: dict[str, float]
    team_id: TeamId = TeamId("")
    name: str = "scripted/ada"

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        if not self.script.requests:
            await self.world.store.write(settings.change, self.team_id, budget=self.totals)
        return await self.script.reply(request, on_delta)


@pytest.mark.parametrize(
    ("totals", "reason"),
    [
        ({"tokens": 1000}, R.TOKENS_SPENT),
        ({"turns": 2}, R.TURNS_SPENT),
        ({"seconds": 30.0}, R.TIME_SPENT),
    ],
)
async def test_running_work_keeps_to_a_limit_that_is_new_or_lower(
    world: World, totals: dict[str, float], reason: StopReason
) -> None:
    def takes_long(_: Any) -> Any:
        world.clock.advance(seconds=31)
        return DEAR

    script = ScriptedModel("scripted/ada", [takes_long, says("Half of it."), DONE], insists=True)
    model = Interrupted(world, script, totals)
    world.model("ada", model)
    founded = await world.found("Count the beans", budget=Budget(turns=50, seconds=600))
    model.team_id = founded.team.id
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.stop_reason) == (S.PARTIAL, reason)
