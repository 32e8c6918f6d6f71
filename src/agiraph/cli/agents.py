"""`agiraph agents` and `agiraph thread`: who is on a team, and what went on in a thread."""

import click
from rich.console import Console
from rich.table import Column, Table

from agiraph.cli.session import as_json, clean, command, opened, shown
from agiraph.domain.chat import Turn
from agiraph.domain.errors import NotFound
from agiraph.domain.ids import ThreadId
from agiraph.services import people
from agiraph.services.people import Member
from agiraph.store import teams as rows
from agiraph.store import threads
from agiraph.store.tx import Tx


@click.command()
@click.argument("team")
@click.option("--all", "all_", is_flag=True, help="Also those who have left.")
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
@command
async def agents(team: str, all_: bool, json_: bool) -> None:
    """List the agents of a TEAM, what each is at, and the thread it is in."""
    async with opened() as (_, store):
        found = await store.read(rows.find, team)
        roster = await store.read(people.roster, found.id, all=all_)
    if json_:
        return click.echo(as_json([_plain(member) for member in roster]))
    table = Table(
        "name", "role", "model", "doing", "task", Column("thread", no_wrap=True), box=None
    )
    for member in roster:
        agent, node = member.agent, member.node
        table.add_row(
            shown(agent.name),
            shown(agent.role),
            shown(agent.command if agent.command is not None else agent.model),
            member.doing.replace("_", " "),
            shown(node.title or node.task[:60]) if node else "",
            member.thread.id if member.thread else "",
        )
    Console().print(table)


def _plain(member: Member) -> dict[str, object]:
    agent, node, thread = member.agent, member.node, member.thread
    return {
        "id": agent.id,
        "name": agent.name,
        "role": agent.role,
        "kind": agent.kind,
        "model": agent.model,
        "doing": member.doing,
        "persistent": agent.persistent,
        "created_for": agent.created_for,
        "parent_thread_id": agent.parent_thread_id,
        "node_id": node.id if node else None,
        "thread_id": thread.id if thread else None,
    }


@click.command()
@click.argument("thread")
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
@command
async def thread(thread: str, json_: bool) -> None:
    """Show a THREAD turn by turn; an agent's id stands for the thread it is in."""

    def find(tx: Tx) -> tuple[Member, ThreadId, list[Turn]]:
        agent = rows.AGENTS.find(tx, thread)
        member = people.member(tx, agent) if agent else people.of_thread(tx, thread)
        found = (member.thread.id if member.thread else None) if agent else ThreadId(thread)
        if found is None:
            raise NotFound("thread", thread, known=f"{member.agent.name} has done nothing yet.")
        return member, found, threads.turns(tx, found)

    async with opened() as (_, store):
        member, found, turns = await store.read(find)
    if json_:
        return click.echo(as_json(turns))
    click.echo(clean(f"{found}: {member.agent.name} ({member.agent.role})"))
    for turn in turns:
        if turn.role == "intent":
            continue
        click.echo(
            clean(f"\n[{turn.at:%H:%M:%S}] {turn.role}" + (f" {turn.text}" * bool(turn.text)))
        )
        for call in turn.calls:
            click.echo(clean(f"  → {call.name} {call.arguments}"))
