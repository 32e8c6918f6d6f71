"""`agiraph db`: upgrades of the database schema."""

import click

from agiraph import config
from agiraph.cli.session import command
from agiraph.domain.time import SystemClock
from agiraph.home.layout import Home
from agiraph.redaction import environment


@click.group()
def db() -> None:
    """Maintain the database."""


@db.command()
@command
async def upgrade() -> None:
    """Upgrade the database schema to this version. A SQLite database is upgraded at every start."""
    settings = config.load(environment())
    if settings.database_url.startswith("sqlite:"):
        from agiraph.app import open_store

        Home.open(settings.home)
        store = await open_store(settings.database_url, SystemClock())
        await store.close()
        click.echo("The database is up to date.")
        return
    # Never at a start, unlike SQLite: processes of an older version may still work on this
    # database.
    from agiraph.store.pgqueuer_queue import install
    from agiraph.store.postgres import upgrade as migrate

    applied = migrate(settings.database_url)
    await install(settings.database_url)
    click.echo(f"Applied: {', '.join(applied)}." if applied else "The database is up to date.")
