"""`agiraph doctor`: what is in force, what is wrong, and putting right what can do no harm."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console
from rich.table import Table

from agiraph import config
from agiraph.cli import background
from agiraph.cli.session import as_json, command, shown
from agiraph.config import Settings
from agiraph.domain.chat import Transcript, Turn
from agiraph.domain.errors import AgiraphError, HomeInUse, Misconfigured, ModelError, Refused
from agiraph.domain.ids import ThreadId
from agiraph.domain.time import SystemClock
from agiraph.home import health as home_health
from agiraph.home import sandbox
from agiraph.home.layout import Home
from agiraph.providers.base import Request
from agiraph.providers.catalogue import Catalogue
from agiraph.providers.registry import Registry
from agiraph.redaction import environment, redact
from agiraph.services import health as work_health
from agiraph.store import health as database_health
from agiraph.store.connect import open_store
from agiraph.store.database import Store
from agiraph.store.server_clock import ServerClock, skew_warning

Verdict = Literal["fine", "note", "problem"]
GIB = 2**30
LEAST_FREE = GIB // 2
LARGE_DATABASE, LARGE_SPOOL = 8 * GIB, 2 * GIB
_MARKS: dict[Verdict, str] = {
    "fine": "[green]✓[/]", "note": "[yellow]·[/]", "problem": "[red]✗[/]"
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one look found, and what to do about it."""

    name: str
    verdict: Verdict
    what: str
    details: list[str] = field(default_factory=list[str])
    can_fix: bool = False


@dataclass(slots=True)
class Visit:
    """One look at everything."""

    settings: Settings
    online: bool
    findings: list[Finding] = field(default_factory=list[Finding])
    done: list[str] = field(default_factory=list[str])
    runner: str = ""
    """Who works on the home or database just now; empty: nobody."""

    def fine(self, name: str, what: str) -> None:
        self.findings.append(Finding(name=name, verdict="fine", what=what))

    def note(self, name: str, what: str) -> None:
        self.findings.append(Finding(name=name, verdict="note", what=what))

    def problem(self, name: str, what: str, *details: str, can_fix: bool = False) -> None:
        self.findings.append(
            Finding(name=name, verdict="problem", what=what, details=[*details], can_fix=can_fix)
        )

    def list(
        self, name: str, found: list[str], *, good: str, bad: str, can_fix: bool = False
    ) -> None:
        """A problem if there is anything in the list."""
        if found:
            self.problem(name, f"{len(found)} {bad}", *found[:20], can_fix=can_fix)
        else:
            self.fine(name, good)

    @property
    def is_well(self) -> bool:
        return all(finding.verdict != "problem" for finding in self.findings)

    @property
    def is_running(self) -> bool:
        return bool(self.runner)


@click.command()
@click.option("--fix", is_flag=True, help="Repair what can be repaired without harm.")
@click.option("--online", is_flag=True, help="Also ask each model a word, which costs a little.")
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
@command
async def doctor(fix: bool, online: bool, json_: bool) -> None:
    """Find and explain what is wrong; exit code 1 if anything is."""
    visit = Visit(config.load(environment()), online)
    home = visit.settings.home
    if why := home_health.why_not_writable(home):
        visit.problem("home", f"{home} cannot be written to ({why}). Open it, or set AGIRAPH_HOME.")
    elif not home.exists():
        visit.note("home", f"{home} is not there yet; `agiraph up` makes it.")
    else:
        await _examine(visit, fix=fix)
    _models_without_keys(visit, [visit.settings.model])
    await _surroundings(visit)
    if json_:
        click.echo(as_json(_as_value(visit)))
    else:
        _show(visit)
    sys.exit(0 if visit.is_well else 1)


async def _examine(visit: Visit, *, fix: bool) -> None:
    home = Home.open(visit.settings.home)
    async with _held(visit, home) as is_free, _opened(visit) as store:
        if store is not None and (
            many := await store.read(database_health.count_other_connections)
        ):
            visit.runner = f"Somebody with {many} connections to the database"
            is_free = False
        if fix:
            await _mend(visit, home, store, is_free=is_free)
        _home(visit, home)
        if store is not None:
            await _rows(visit, store)
            await _background(visit, store)


