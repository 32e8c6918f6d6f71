"""`agiraph teams`, `board`, `stop`, `pause` and `resume`: what there is, and steering it."""

import click
from rich.console import Console

from agiraph.api.views import TeamView
from agiraph.cli import tables
from agiraph.cli.session import as_json, clean, command, connected, source

json_option = click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")


@click.command()
@json_option
@command
async def teams(json_: bool) -> None:
    """List the teams of this home."""
    async with source() as found:
        listed = await found.teams()
    if json_:
        return click.echo(as_json(listed))
    if not listed:
        return click.echo('No teams yet. Begin with: agiraph run "GOAL"')
    Console(emoji=False).print(tables.of_teams(listed))


@click.command()
@click.argument("team")
@json_option
@command
async def board(team: str, json_: bool) -> None:
    """Show the work of a TEAM (its id or name)."""
    async with source() as found:
        work = await found.board((await found.team(team)).id)
    if json_:
        return click.echo(as_json(work))
    Console(emoji=False).print(tables.of_board(work))


@click.command()
@click.argument("team", required=False)
@click.option("--all", "all_", is_flag=True, help="Everything of all teams, answers included.")
@command
async def stop(team: str | None, all_: bool) -> None:
    """Cancel everything a TEAM has not done yet, and end its processes; or --all."""
    if all_ == (team is not None):
        raise click.UsageError("Name one team, or say --all.")
    async with connected() as client:
        if team is None:
            ended = await client.stop_everything()
            return click.echo(f"Stopped {ended.teams} teams; {ended.nodes} pieces of work end now.")
        stopped = await client.stop((await client.team(team)).id)
    _told(stopped, "Stopped", "Nothing of it is deleted; say something to it to begin again.")


@click.command()
@click.argument("team")
@command
async def pause(team: str) -> None:
    """Let a TEAM stop at its next step; it still answers you."""
    async with connected() as client:
        paused = await client.pause((await client.team(team)).id)
    _told(paused, "Paused", f"Go on with: agiraph resume {paused.id}")


@click.command()
@click.argument("team")
@command
async def resume(team: str) -> None:
    """Let a TEAM go on where it was paused."""
    async with connected() as client:
        resumed = await client.resume((await client.team(team)).id)
    _told(resumed, "Resumed", f"Watch it with: agiraph tail {resumed.id}")


def _told(team: TeamView, done: str, next_: str) -> None:
    click.echo(f"{done} {clean(team.name)!r}. {next_}")
