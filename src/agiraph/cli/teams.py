"""`agiraph teams` and `agiraph board`: what there is and how it stands."""

import click
from rich.console import Console
from rich.table import Column, Table

from agiraph.cli.session import as_json, command, opened, shown
from agiraph.domain.work import NodeStatus
from agiraph.services import notices, people
from agiraph.store import nodes
from agiraph.store import teams as rows


@click.command()
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
@command
async def teams(json_: bool) -> None:
    """List the teams of this home."""
    async with opened() as (_, store):
        found = await store.read(rows.every, limit=1000)
    if json_:
        return click.echo(as_json(found))
    if not found:
        return click.echo('No teams yet. Begin with: agiraph run "GOAL"')
    table = Table(Column("id", no_wrap=True), "name", "status", "since", box=None)
    for team in found:
        table.add_row(team.id, shown(team.name), team.status, f"{team.created_at:%Y-%m-%d %H:%M}")
    Console().print(table)


@click.command()
@click.argument("team")
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
@command
async def board(team: str, json_: bool) -> None:
    """Show the work of a TEAM (its id or name)."""
    async with opened() as (_, store):
        found = await store.read(rows.find, team)
        work = await store.read(nodes.board, found.id)
        roster = await store.read(people.roster, found.id, all=True)
    if json_:
        return click.echo(as_json(work))
    names: dict[str | None, str] = {m.agent.id: m.agent.name for m in roster}
    table = Table(Column("node", no_wrap=True), "title", "who", "status", "", box=None)
    for node in work:
        note = node.waiting_reason or (node.result or "").partition("\n")[0][:80]
        if node.status is NodeStatus.FAILED:
            note = f"{node.stop_reason}: {note}" if note else str(node.stop_reason)
        table.add_row(
            node.id,
            "  " * node.depth + shown(notices.title_of(node)),
            shown(names.get(node.assignee_id, "")),
            node.status,
            shown(note),
        )
    Console().print(table)