@asynccontextmanager
async def _held(visit: Visit, home: Home) -> AsyncGenerator[bool]:
    """The home for us alone, if nobody works on it."""
    if not visit.settings.database_url.startswith("sqlite:"):
        yield True
        return
    try:
        lock = home.lock()
    except HomeInUse as error:
        visit.runner = str(error).partition(" already")[0]
        yield False
        return
    with lock:
        yield True


@asynccontextmanager
async def _opened(visit: Visit) -> AsyncGenerator[Store | None]:
    """The database, if it is there and well enough to be opened."""
    url = visit.settings.database_url
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        visit.note("database", "There is none yet; it is made at the first start.")
        yield None
        return
    try:
        store = await open_store(url, SystemClock())
    except AgiraphError as error:
        visit.problem("database", redact(str(error)))
        yield None
        return
    try:
        yield store
    finally:
        await store.close()


async def _mend(visit: Visit, home: Home, store: Store | None, *, is_free: bool) -> None:
    if not is_free:
        raise Refused(
            f"{visit.runner} is at work; nothing was changed. Stop it first "
            "(`agiraph doctor` without --fix looks without changing anything)."
        )
    visit.done += [
        home_health.tighten(home.path, found) for found in home_health.loose_permissions(home.path)
    ]
    visit.done += [
        home_health.kill_orphans(spool) for spool in home_health.orphaned_commands(home.path)
    ]
    visit.done += [
        home_health.remove_unfinished(home, stage)
        for stage in home_health.unfinished_publications(home)
    ]
    if store is not None:
        visit.done += await store.write(work_health.repair)


def _home(visit: Visit, home: Home) -> None:
    visit.list(
        "permissions",
        [str(found) for found in home_health.loose_permissions(home.path)],
        good="Only you can read the home and its token.",
        bad="can be read by others.",
        can_fix=True,
    )
    free = home_health.free_bytes(home.path)
    if free < LEAST_FREE:
        visit.problem("disk", f"{_size(free)} are free: make room before work stops.")
    else:
        visit.fine("disk", f"{_size(free)} are free.")
    spool = home_health.spool_bytes(home.path)
    if spool > LARGE_SPOOL:
        visit.problem(
            "spool", f"The output of commands takes {_size(spool)}: see {home.path}/spool."
        )
    else:
        visit.fine("spool", f"The output of commands takes {_size(spool)}.")
    if visit.is_running:
        return visit.note(
            "at work", f"{visit.runner} is at work; looked without changing anything."
        )
    left = [spool.name for spool in home_health.orphaned_commands(home.path)]
    visit.list(
        "processes",
        [f"Something of {name} is alive." for name in left],
        good="No command outlived its owner.",
        bad="commands outlived their owner.",
        can_fix=True,
    )
    visit.list(
        "unfinished copies",
        home_health.unfinished_publications(home),
        good="None.",
        bad="were left by a crash.",
        can_fix=True,
    )
    return None


async def _rows(visit: Visit, store: Store) -> None:
    running = visit.is_running
    size = await store.read(database_health.bytes_used)
    visit.fine("database", f"It can be reached, has today's schema and takes {_size(size)}.")
    if size > LARGE_DATABASE:
        visit.problem("size", "The database has grown large: archive teams that are done.")
    damage = [*await store.read(database_health.damage), *await store.read(database_health.gaps)]
    visit.list(
        "integrity",
        damage,
        good="It is whole.",
        bad="faults: restore a backup (`agiraph restore`).",
    )
    stuck = await store.read(work_health.stuck, is_running=running)
    visit.list("work", stuck, good="Nothing is stuck.", bad="are stuck.", can_fix=True)
    undecided = await store.read(work_health.needing_a_person)
    visit.list("decisions", undecided, good="None.", bad="need a person.")
    if not running and (left := await store.read(database_health.left_running)):
        visit.note("cut off", f"{len(left)} pieces of work go on at the next start.")
    undelivered = await store.read(work_health.undelivered, is_running=running)
    visit.list("messages", undelivered, good="All arrived.", bad="did not arrive.", can_fix=True)
    late = await store.read(work_health.overdue)
    if late and not running:
        visit.note("triggers", f"{len(late)} are due and fire at the next start.")
    else:
        visit.list("triggers", late, good="None is late.", bad="are late.")
    over = [
        f"{thread.thread_id} shows {thread.tokens:,} tokens; {thread.model} takes {window:,}."
        for thread in await store.read(database_health.open_threads)
        if thread.tokens > (window := visit.settings.prices.window(thread.model))
    ]
    visit.list("threads", over, good="All fit their windows.", bad="are over their window.")
    _models_without_keys(visit, list(await store.read(database_health.models)))


