"""`agiraph teams`, `board`, `stop`, `pause`, `resume`, `delete`: list teams and control them."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from rich.console import Console

from agiraph.api.views import TeamView
from agiraph.cli import tables
from agiraph.cli.session import as_json, clean, command, connected, source
from agiraph.domain.plurals import counted

F = TypeVar("F", bound=Callable[..., Any] | click.Command)


def json_option(function: F) -> F:
    """Give a command the option `--json`."""
    add = click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
    return add(function)


@click.command()
@json_option
@command
async def teams(json_: bool) -> None:
    """List all teams, with their open questions and their cost."""
    async with source() as found:
        listed = await found.teams()
    if json_:
        return click.echo(as_json(listed))
    if not listed:
        return click.echo('No teams yet. Create one with: agiraph new "GOAL"')
    Console(emoji=False).print(tables.of_teams(listed))


@click.command()
@click.argument("team")
@json_option
@command
async def board(team: str, json_: bool) -> None:
    """Show the tasks of a TEAM (its id or name) with their status and result."""
    async with source() as found:
        work = await found.board((await found.team(team)).id)
    if json_:
        return click.echo(as_json(work))
    Console(emoji=False).print(tables.of_board(work))


@click.command()
@click.argument("team", required=False)
@click.option(
    "--all",
    "all_",
    is_flag=True,
    help="Emergency stop: cancel all work of all teams, replies to you included.",
)
@command
async def stop(team: str | None, all_: bool) -> None:
    """Cancel the unfinished tasks of a TEAM, or of --all teams, and end their processes."""
    if all_ == (team is not None):
        raise click.UsageError("Name one team, or give --all.")
    async with connected() as client:
        if team is None:
            ended = await client.stop_everything()
            teams, tasks = counted(ended.teams, "team"), counted(ended.nodes, "task")
            return click.echo(f"Stopped {teams} and cancelled {tasks}.")
        stopped = await client.stop((await client.team(team)).id)
    _confirm(stopped, "Stopped", "Nothing was deleted; send it a message to start again.")


@click.command()
@click.argument("team", required=False)
@click.option("--all", "all_", is_flag=True, help="Interrupt the work of every team now.")
@command
async def pause(team: str | None, all_: bool) -> None:
    """Pause a TEAM after its current step. It still answers your messages.

    With --all, the work of every team is interrupted at once, and none begins, also after a
    restart, until `agiraph resume --all`. Nothing is cancelled.
    """
    if all_ == (team is not None):
        raise click.UsageError("Name one team, or give --all.")
    async with connected() as client:
        if team is None:
            stop = await client.stop_all_work()
            return click.echo(
                f"All work is stopped: {counted(stop.running, 'task was', 'tasks were')} "
                f"interrupted, {counted(stop.queued, 'waits', 'wait')}. "
                "Continue with: agiraph resume --all"
            )
        paused = await client.pause((await client.team(team)).id)
    _confirm(paused, "Paused", f"Continue with: agiraph resume {paused.id}")


@click.command()
@click.argument("team", required=False)
@click.option("--all", "all_", is_flag=True, help="Continue after `agiraph pause --all`.")
@command
async def resume(team: str | None, all_: bool) -> None:
    """Let a paused TEAM continue its work; with --all, end `agiraph pause --all`."""
    if all_ == (team is not None):
        raise click.UsageError("Name one team, or give --all.")
    async with connected() as client:
        if team is None:
            woken = await client.resume_all_work()
            return click.echo(f"Resumed: {counted(woken.queues, 'queue has', 'queues have')} work.")
        resumed = await client.resume((await client.team(team)).id)
    _confirm(resumed, "Resumed", f"Watch it with: agiraph tail {resumed.id}")


@click.command()
@click.argument("team")
@click.option("--name", help="The team's name, instead of typing it.")
@click.option("--stop", "stop_", is_flag=True, help="End its work first, if it is working.")
@command
async def delete(team: str, name: str | None, stop_: bool) -> None:
    """Delete a TEAM (its id or name) for good: messages, files, memories, all of it.

    To keep a copy, run `agiraph export` first. To hide a team only, archive it in the web UI.
    """
    async with connected() as client:
        found = await client.team(team)
        if name is None:
            click.echo(f"This deletes everything of {clean(found.name)!r} and cannot be undone.")
            name = click.prompt("Type the team's name to delete it", default="", show_default=False)
        deleted = await client.delete_team(found.id, name=name, stop=stop_)
    click.echo(f"Deleted {clean(deleted.name)!r}.")


def _confirm(team: TeamView, done: str, next_: str) -> None:
    click.echo(f"{done} {clean(team.name)!r}. {next_}")
