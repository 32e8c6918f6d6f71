"""`agiraph doctor`: show the settings, run health checks, and repair what is safe to repair."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from agiraph import config
from agiraph.cli.session import Columns, as_json, command, json_option, plain_console, shown, table
from agiraph.client import Client
from agiraph.config import Setting
from agiraph.core.domain.errors import AgiraphError, Declined, HomeInUse, Refused, Unreachable
from agiraph.core.domain.records.findings import Verdict
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.home import health as home_health
from agiraph.core.home.layout import Home
from agiraph.core.services import health as work_health
from agiraph.core.store.database import Store
from agiraph.core.store.engine.connect import open_store
from agiraph.core.store.engine.server_clock import ServerClock, skew_warning
from agiraph.core.store.lists import health as database_health
from agiraph.doctor import checks, surroundings
from agiraph.doctor.checkup import Checkup
from agiraph.location import Location
from agiraph.redaction import environment, redact
from agiraph.sandbox import levels

_MARKS: dict[Verdict, str] = {
    "fine": "[green]✓[/]", "note": "[yellow]·[/]", "problem": "[red]✗[/]"
}  # fmt: skip
SILENT_S = 10.0


@click.command()
@click.option("--fix", is_flag=True, help="Repair what is safe to repair.")
@click.option(
    "--online",
    is_flag=True,
    help="Also send each model and the search engine a short request, which costs a little, and "
    "start each MCP server.",
)
@json_option
@command
async def doctor(fix: bool, online: bool, json_: bool) -> None:
    """Check the settings, the home, the database and the models.

    Exit code 1 means that there is a problem. Without --fix, nothing is changed.
    """
    checkup = Checkup(config.load(environment()), online)
    home = checkup.settings.home
    if why := home_health.why_not_writable(home):
        checkup.problem(
            "home",
            f"{home} cannot be written to ({why}). Change its permissions, or set AGIRAPH_HOME.",
        )
    elif not home.exists():
        checkup.note("home", f"{home} does not exist yet; `agiraph up` creates it.")
    else:
        await _examine(checkup, fix=fix)
    await checks.check_models(checkup, [checkup.settings.model])
    checks.check_sandbox(checkup, levels.choose(checkup.settings.sandbox, home))
    await surroundings.check(checkup)
    if online:
        await checks.ask_each(checkup)
    if json_:
        click.echo(as_json(_as_value(checkup)))
    else:
        _show(checkup)
    sys.exit(0 if checkup.is_well else 1)


async def _examine(checkup: Checkup, *, fix: bool) -> None:
    home = Home.open(checkup.settings.home)
    async with _locked(checkup, home) as is_free, _opened(checkup) as store:
        if store is not None and (
            many := await store.read(database_health.count_other_connections)
        ):
            checkup.runner = f"A process with {counted(many, 'connection')} to the database"
            is_free = False
        if fix:
            await _repair(checkup, home, store, is_free=is_free)
        checks.check_home(checkup, home)
        if store is not None:
            await checks.check_database(checkup, store)
            await _background(checkup, store)


@asynccontextmanager
async def _locked(checkup: Checkup, home: Home) -> AsyncGenerator[bool]:
    """Take the home's lock; yield False if another process holds it."""
    if not checkup.settings.database_url.startswith("sqlite:"):
        yield True
        return
    try:
        # Held during all checks: the commands of a server that starts meanwhile would look like
        # orphans, and --fix would end them.
        lock = home.lock()
    except HomeInUse as error:
        # The message begins with "Process 123 already works on".
        checkup.runner = str(error).partition(" already")[0]
        yield False
        return
    with lock:
        yield True


@asynccontextmanager
async def _opened(checkup: Checkup) -> AsyncGenerator[Store | None]:
    """Yield the database, or None if there is none or it cannot be opened."""
    url = checkup.settings.database_url
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        checkup.note("database", "There is none yet; the first start creates it.")
        yield None
        return
    try:
        store = await open_store(url, SystemClock())
    except AgiraphError as error:
        checkup.problem("database", redact(str(error)))
        yield None
        return
    try:
        yield store
    finally:
        await store.close()


async def _repair(checkup: Checkup, home: Home, store: Store | None, *, is_free: bool) -> None:
    if not is_free:
        raise Refused(
            f"{checkup.runner} is running; nothing was changed. Stop it first "
            "(`agiraph doctor` without --fix only checks)."
        )
    checkup.done += [
        home_health.tighten(home.path, found) for found in home_health.loose_permissions(home.path)
    ]
    checkup.done += [
        home_health.kill_orphans(spool) for spool in home_health.orphaned_commands(home.path)
    ]
    checkup.done += [
        home_health.remove_unfinished(home, stage)
        for stage in home_health.unfinished_publications(home)
    ]
    if store is not None:
        checkup.done += await store.write(work_health.repair)


async def _background(checkup: Checkup, store: Store) -> None:
    if isinstance(store.clock, ServerClock) and (skewed := skew_warning(store.clock.skew)):
        checkup.note("clock", skewed)
    if not checkup.is_running:
        return
    workers, problems = await _workers(checkup.settings, store)
    if problems:
        checkup.problem("background work", "Some activities fail.", *problems)
    elif workers:
        checkup.fine("background work", f"Nothing fails at {', '.join(workers)}.")


async def _workers(place: Location, store: Store) -> tuple[list[str], list[str]]:
    """Return the processes that do background work, and their problems: from their rows on
    PostgreSQL; with SQLite, as the running server says."""
    if place.database_url.startswith("sqlite:"):
        return await _ask(place)
    from agiraph.core.store.engine.presence import workers  # loaded only where it is used

    named = [(f"process {one.pid} on {one.host}", one) for one in await store.read(workers)]
    problems = [
        f"{name} was last active {one.silent_s:.0f} s ago: it hangs, or its machine is down."
        for name, one in named
        if one.silent_s > SILENT_S
    ]
    problems += [f"{name}: {sentence}" for name, one in named for sentence in one.failing]
    return [name for name, _ in named], problems


async def _ask(place: Location) -> tuple[list[str], list[str]]:
    # No retries: a server that is not ready answers at once and gives the reason.
    async with Client.of(place, patience=0.0) as client:
        try:
            await client.ready()
        except Unreachable:
            return [], []
        except Declined as error:
            return [client.url], [str(error)] if error.status == 503 else []
        return [client.url], []


def _as_value(checkup: Checkup) -> dict[str, Any]:
    return {
        "well": checkup.is_well,
        "at_work": checkup.runner or None,
        "settings": {name: asdict(setting) for name, setting in checkup.settings.shown.items()},
        "findings": [asdict(finding) for finding in checkup.findings],
        "done": checkup.done,
    }


_SETTINGS: Columns[tuple[str, Setting]] = (
    ("setting", lambda row: row[0]),
    ("value", lambda row: shown(redact(row[1].value)) or "[dim]—[/]"),
    ("from", lambda row: row[1].origin),
)


def _show(checkup: Checkup) -> None:
    console = plain_console()
    console.print(table(sorted(checkup.settings.shown.items()), _SETTINGS))
    console.print()
    for finding in checkup.findings:
        console.print(
            f"{_MARKS[finding.verdict]} [bold]{shown(finding.name)}[/] {shown(finding.what)}"
        )
        for detail in finding.details:
            console.print(f"    {shown(detail)}")
    for line in checkup.done:
        console.print(f"[green]→[/] {shown(line)}")
    if any(f.can_fix and f.verdict == "problem" for f in checkup.findings) and not checkup.done:
        console.print("\n`agiraph doctor --fix` repairs some of this.")
