"""Dispatcher: claims the next node of a queue, runs it, and records how the run ended."""

import asyncio
import contextlib
import logging
import traceback
from dataclasses import field
from typing import assert_never

from agiraph import logs
from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import (
    BurnRateReached,
    DailyLimitReached,
    Fenced,
    IllegalMove,
    KeyRefused,
    Misconfigured,
    ModelError,
    ModelUnavailable,
    QuotaSpent,
    StoreDamaged,
    StoreUnavailable,
)
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.messages import ProviderFault
from agiraph.core.domain.outcomes import Failed, Finished, Outcome, Parked
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Lane, Queue, StopReason
from agiraph.core.runtime.background.periodic import PeriodicTasks
from agiraph.core.runtime.calls import Halted
from agiraph.core.runtime.executor import Executor
from agiraph.core.services.board import leases, texts
from agiraph.core.services.lifecycle import claims, endings, journal, overspending
from agiraph.core.store import threads
from agiraph.core.store.database import Store

# A run mostly waits for its model, so many fit into one process. Nobody waits for a reflection.
MAX_RUNNING: dict[Lane, int] = {"reply": 32, "work": 200, "reflection": 4}

LaneLimits = dict[Lane, asyncio.Semaphore]


def lane_limits() -> LaneLimits:
    """Return a semaphore for each lane."""
    return {lane: asyncio.Semaphore(limit) for lane, limit in MAX_RUNNING.items()}


log: logging.Logger = logging.getLogger("agiraph.dispatch")

