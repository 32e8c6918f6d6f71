"""All processes on a PostgreSQL use the time of its server."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agiraph.app import open_store
from agiraph.core.domain import ids
from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle import teams
from agiraph.core.services.triggers import definitions
from agiraph.core.store.engine.postgres import PostgresStore
from agiraph.core.store.engine.server_clock import ServerClock
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from tests.postgres_server import Server
from tests.runtime.worker import AHEAD, WrongClock

CLOSE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def restore_id_clock() -> Iterator[None]:
    """Restore the clock of new ids, which is global to the process."""
    before = ids._now, ids._last
    yield
    ids._now, ids._last = before


@pytest.fixture(params=[AHEAD, -AHEAD], ids=["ahead", "behind"])
async def skewed(request: pytest.FixtureRequest, postgres: Server) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(postgres.fresh(), WrongClock(request.param))
    yield store
    await store.close()


def two_times(tx: Tx) -> tuple[datetime, datetime]:
    row = tx.one("select clock_timestamp()")
    assert row is not None
    return tx.now, row[0]


async def test_a_transaction_uses_the_servers_clock(skewed: PostgresStore) -> None:
    ours, theirs = await skewed.read(two_times)
    assert abs(ours - theirs) < CLOSE
    ours, theirs = await skewed.write(two_times)
    assert abs(ours - theirs) < CLOSE


async def test_new_ids_sort_among_those_of_other_processes(
    skewed: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = int(datetime.now(UTC).timestamp() * 1000)
    assert isinstance(skewed.clock, ServerClock)
    wrong = skewed.clock.own.now().timestamp()
    monkeypatch.setattr(time, "time_ns", lambda: int(wrong * 1e9))
    await skewed.read(two_times)
    ids._last = 0
    made = ids.new_id("node")
    minute = 60 * 1000
    earlier, later = (
        f"node_{ids._base32((now + by) << ids._RANDOM_BITS, 18)}" for by in (-minute, minute)
    )
    assert earlier < made < later


async def test_many_transactions_measure_the_servers_time_once(skewed: PostgresStore) -> None:
    for _ in range(50):
        await skewed.read(two_times)
    assert isinstance(skewed.clock, ServerClock)
    assert skewed.clock.measurements == 1


async def test_setting_the_local_clock_does_not_change_the_time_of_transactions(
    skewed: PostgresStore,
) -> None:
    await skewed.read(two_times)
    clock = skewed.clock
    assert isinstance(clock, ServerClock)
    assert isinstance(clock.own, WrongClock)
    before = clock.now()
    clock.own.by += timedelta(days=1)
    assert abs(clock.now() - before) < CLOSE
    ours, theirs = await skewed.read(two_times)
    assert abs(ours - theirs) < CLOSE
    assert clock.measurements == 2
    assert abs(clock.skew - clock.own.by) < CLOSE


async def test_a_process_whose_clock_is_ahead_fires_only_what_is_due(
    tmp_path: Path, postgres: Server
) -> None:
    url = postgres.fresh()
    async with World(
        tmp_path / "home", database_url=url, clock=WrongClock(), easy_endings=True
    ) as world:
        world.script("ada", *[says(call("finish", summary="done"))] * 3)
        other = await open_store(url, WrongClock(timedelta(0)))
        try:
            made = [
                (
                    await other.write(
                        definitions.create,
                        agent_id=founded.coordinator.id,
                        type="delayed",
                        config={"delay_seconds": seconds},
                        payload={"task": "Look"},
                    )
                ).trigger
                for seconds in (1, 3600)
                for founded in [
                    await other.write(
                        teams.create,
                        owner_id=OWNER,
                        goal=f"Wait {seconds} s",
                        model="scripted/ada",
                        mode="infinite",
                        start=False,
                        learns=False,
                    )
                ]
            ]
        finally:
            await other.close()
        fired = asyncio.Event()
        world.store.subscribe(
            lambda after: fired.set() if any(e.type == "trigger.fired" for e in after.events) else 0
        )
        async with asyncio.timeout(30):
            while not await world.firings(made[0].id):
                await fired.wait()
                fired.clear()
        assert await world.firings(made[1].id) == []
