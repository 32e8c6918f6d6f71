"""What goes on in the background goes on after whatever broke it, and breaks for one alone."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agiraph.domain.triggers import Trigger
from agiraph.runtime.periodic import PeriodicTasks, Wait
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.services.triggers import definitions
from agiraph.store import sqlite_connection
from agiraph.store import triggers as rows
from agiraph.store.presence import workers
from agiraph.store.tx import Tx
from agiraph.testing import ManualClock, World, call, says
from tests.conftest import Server
from tests.runtime.waiting import PatientClock, until

DONE = says(call("finish", summary="done"))


@asynccontextmanager
async def opened(path: Path, database_url: str) -> AsyncIterator[tuple[World, PatientClock]]:
    clock = PatientClock()
    async with World(path / "home", database_url=database_url, clock=clock) as world:
        world.script("ada", *[DONE] * 9)
        yield world, clock
        clock.over.set()


async def watcher(world: World, goal: str = "Keep watch") -> NewTeam:
    return await world.found(goal, mode="infinite", start=False)


async def make(world: World, founded: NewTeam, type: Any, config: dict[str, Any]) -> Trigger:
    made = await world.store.write(
        definitions.create,
        agent_id=founded.coordinator.id,
        type=type,
        config=config,
        payload={"task": "Look"},
    )
    return made.trigger


async def fires(world: World, trigger: Trigger) -> None:
    async def has_fired() -> bool:
        return [f.outcome for f in await world.store.read(rows.firings, trigger.id)] == ["fired"]

    async with asyncio.timeout(30):
        await until(world, has_fired)


async def lose(world: World, clock: PatientClock, table: str) -> None:
    """A minute passes, after which everything looks, without this table; then it is back."""
    await world.settle()
    await world.store.write(_rename, table, "elsewhere")
    clock.advance(seconds=61)
    await clock.paused.wait()
    await world.store.write(_rename, "elsewhere", table)
    clock.over.set()


async def test_a_database_another_program_held_does_not_stop_the_timers_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connection, "BUSY_SECONDS", 0.05)
    path = tmp_path / "agiraph.db"
    async with opened(tmp_path, f"sqlite:///{path}") as (world, clock):
        trigger = await make(world, await watcher(world), "delayed", {"delay_seconds": 60})
        await world.settle()
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("begin immediate")
            clock.advance(seconds=61)
            await clock.paused.wait()
        clock.over.set()
        await fires(world, trigger)


async def test_timers_that_cannot_be_read_ring_when_they_can(
    tmp_path: Path, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path, database_url) as (world, clock):
        trigger = await make(world, await watcher(world), "delayed", {"delay_seconds": 60})
        await lose(world, clock, "timers")
        assert "timers failed: " in caplog.text
        await fires(world, trigger)


async def test_triggers_that_cannot_be_looked_after_are_when_they_can(
    tmp_path: Path, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path, database_url) as (world, clock):
        founded = await watcher(world)
        trigger = await make(world, founded, "on_event", {"event_pattern": "message.*"})
        await lose(world, clock, "errands")
        assert "triggers failed: " in caplog.text
        await world.say(founded.coordinator.id, "hm", team_id=founded.team.id, kind="notice")
        await fires(world, trigger)


async def test_a_timer_that_breaks_keeps_no_other_from_ringing_and_is_tried_later(
    tmp_path: Path, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path, database_url) as (world, clock):
        bad = await make(world, await watcher(world, "Bad"), "delayed", {"delay_seconds": 60})
        good = await make(world, await watcher(world, "Good"), "delayed", {"delay_seconds": 60})
        await world.store.write(_damage, bad)
        clock.advance(seconds=61)
        await fires(world, good)
        assert f"timer trigger:{bad.id} failed" in caplog.text
        await world.store.write(_mend, bad)
        clock.advance(seconds=timedelta(minutes=10).total_seconds())
        await fires(world, bad)


async def test_files_that_cannot_be_looked_at_keep_nobody_else_from_hearing(
    tmp_path: Path, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path, database_url) as (world, clock):
        bad, good = await watcher(world, "Bad"), await watcher(world, "Good")
        config = {"interval_seconds": 60, "watch": ["shared/list.md"]}
        await make(world, bad, "heartbeat", config)
        heard = await make(world, good, "on_event", {"event_pattern": "message.*"})
        folder = tmp_path / "home" / "teams" / bad.team.id
        folder.parent.mkdir(exist_ok=True)
        folder.write_text("not a folder")
        clock.advance(seconds=61)

        async def is_looking() -> bool:
            return await world.store.read(_is_looking)

        async with asyncio.timeout(30):
            await until(world, is_looking)
        await world.say(good.coordinator.id, "hm", team_id=good.team.id, kind="notice")
        await fires(world, heard)
        assert "the other items are handled without it" in caplog.text


async def test_a_round_that_fails_for_days_is_logged_in_full_once_and_then_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    periodic = PeriodicTasks(clock)
    failures = 30_000
    told: list[str] = []
    rests = asyncio.Event()

    async def rest() -> None:
        rests.set()
        await asyncio.Event().wait()

    async def once() -> Wait | None:
        if len(clock.slept) == 2:
            told.extend(periodic.failing())
        if len(clock.slept) < failures:
            raise ValueError("no such table: timers")
        return rest

    going = asyncio.create_task(periodic.repeat("timers", once))
    await rests.wait()
    going.cancel()
    assert told == [
        "timers has failed 2 times since 2026-01-05 09:00:00 UTC: ValueError: no such table: timers"
    ]
    assert periodic.failing() == []
    full = [r for r in caplog.records if r.exc_info]
    assert [r.getMessage() for r in full] == [
        "timers failed: ValueError: no such table: timers; it is retried, at least every 10 s"
    ]
    days = clock.monotonic() / 86400
    assert days > 3
    assert len(caplog.records) < 24 * days + 10  # an hour apart in the end
    assert caplog.records[-1].getMessage() == (
        f"timers works again; it had failed {failures} times since 2026-01-05 09:00:00 UTC"
    )


async def test_a_timer_that_fails_again_and_again_is_logged_in_full_once(
    tmp_path: Path, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path, database_url) as (world, clock):
        bad = await make(world, await watcher(world, "Bad"), "delayed", {"delay_seconds": 60})
        await world.store.write(_damage, bad)
        for _ in range(3):
            tried = world.runtime.periodic._items.get(f"timer trigger:{bad.id}")
            before = 0 if tried is None else tried.count
            clock.advance(seconds=timedelta(minutes=10).total_seconds())

            async def failed_again(before: int = before) -> bool:
                item = world.runtime.periodic._items.get(f"timer trigger:{bad.id}")
                return item is not None and item.count > before

            async with asyncio.timeout(30):
                await until(world, failed_again)
    full = [r.getMessage() for r in caplog.records if r.exc_info and bad.id in r.getMessage()]
    assert len(full) == 1, full


async def test_the_row_of_a_worker_says_what_fails_in_it(tmp_path: Path, postgres: Server) -> None:
    async with opened(tmp_path, postgres.fresh()) as (world, clock):
        await world.settle()
        await world.store.write(_rename, "errands", "elsewhere")
        clock.advance(seconds=61)
        await clock.paused.wait()

        async def told() -> list[str]:
            [worker] = await world.store.read(workers)
            return worker.failing

        async with asyncio.timeout(30):
            # Its thread says so within a second or two; nothing tells us when.
            while not await told():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        [sentence] = await told()
        assert sentence.startswith("triggers has failed")
        assert 'relation "errands" does not exist' in sentence
        await world.store.write(_rename, "elsewhere", "errands")


def _is_looking(tx: Tx) -> bool:
    return tx.one("select 1 from errands where taken_at is not null") is not None


def _rename(tx: Tx, table: str, to: str) -> None:
    tx.run(f"alter table {table} rename to {to}")


def _damage(tx: Tx, trigger: Trigger) -> None:
    tx.run("update triggers set payload = '{' || payload where id = :id", id=trigger.id)


def _mend(tx: Tx, trigger: Trigger) -> None:
    tx.run("update triggers set payload = substr(payload, 2) where id = :id", id=trigger.id)
