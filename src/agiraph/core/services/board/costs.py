"""Costs: add up what a team's work has cost, by agent, purpose, model and node."""

from collections import defaultdict
from collections.abc import Iterable
from operator import add

from agiraph.core.domain.costs import CostLine, CostSum, NodeCosts, TeamCosts
from agiraph.core.domain.ids import TeamId
from agiraph.core.services.board import texts
from agiraph.core.store import nodes, spend, teams
from agiraph.core.store.nodes import Titled
from agiraph.core.store.spend import Counts, NodeSpend
from agiraph.core.store.tx import Tx

_NOTHING: Counts = [0] * spend.COUNTS


def of_team(tx: Tx, team_id: TeamId) -> TeamCosts:
    """Return all costs of a team, with one bill for each root node."""
    lines = spend.by_node(tx, team_id)
    names: dict[str, str] = {agent.id: agent.name for agent in teams.everyone(tx, team_id)}
    return TeamCosts(
        team_id=team_id,
        total=_sum(_total(line.counts for line in lines)),
        by_agent=_by((names.get(line.agent_id, line.agent_id), line.counts) for line in lines),
        by_purpose=_by((line.purpose, line.counts) for line in lines),
        by_model=_by((line.model, line.counts) for line in lines),
        runs=_bills(tx, team_id, lines, names),
    )


def _total(counts: Iterable[Counts]) -> Counts:
    total = _NOTHING
    for each in counts:
        total = [*map(add, total, each)]
    return total


def _sum(counts: Counts) -> CostSum:
    *whole, usd, unpriced, estimated = counts
    calls, searches, lost, given, written, cached, stored, thinking = map(int, whole)
    return CostSum(
        calls=calls,
        searches=searches,
        lost=lost,
        input_tokens=given,
        output_tokens=written,
        cached_tokens=cached,
        cache_write_tokens=stored,
        thinking_tokens=thinking,
        usd=spend.round_usd(usd),
        unpriced=int(unpriced),
        estimated=int(estimated),
    )


def _by(lines: Iterable[tuple[str, Counts]]) -> dict[str, CostSum]:
    groups: dict[str, Counts] = {}
    for name, counts in lines:
        groups[name] = [*map(add, groups[name], counts)] if name in groups else counts
    return {name: _sum(group) for name, group in sorted(groups.items())}


def _bills(
    tx: Tx, team_id: TeamId, lines: list[NodeSpend], names: dict[str, str]
) -> list[NodeCosts]:
    own: defaultdict[str, list[NodeSpend]] = defaultdict(list)
    for line in lines:
        own[line.node_id].append(line)
    made = [n for n in nodes.titles(tx, team_id) if n.is_work or n.id in own]
    known = {node.id for node in made}
    below: defaultdict[str | None, list[Titled]] = defaultdict(list)
    for node in made:
        above = node.parent_id or node.payer_id
        below[above if above in known else None].append(node)

    def bill(node: Titled) -> tuple[NodeCosts, Counts]:
        mine = own.get(node.id, ())
        children = [bill(child) for child in below.get(node.id, ())]
        lines = _lines(mine)
        total = _total([*(line.counts for line in mine), *(counts for _, counts in children)])
        costs = NodeCosts(
            node_id=node.id,
            title=texts.subject_of(node),
            lane=node.lane,
            agent_id=node.assignee_id,
            agent=names.get(node.assignee_id, "") if node.assignee_id else "",
            lines=lines,
            below=[child for child, _ in children],
            total=lines[0].sum if len(lines) == 1 and not children else _sum(total),
        )
        return costs, total

    return [bill(root)[0] for root in below[None]]


def _lines(mine: Iterable[NodeSpend]) -> list[CostLine]:
    """Return what a node has cost by purpose and model: of all days, and whoever worked on it."""
    groups: dict[tuple[str, str], Counts] = {}
    for line in mine:
        key = line.purpose, line.model
        groups[key] = [*map(add, groups[key], line.counts)] if key in groups else line.counts
    return [
        CostLine(purpose=purpose, model=model, sum=_sum(total))
        for (purpose, model), total in sorted(groups.items())
    ]
