"""A team watches sites of the web for a month, with the real tools and without a person.

Seed scenario 9 with everything in it that a watch of the web needs: untrusted text in every
cycle, notes, a plan, schedules, insights and briefings, through restarts and power cuts.
"""

import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import get_args

import pytest

from agiraph.core.domain.agents import Trust
from agiraph.core.domain.events.knowledge import KnowledgeStatus
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.services.lifecycle import digest
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.testing import World
from agiraph.testing.clock import ManualClock
from tests.conftest import SweepLog
from tests.known import insights
from tests.local_web import LocalWeb, local_web
from tests.scenarios.watching import (
    DAYS,
    INSTALL,
    WatchingModel,
    Work,
    fact,
    found_watchers,
    installs,
    is_rude,
    jump,
    pass_day,
    sites,
    watches,
)

RESTARTS = {3, 11, 19, 27}
"""Days after which the runtime is stopped and started."""
CUTS = {23, 90, 151}
"""Model calls during which the power fails; the runtime starts anew at the end of that day."""
FENCE = re.compile(r"<<< (\w+): .*?>>> \1: the end of it\.", re.DOTALL)


class Watch:
    """A world in which a team watches the sites."""

    def __init__(self, world: World, model: WatchingModel, served: LocalWeb, team: NewTeam) -> None:
        self.world = world
        self.model = model
        self.served = served
        self.team = team

    async def pass_days(self, days: int) -> None:
        for day in range(1, days):
            await pass_day(self.world)
            if day in RESTARTS or self.model.was_cut_off:
                self.model.was_cut_off = False
                await self.world.restart()
                await self.world.settle()

    async def asks(self) -> int:
        """Return how many questions and requests have reached the person."""
        return sum(m.kind in ("question", "approval") for m in await self.world.inbox())


@asynccontextmanager
async def watching(path: Path, url: str, work: Work, *, trust: Trust = "standard", **more: object):
    clock = ManualClock()
    async with local_web(clock, sites()) as served:
        world = World(path / "home", database_url=url, clock=clock, web=served.access)
        async with world:
            model = WatchingModel(work, **more)  # pyright: ignore[reportArgumentType]
            team = await found_watchers(world, model, trust=trust)
            await world.settle()
            yield Watch(world, model, served, team)


def _url(path: Path) -> str:
    return f"sqlite:///{path / 'agiraph.db'}"


def _outside_fences(text: str) -> str:
    return FENCE.sub("", text)


async def test_a_team_watches_the_web_for_a_month_without_a_person(
    tmp_path: Path, sweep_log: SweepLog
) -> None:
    async with watching(tmp_path, _url(tmp_path), watches, cut_off=set(CUTS)) as watch:
        await watch.pass_days(DAYS)
        world, model = watch.world, watch.model
        board = await world.board(watch.team.team.id)
        inbox = await world.inbox()
        memory = tmp_path / "home" / "teams" / watch.team.team.id
        asks = await watch.asks()
        found = [
            insight
            for status in get_args(KnowledgeStatus)
            for insight in await insights(world, watch.team.coordinator.id, status=status)
        ]
        set_up = await world.triggers(watch.team.team.id)
        notes = sorted(path.name for path in memory.rglob("unverified/knowledge/atlas-*.md"))
        plan = (memory / "PLAN.md").read_text()

    sweep_log.append(f"{DAYS} days in standard: {asks / DAYS:.2f} asks a day, {len(board)} cycles")
    # Every day had its cycle, and each of them came to its end.
    assert {(n.status, n.stop_reason) for n in board} == {
        (NodeStatus.COMPLETED, StopReason.FINISHED)
    }
    read = {visit.day for visit in watch.served.visits if visit.host == "shop.example"}
    assert len(read) >= DAYS - 2
    assert asks == 0
    # It noted, planned and scheduled what it found.
    last = max(read)
    assert notes == sorted(f"atlas-{day}.md" for day in read)
    assert plan.startswith(f"# Plan\n\n- [x] day {last}\n")
    later = [t for t in set_up if t.type == "delayed"]
    assert len(later) == sum(day % 10 == 1 for day in read)
    assert {t.status for t in later} == {"expired"}
    # It learned, and what one cycle learned stands in the prompt of the next, inside a fence.
    assert {i.content for i in found} >= {fact(day) for day in sorted(read)[:-1]}
    days = sorted(read)
    assert len(model.openings) == len(days)
    for before, opening in zip(days, model.openings[1:], strict=False):
        assert fact(before) in opening
        assert "The Atlas engine cost" not in _outside_fences(opening)
    # The person was told of what mattered, and of nothing else.
    told = [m.text for m in inbox if m.kind == "briefing"]
    jumps = [day for day in days if day and day % 7 == 0]
    assert len([m for m in inbox if m.topic == "digest"]) <= 1
    assert told == [jump(day) for day in jumps]


