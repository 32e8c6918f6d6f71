"""`agiraph export`: all rows and files of a team as readable files."""

from pathlib import Path

import click

from agiraph.api.features.team_export import write_export
from agiraph.cli.session import command, opened, remember_secrets
from agiraph.domain.errors import Refused
from agiraph.store import teams as rows


@click.command()
@click.argument("team")
@click.argument("folder", type=click.Path(path_type=Path))
@command
async def export(team: str, folder: Path) -> None:
    """Write all data and files of a TEAM (its id or name) to FOLDER, as readable files.

    API keys that are set in this environment are overwritten.
    """
    async with opened() as (settings, store):
        remember_secrets(settings.home, settings.database_url)
        found = await store.read(rows.find, team)
        try:
            await write_export(store, settings.home, found, folder)
        except OSError as error:
            raise Refused(f"The export to {str(folder)!r} is incomplete: {error}") from error
    click.echo(f"Wrote {found.name!r} to {folder}.")
