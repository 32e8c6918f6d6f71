"""Costs: what a team's work has cost, by agent, purpose, model and node, in pages of nodes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from agiraph.core.domain.costs import CostLine, CostSum, NodeCosts, TeamCosts, add_up, as_trees
from agiraph.core.domain.ids import TeamId
from agiraph.core.services.board import texts
from agiraph.core.store import nodes, spend
from agiraph.core.store.tx import Tx

PAGE = 200
"""The nodes of a page, if no other number is asked for."""


def of_team(tx: Tx, team_id: TeamId, *, after: str = "", limit: int = PAGE) -> TeamCosts:
    """Return a page of a team's costs: the first one with the sums of the whole team."""
    found = nodes.costed(tx, team_id, after=after, limit=limit + 1)
    page = found[:limit]
    lines: Mapping[str, list[CostLine]] = (
        spend.of_nodes(tx, team_id, page[0].id, page[-1].id) if page else {}
    )
    groups = [] if after else spend.by_agent(tx, team_id)
    return TeamCosts(
        team_id=team_id,
        total=add_up(group.sum for group in groups),
        by_agent=_by((group.agent, group.sum) for group in groups),
        by_purpose=_by((group.purpose, group.sum) for group in groups),
        by_model=_by((group.model, group.sum) for group in groups),
        runs=as_trees(
            NodeCosts(
                node_id=node.id,
                above_id=node.above_id,
                title=texts.subject_of(node),
                lane=node.lane,
                agent_id=node.assignee_id,
                agent=node.assignee,
                lines=lines.get(node.id, []),
            )
            for node in page
        ),
        next=page[-1].id if len(found) > limit else None,
    )


def _by(sums: Iterable[tuple[str, CostSum]]) -> dict[str, CostSum]:
    groups: defaultdict[str, list[CostSum]] = defaultdict(list)
    for name, each in sums:
        groups[name].append(each)
    return {name: add_up(group) for name, group in sorted(groups.items())}
