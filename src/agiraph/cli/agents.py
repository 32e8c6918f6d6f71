"""`agiraph agents`, `thread`, `memories`, `insights`: agents, their turns and what they know."""

import click
from rich.console import Console

from agiraph.cli import tables
from agiraph.cli.session import as_json, clean, command, is_missing, source
from agiraph.cli.talk import find_agent
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


LISTED = 200
"""The most memories or insights that are listed, the newest ones."""


@click.command()
@click.argument("agent")
@click.option("--team", help="The team of the AGENT, if AGENT is a name.")
@json_option
@command
async def memories(agent: str, team: str | None, json_: bool) -> None:
    """List what an AGENT remembers about you: an agent's id, or a team for its coordinator."""
    async with source() as found:
        known = await found.memories((await find_agent(found, agent, team)).id, limit=LISTED)
    if json_:
        return click.echo(as_json(known))
    if not known:
        return click.echo("It remembers nothing about you yet.")
    Console(emoji=False).print(tables.of_knowledge(known))


@click.command()
@click.argument("agent")
@click.option("--team", help="The team of the AGENT, if AGENT is a name.")
@click.option("--query", default="", help="Only those that fit these words.")
@json_option
@command
async def insights(agent: str, team: str | None, query: str, json_: bool) -> None:
    """List what an AGENT has learned for its work: an agent's id, or a team for its coordinator."""
    async with source() as found:
        who = await find_agent(found, agent, team)
        known = await found.insights(who.id, query=query, limit=LISTED)
    if json_:
        return click.echo(as_json(known))
    if not known:
        return click.echo("Nothing fits." if query else "It has learned nothing yet.")
    Console(emoji=False).print(tables.of_knowledge(known))
