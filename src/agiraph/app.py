"""App: builds everything once and puts it together."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from agiraph.domain.ids import TeamId
from agiraph.domain.time import Clock, SystemClock
from agiraph.home import sandbox
from agiraph.home.layout import Home
from agiraph.home.lock import HomeLock
from agiraph.home.sandbox import CommandRules, Limits
from agiraph.home.specialists import specialists
from agiraph.providers.catalogue import Catalogue
from agiraph.providers.prices import Prices
from agiraph.providers.registry import Keys, Maker, Registry
from agiraph.runtime.channels import Channel
from agiraph.runtime.command_line import Command
from agiraph.runtime.dispatcher import Dispatcher
from agiraph.runtime.embedded import EmbeddedEngine
from agiraph.runtime.engine import Engine
from agiraph.runtime.executor import Executor
from agiraph.runtime.outbox import Outbox
from agiraph.runtime.periodic import Rounds
from agiraph.runtime.tracing import Tracing
from agiraph.runtime.trigger_worker import Callback, TriggerWorker
from agiraph.runtime.watchdog import watch
from agiraph.store.connect import open_store
from agiraph.store.database import Store
from agiraph.store.server_clock import ServerClock, told
from agiraph.tools.base import Tool
from agiraph.tools.context import RunContext
from agiraph.web.access import Web

log = logging.getLogger("agiraph.app")

LOOK_SECONDS = 5.0
"""How often a runtime looks whether the lock on its home is still what others would find."""


def make_engine(url: str, store: Store, dispatcher: Dispatcher, rounds: Rounds) -> Engine:
    if url.startswith("sqlite:"):
        return EmbeddedEngine(store, store.clock, dispatcher.drive, rounds)
    from agiraph.runtime.clustered import ClusteredEngine  # loaded only where it is used

    return ClusteredEngine(url, store, store.clock, dispatcher.drive, rounds)


class Runtime:
    """A home, its database, and what runs on them."""

    def __init__(
        self,
        home: Home,
        lock: HomeLock | None,
        store: Store,
        models: Catalogue,
        engine: Engine,
        outbox: Outbox,
        trigger_worker: TriggerWorker,
        rounds: Rounds,
    ) -> None:
        self.home = home
        self._lock = lock
        self._watchdog: asyncio.Task[None] | None = None
        self.store = store
        self.clock = store.clock
        self.models = models
        self.engine = engine
        self.outbox = outbox
        self.trigger_worker = trigger_worker
        self._said = ""
        self._looking: asyncio.TimerHandle | None = None
        if lock is not None:
            self._look_at_lock(lock)
        self.rounds = rounds

    @classmethod
    async def open(
        cls,
        home_path: Path,
        *,
        database_url: str,
        keys: Keys,
        prices: Prices | None = None,
        clock: Clock | None = None,
        tools: tuple[Tool, ...] = (),
        own_models: Mapping[str, Maker] | None = None,
        commands: Mapping[str, Command] | None = None,
        channels: Mapping[str, Channel] | None = None,
        callbacks: Mapping[str, Callback] | None = None,
        reply_model: str = "",
        web: Web | None = None,
        limits: Limits | None = None,
        on_delta: Callable[[RunContext, str], None] | None = None,
        tracing: Tracing | None = None,
    ) -> "Runtime":
        home = Home.open(home_path)
        # Of processes on PostgreSQL there may be many; a database file has one.
        lock = home.lock() if database_url.startswith("sqlite:") else None
        try:
            store = await open_store(database_url, clock or SystemClock(), sole=True)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        clock = store.clock  # on PostgreSQL that of the server
        if isinstance(clock, ServerClock) and (skewed := told(clock.skew)):
            log.warning(skewed)
        rounds = Rounds(clock)
        models = Catalogue(Registry(keys, clock), prices or Prices(), clock)
        for provider, maker in (own_models or {}).items():
            models.add(provider, maker)
        executor = Executor(
            store=store,
            home=home,
            clock=clock,
            models=models,
            extra_tools=tools,
            specialists=specialists(home),
            commands=commands or {},
            reply_model=reply_model,
            web=web or Web(),
            command_rules=CommandRules(
                limits=limits or Limits(), masked=sandbox.database_files(database_url)
            ),
            on_delta=on_delta,
            tracing=tracing,
        )
        dispatcher = Dispatcher(store=store, clock=clock, executor=executor, rounds=rounds)
        engine = make_engine(database_url, store, dispatcher, rounds)
        outbox = Outbox(store, clock, channels or {}, alone=lock is not None, rounds=rounds)
        trigger_worker = TriggerWorker(
            store=store,
            home=home,
            clock=clock,
            rounds=rounds,
            callbacks=callbacks or {},
            alone=lock is not None,
        )
        return cls(home, lock, store, models, engine, outbox, trigger_worker, rounds)

    async def start(self, only: TeamId | None = None) -> None:
        """Begin to work off what there is; of one team only, if it is named."""
        await asyncio.to_thread(sandbox.warn_if_impossible)
        await self.outbox.start()  # before anybody has something to say
        await self.engine.start(only)
        await self.trigger_worker.start()
        self._watchdog = asyncio.create_task(
            watch(self.store, self.clock, self.rounds), name="watchdog"
        )

    async def rest(self) -> None:
        """Stop working: what is under way goes back into its queue, where anybody finds it."""
        if self._watchdog is not None:
            self._watchdog.cancel()
            await asyncio.gather(self._watchdog, return_exceptions=True)
        await self.engine.stop()
        await self.outbox.stop()
        await self.trigger_worker.stop()

    def _look_at_lock(self, lock: HomeLock) -> None:
        # By the loop's clock and not by `Clock`: a test that turns days forward looks no oftener.
        loop = asyncio.get_running_loop()
        self._looking = loop.call_later(LOOK_SECONDS, self._look_at_lock, lock)
        said = lock.notice()
        if said and said != self._said:
            log.error("%s", said)
        self._said = said

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        await self.rest()
        await self.models.close()
        await self.store.close()
        self.home.folder.close()
        if self._lock is not None:
            self._lock.release()
