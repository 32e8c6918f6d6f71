"""`agiraph new`: a team for a goal, on a running server."""

import click
from rich.console import Console

from agiraph import location
from agiraph.cli.remote import Remote
from agiraph.cli.session import as_json, clean, command, connected
from agiraph.cli.teams import json_option
from agiraph.domain.agents import Mode
from agiraph.redaction import environment


@click.command()
@click.argument("goal")
@click.option("--name", default="", help="What to call the team.  [default: from the goal]")
@click.option(
    "--mode",
    type=click.Choice(["finite", "infinite"]),
    default="finite",
    show_default=True,
    help="Until the goal is reached, or in cycles without an end.",
)
@click.option("--model", default="", help="provider/model for its coordinator.")
@click.option("--budget", type=click.FloatRange(min=0), help="Dollars it may spend at most.")
@click.option("--wait", "waits", is_flag=True, help="Show how it goes until the goal is reached.")
@json_option
@command
async def new(
    goal: str,
    name: str,
    mode: Mode,
    model: str,
    budget: float | None,
    waits: bool,
    json_: bool,
) -> None:
    """Found a team that works on a GOAL in the background."""
    if waits and mode == "infinite":
        raise click.UsageError("A team without an end has nothing to wait for: leave out --wait.")
    if waits and json_:
        raise click.UsageError("--wait is for people and --json for programs: choose one.")
    limit = None if budget is None else {"usd": budget}
    async with connected() as client:
        team = await client.create_team(goal, name=name, mode=mode, model=model, budget=limit)
        if waits:
            console = Console(highlight=False, emoji=False, soft_wrap=True)
            home = location.find(environment()).home
            raise click.exceptions.Exit(await Remote(client, console, home).watch(team))
    if json_:
        return click.echo(as_json(team))
    click.echo(f"{clean(team.name)} {team.id}")
    click.echo(f"Watch it: agiraph tail {team.id}")
    click.echo(f"Talk to it: agiraph chat {team.id}")
