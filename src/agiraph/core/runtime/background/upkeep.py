"""Upkeep: removes old steps and deleted teams, reports stalled work, and takes up the keys that a
person has entered, all in the background."""

import asyncio
import contextlib
import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial

from agiraph import redaction
from agiraph.core.domain.chat import Thread
from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.features import brought
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.times.time import Clock
from agiraph.core.home import stored_keys
from agiraph.core.home.layout import Home, spool_name
from agiraph.core.home.node_folder import SCRATCH
from agiraph.core.runtime.background.periodic import PeriodicTasks, Wait
from agiraph.core.services.lifecycle import removal, timers
from agiraph.core.store import nodes
from agiraph.core.store.database import Store
from agiraph.core.store.tx import Aftermath
from agiraph.faultpoints import fault
from agiraph.models.catalogue import Catalogue
from agiraph.models.vendors import VENDORS

_SPOOL = "spool"


def remove_files(home: Home, team_id: TeamId, calls: Iterable[tuple[str, Iterable[str]]]) -> None:
    """Remove the team's folder and the output of its commands. `calls` are its threads, each with
    the ids of the calls made in it."""
    fault("fx:before:remove")
    with contextlib.suppress(NotFound):
        home.folder.remove(f"teams/{team_id}")
    fault("fx:in:remove")
    _remove_spools(home, calls)
    fault("fx:after:remove")


def remove_files_of_work(home: Home, thread: Thread, calls: Iterable[str]) -> None:
    """Remove the working files of a thread's node and the output of the thread's commands. What
    the node has published stays."""
    fault("fx:before:remove")
    with contextlib.suppress(NotFound):
        home.folder.remove(f"teams/{thread.team_id}/nodes/{thread.node_id}/{SCRATCH}")
    _remove_spools(home, [(thread.id, calls)])
    fault("fx:after:remove")


def _remove_spools(home: Home, calls: Iterable[tuple[str, Iterable[str]]]) -> None:
    known = [(thread, list(ids)) for thread, ids in calls]
    starts = tuple(f"{thread}-" for thread, _ in known)
    # A call id that is no file name is hashed together with its thread.
    hashed = {spool_name(f"{thread}-{call}") for thread, ids in known for call in ids}
    with contextlib.suppress(NotFound), home.folder.sub(_SPOOL) as spool:
        for entry in spool.list(limit=sys.maxsize):
            if entry.name.startswith(starts) or entry.name in hashed:
                spool.remove(entry.name)


EVERY = timedelta(days=1)
BATCH = 100
"""Threads that one transaction marks."""


class Retention:
    """Removes what is older than `age`, in the background; None: nothing is removed."""

    def __init__(
        self,
        store: Store,
        home: Home,
        clock: Clock,
        periodic: PeriodicTasks,
        age: timedelta | None,
    ) -> None:
        self._store = store
        self._home = home
        self._clock = clock
        self._periodic = periodic
        self._age = age
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        if self._age is not None:
            repeated = self._periodic.repeat("removing old work", partial(self._daily, self._age))
            self._task = asyncio.create_task(repeated, name="retention")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _daily(self, age: timedelta) -> Wait:
        await self.prune(age)
        return partial(self._clock.sleep_until, self._clock.now() + EVERY)

    async def prune(self, age: timedelta) -> None:
        """Remove the steps and working files of threads that were closed so long ago."""
        # Also what a crash has interrupted.
        await self._remove(await self._store.read(removal.marked_threads))
        before = self._clock.now() - age
        while found := await self._store.write(removal.mark_old_threads, before, limit=BATCH):
            await self._remove(found)

    async def _remove(self, found: list[Thread]) -> None:
        for thread in found:
            with self._periodic.isolated(f"removal of the steps of {thread.id}"):
                calls = await self._store.read(removal.all_calls, thread)
                await asyncio.to_thread(remove_files_of_work, self._home, thread, calls)
                await self._store.write(removal.drop_turns, thread)