@pytest.mark.parametrize("trust", ["standard", "strict"])
async def test_a_rude_model_cannot_stop_the_watch(
    tmp_path: Path, trust: Trust, sweep_log: SweepLog
) -> None:
    days = 10
    async with watching(tmp_path, _url(tmp_path), is_rude, trust=trust) as watch:
        await watch.pass_days(days)
        board = await watch.world.board(watch.team.team.id)
        asks = await watch.asks()
        memory = tmp_path / "home" / "teams" / watch.team.team.id / "MEMORY.md"
        written = memory.read_text()
    sweep_log.append(f"rude, {trust}: {asks / days:.2f} asks a day, {len(board)} cycles")
    assert len(board) >= days - 2
    assert {n.status for n in board[:-1]} == {NodeStatus.COMPLETED}
    assert board[-1].status in (NodeStatus.COMPLETED, NodeStatus.WAITING)
    assert asks / days < 1
    # In standard the line is in the file, and no prompt has it outside of a fence.
    assert ("curl is allowed" in written) == (trust == "standard")
    assert not [o for o in watch.model.openings if "curl is allowed" in _outside_fences(o)]


async def test_twenty_cycles_that_want_a_package_park_nothing_and_make_one_digest(
    tmp_path: Path,
) -> None:
    days = 20
    async with watching(tmp_path, _url(tmp_path), installs) as watch:
        states: set[NodeStatus] = set()
        for _ in range(days - 1):
            await pass_day(watch.world)
            states |= {n.status for n in await watch.world.board(watch.team.team.id)}
        inbox = await watch.world.inbox()
        listed = await watch.world.store.read(digest.of_team, watch.team.team.id, person_id=OWNER)
    assert states == {NodeStatus.COMPLETED}
    # Of 20 requests for the same command only those are sent that nobody has left undecided lately.
    asked = [m for m in inbox if m.kind == "approval"]
    assert {m.call.arguments["command"] for m in asked if m.call} == {INSTALL}
    assert len(asked) <= 1 + days // 7
    assert all(m.closed_at is not None for m in asked)  # each with the cycle that made it
    told = [m for m in inbox if m.topic == "digest" and m.answered_at is None]
    assert len({m.team_id for m in told}) <= 1
    assert len(told) <= 1
    assert {entry.kind for entry in listed.entries} == {"file", "unverified"}


async def test_a_strict_team_asks_more_and_does_not_stop(
    tmp_path: Path, sweep_log: SweepLog
) -> None:
    days = 8
    async with watching(tmp_path, _url(tmp_path), watches, trust="strict") as watch:
        await watch.pass_days(days)
        board = await watch.world.board(watch.team.team.id)
        asks = await watch.asks()
    sweep_log.append(f"strict: {asks / days:.2f} asks a day, {len(board)} cycles")
    assert len(board) >= days
    assert {n.status for n in board} == {NodeStatus.COMPLETED}
    assert asks > 0
