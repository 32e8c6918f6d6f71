"""Checks: the home, the database and the models of an installation."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from agiraph.config import Settings
from agiraph.core.domain.costs import day_text
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.home import health as home_health
from agiraph.core.home.layout import Home
from agiraph.core.services import health as work_health
from agiraph.core.services.lifecycle import overspending, teams
from agiraph.core.store.database import Store
from agiraph.core.store.lists import health as database_health
from agiraph.core.store.lists.health import PromptSize
from agiraph.doctor.checkup import Checkup
from agiraph.models.catalogue import Catalogue, split_chain
from agiraph.models.probe import CheckName, probe
from agiraph.models.registry import Registry
from agiraph.redaction import redact
from agiraph.sandbox.levels import Confinement

GIB = 2**30
LEAST_FREE = GIB // 2
LARGE_DATABASE = 8 * GIB
LARGE_SPOOL = 2 * GIB
AT_WORK = "at work"
"""The name of the finding that another process uses the home."""
_ASKED = {"words": "answer", "tool_call": "tool call"}


def _size_text(count: int) -> str:
    """Return a number of bytes as text, such as 12 MiB."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}"
        count //= 1024
    return f"{count:,.0f} GiB"


def check_home(checkup: Checkup, home: Home) -> None:
    """Check the files of a home. While a server runs on it, its commands are not looked at."""
    checkup.list(
        "permissions",
        [str(found) for found in home_health.loose_permissions(home.path)],
        good="Only you can read the home and its token.",
        bad="of the home's files and folders can be read by others.",
        can_fix=True,
    )
    free = home_health.free_bytes(home.path)
    if free < LEAST_FREE:
        checkup.problem(
            "disk", f"Only {_size_text(free)} are free: free some space, or work will stop."
        )
    else:
        checkup.fine("disk", f"{_size_text(free)} are free.")
    spool = home_health.spool_bytes(home.path)
    if spool > LARGE_SPOOL:
        checkup.problem(
            "spool", f"The output of commands takes {_size_text(spool)}: see {home.path}/spool."
        )
    else:
        checkup.fine("spool", f"The output of commands takes {_size_text(spool)}.")
    if checkup.is_running:
        return checkup.note(AT_WORK, f"{checkup.runner} is running; nothing was changed.")
    left = [spool.name for spool in home_health.orphaned_commands(home.path)]
    checkup.list(
        "processes",
        [f"A process of {name} is running." for name in left],
        good="No command outlived its agent.",
        bad="of the commands outlived their agent.",
        one_bad="of the commands outlived its agent.",
        can_fix=True,
    )
    checkup.list(
        "unfinished copies",
        home_health.unfinished_publications(home),
        good="None.",
        bad="left by a crash.",
        can_fix=True,
    )
    return None


def check_sandbox(checkup: Checkup, found: Confinement) -> None:
    """Say how commands of agents are confined, and what they can do in spite of it."""
    open_ways = [f"not enforced: {way}" for way in found.not_held]
    if found.is_confined:
        checkup.fine("sandbox", found.describe(), *found.reasons, *open_ways)
    else:
        checkup.problem("sandbox", found.describe(), *open_ways)


async def check_database(checkup: Checkup, store: Store) -> None:
    """Check the rows of all teams, the money of today and the models of all agents."""
    running = checkup.is_running
    size = await store.read(database_health.bytes_used)
    checkup.fine(
        "database", f"It can be reached, its schema is up to date, and it takes {_size_text(size)}."
    )
    if size > LARGE_DATABASE:
        checkup.problem("size", "The database is large: archive teams that are done.")
    damage = [*await store.read(database_health.damage), *await store.read(database_health.gaps)]
    checkup.list(
        "integrity",
        damage,
        good="The data is undamaged.",
        bad="faults: restore a backup (`agiraph restore`).",
        one_bad="fault: restore a backup (`agiraph restore`).",
    )
    await _note_stop(checkup, store)
    stuck = await store.read(work_health.stuck, is_running=running)
    checkup.list(
        "work", stuck, good="Nothing is stuck.", bad="are stuck.", one_bad="is stuck.", can_fix=True
    )
    undecided = await store.read(work_health.needing_a_person)
    checkup.list(
        "decisions", undecided, good="None.", bad="need a person.", one_bad="needs a person."
    )
    if not running and (left := await store.read(database_health.left_running)):
        checkup.note("cut off", f"Interrupted tasks that continue at the next start: {len(left)}.")
    undelivered = await store.read(work_health.undelivered, is_running=running)
    checkup.list("messages", undelivered, good="All arrived.", bad="did not arrive.", can_fix=True)
    late = await store.read(work_health.overdue)
    if late and not running:
        checkup.note("triggers", f"Triggers that are due and fire at the next start: {len(late)}.")
    else:
        checkup.list("triggers", late, good="None is late.", bad="are late.", one_bad="is late.")
    await check_threads(checkup, await store.read(database_health.open_threads))
    today = await store.read(overspending.costs_of_day, checkup.settings.usd_per_day)
    if today.is_reached:
        checkup.note("money", f"{day_text(today)}.")
    else:
        checkup.fine("money", f"{day_text(today)}.")
    await check_models(checkup, list(await store.read(database_health.models)))


