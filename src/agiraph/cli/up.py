"""`agiraph up`, `serve` and `work`: the whole thing, or its two halves."""

import click

from agiraph import config, logs, site
from agiraph.cli.session import command
from agiraph.config import Settings
from agiraph.domain.errors import Misconfigured
from agiraph.hidden import environment


@click.command()
@command
async def up() -> None:
    """Run everything in one process: API, web UI and background work. Ctrl-C ends it."""
    settings = _ready(config.load(environment()))
    asked = site.asked_to_stop()  # whenever that is, even before all is ready
    async with site.serve(settings, works=True) as opened:
        await _greet(settings, opened)
        await asked.wait()
        click.echo("Stopping; what is under way goes on at the next start.")


@click.command()
@command
async def serve() -> None:
    """Run the API and web UI alone; `agiraph work` does the work, over one PostgreSQL."""
    settings = _ready(_shared(config.load(environment())))
    asked = site.asked_to_stop()  # whenever that is, even before all is ready
    async with site.serve(settings, works=False) as opened:
        await _greet(settings, opened)
        await asked.wait()


@click.command()
@command
async def work() -> None:
    """Do background work alone: as many of these as you like, over one PostgreSQL."""
    settings = _ready(_shared(config.load(environment())))
    asked = site.asked_to_stop()  # whenever that is, even before all is ready
    async with site.work(settings):
        click.echo("At work. Ctrl-C ends this process; another takes over what it does.")
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


async def _greet(settings: Settings, opened: site.Site) -> None:
    url = settings.address.url.replace(f":{settings.address.port}", f":{opened.port}")
    click.echo(f"agiraph is up at {url}")
    click.echo(f"Sign in once: {await opened.link(url)}")
    click.echo(f"Model: {settings.model}. Token for programs: {opened.runtime.home.token_path}")
