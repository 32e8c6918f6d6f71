"""`agiraph new`: create a team on a running server."""

import click
from rich.console import Console

from agiraph import location
from agiraph.cli.remote import Remote
from agiraph.cli.session import as_json, clean, command, connected
from agiraph.cli.settings import (
    ACCEPT_HELP,
    EFFORT_HELP,
    EVERY_HELP,
    FOLDER_HELP,
    MODE_HELP,
    REVIEW_HELP,
    REVIEWS,
    TRUST_HELP,
    TRUSTS,
    Interval,
    absolute_folder,
    accept_as_option,
    confirm_open,
    lines_with_kinds,
    told_folder,
)
from agiraph.cli.teams import json_option
from agiraph.domain.agents import Mode, Review, Trust, name_from_goal
from agiraph.domain.effort import EFFORTS, Effort
from agiraph.domain.work import LineKind
from agiraph.redaction import environment


@click.command()
@click.argument("goal")
@click.option("--name", default="", help="The team's name.  [default: made from the goal]")
@click.option(
    "--mode",
    type=click.Choice(["finite", "infinite"]),
    default="finite",
    show_default=True,
    help=MODE_HELP,
)
@click.option("--every", type=Interval(), default="1h", show_default=True, help=EVERY_HELP)
@click.option(
    "--review", type=click.Choice(REVIEWS), default="auto", show_default=True, help=REVIEW_HELP
)
@click.option(
    "--trust", type=click.Choice(TRUSTS), default="standard", show_default=True, help=TRUST_HELP
)
@click.option("--folder", "folders", multiple=True, metavar="PATH[:ro|rw]", help=FOLDER_HELP)
@click.option("--model", default="", help="The coordinator's model, as provider/model.")
@click.option("--effort", type=click.Choice(EFFORTS), help=EFFORT_HELP)
@click.option(
    "--budget",
    "--usd",
    "budget",
    type=click.FloatRange(min=0),
    help="The most dollars for the work on this goal.",
)
@click.option("--turns", type=click.IntRange(1), help="The most turns.  [default: 500]")
@click.option("--tokens", type=click.IntRange(1), help="The most tokens for the work on this goal.")
@click.option("--accept", multiple=True, metavar="LINE", help=ACCEPT_HELP)
@accept_as_option
@click.option("--wait", "waits", is_flag=True, help="Show progress until the goal is reached.")
@json_option
@command
async def new(
    goal: str,
    name: str,
    mode: Mode,
    every: float,
    review: Review,
    trust: Trust,
    folders: tuple[str, ...],
    model: str,
    effort: Effort | None,
    budget: float | None,
    turns: int | None,
    tokens: int | None,
    accept: tuple[str, ...],
    accept_as: tuple[tuple[LineKind, str], ...],
    waits: bool,
    json_: bool,
) -> None:
    """Create a team that works on a GOAL in the background."""
    if waits and mode == "infinite":
        raise click.UsageError(
            "An infinite team never ends, so --wait would never return: leave out --wait."
        )
    if waits and json_:
        raise click.UsageError("--wait is for people and --json for programs: choose one.")
    confirm_open(trust, name.strip() or name_from_goal(goal))
    chosen = {"usd": budget, "turns": turns, "tokens": tokens}
    limit = {name: most for name, most in chosen.items() if most is not None} or None
    async with connected() as client:
        team = await client.create_team(
            goal,
            name=name,
            mode=mode,
            interval=every,
            review=review,
            trust=trust,
            folders=[absolute_folder(folder) for folder in folders],
            model=model,
            effort=effort,
            budget=limit,
            acceptance=lines_with_kinds(accept, accept_as),
        )
        if waits:
            console = Console(highlight=False, emoji=False, soft_wrap=True)
            home = location.find(environment()).home
            raise click.exceptions.Exit(await Remote(client, console, home).watch(team))
    if json_:
        return click.echo(as_json(team))
    click.echo(f"{clean(team.name)} {team.id}")
    for folder in team.folders:
        click.echo(told_folder(folder.name, folder.path, folder.access))
    click.echo(f"Watch the team: agiraph tail {team.id}")
    click.echo(f"Talk to its coordinator: agiraph chat {team.id}")