def use_stored_keys(home: Home, models: Catalogue) -> None:
    """Use the stored keys with these models, and stop using keys that were removed from the file.

    The environment takes precedence: a vendor whose key is set there keeps that key.
    """
    stored = stored_keys.read(home.path)
    redaction.keep(stored.secrets)
    for vendor in VENDORS:
        account = models.registry.account(vendor)
        key = stored.keys.get(vendor.key_variable, "")
        if account.key != key and (account.is_stored or not account.key):
            used = replace(account, key=key, is_stored=bool(key))
            models.set_account(vendor.name, used)


CHECK_EVERY = timedelta(minutes=2)
"""How often running nodes are checked: a fraction of `timers.STALLED_AFTER_SECONDS`."""


async def watch_stalled(store: Store, clock: Clock, periodic: PeriodicTasks) -> None:
    """Check running nodes until cancelled. A check costs one short query and calls no model."""

    async def wait() -> None:
        await clock.sleep_until(clock.now() + CHECK_EVERY)

    async def check() -> Wait:
        # A read first: while nobody works, the check costs no transaction and no fsync.
        if await store.read(nodes.at_work):
            await store.write(timers.report_stalled)
        return wait

    await wait()
    await periodic.repeat("watchdog", check)


BUSY_S = 0.2
"""The pause before a team is looked at again whose runs are still ending."""
POLL_S = 5.0
"""How often to look for deletions that another process has begun."""


class TeamRemoval:
    """Removes deleted teams in the background."""

    def __init__(
        self, store: Store, home: Home, periodic: PeriodicTasks, *, is_sole_process: bool
    ) -> None:
        self._store = store
        self._home = home
        self._periodic = periodic
        self._is_sole_process = is_sole_process
        self._begun = asyncio.Event()
        self._rested = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Go on with what an earlier process left, then wait for further deletions."""
        self._store.subscribe(self._after_commit)
        repeated = self._periodic.repeat("removing deleted teams", self._remove_all)
        self._task = asyncio.create_task(repeated, name="team removal")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def idle(self) -> None:
        """Return when no deleted team is left to remove."""
        while await self._store.read(removal.pending_deletions):
            self._rested.clear()
            await self._rested.wait()

    def _after_commit(self, aftermath: Aftermath) -> None:
        for event in aftermath.events:
            if event.type == "team.deleted":
                self._begun.set()

    async def _remove_all(self) -> Wait:
        # Before the read, so that a deletion which is committed meanwhile is not missed.
        self._begun.clear()
        pause_s = None if self._is_sole_process else POLL_S
        is_busy = False
        for each in await self._store.read(removal.pending_deletions):
            pause_s = POLL_S  # if it fails, it is tried again
            with self._periodic.isolated(f"removal of the deleted team {each.team_id}"):
                is_busy |= not await self._remove(each.team_id)
        return partial(self._wait, BUSY_S if is_busy else pause_s)

    async def _remove(self, team_id: TeamId) -> bool:
        """Remove all data of a team; return False if a run of it has not ended yet."""
        if await self._store.read(removal.is_at_work, team_id):
            return False
        calls = await self._calls(team_id)
        await asyncio.to_thread(remove_files, self._home, team_id, calls)
        for forget in brought("forgets_below"):
            await asyncio.to_thread(forget, self._home, f"teams/{team_id}/")
        while await self._store.write(removal.drop_rows, team_id):
            pass
        await self._store.write(removal.finish_deletion, team_id)
        return True

    async def _calls(self, team_id: TeamId) -> list[tuple[str, list[str]]]:
        """Return each thread of the team with the ids of its tool calls."""
        found: list[tuple[str, list[str]]] = []
        for thread, number in await self._store.read(removal.threads_of_team, team_id):
            ids: list[str] = []
            after = 0
            while page := await self._store.read(removal.calls_of_thread, number, after=after):
                ids += [call for _, made in page for call in made]
                after = page[-1][0]
            found.append((thread, ids))
        return found

    async def _wait(self, pause_s: float | None) -> None:
        """Wait until a team is deleted, or for so many seconds."""
        self._rested.set()
        # By the event loop's time: a test that advances `Clock` need not look more often.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._begun.wait()
