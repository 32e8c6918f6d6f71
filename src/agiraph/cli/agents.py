"""`agiraph agents` and `agiraph thread`: the members of a team, and the turns of a thread."""

import click
from rich.console import Console

from agiraph.cli import tables
from agiraph.cli.session import as_json, clean, command, is_missing, source
from agiraph.cli.teams import json_option
from agiraph.domain.errors import NotFound, Refused


@click.command()
@click.argument("team")
@click.option("--all", "all_", is_flag=True, help="Also list agents that have left the team.")
@json_option
@command
async def agents(team: str, all_: bool, json_: bool) -> None:
    """List the agents of a TEAM (its id or name), with their tasks and threads."""
    async with source() as found:
        roster = await found.agents((await found.team(team)).id, all=all_)
    if json_:
        return click.echo(as_json(roster))
    Console(emoji=False).print(tables.of_agents(roster))


@click.command()
@click.argument("thread")
@json_option
@command
async def thread(thread: str, json_: bool) -> None:
    """Show a THREAD turn by turn. Give a thread's id, or an agent's id for its current thread."""
    async with source() as found:
        wanted = thread
        if thread.startswith("agent_"):
            agent = await found.agent(thread)
            if agent.thread_id is None:
                raise NotFound("thread", thread, known=f"{agent.name} has done nothing yet.")
            wanted = agent.thread_id
        try:
            turns = await found.thread(wanted)
        except Refused as error:
            if not is_missing(error):
                raise
            known = "`agiraph agents` lists agents and threads."
            raise NotFound("thread", thread, known=known) from error
    if json_:
        return click.echo(as_json(turns))
    click.echo(clean(wanted))
    for turn in turns:
        said = f" {turn.text}" if turn.text else ""
        click.echo(clean(f"\n[{turn.at:%H:%M:%S}] {turn.role}{said}"))
        for call in turn.calls:
            click.echo(clean(f"  → {call.name} {call.arguments}"))
