"""`agiraph up`, `serve` and `work`: the whole thing, or its two halves."""

import errno
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import click

from agiraph import config, logs, serving
from agiraph.cli.session import command
from agiraph.config import Settings
from agiraph.domain.errors import Misconfigured, StoreUnavailable
from agiraph.redaction import environment


@click.command()
@command
async def up() -> None:
    """Run everything in one process: API, web UI and background work. Ctrl-C ends it."""
    settings = _ready(config.load(environment()))
    asked = serving.asked_to_stop()  # whenever that is, even before all is ready
    async with _unless_stopped(), serving.serve(settings, asked, works=True) as opened:
        await _greet(settings, opened)
        await asked.wait()
        _say("Stopping; what is under way goes on at the next start.")


@click.command()
@command
async def serve() -> None:
    """Run the API and web UI alone; `agiraph work` does the work, over one PostgreSQL."""
    settings = _ready(_shared(config.load(environment())))
    asked = serving.asked_to_stop()  # whenever that is, even before all is ready
    async with _unless_stopped(), serving.serve(settings, asked, works=False) as opened:
        await _greet(settings, opened)
        await asked.wait()


@click.command()
@command
async def work() -> None:
    """Do background work alone: as many of these as you like, over one PostgreSQL."""
    settings = _ready(_shared(config.load(environment())))
    asked = serving.asked_to_stop()  # whenever that is, even before all is ready
    async with _unless_stopped(), serving.work(settings, asked):
        _say("At work. Ctrl-C ends this process; another takes over what it does.")
        await asked.wait()


@asynccontextmanager
async def _unless_stopped() -> AsyncGenerator[None]:
    """End in good order when told to stop while still waiting for the database."""
    try:
        yield
    except serving.AskedToStop:
        _say("Stopped before the database could be reached.")


def _ready(settings: Settings) -> Settings:
    logs.begin(settings.log)
    return settings


def _shared(settings: Settings) -> Settings:
    if settings.database_url.startswith("sqlite:"):
        raise Misconfigured(
            "A database file has one process: use `agiraph up`. For several, set "
            "AGIRAPH_DATABASE_URL to a postgresql:// address."
        )
    return settings


async def _greet(settings: Settings, opened: serving.RunningServer) -> None:
    url = settings.address.url.replace(f":{settings.address.port}", f":{opened.port}")
    _say(f"agiraph is up at {url}")
    try:
        _say(f"Sign in once: {await opened.link(url)}")
    except StoreUnavailable as error:
        _say(f"There is no link to sign in yet ({error}) Make one later with: agiraph link")
    _say(f"Model: {settings.model}. Token for programs: {opened.runtime.home.token_path}")


def _say(text: str) -> None:
    """Print a line; where the output is a file on a full disk, go on without it."""
    try:
        click.echo(text)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
