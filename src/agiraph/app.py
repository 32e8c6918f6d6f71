"""App: builds a runtime of a home, its database and the tasks that work on them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast

from agiraph.core.domain.agents import Command, Specialist, Team
from agiraph.core.domain.features import brought
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.text.previews import PromptText
from agiraph.core.domain.times.time import Clock, SystemClock
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Effort
from agiraph.core.home.layout import Home
from agiraph.core.home.lock import HomeLock
from agiraph.core.home.named_secrets import NamedSecrets
from agiraph.core.home.specialists import LiveSpecialists
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.background.periodic import PeriodicTasks, Wait
from agiraph.core.runtime.background.trigger_worker import Callback, TriggerWorker
from agiraph.core.runtime.background.upkeep import (
    Retention,
    TeamRemoval,
    use_stored_keys,
    watch_stalled,
)
from agiraph.core.runtime.daily_spend import DailySpend
from agiraph.core.runtime.dispatcher import Dispatcher
from agiraph.core.runtime.engines.embedded import EmbeddedEngine
from agiraph.core.runtime.engines.engine import Engine
from agiraph.core.runtime.executor import Executor, preview_specialist
from agiraph.core.runtime.parts import Installation, OfferedTools, Part
from agiraph.core.runtime.tracing import Tracing
from agiraph.core.services.mail import absence
from agiraph.core.store.database import Store
from agiraph.core.store.engine.connect import open_store
from agiraph.core.store.engine.server_clock import ServerClock, skew_warning
from agiraph.core.tools.base import Tool
from agiraph.core.tools.calls import added
from agiraph.core.tools.calls.sources import ToolSource
from agiraph.models.catalogue import Catalogue
from agiraph.models.facts.prices import Prices
from agiraph.models.registry import Keys, ModelFactory, Registry
from agiraph.models.searching import web_with_keys
from agiraph.sandbox import levels
from agiraph.sandbox.folders import folder_history
from agiraph.sandbox.levels import CommandRules, Confinement, Wanted
from agiraph.sandbox.sandbox import Limits, database_files
from agiraph.web.access import WantedEngine, Web

if TYPE_CHECKING:
    from agiraph.config import Settings

T = TypeVar("T")
P = TypeVar("P")
log: logging.Logger = logging.getLogger("agiraph.app")

HOME_CHECK_S = 5.0
"""Seconds between two checks that this process still holds the lock on its home folder, so that no
other runtime can use it. On PostgreSQL the stored API keys are read again as often."""

DEMO_S = 45.0
"""How long the story of the scripted demo takes where people watch it in a browser."""


def make_engine(url: str, store: Store, dispatcher: Dispatcher, periodic: PeriodicTasks) -> Engine:
    """Return the engine for this database: one process on SQLite, any number on PostgreSQL."""
    if url.startswith("sqlite:"):
        return EmbeddedEngine(store, store.clock, dispatcher.drive, periodic)
    # PgQueuer and asyncpg take long to import; a home on SQLite does without them.
    from agiraph.core.runtime.engines.clustered import ClusteredEngine
    from agiraph.core.store.engine.pgqueuer_queue import PgQueuerQueue

    jobs = PgQueuerQueue(url, store.clock, periodic.failing)
    return ClusteredEngine(jobs, url, store, store.clock, dispatcher.drive, periodic)


class SharedOptions(TypedDict, total=False):
    """What a runtime, and a `World` of the test kit, may be given."""

    clock: Clock | None
    prices: Prices | None
    features: Mapping[str, Any] | None
    commands: Mapping[str, Command] | None
    callbacks: Mapping[str, Callback] | None
    reply_model: str
    reader_model: str
    efforts: Mapping[str, Effort] | None
    web: Web | None
    limits: Limits | None
    usd_per_day: float | None
    retention: timedelta | None
    on_delta: Callable[[RunContext, str], None] | None


class RuntimeOptions(SharedOptions, total=False):
    """What a runtime may be given."""

    tools: tuple[Tool | Callable[..., Any], ...]
    secrets: NamedSecrets
    sources: tuple[ToolSource, ...]
    own_models: Mapping[str, ModelFactory] | None
    level: Wanted
    readable: tuple[Path, ...]
    zone: str
    tracing: Tracing | None
    demo_s: float
    """About how long the story of the scripted demo takes; 0: no longer than its tools."""


@dataclass(eq=False)
class Runtime:
    """A home, its database, and the tasks that work on them."""

    home: Home
    lock: HomeLock | None
    store: Store
    models: Catalogue
    engine: Engine
    parts: Mapping[type, Part]
    """What features keep while this runtime is open, by type."""
    trigger_worker: TriggerWorker
    periodic: PeriodicTasks
    daily: DailySpend
    kept_for: timedelta | None
    """How long the steps of ended work are kept; None: for ever."""
    executor: Executor

    def __post_init__(self) -> None:
        home, lock, store, periodic = self.home, self.lock, self.store, self.periodic
        executor = self.executor
        self.clock: Clock = store.clock
        self.retention: Retention = Retention(store, home, store.clock, periodic, self.kept_for)
        self.confinement: Confinement = executor.command_rules.confinement
        """How the commands of this runtime are confined."""
        self.removal: TeamRemoval = TeamRemoval(
            store, home, periodic, is_sole_process=lock is not None
        )
        self.preview: Callable[[Team, Specialist, str], Awaitable[PromptText]] = partial(
            preview_specialist, executor
        )
        """Returns what a specialist of a team would be shown for a task."""
        self.check_tools: Callable[..., Awaitable[None]] = executor.offered.check
        self.specialists: Mapping[str, Specialist] = executor.specialists
        self._lock_problem = ""
        self._watchdog: asyncio.Task[None] | None = None
        # On PostgreSQL there is no lock to watch: processes share the
        # home, and rows decide who works.
        if lock is not None:
            watching = periodic.repeat("checking the home's lock", partial(self._check_lock, lock))
        else:
            watching = periodic.repeat("reading the stored keys", self._read_keys)
        self._home_watch: asyncio.Task[None] = asyncio.create_task(watching, name="home")

    @classmethod
    async def open(
        cls,
        home_path: Path,
        *,
        database_url: str,
        keys: Keys,
        **options: Unpack[RuntimeOptions],
    ) -> "Runtime":
        """Lock the home, open its database and build the runtime; `start` makes it work."""
        _refuse_unknown(options)
        get, home = options.get, Home.open(home_path)
        lock, store = await _open_store(home, database_url, options)
        periodic = PeriodicTasks(clock := store.clock)  # all processes share it on PostgreSQL
        rules = await _rules(home, options, database_files(database_url))
        is_sole = lock is not None
        parts = await _parts(home, store, periodic, rules, options, is_sole_process=is_sole)
        models = _models(keys, options, clock, parts)
        daily, known = DailySpend(store, clock, get("usd_per_day")), LiveSpecialists(home)
        web = web_with_keys(_with_engine(get("web") or Web(), parts), models)
        executor = Executor(
            store=store,
            home=home,
            clock=clock,
            models=models,
            offered=_offered(parts, options, known, web),
            specialists=known,
            commands=get("commands") or {},
            reply_model=get("reply_model", ""),
            reader_model=get("reader_model", ""),
            efforts=get("efforts") or {},
            web=web,
            command_rules=rules,
            daily=daily,
            on_delta=get("on_delta"),
            tracing=get("tracing"),
        )
        dispatcher = Dispatcher(store=store, clock=clock, executor=executor, periodic=periodic)
        engine = make_engine(database_url, store, dispatcher, periodic)
        trigger_worker = TriggerWorker(
            store=store,
            home=home,
            clock=clock,
            periodic=periodic,
            callbacks=get("callbacks") or {},
            is_sole_process=is_sole,
        )
        ends = (engine, {type(part): part for part in parts}, trigger_worker, periodic)
        return cls(home, lock, store, models, *ends, daily, get("retention"), executor)

    @classmethod
    async def of_settings(cls, settings: "Settings", **more: Unpack[RuntimeOptions]) -> "Runtime":
        """Open a runtime as the settings say; `more` goes before them."""
        options: RuntimeOptions = {
            "prices": settings.prices,
            "commands": settings.commands,
            "features": settings.features,
            "secrets": settings.secrets,
            "reply_model": settings.reply_model,
            "reader_model": settings.reader_model,
            "efforts": settings.efforts,
            "web": settings.web,
            "limits": settings.limits,
            "level": settings.sandbox,
            "readable": settings.sandbox_readable,
            "zone": settings.zone,
            "usd_per_day": settings.usd_per_day,
            "demo_s": DEMO_S if settings.demo_s is None else settings.demo_s,
            **more,
        }
        url, keys = settings.database_url, settings.keys
        return await cls.open(settings.home, database_url=url, keys=keys, **options)

    def part(self, kind: type[P]) -> P:
        """Return what a feature keeps while this runtime is open."""
        return cast(P, self.parts[kind])

    async def start(self, only: TeamId | None = None) -> None:
        """Start to work on everything that is queued; with `only`, on one team alone."""
        levels.warn_if_not_confined(self.confinement)
        await asyncio.to_thread(folder_history.switch_off_left, self.home.path / "teams")
        for part in self.parts.values():
            await part.start()
        await self.daily.start()
        await self.engine.start(only)
        await self.trigger_worker.start()
        self._watchdog = asyncio.create_task(
            watch_stalled(self.store, self.clock, self.periodic), name="watchdog"
        )
        await self.removal.start()
        await self.retention.start()

    async def stop(self) -> None:
        """Stop working. Running nodes go back to their queues, where any process finds them."""
        await _cancelled(self._watchdog)
        await self.retention.stop()
        await self.removal.stop()
        # Runs first: each gives its node back in a transaction, and may use the parts till then.
        # What comes in meanwhile, or goes out, is a row: the next start goes on with it.
        await self.engine.stop()
        for part in self.parts.values():
            await part.stop()
        await self.trigger_worker.stop()

    async def parts_idle(self) -> None:
        """Wait until no feature has anything left to do now."""
        for part in self.parts.values():
            await part.idle()

    async def close(self) -> None:
        """Stop working, close the database and release the home."""
        await _cancelled(self._home_watch)
        await self.stop()
        await self.models.close()
        # After `stop`, whose runs still write.
        await self.store.close()
        self.home.folder.close()
        # Last: from here on another process may open the home.
        if self.lock is not None:
            self.lock.release()

    async def _check_lock(self, lock: HomeLock) -> Wait:
        """Log what somebody did to the lock or the folder, once for each change."""
        problem = lock.tampering()
        if problem and problem != self._lock_problem:
            log.error("%s", problem)
        self._lock_problem = problem
        # By the event loop's clock: a test that advances `Clock` by days need not check more often.
        return partial(asyncio.sleep, HOME_CHECK_S)

    async def _read_keys(self) -> Wait:
        """Read the stored API keys again: another process may have changed them."""
        use_stored_keys(self.home, self.models)
        return partial(asyncio.sleep, HOME_CHECK_S)


async def _parts(
    home: Home,
    store: Store,
    periodic: PeriodicTasks,
    rules: CommandRules,
    options: RuntimeOptions,
    *,
    is_sole_process: bool,
) -> tuple[Part, ...]:
    """Open the parts of all features."""
    given = Installation(
        home=home,
        store=store,
        periodic=periodic,
        rules=rules,
        web=options.get("web") or Web(),
        secrets=options.get("secrets", NamedSecrets()),
        is_sole_process=is_sole_process,
        settings=options.get("features") or {},
    )
    for open_part in brought("part"):
        given.parts.append(await open_part(given))
    return tuple(given.parts)


def _models(keys: Keys, options: RuntimeOptions, clock: Clock, parts: Iterable[Part]) -> Catalogue:
    registry = Registry(keys, clock, demo_s=options.get("demo_s", 0.0))
    models = Catalogue(registry, options.get("prices") or Prices(), clock)
    for part in parts:
        models.add_all(part.providers)
    models.add_all(options.get("own_models") or {})
    return models


def _with_engine(web: Web, parts: Iterable[Part]) -> Web:
    """Return the web access with the own engine that the settings name; without a search engine
    if no feature has it."""
    if not isinstance(web.engine, WantedEngine):
        return web
    name = web.engine.own_name
    return replace(web, engine=_first(part.engine(name) for part in parts))


def _first(found: Iterable[T | None]) -> T | None:
    return next((one for one in found if one is not None), None)


async def _rules(home: Home, options: RuntimeOptions, masked: tuple[Path, ...]) -> CommandRules:
    """Return the rules for commands, with the level at which this machine confines them."""
    given = CommandRules.of(options.get("limits"), masked, options.get("readable", ()))
    return await asyncio.to_thread(given.confined, options.get("level", ""), home.path)


def _offered(
    parts: tuple[Part, ...],
    options: RuntimeOptions,
    known: Mapping[str, Specialist],
    web: Web,
) -> OfferedTools:
    """Return what agents are given tools from; those of the embedding program are guarded."""
    return OfferedTools(
        extra=tuple(added.guarded(_tool(one, parts)) for one in options.get("tools", ())),
        parts=parts,
        sources=options.get("sources", ()),
        specialists=known,
        has_search=web.engine is not None,
    )


def _tool(given: Tool | Callable[..., Any], parts: Iterable[Part]) -> Tool:
    """Return the tool as it is, or make one of a function with the decorator `agiraph.tool`."""
    made = given if isinstance(given, Tool) else _first(part.tool(given) for part in parts)
    if made is None:
        raise TypeError(f"{given!r} is not a tool; put @tool(…) above it.")
    return made


def _refuse_unknown(options: RuntimeOptions) -> None:
    """Raise `TypeError` for an option that does not exist: nothing would come of it."""
    known = RuntimeOptions.__optional_keys__
    if unknown := options.keys() - known:
        names, every = ", ".join(sorted(unknown)), ", ".join(sorted(known))
        raise TypeError(f"A runtime has no option {names}; it has: {every}.")


async def _open_store(
    home: Home, url: str, options: RuntimeOptions
) -> tuple[HomeLock | None, Store]:
    """Lock the home and open its database. On PostgreSQL processes share a home, without a lock.
    A time zone that the settings name is the owner's from now on."""
    # The lock before the database: a second runtime must be refused before it migrates or writes.
    lock = home.lock() if url.startswith("sqlite:") else None
    try:
        store = await open_store(url, options.get("clock") or SystemClock(), sole=True)
        if zone := options.get("zone"):
            await store.write(absence.live_in, OWNER, zone)
    except BaseException:
        # Also when the start is cancelled: else the home stays locked while this process lives.
        if lock is not None:
            lock.release()
        raise
    if isinstance(store.clock, ServerClock) and (skewed := skew_warning(store.clock.skew)):
        log.warning(skewed)
    return lock, store


async def _cancelled(task: asyncio.Task[None] | None) -> None:
    """Cancel a background task and wait until it has ended."""
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
