"""Later: a sweep scenario in which a promise is kept after two hours, and after a month the steps
of that work are removed, but not those of work that ended lately."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from agiraph.core.services.lifecycle import timers
from agiraph.models.base import Request
from agiraph.testing import ManualClock, Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.faults.invariants import Ledger, database
from tests.faults.scenarios import step

START = datetime.fromisoformat("2026-01-05T09:30:00+00:00")
MONTH = timedelta(days=30)
OLD, NEW = "Do the work", "Be quick"
WRITE = call("write_file", path="draft.md", content="half and whole")


def react(request: Request) -> Says:
    task = next(t.text for t in request.transcript.turns if t.ref == "assignment")
    if "Send the figures" in task:
        return says(call("finish", summary="Here are the figures."))
    if step(request) > 0:
        return says(call("finish", summary=f"done: {NEW if NEW in task else OLD}"))
    if NEW in task:
        return says(WRITE)
    return says(WRITE, call("promise", what="Send the figures", when="in 2 hours"))


def _now(home: Path) -> datetime:
    noted = Ledger(home).all("clock")
    return datetime.fromisoformat(noted[-1]) if noted else START


async def _pass_time(world: World, moment: datetime) -> None:
    if world.clock.now() < moment:
        Ledger(world.path).note("clock", moment.isoformat())
        world.clock.advance(seconds=(moment - world.clock.now()).total_seconds())
    await world.store.write(timers.fire_due)
    await world.settle()


async def _found_once(world: World, goal: str) -> None:
    if goal not in [team.goal for team in await world.teams()]:
        await world.found(goal)
    await world.settle()


async def later(home: Path) -> None:
    # Its calls are not in the ledger: the turns that they are compared with are removed.
    world = World(home, clock=ManualClock(_now(home)), easy_endings=True)
    world.model("ada", ReactiveModel("scripted/ada", react))
    await world.start()
    await _found_once(world, OLD)
    await _pass_time(world, START + timedelta(hours=2))
    await _pass_time(world, START + MONTH + timedelta(days=1))
    await _found_once(world, NEW)
    await world.runtime.retention.prune(MONTH)
    await world.stop()


def after_recovery(home: Path) -> Iterator[str]:
    with closing(database(home)) as db:
        yield from _kept_promise(db)
        yield from _removed_what_is_old(db, home)


def _kept_promise(db: sqlite3.Connection) -> Iterator[str]:
    """Check that the promise was made once, fired once, became one task and was told once."""
    counts = (
        "select count(*) from triggers where promised_to is not null",
        "select count(*) from firings where outcome = 'fired'",
        "select count(*) from nodes n join triggers t on t.id = n.trigger_id",
        "select count(*) from messages where title = 'Send the figures'",
    )
    for sql in counts:
        [count] = db.execute(sql).fetchone()
        if count != 1:
            yield f"{count}, not 1, is the answer to: {sql}"


def _removed_what_is_old(db: sqlite3.Connection, home: Path) -> Iterator[str]:
    for row in db.execute(
        "select t.id, t.node_id, t.team_id, t.pruned_at, m.goal, count(j.seq) as turns"
        " from threads t join teams m on m.id = t.team_id left join journal j on j.thread_id = t.id"
        " where t.kind = 'work' group by t.id"
    ):
        scratch = home / "teams" / row["team_id"] / "nodes" / row["node_id"] / "scratch"
        there = (row["pruned_at"] is None, row["turns"] > 0, scratch.exists())
        if set(there) != {row["goal"] == NEW}:
            yield f"of {row['id']} ({row['goal']}) not marked, turns and files are left: {there}"
