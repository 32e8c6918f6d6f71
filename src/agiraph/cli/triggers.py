"""`agiraph triggers`: the schedules, webhooks and timers that start a team's agents."""

import click
from rich.console import Console

from agiraph.cli import tables
from agiraph.cli.session import as_json, command, connected, source
from agiraph.cli.teams import json_option


@click.command()
@click.argument("team")
@click.option("--cancel", metavar="ID", help="End this trigger; work that it started goes on.")
@json_option
@command
async def triggers(team: str, cancel: str | None, json_: bool) -> None:
    """List the triggers of a TEAM: when each fires next, and how often it fired."""
    if cancel is not None:
        async with connected() as client:
            await client.cancel_trigger((await client.team(team)).id, cancel)
        return click.echo(f"{cancel} has ended.")
    async with source() as found:
        listed = await found.triggers((await found.team(team)).id)
    if json_:
        return click.echo(as_json(listed))
    if not listed:
        return click.echo(f"The team {team!r} has no triggers.")
    Console(emoji=False).print(tables.of_triggers(listed))
