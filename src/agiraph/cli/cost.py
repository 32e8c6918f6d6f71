"""`agiraph cost`: the cost of a team's work, as a tree of its tasks."""

import click
from rich.console import Console

from agiraph.cli import tables
from agiraph.cli.session import as_json, command, source
from agiraph.cli.teams import json_option
from agiraph.domain.costs import day_text


@click.command()
@click.argument("team", required=False)
@json_option
@command
async def cost(team: str | None, json_: bool) -> None:
    """Show the cost of a TEAM (or of every team) by task, agent and purpose.

    The first line is what all teams have spent today (UTC), and the daily limit.
    """
    async with source() as found:
        today = await found.day_cost()
        listed = await found.teams() if team is None else [await found.team(team)]
        costs = [(each.name, await found.cost(each.id)) for each in listed]
    if json_:
        return click.echo(as_json([bill for _, bill in costs]))
    click.echo(day_text(today))
    if not costs:
        return click.echo("No teams yet.")
    for name, bill in costs:
        Console(highlight=False, emoji=False).print(tables.of_cost(name, bill))