async def _background(visit: Visit, store: Store) -> None:
    if isinstance(store.clock, ServerClock) and (skewed := skew_warning(store.clock.skew)):
        visit.note("clock", skewed)
    if not visit.is_running:
        return
    found = await background.look(visit.settings, store)
    if found.problems:
        visit.problem("background work", "Some of it fails.", *found.problems)
    elif found.workers:
        visit.fine("background work", f"Nothing fails at {', '.join(found.workers)}.")


def _models_without_keys(visit: Visit, names: list[str]) -> None:
    """Whether everything is there that it takes to ask these models."""
    catalogue = _catalogue(visit.settings)
    for name in names:
        if any(finding.name == f"model {name}" for finding in visit.findings):
            continue
        try:
            catalogue.resolve(name)
        except Misconfigured as error:
            visit.problem(f"model {name}", str(error))
        else:
            visit.fine(f"model {name}", "It can be asked.")


def _catalogue(settings: Settings) -> Catalogue:
    clock = SystemClock()
    return Catalogue(Registry(settings.keys, clock), settings.prices, clock)


async def _surroundings(visit: Visit) -> None:
    if (why := sandbox.why_not()) is None:
        visit.fine("sandbox", "Commands are confined: the home is hidden from them.")
    else:
        visit.problem(
            "sandbox",
            sandbox.NOT_CONFINED.format(why=why),
            "Commands of threads that have read strangers' words run only if you approve each.",
        )
    if not visit.online:
        return
    catalogue = _catalogue(visit.settings)
    try:
        for finding in [f for f in visit.findings if f.name.startswith("model ")]:
            if finding.verdict == "fine":
                await _ask(visit, catalogue, finding.name.removeprefix("model "))
    finally:
        await catalogue.close()


async def _ask(visit: Visit, catalogue: Catalogue, name: str) -> None:
    now = SystemClock().now()
    turn = Turn(
        thread_id=ThreadId("t_doctor"), seq=1, node_id=None, role="user", text="Say: well.", at=now
    )
    try:
        request = Request(transcript=Transcript([turn]), max_output_tokens=64)
        reply = await catalogue.resolve(name, patient=False).reply(request)
    except ModelError as error:
        visit.problem(f"answer of {name}", redact(str(error)))
    else:
        usage = reply.usage
        visit.fine(f"answer of {name}", f"It answers ({usage.tokens} tokens).")


def _size(count: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}"
        count //= 1024
    return f"{count:,.0f} GiB"


def _as_value(visit: Visit) -> dict[str, Any]:
    return {
        "well": visit.is_well,
        "at_work": visit.runner or None,
        "settings": {name: asdict(setting) for name, setting in visit.settings.shown.items()},
        "findings": [asdict(finding) for finding in visit.findings],
        "done": visit.done,
    }


def _show(visit: Visit) -> None:
    console = Console(highlight=False, emoji=False, soft_wrap=True)
    table = Table("setting", "value", "from", box=None)
    for name, setting in sorted(visit.settings.shown.items()):
        table.add_row(name, shown(redact(setting.value)) or "[dim]—[/]", setting.origin)
    console.print(table)
    console.print()
    for finding in visit.findings:
        console.print(
            f"{_MARKS[finding.verdict]} [bold]{shown(finding.name)}[/] {shown(finding.what)}"
        )
        for detail in finding.details:
            console.print(f"    {shown(detail)}")
    for line in visit.done:
        console.print(f"[green]→[/] {shown(line)}")
    if any(f.can_fix and f.verdict == "problem" for f in visit.findings) and not visit.done:
        console.print("\n`agiraph doctor --fix` repairs some of this.")
