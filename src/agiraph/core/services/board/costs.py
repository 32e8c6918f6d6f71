"""Costs: add up what a team's work has cost, by agent, purpose, model and node."""

from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from agiraph.core.domain.costs import CostLine, CostSum, NodeCosts, TeamCosts
from agiraph.core.domain.ids import TeamId
from agiraph.core.services.board import texts
from agiraph.core.store import nodes, spend, teams
from agiraph.core.store.spend import Spend
from agiraph.core.store.tx import Tx

K = TypeVar("K", str, tuple[str, str])


def of_team(tx: Tx, team_id: TeamId) -> TeamCosts:
    """Return all costs of a team, with one bill for each root node."""
    lines = spend.of_team(tx, team_id)
    names: dict[str, str] = {agent.id: agent.name for agent in teams.everyone(tx, team_id)}
    return TeamCosts(
        team_id=team_id,
        total=_sum(lines),
        by_agent=_by(lines, lambda line: names.get(line.agent_id, line.agent_id)),
        by_purpose=_by(lines, lambda line: line.purpose),
        by_model=_by(lines, lambda line: line.model),
        runs=_bills(tx, team_id, lines, names),
    )


def _sum(lines: list[Spend]) -> CostSum:
    return CostSum(
        calls=sum(line.calls for line in lines if line.purpose != spend.SEARCH),
        searches=sum(line.calls for line in lines if line.purpose == spend.SEARCH),
        lost=sum(line.lost for line in lines),
        input_tokens=sum(line.input_tokens for line in lines),
        output_tokens=sum(line.output_tokens for line in lines),
        cached_tokens=sum(line.cached_tokens for line in lines),
        cache_write_tokens=sum(line.cache_write_tokens for line in lines),
        thinking_tokens=sum(line.thinking_tokens for line in lines),
        usd=spend.round_usd(sum(line.usd for line in lines)),
        unpriced=sum(line.unpriced for line in lines),
        estimated=sum(line.estimated for line in lines),
    )


def _by(lines: list[Spend], key: Callable[[Spend], K]) -> dict[K, CostSum]:
    groups: defaultdict[K, list[Spend]] = defaultdict(list)
    for line in lines:
        groups[key(line)].append(line)
    return {name: _sum(group) for name, group in sorted(groups.items())}


def _purpose_and_model(line: Spend) -> tuple[str, str]:
    return line.purpose, line.model


def _bills(tx: Tx, team_id: TeamId, lines: list[Spend], names: dict[str, str]) -> list[NodeCosts]:
    own: defaultdict[str, list[Spend]] = defaultdict(list)
    for line in lines:
        own[line.node_id].append(line)
    made = [node for node in nodes.everything(tx, team_id) if node.is_work or own[node.id]]
    known = {node.id for node in made}
    below: defaultdict[str | None, list[int]] = defaultdict(list)
    for index, node in enumerate(made):
        above = node.parent_id or node.payer_id
        below[above if above in known else None].append(index)

    def bill(index: int) -> tuple[NodeCosts, list[Spend]]:
        node = made[index]
        children = [bill(child) for child in below[node.id]]
        everything = own[node.id] + [line for _, lines in children for line in lines]
        made_of = [  # of all days
            CostLine(purpose=purpose, model=model, sum=total)
            for (purpose, model), total in _by(own[node.id], _purpose_and_model).items()
        ]
        return (
            NodeCosts(
                node_id=node.id,
                title=texts.subject_of(node),
                lane=node.lane,
                agent_id=node.assignee_id,
                agent=names.get(node.assignee_id, "") if node.assignee_id else "",
                lines=made_of,
                below=[child for child, _ in children],
                total=_sum(everything),
            ),
            everything,
        )

    return [bill(root)[0] for root in below[None]]
