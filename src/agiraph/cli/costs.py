"""`agiraph cost`: what teams cost by task, and what was spent by day, model, purpose or team."""

from typing import Literal

import click
from rich.console import Console
from rich.tree import Tree

from agiraph.cli.session import Columns, Told, clean, printing, shown, source, table
from agiraph.core.domain.costs import CostsBy, CostSum, DayPart, NodeCosts, TeamCosts, day_text
from agiraph.core.domain.text.plurals import counted


@click.command()
@click.argument("team", required=False)
@click.option(
    "--by",
    type=click.Choice(["day", "model", "purpose", "agent", "team"]),
    help="Sum up the last days by this instead.",
)
@click.option("--days", type=click.IntRange(1, 366), default=30, help="With --by: how many days.")
@printing
async def cost(team: str | None, by: CostsBy | Literal["day"] | None, days: int) -> Told:
    """Show the cost of a TEAM (or of every team) by task, agent and purpose.

    The first line is what all teams have spent today (UTC), and the daily limit.
    """
    if by is not None:
        return await _cost_by(by, team, days)
    async with source() as found:
        today = await found.day_cost()
        listed = await found.teams() if team is None else [await found.team(team)]
        costs = [(each.name, await found.cost(each.id)) for each in listed]

    def show() -> None:
        click.echo(day_text(today))
        if not costs:
            click.echo("No teams yet.")
        for name, bill in costs:
            Console(highlight=False, emoji=False).print(of_cost(name, bill))

    return [bill for _, bill in costs], show


_PARTS: Columns[DayPart] = (
    ("", lambda part: shown(part.name)),
    ("cost", lambda part: f"${part.usd:.4f}"),
    ("tokens", lambda part: f"{part.tokens:,}"),
    ("calls", lambda part: f"{part.calls:,}"),
    ("without a known price", lambda part: f"{part.unpriced:,}" if part.unpriced else ""),
)


async def _cost_by(by: CostsBy | Literal["day"], team: str | None, days: int) -> Told:
    async with source() as found:
        split: CostsBy = "model" if by == "day" else by
        history = await found.cost_history(by=split, team=team or "", days=days)
    sums = history.by_day() if by == "day" else history.by_part()

    def show() -> None:
        click.echo(day_text(history.today))
        click.echo(f"Since {history.first_day}:" if sums else f"Nothing since {history.first_day}.")
        if sums:
            Console(highlight=False, emoji=False).print(table(sums, _PARTS))

    return sums, show


def of_cost(name: str, costs: TeamCosts) -> Tree:
    tree = Tree(f"[bold]{shown(name)}[/] [dim]{costs.team_id}[/]  {sum_text(costs.total)}")
    for bill in costs.runs:
        _branch(tree, bill)
    return tree


def _branch(tree: Tree, bill: NodeCosts) -> None:
    branch = tree.add(f"{shown(bill.title)} [dim]{shown(bill.agent)}[/]  {sum_text(bill.total)}")
    if len(bill.lines) > 1 or any(line.purpose != "work" for line in bill.lines):
        for line in bill.lines:
            branch.add(f"[dim]{line.purpose} · {shown(line.model)}[/]  {sum_text(line.sum)}")
    for below in bill.below:
        _branch(branch, below)


def sum_text(total: CostSum) -> str:
    """Return a sum as text. Calls without a known price are counted, not estimated."""
    tokens = total.input_tokens + total.output_tokens
    calls = counted(total.calls + total.lost, "call")
    words = f"${total.usd:.4f} · {counted(tokens, 'token')} · {calls}"
    if total.searches:
        words += f" · {counted(total.searches, 'search', 'searches')}"
    if total.cached_tokens:
        words += f" · {total.cached_tokens / total.input_tokens:.0%} of input cached"
    if total.estimated:
        words += f" · {total.estimated} estimated"
    if total.lost:
        words += f" · {counted(total.lost, 'lost call')} of them, charged as reserved"
    if total.unpriced:
        words += f" · {total.unpriced} without a known price"
    return clean(words)
