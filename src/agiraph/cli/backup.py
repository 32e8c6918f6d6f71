"""`agiraph backup` and `restore`: database and files together, while everything runs."""

import asyncio
import tempfile
from importlib.metadata import version
from pathlib import Path

import click

from agiraph import config
from agiraph.app import open_store
from agiraph.cli.session import clean, command, opened
from agiraph.config import Settings
from agiraph.domain.errors import Refused
from agiraph.domain.time import SystemClock
from agiraph.hidden import environment
from agiraph.home import archive
from agiraph.home.archive import Manifest
from agiraph.home.layout import Home
from agiraph.store import dump, migrate


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@command
async def backup(file: Path) -> None:
    """Write everything into FILE, a .tar.gz: rows and files, no token and no keys.

    Agents may go on working meanwhile.
    """
    settings = config.load(environment())
    if not settings.home.is_dir():
        raise Refused(f"There is no home {str(settings.home)!r}, so there is nothing to back up.")
    target = file.expanduser().absolute()
    async with opened() as (_, store):
        with tempfile.TemporaryFile() as rows:
            # Rows first: whatever they speak of is in the files by then, and stays there.
            count = await store.read(dump.write, rows)
            rows.seek(0)
            about = Manifest(
                schema=migrate.newest(),
                made_at=SystemClock().now().isoformat(),
                made_by=f"agiraph {version('agiraph')}",
                rows=count,
            )
            home = Home.open(settings.home)
            made = await asyncio.to_thread(archive.pack, target, home, rows, about)
    click.echo(f"Wrote {target}: {made.rows:,} rows and {len(made.files) - 1:,} files.")
    for left_out in made.left_out[:20]:
        click.echo(f"Left out {clean(left_out)}", err=True)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@command
async def restore(file: Path) -> None:
    """Put what is in FILE into an empty home and database, and go on from there.

    Set AGIRAPH_HOME (and AGIRAPH_DATABASE_URL) to where it should go. Nothing is written over.
    """
    settings = config.load(environment())
    with archive.opened(file) as (tar, manifest):
        if manifest.schema != migrate.newest():
            raise Refused(
                f"The backup was made by {manifest.made_by} (schema {manifest.schema}); this one "
                f"has schema {migrate.newest()}. Restore it with that version, then upgrade."
            )
        home = Home.open(settings.home)
        with home.lock():
            _refuse_full(settings, home)
            store = await open_store(settings.database_url, SystemClock())
            try:
                if not await store.read(dump.is_empty):
                    raise Refused("The database holds teams already; nothing was changed.")
                files = await asyncio.to_thread(archive.unpack, tar, home)
                # Rows last, all or none: without them a home holds nothing that counts.
                count = await store.write(dump.load, archive.rows(tar))
            finally:
                await store.close()
    click.echo(f"Restored {count:,} rows and {files:,} files into {settings.home}.")
    click.echo("Start it with: agiraph up")


def _refuse_full(settings: Settings, home: Home) -> None:
    if not archive.is_empty(home):
        raise Refused(
            f"{str(settings.home)!r} is not empty; nothing was changed. Set AGIRAPH_HOME to a new "
            "folder."
        )
