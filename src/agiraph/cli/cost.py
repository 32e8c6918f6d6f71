"""`agiraph cost`: what a team's work has cost, as a tree of its nodes."""

from collections import defaultdict
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from agiraph.cli.session import as_json, command, opened
from agiraph.domain.people import Team
from agiraph.domain.work import WorkNode
from agiraph.store import nodes, spend
from agiraph.store import teams as rows
from agiraph.store.spend import Spend
from agiraph.store.tx import Tx


class Bill(NamedTuple):
    """A node with what it cost, by purpose and model, and the bills of what is below it."""

    node: WorkNode
    agent: str
    lines: list[Spend]
    below: list["Bill"]

    @property
    def all(self) -> list[Spend]:
        return self.lines + [line for bill in self.below for line in bill.all]


def bills(tx: Tx, team: Team) -> list[Bill]:
    """One bill for each run of the team: a root node and everything below it."""
    lines: defaultdict[str, list[Spend]] = defaultdict(list)
    for line in spend.of_team(tx, team.id):
        lines[line.node_id].append(line)
    names = {agent.id: agent.name for agent in rows.members(tx, team.id)}
    below: defaultdict[str | None, list[WorkNode]] = defaultdict(list)
    for node in nodes.board(tx, team.id, limit=1_000_000):
        below[node.parent_id].append(node)

    def bill(node: WorkNode) -> Bill:
        agent = names.get(node.assignee_id, "") if node.assignee_id else ""
        return Bill(node, agent, lines[node.id], [bill(child) for child in below[node.id]])

    return [bill(root) for root in below[None]]


def summed(lines: list[Spend]) -> dict[str, Any]:
    return {
        "calls": sum(line.calls for line in lines),
        "lost": sum(line.lost for line in lines),
        "input_tokens": sum(line.input_tokens for line in lines),
        "output_tokens": sum(line.output_tokens for line in lines),
        "cached_tokens": sum(line.cached_tokens for line in lines),
        "usd": round(sum(line.usd for line in lines), 6),
        "unpriced": sum(line.unpriced for line in lines),
    }


def said(lines: list[Spend]) -> str:
    """A sum in words; a price nobody knows is named, not guessed."""
    total = summed(lines)
    tokens = total["input_tokens"] + total["output_tokens"]
    words = f"${total['usd']:.4f} · {tokens:,} tokens · {total['calls']} calls"
    if total["lost"]:
        words += f" · {total['lost']} lost"
    if total["unpriced"]:
        words += f" · {total['unpriced']} without a known price"
    return words


def _branch(tree: Tree, bill: Bill) -> None:
    title = escape(bill.node.title or bill.node.task[:60])
    branch = tree.add(f"{title} [dim]{bill.agent}[/]  {said(bill.all)}")
    if len(bill.lines) > 1 or any(line.purpose != "work" for line in bill.lines):
        for line in bill.lines:
            branch.add(f"[dim]{line.purpose} · {escape(line.model)}[/]  {said([line])}")
    for below in bill.below:
        _branch(branch, below)


def _plain(bill: Bill) -> dict[str, Any]:
    return {
        "node": bill.node.id,
        "title": bill.node.title,
        "agent": bill.agent,
        "total": summed(bill.all),
        "by": [{"purpose": s.purpose, "model": s.model, **summed([s])} for s in bill.lines],
        "below": [_plain(below) for below in bill.below],
    }


@click.command()
@click.argument("team", required=False)
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
@command
async def cost(team: str | None, json_: bool) -> None:
    """Show what a TEAM (or every team) has cost: by run, node, agent and purpose."""
    async with opened() as (_, store):
        if team is None:
            found = await store.read(rows.every, limit=1000)
        else:
            found = [await store.read(rows.find, team)]
        costs = [(each, await store.read(bills, each)) for each in found]
    if json_:
        shown = [
            {"team": t.id, "name": t.name, "runs": [_plain(b) for b in runs]} for t, runs in costs
        ]
        return click.echo(as_json(shown))
    if not costs:
        return click.echo("No teams yet.")
    for each, runs in costs:
        every = [line for bill in runs for line in bill.all]
        tree = Tree(f"[bold]{escape(each.name)}[/] [dim]{each.id}[/]  {said(every)}")
        for bill in runs:
            _branch(tree, bill)
        Console(highlight=False).print(tree)
