"""Costs: what a team's work has cost, as a tree of its nodes and over time."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from agiraph.domain.ids import TeamId
from agiraph.domain.work import Lane
from agiraph.services import notices
from agiraph.store import nodes, spend, teams
from agiraph.store.spend import Spend
from agiraph.store.tx import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """What some calls to models came to."""

    calls: int = 0
    lost: int = 0
    """Calls begun before a crash and paid for, though their answer never arrived."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    """Calls whose price nobody knows."""

    @classmethod
    def of(cls, lines: list[Spend]) -> "Sum":
        return cls(
            calls=sum(line.calls for line in lines),
            lost=sum(line.lost for line in lines),
            input_tokens=sum(line.input_tokens for line in lines),
            output_tokens=sum(line.output_tokens for line in lines),
            cached_tokens=sum(line.cached_tokens for line in lines),
            usd=round(sum(line.usd for line in lines), 6),
            unpriced=sum(line.unpriced for line in lines),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What a node itself cost for one purpose with one model."""

    purpose: str
    model: str
    sum: Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """A node with what it cost, and the bills of what is below it."""

    node_id: str
    title: str
    lane: Lane
    agent_id: str | None
    agent: str
    lines: list[Line] = field(default_factory=list[Line])
    below: list["Bill"] = field(default_factory=list["Bill"])
    total: Sum = Sum()


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    team_id: TeamId
    total: Sum
    by_agent: dict[str, Sum]
    by_purpose: dict[str, Sum]
    by_model: dict[str, Sum]
    runs: list[Bill]
    """One bill for each run: a root node and everything below it."""


def of_team(tx: Tx, team_id: TeamId) -> Costs:
    lines = spend.of_team(tx, team_id)
    names: dict[str, str] = {agent.id: agent.name for agent in teams.everyone(tx, team_id)}
    return Costs(
        team_id=team_id,
        total=Sum.of(lines),
        by_agent=_by(lines, lambda line: names.get(line.agent_id, line.agent_id)),
        by_purpose=_by(lines, lambda line: line.purpose),
        by_model=_by(lines, lambda line: line.model),
        runs=_bills(tx, team_id, lines, names),
    )


def _by(lines: list[Spend], key: Callable[[Spend], str]) -> dict[str, Sum]:
    groups: defaultdict[str, list[Spend]] = defaultdict(list)
    for line in lines:
        groups[key(line)].append(line)
    return {name: Sum.of(group) for name, group in sorted(groups.items())}


def _bills(tx: Tx, team_id: TeamId, lines: list[Spend], names: dict[str, str]) -> list[Bill]:
    own: defaultdict[str, list[Spend]] = defaultdict(list)
    for line in lines:
        own[line.node_id].append(line)
    made = [node for node in nodes.everything(tx, team_id) if node.lane == "work" or own[node.id]]
    known = {node.id for node in made}
    below: defaultdict[str | None, list[int]] = defaultdict(list)
    for index, node in enumerate(made):
        above = node.parent_id or node.payer_id
        below[above if above in known else None].append(index)

    def bill(index: int) -> tuple[Bill, list[Spend]]:
        node = made[index]
        children = [bill(child) for child in below[node.id]]
        everything = own[node.id] + [line for _, lines in children for line in lines]
        made_of = [
            Line(purpose=line.purpose, model=line.model, sum=Sum.of([line]))
            for line in own[node.id]
        ]
        return (
            Bill(
                node_id=node.id,
                title=notices.title_of(node),
                lane=node.lane,
                agent_id=node.assignee_id,
                agent=names.get(node.assignee_id, "") if node.assignee_id else "",
                lines=made_of,
                below=[child for child, _ in children],
                total=Sum.of(everything),
            ),
            everything,
        )

    return [bill(root)[0] for root in below[None]]
