"""`agiraph up`, `serve` and `work`: the whole thing, or its two halves."""

import asyncio
import contextlib
import errno
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TypeVar

import click

from agiraph import config, logs, site
from agiraph.cli.session import command
from agiraph.config import Settings
from agiraph.domain.errors import Misconfigured, StoreFull, StoreLocked, StoreUnavailable
from agiraph.hidden import environment

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0
"""Seconds between two attempts to start, while there is no room or the database is locked."""


@click.command()
@command
async def up() -> None:
    """Run everything in one process: API, web UI and background work. Ctrl-C ends it."""
    settings = _ready(config.load(environment()))
    asked = site.asked_to_stop()  # whenever that is, even before all is ready
    async with AsyncExitStack() as stack:
        opened = await _entered(stack, lambda: site.serve(settings, works=True), asked)
        if opened is not None:
            await _greet(settings, opened)
            await asked.wait()
            _say("Stopping; what is under way goes on at the next start.")


@click.command()
@command
async def serve() -> None:
    """Run the API and web UI alone; `agiraph work` does the work, over one PostgreSQL."""
    settings = _ready(_shared(config.load(environment())))
    asked = site.asked_to_stop()  # whenever that is, even before all is ready
    async with AsyncExitStack() as stack:
        opened = await _entered(stack, lambda: site.serve(settings, works=False), asked)
        if opened is not None:
            await _greet(settings, opened)
            await asked.wait()


@click.command()
@command
async def work() -> None:
    """Do background work alone: as many of these as you like, over one PostgreSQL."""
    settings = _ready(_shared(config.load(environment())))
    asked = site.asked_to_stop()  # whenever that is, even before all is ready
    async with AsyncExitStack() as stack:
        if await _entered(stack, lambda: site.work(settings), asked) is not None:
            _say("At work. Ctrl-C ends this process; another takes over what it does.")
            await asked.wait()


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


async def _entered(
    stack: AsyncExitStack,
    make: Callable[[], AbstractAsyncContextManager[T]],
    asked: asyncio.Event,
) -> T | None:
    """Start it. Without room on the disk or with the database locked, say so, wait and try again;
    None if this process was asked to stop meanwhile."""
    pause, said = FIRST_PAUSE, ""
    while not asked.is_set():
        try:
            return await stack.enter_async_context(make())
        except (StoreFull, StoreLocked) as error:
            if said != str(error):
                said = str(error)
                _say(f"Not up yet, trying again by itself: {said}")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await asked.wait()
        pause = min(2 * pause, LONGEST_PAUSE)
    return None


async def _greet(settings: Settings, opened: site.Site) -> None:
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