STORE = "the store"
"""All runs wait for the store together, so its failure is logged once for all of them."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""The pause before the store is tried again; doubled with each failure in a row."""
MODEL_PAUSE_S, LONGEST_MODEL_PAUSE_S = 30.0, 900.0
"""Bounds of the pause before a model that could not be reached is tried again."""
DETAIL_CHARACTERS = 4000
"""Characters of an unexpected error that the node's row keeps; the log has the traceback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatcher:
    """Runs nodes, and maps every way a run can end to one write."""

    store: Store
    clock: Clock
    executor: Executor
    periodic: PeriodicTasks
    lane_limits: LaneLimits = field(default_factory=lane_limits)

    async def drive(self, queue: Queue, *, owner: str, only: TeamId | None = None) -> bool:
        """Run the next node of a queue; return False if no node of it can run now."""
        # The slot before the claim: a node that waits for a slot stays in its queue, where
        # another process may claim it.
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
                log.info("started to work")
                await self.run(lease)
                return True

    async def run(self, lease: Lease) -> None:
        """Run one leased node. When this returns, the node's row says how the run ended."""
        pause_s, is_retry = FIRST_PAUSE_S, False
        while True:
            try:
                if is_retry:  # the model may have been called, and its reply not written
                    await self.store.write(leases.charge_lost_call, lease)
                    self.periodic.item_succeeded(STORE)
                return await self._attempt(lease)
            except Fenced:
                # Another run holds a newer lease. Nothing may be written here, not even a failure.
                log.warning("%s was claimed by another process; this run stops", lease.node_id)
                return None
            except StoreUnavailable as error:
                # The failed write changed nothing, so the run starts again from the thread.
                self._store_failed(error)
                await self.clock.sleep(pause_s)
                pause_s, is_retry = min(pause_s * 2, LONGEST_PAUSE_S), True
            except asyncio.CancelledError:
                # Shielded: a second cancel must not stop the release, or the node would stay
                # `running` without a runner.
                await asyncio.shield(self._release(lease))
                raise

    def _store_failed(self, error: StoreUnavailable) -> None:
        self.periodic.item_failed(STORE, error, "work waits for it", trace=False)

    async def _release(self, lease: Lease) -> None:
        """Put the node back into its queue: the process stops, or the node was cancelled.

        The next claim sees a cancel request and ends the node.
        """
        # Fenced: another run owns the node. IllegalMove: the node ended just before the cancel.
        # Without the store the node stays `running`, and the next claim takes it over.
        with contextlib.suppress(Fenced, IllegalMove, StoreUnavailable):
            await self.store.write(claims.release, lease)

    async def _claim(self, queue: Queue, *, owner: str, only: TeamId | None) -> Lease | None:
        pause_s = FIRST_PAUSE_S
        while True:
            # A task of its own, so that its result is known even if this
            # task is cancelled meanwhile.
            claiming = asyncio.ensure_future(
                self.store.write(claims.claim, queue, owner=owner, only=only)
            )
            try:
                lease = await asyncio.shield(claiming)
                self.periodic.item_succeeded(STORE)
                return lease
            except StoreUnavailable as error:
                self._store_failed(error)
                await self.clock.sleep(pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            except asyncio.CancelledError:
                await self._release_claimed(claiming)
                raise

    async def _release_claimed(self, claiming: asyncio.Future[Lease | None]) -> None:
        """Wait for a claim whose task was cancelled, and give back the node if it was claimed.

        The transaction may commit after the cancellation. A claimed node that nobody runs would
        block its agent's queue.
        """
        with contextlib.suppress(StoreUnavailable):
            if lease := await claiming:
                await self._release(lease)

    async def _attempt(self, lease: Lease) -> None:
        """Run the node and record its end; an unexpected error fails the node with `broken`."""
        try:
            await self._run_once(lease)
        except (Fenced, StoreUnavailable, StoreDamaged):
            # To write the failure would fail as well, or write to another run's thread.
            raise
        except Exception as error:
            log.exception("%s failed with an unexpected error", lease.node_id)
            detail = "".join(traceback.format_exception_only(error)).strip()
            detail = texts.truncate(detail, DETAIL_CHARACTERS)
            await self.store.write(journal.end, lease, Failed(StopReason.BROKEN, detail))

    async def _run_once(self, lease: Lease) -> None:
        try:
            outcome = await self.executor.run(lease)
        except Halted as halted:
            verb = endings.end_cancelled_run if halted.halt == "cancel" else claims.release
            await self.store.write(verb, lease)
        except ModelUnavailable as error:
            # Before ModelError, its base: this one ends by itself, the others need a person.
            seconds = await self._model_pause(lease, error)
            reason = f"the model cannot be reached: {error} Trying again by itself."
            await self.store.write(claims.sleep, lease, seconds=seconds, reason=reason)
        except DailyLimitReached as error:
            await self.store.write(overspending.park_for_day, lease, limit_usd=error.limit_usd)
        except BurnRateReached:
            await self.store.write(overspending.park_for_goal, lease)
        except (ModelError, Misconfigured) as error:
            # A key, a name or a limit must be corrected: by the agent that hired this one and can
            # choose another model, else by a person.
            log.warning("%s stops, because its model cannot be used: %s", lease.node_id, error)
            others = self.executor.models.alternatives
            await self.store.write(
                journal.stop_for_model,
                lease,
                reason=str(error),
                alternatives=others,
                fault=_fault(error),
            )
        else:
            await self._record(lease, outcome)

    async def _record(self, lease: Lease, outcome: Outcome) -> None:
        match outcome:
            case Parked():
                await self.store.write(claims.park, lease, outcome)
            case Finished(reason=StopReason.ANSWERED) | Failed():
                await self.store.write(journal.end, lease, outcome)
            case Finished():
                pass  # the tool call that ended the node committed its end
            case _:
                assert_never(outcome)

    async def _model_pause(self, lease: Lease, error: ModelUnavailable) -> float:
        """Return the pause before the next try: as long as the model has been out already, bounded.

        The last turn says since when, so the backoff survives a restart.
        """
        last = await self.store.read(threads.last_turn_of_agent, lease.thread_id)
        out = (self.clock.now() - last.at).total_seconds() if last else 0.0
        return max(min(max(out, MODEL_PAUSE_S), LONGEST_MODEL_PAUSE_S), error.retry_after or 0.0)


def _fault(error: ModelError | Misconfigured) -> ProviderFault | None:
    """Return what every model of the provider refuses to work for; None: it is this model alone."""
    match error:
        case KeyRefused():
            return "key"
        case QuotaSpent():
            return "quota"
        case _:
            return None
