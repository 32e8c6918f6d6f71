"""`agiraph up`, `serve` and `work`: the server and the background work, together or apart."""

import contextlib
import errno
from collections.abc import AsyncGenerator

import click

from agiraph import config, logs, serving
from agiraph.app import open_store
from agiraph.cli.models import DEMO, with_model
from agiraph.cli.session import command
from agiraph.config import Settings
from agiraph.core.domain.errors import Misconfigured, StoreUnavailable
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.home.layout import Home
from agiraph.doctor import checks
from agiraph.models.catalogue import Catalogue
from agiraph.redaction import environment


@click.command()
@command
async def up() -> None:
    """Run the API, the web UI and the background work in one process. Ctrl-C stops it."""
    settings = await with_model(_begin())
    asked = serving.asked_to_stop()  # also while the database is still being opened
    async with _unless_stopped(), serving.serve(settings, asked, works=True) as opened:
        await _greet(settings, opened)
        await asked.wait()
        _say("Stopping. Unfinished work continues at the next start.")


@click.command()
@command
async def serve() -> None:
    """Run only the API and the web UI; `agiraph work` does the work. Needs PostgreSQL."""
    settings = _begin(needs_postgresql=True)
    asked = serving.asked_to_stop()  # also while the database is still being opened
    async with _unless_stopped(), serving.serve(settings, asked, works=False) as opened:
        await _greet(settings, opened)
        await asked.wait()


@click.command()
@command
async def work() -> None:
    """Run only the background work, in as many processes as you like. Needs PostgreSQL."""
    settings = _begin(needs_postgresql=True)
    asked = serving.asked_to_stop()  # also while the database is still being opened
    async with _unless_stopped(), serving.work(settings, asked):
        _say("At work. Ctrl-C stops this process; another one takes over its work.")
        await asked.wait()


@contextlib.asynccontextmanager
async def _unless_stopped() -> AsyncGenerator[None]:
    """Exit cleanly when a stop is requested while the database is still being opened."""
    try:
        yield
    except serving.AskedToStop:
        _say("Stopped before the database could be reached.")


def _begin(*, needs_postgresql: bool = False) -> Settings:
    """Return the settings, with the log that they name begun."""
    settings = config.load(environment())
    if needs_postgresql and settings.database_url.startswith("sqlite:"):
        raise Misconfigured(
            "`agiraph serve` and `agiraph work` need PostgreSQL: set AGIRAPH_DATABASE_URL to a "
            "postgresql:// address. With SQLite, use `agiraph up`."
        )
    logs.begin(settings.log)
    return settings


async def _greet(settings: Settings, opened: serving.RunningServer) -> None:
    url = settings.address.url.replace(f":{settings.address.port}", f":{opened.port}")
    try:
        _say(f"Sign in once: {await opened.link(url)}")
        _say("  Open this link in your browser. It works once; `agiraph link` prints another.")
    except StoreUnavailable as error:
        _say(f"No sign-in link could be made ({error}) Make one later with: agiraph link")
    _say(f"agiraph is up at {url}")
    _say("  Come back to this address in the same browser. Programs use it with a token.")
    _say(f"Model: {settings.model}. Token for programs: {opened.runtime.home.token_path}")
    if settings.model == DEMO:
        _say("  A scripted demo answers. To use an AI, set up a model in the browser.")
    models = opened.runtime.models
    if problem := await model_problem(models, settings.model):
        _say(f"The model cannot be used yet: {problem}")
    elif small := checks.small_window(models, settings.model):
        _say(small)


async def model_problem(models: Catalogue, name: str) -> str:
    """Return why the model of new teams cannot be used, and what to do; empty if it can."""
    try:
        await models.learn(name)
        models.check(name)
        await models.ask_servers(name)
    except Misconfigured as error:
        return str(error)
    return models.access_problem(name)


def _say(text: str) -> None:
    """Print a line. If stdout is a file on a full disk, continue without it."""
    try:
        click.echo(text)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


@click.group()
def db() -> None:
    """Maintain the database."""


@db.command()
@command
async def upgrade() -> None:
    """Upgrade the database schema to this version. A SQLite database is upgraded at every start."""
    settings = config.load(environment())
    if settings.database_url.startswith("sqlite:"):
        Home.open(settings.home)
        store = await open_store(settings.database_url, SystemClock())
        await store.close()
        click.echo("The database is up to date.")
        return
    # Never at a start, unlike SQLite: processes of an older version may still work on this
    # database.
    from agiraph.core.store.engine.pgqueuer_queue import install
    from agiraph.core.store.engine.postgres import upgrade as apply

    applied = apply(settings.database_url)
    await install(settings.database_url)
    click.echo(f"Applied: {', '.join(applied)}." if applied else "The database is up to date.")
