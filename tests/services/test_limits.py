"""A team grows to its limits and no further, and every model call is charged."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import pytest

from agiraph.core.domain.agents import Limits
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.work import Budget, NodeStatus, StopReason
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.core.store import spend, teams
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import as_reply
from tests.services.teams import found_waiting_team

S = NodeStatus


async def hire_concurrently(world: World, founded: NewTeam, number: int) -> Counter[str]:
    """Hire this many agents concurrently; count the outcomes."""

    async def hire(n: int) -> str:
        try:
            await world.store.write(
                roster.hire, founded.team.id, name=f"w{n}", role="worker", model="scripted/hand"
            )
        except Refused as refusal:
            return str(refusal).partition(".")[0]
        return "hired"

    return Counter(await asyncio.gather(*[hire(n) for n in range(number)]))


async def test_concurrent_hires_never_exceed_the_member_limit(world: World) -> None:
    founded, _ = await found_waiting_team(world, limits=Limits(agents=8))
    assert await hire_concurrently(world, founded, 16) == {
        "hired": 7,
        "The team has 8 members and may have no more": 9,
    }
    assert len(await world.store.read(teams.members, founded.team.id)) == 8


async def test_concurrent_hires_never_exceed_the_limit_per_minute(world: World) -> None:
    founded, _ = await found_waiting_team(world, limits=Limits(agents=50, hires_per_minute=5))
    refused = "5 were hired within a minute, which is the limit"
    assert await hire_concurrently(world, founded, 12) == {"hired": 4, refused: 8}
    world.clock.advance(seconds=61)
    assert (await hire_concurrently(world, founded, 20))["hired"] == 5


@pytest.mark.slow
async def test_sixteen_agents_that_all_hire_stay_within_the_limit(world: World) -> None:
    """All at once, through the tools, and on PostgreSQL really concurrently."""
    world.script("kid", *[says(call("publish", summary="grown"))] * 40)
    delegate = call("assign_task", agent="new:scripted/kid", task="grow", description="grow")
    limits = Limits(agents=20, hires_per_minute=1000)
    founded, _ = await found_waiting_team(world, limits=limits)
    assert founded.node is not None
    gate = asyncio.Event()
    for n in range(16):
        lines = says(delegate, delegate), says(call("publish", summary="done"))
        world.script(f"w{n}", *lines).gate = gate
        worker = await world.store.write(
            roster.hire, founded.team.id, name=f"w{n}", role="worker", model=f"scripted/w{n}"
        )
        await world.say(worker.id, "Grow.", team_id=founded.team.id)
    gate.set()
    await world.settle()

    members = 1
    most = members
    for event in await world.events(founded.team.id):
        members += event.type in ("agent.hired", "agent.returned")
        members -= event.type == "agent.left"
        most = max(most, members - 1)  # the coordinator's own hiring is among the events
    assert most <= 20
    assert {n.status for n in await world.board(founded.team.id)} == {S.WAITING, S.COMPLETED}


async def test_a_node_cannot_have_more_unfinished_children_than_the_limit(world: World) -> None:
    make = [call("create_work_node", task=f"part {n}") for n in range(6)]
    lead = (says(*make), says(call("ask_human", question="Hm?")))
    founded, _ = await found_waiting_team(world, lead=lead, limits=Limits(children=4, depth=1))
    assert founded.node is not None
    refusal = (
        "4 tasks of yours are unfinished, which is the limit. Wait for some of them first "
        "(task_output, start_stage)."
    )
    answers = [t.text for t in await world.turns(founded.node.id) if t.role == "tool"]
    assert answers[4:] == [refusal] * 2


async def test_a_childs_budget_is_half_of_what_its_parent_has_left(world: World) -> None:
    parts = [
        call("create_work_node", task=f"part {number}", assigned_to="new:scripted/hand")
        for number in (1, 2)
    ]
    lead = (says(*parts), says(call("ask_human", question="Hm?")))
    founded, _ = await found_waiting_team(
        world, lead=lead, budget=Budget(tokens=10_120, usd=8.0, model_calls=21)
    )
    _, *children = await world.board(founded.team.id)
    share = Budget(tokens=5000, usd=4.0, model_calls=10)
    assert [n.budget for n in children] == [share, share]


@dataclass(slots=True)
class DelegatingModel:
    """A model that delegates everything: for ever (`stubborn`), or until a call is refused."""

    name: str
    background: bool
    stubborn: bool
    replies: int = 0
    refusals: Counter[str] = field(default_factory=Counter[str])

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        self.replies += 1
        return as_reply(self._react(request))

    def _react(self, request: Request) -> Says:
        answers = [t for t in request.transcript.spoken() if t.role == "tool"]
        failed = [t.text for t in answers if t.failed]
        new = [text.partition(".")[0] for text in failed[-1:]]
        self.refusals.update(text for text in new if not text.startswith(("[Task]", "[Not ")))
        ending = next(t.name for t in request.tools if t.name in ("finish", "publish"))
        if not self.stubborn and (failed or len(answers) >= 3):
            return says(call(ending, summary="I gave it all away"))
        last = request.transcript.last_reply
        is_repeat = last is not None and answers and answers[-1].failed
        task = last.calls[0].arguments["task"] if last and is_repeat else f"Do {self.replies} of it"
        return says(
            call("assign_task", agent="new:scripted/rogue", task=task, description="all",
                 run_in_background=self.background)
        )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("stubborn", [False, True])
@pytest.mark.parametrize("background", [False, True])
async def test_a_team_that_only_delegates_ends_at_its_limits_with_all_calls_charged(
    world: World, background: bool, stubborn: bool
) -> None:
    rogue = DelegatingModel("scripted/rogue", background, stubborn)
    world.model("rogue", rogue)
    limits = Limits(agents=6, depth=3, children=2, hires_per_minute=12)
    founded = await world.found("Do it all", model="scripted/rogue", limits=limits)
    await world.settle()

    board = await world.board(founded.team.id)
    assert all(node.status.is_final for node in board)
    assert max(node.depth for node in board) <= 3
    assert len([e for e in await world.events(founded.team.id) if e.type == "agent.hired"]) <= 12
    paid = await world.ledger(founded.team.id)
    calls, lost = sum(row.calls for row in paid), sum(row.lost for row in paid)
    assert calls <= rogue.replies <= calls + lost  # an interrupted call may have been made
    assert lost <= len(board)
    goal = board[0]
    team = await world.store.read(teams.TEAMS.get, founded.team.id)
    if stubborn:
        assert (goal.status, goal.stop_reason) == (S.PARTIAL, StopReason.LOOPING)
        assert team.status == "stopped"
    else:
        assert (goal.status, team.status) == (S.COMPLETED, "completed")
    assert set(rogue.refusals) <= {
        "Work may be 3 levels deep, and yours is at the last one",
        "2 tasks of yours are unfinished, which is the limit",
        "The team has 6 members and may have no more",
        "12 were hired within a minute, which is the limit",
        "Not given away: those above you have only handed this on, and you have made nothing of it "
        "yet",
        *(
            f"Not given away: of this goal's tasks the last {failed} ended without success, and "
            "one more would probably end like them"
            for failed in (6, 7)
        ),
    }
    assert rogue.refusals


async def test_a_team_that_only_delegates_stays_within_its_envelope(world: World) -> None:
    rogue = DelegatingModel("scripted/rogue", background=True, stubborn=True)
    world.model("rogue", rogue)
    founded = await world.found("Do it all", model="scripted/rogue", budget=Budget(model_calls=9))
    await world.settle()

    assert all(node.status.is_final for node in await world.board(founded.team.id))
    assert founded.node is not None
    total = await world.store.read(spend.total, founded.node.id)
    assert rogue.replies <= total.calls <= 9
