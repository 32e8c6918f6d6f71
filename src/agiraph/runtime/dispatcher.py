"""Dispatcher: works off an agent's queue and writes down how each run ended."""

import asyncio
import contextlib
import logging
import traceback
from dataclasses import dataclass, field
from typing import assert_never

from agiraph import logs
from agiraph.domain.chat import Lease
from agiraph.domain.errors import (
    Fenced,
    IllegalMove,
    Misconfigured,
    ModelError,
    ModelUnavailable,
    StoreDamaged,
    StoreUnavailable,
)
from agiraph.domain.ids import TeamId
from agiraph.domain.outcomes import Failed, Finished, Outcome, Parked
from agiraph.domain.time import Clock
from agiraph.domain.work import Queue, StopReason
from agiraph.runtime.calls import Halted
from agiraph.runtime.executor import Executor
from agiraph.runtime.lanes import LaneLimits, lane_limits
from agiraph.runtime.periodic import PeriodicTasks
from agiraph.services.board import leases, notices
from agiraph.services.lifecycle import claims, endings, journal
from agiraph.store import threads
from agiraph.store.database import Store

log = logging.getLogger("agiraph.dispatch")

STORE = "the store"
"""What running work waits for together; its failure is logged once for all of it."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
MODEL_PAUSE = 30.0
LONGEST_MODEL_PAUSE = 900.0
LONGEST_DETAIL = 4000
"""Characters of what a bug of ours said that its node's end carries; the log has all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatcher:
    store: Store
    clock: Clock
    executor: Executor
    periodic: PeriodicTasks
    lane_limits: LaneLimits = field(default_factory=lane_limits)

    async def drive(self, queue: Queue, *, owner: str, only: TeamId | None = None) -> bool:
        """Run the next node of a queue; False if there is none that could run."""
        async with self.lane_limits[queue.lane]:
            lease = await self._claim(queue, owner=owner, only=only)
            if lease is None:
                return False
            with logs.traced(
                team=lease.team_id,
                agent=lease.agent_id,
                node=lease.node_id,
                thread=lease.thread_id,
            ):
                log.info("at work")
                await self.run(lease)
                return True

    async def run(self, lease: Lease) -> None:
        """Run one node; whatever happens, its row says how it stands afterwards."""
        pause, again = FIRST_PAUSE, False
        while True:
            try:
                if again:  # the model may have been asked, and its answer not written down
                    await self.store.write(leases.charge_lost, lease)
                    self.periodic.item_succeeded(STORE)
                return await self._attempt(lease)
            except Fenced:
                log.warning("%s was taken over; this runner lets go of it", lease.node_id)
                return None
            except StoreUnavailable as error:
                # Nothing was written, so nothing is lost: the journal says where to go on.
                self._store_failed(error)
                await self.clock.sleep(pause)
                pause, again = min(pause * 2, LONGEST_PAUSE), True
            except asyncio.CancelledError:
                await asyncio.shield(self._let_go(lease))
                raise

    def _store_failed(self, error: StoreUnavailable) -> None:
        self.periodic.item_failed(STORE, error, "work waits for it", trace=False)

    async def _let_go(self, lease: Lease) -> None:
        """The process stops, or somebody cancelled: back into the queue, where claim decides."""
        with contextlib.suppress(Fenced, IllegalMove, StoreUnavailable):
            await self.store.write(claims.release, lease)

    async def _claim(self, queue: Queue, *, owner: str, only: TeamId | None) -> Lease | None:
        pause = FIRST_PAUSE
        while True:
            claiming = asyncio.ensure_future(
                self.store.write(claims.claim, queue, owner=owner, only=only)
            )
            try:
                lease = await asyncio.shield(claiming)
                self.periodic.item_succeeded(STORE)
                return lease
            except StoreUnavailable as error:
                self._store_failed(error)
                await self.clock.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            except asyncio.CancelledError:
                # A claim under way may succeed: a lease that nobody holds would block its agent.
                with contextlib.suppress(StoreUnavailable):
                    if lease := await claiming:
                        await self._let_go(lease)
                raise

    async def _attempt(self, lease: Lease) -> None:
        """Run the node and write down how that ended; whatever breaks in either ends it, too."""
        try:
            await self._run_once(lease)
        except (Fenced, StoreUnavailable, StoreDamaged):
            raise
        except Exception as error:
            log.exception("%s broke", lease.node_id)
            detail = "".join(traceback.format_exception_only(error)).strip()
            detail = notices.cut(detail, LONGEST_DETAIL)
            await self.store.write(journal.end, lease, Failed(StopReason.BROKEN, detail))

    async def _run_once(self, lease: Lease) -> None:
        try:
            outcome = await self.executor.run(lease)
        except Halted as halted:
            verb = endings.cancelled if halted.halt == "cancel" else claims.release
            await self.store.write(verb, lease)
        except ModelUnavailable as error:
            seconds = await self._model_pause(lease, error)
            reason = f"the model cannot be reached: {error} Trying again by itself."
            await self.store.write(claims.sleep, lease, seconds=seconds, reason=reason)
        except (ModelError, Misconfigured) as error:
            # Only a person can help: a key, a name, a limit. Nothing is lost until they do.
            text = f"I cannot go on: {error} Tell me when I should try again."
            await self.store.write(claims.ask_to_go_on, lease, reason=str(error), text=text)
        else:
            await self._write_down(lease, outcome)

    async def _write_down(self, lease: Lease, outcome: Outcome) -> None:
        match outcome:
            case Parked():
                await self.store.write(claims.park, lease, outcome)
            case Finished(reason=StopReason.ANSWERED) | Failed():
                await self.store.write(journal.end, lease, outcome)
            case Finished():
                pass  # the call that ended the node committed its end
            case _:
                assert_never(outcome)

    async def _model_pause(self, lease: Lease, error: ModelUnavailable) -> float:
        """Wait as long again as it has been out already, within bounds."""
        said = await self.store.read(threads.last_spoken, lease.thread_id)
        out = (self.clock.now() - said.at).total_seconds() if said else 0.0
        return max(min(max(out, MODEL_PAUSE), LONGEST_MODEL_PAUSE), error.retry_after or 0.0)
