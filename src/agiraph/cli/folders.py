"""`agiraph changes` and `agiraph undo`: what agents changed in your folders, and undoing it."""

import sys

import click
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from agiraph.cli.session import as_json, clean, command, connected
from agiraph.cli.teams import json_option

SHOWN = 200


@click.command()
@click.argument("team")
@click.argument("change", required=False)
@click.option("--node", help="Only what this node's agent changed.")
@click.option("--before", is_flag=True, help="Print what the file held before the CHANGE.")
@click.option("--after", is_flag=True, help="Print what the file held after the CHANGE.")
@json_option
@command
async def changes(
    team: str, change: str | None, node: str | None, before: bool, after: bool, json_: bool
) -> None:
    """List what was changed in the folders that a TEAM was given, newest first.

    With the id of a CHANGE and --before or --after, print what the file held.
    """
    if (change is not None) != (before or after) or (before and after):
        raise click.UsageError("Give the id of a change with either --before or --after, or none.")
    async with connected() as client:
        found = await client.team(team)
        if change is not None:
            side = "before" if before else "after"
            sys.stdout.buffer.write(await client.read_copy(found.id, change, side))
            return
        listed = await client.folder_changes(found.id, node=node, limit=SHOWN)
    if json_:
        return click.echo(as_json(listed))
    if not listed:
        return click.echo("Nothing was changed in the folders of this team.")
    fixed = [Column(name, no_wrap=True) for name in ("when", "what", "by", "id")]
    table = Table(*fixed, Column("path", overflow="fold"), box=None)
    for one in listed:
        what = one.kind if one.is_kept else f"{one.kind}, no copy"
        by = one.node_id or "undone by a person"
        row = (f"{one.created_at:%m-%d %H:%M}", what, by, one.id, clean(one.path))
        table.add_row(*map(Text, row), style="dim" if one.undone_at else "")
    Console(emoji=False).print(table)


@click.command()
@click.argument("team")
@click.argument("paths", nargs=-1)
@click.option("--node", help="Undo only what this node's agent changed.")
@click.option("--force", is_flag=True, help="Put files back, too, that were changed since.")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@command
async def undo(team: str, paths: tuple[str, ...], node: str | None, force: bool, yes: bool) -> None:
    """Put files back as they were before the agents of a TEAM changed them.

    PATHS are as `agiraph changes` lists them; without any, everything is put back that the team, or
    the --node, has changed.
    """
    which = ", ".join(paths) or ("all changes of " + (node or f"the team {team!r}"))
    if not yes:
        click.confirm(f"Undo {which}?", abort=True)
    async with connected() as client:
        found = await client.team(team)
        undone = await client.undo(found.id, node=node, paths=paths, force=force)
    for path in undone.restored:
        click.echo(f"Put back: {clean(path)}")
    for path in undone.changed_since:
        click.echo(f"Left, because it was changed since: {clean(path)} (--force puts it back)")
    for path in undone.not_kept:
        click.echo(f"Left, because there is no copy: {clean(path)}")
    if not (undone.restored or undone.changed_since or undone.not_kept):
        click.echo("There is nothing to undo. `agiraph changes` lists what was changed.")
    if undone.changed_since or undone.not_kept:
        raise click.exceptions.Exit(1)