async def _note_stop(checkup: Checkup, store: Store) -> None:
    if stop := await store.read(teams.found_stop):
        checkup.note(
            "stopped",
            f"All work is stopped since {stop.at:%Y-%m-%d %H:%M} UTC. To let it go on: agiraph "
            "resume --all",
        )


async def check_models(checkup: Checkup, names: list[str]) -> None:
    """Check that each model has what a request needs, and that a server of one's own answers."""
    async with _models(checkup) as catalogue:
        for name in names:
            if name in checkup.usable_models:
                continue
            try:
                catalogue.resolve(name)
                await catalogue.learn(name)
                catalogue.check(name)
                problem = catalogue.access_problem(name)
            except Misconfigured as error:
                problem = str(error)
            checkup.usable_models[name] = not problem
            if problem:
                checkup.problem(f"model {name}", problem)
            else:
                _note_model(checkup, catalogue, name)


async def check_threads(checkup: Checkup, threads: list[PromptSize]) -> None:
    """Report unfinished work whose thread is longer than the context window of its model."""
    async with _models(checkup) as catalogue:
        for model in {thread.model for thread in threads}:
            await catalogue.learn(model)
        over = [
            f"{thread.thread_id} has {thread.tokens:,} tokens; {thread.model} accepts {window:,}."
            for thread in threads
            if thread.tokens > (window := catalogue.window(thread.model))
        ]
    checkup.list(
        "threads",
        over,
        good="All fit the context windows.",
        bad="are larger than the context window.",
        one_bad="is larger than the context window.",
    )


@asynccontextmanager
async def _models(checkup: Checkup) -> AsyncGenerator[Catalogue]:
    """Yield the models of the running process, or those of the settings, closed at the end."""
    if checkup.models is not None:
        yield checkup.models
        return
    catalogue = catalogue_of(checkup.settings)
    try:
        yield catalogue
    finally:
        await catalogue.close()


def _note_model(checkup: Checkup, catalogue: Catalogue, name: str) -> None:
    if served := catalogue.served_instead(name):
        checkup.note(f"server of {name}", f"It answers to any name; its model is {served!r}.")
    if small := small_window(catalogue, name):
        return checkup.note(f"model {name}", small)
    window = catalogue.window(name)
    is_asked = checkup.online or catalogue.is_own(name)
    asked = "" if is_asked else " `agiraph doctor --online` also asks it."
    return checkup.fine(
        f"model {name}", f"It is configured; its window is {window:,} tokens.{asked}"
    )


def small_window(catalogue: Catalogue, names: str) -> str:
    """Return that the window of one of the chain is small, and what to do; else an empty string."""
    smallest = min(split_chain(names), key=catalogue.window)
    return "" if catalogue.is_own(smallest) else catalogue.diagnosis(smallest).narrow_window()


def catalogue_of(settings: Settings) -> Catalogue:
    """Return the models of these settings."""
    clock = SystemClock()
    return Catalogue(Registry(settings.keys, clock), settings.prices, clock)


async def ask_each(checkup: Checkup) -> None:
    """Send each model that has no problem a short request."""
    async with _models(checkup) as catalogue:
        for name, is_usable in checkup.usable_models.items():
            if is_usable:
                await _ask(checkup, catalogue, name)


async def _ask(checkup: Checkup, catalogue: Catalogue, name: str) -> None:
    for one in split_chain(name):
        # The demo's script calls the tools of agiraph, not that of the probe.
        only: tuple[CheckName, ...] = () if catalogue.is_own(one) else ("tool_call",)
        for check in await probe(catalogue, one, only):
            finding = f"{_ASKED[check.name]} of {one}"
            what = redact(f"{check.what} {check.advice}".strip())
            if check.verdict == "failed":
                checkup.problem(finding, what)
            else:
                checkup.fine(finding, what)
