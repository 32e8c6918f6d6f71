"""Costs: what a team's work has cost, as a tree of its nodes and over time."""

from dataclasses import dataclass, field

from agiraph.domain.ids import TeamId
from agiraph.domain.work import Lane


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSum:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """What a node itself cost for one purpose with one model."""

    purpose: str
    model: str
    sum: CostSum


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCosts:
    """A node with what it cost, and the bills of what is below it."""

    node_id: str
    title: str
    lane: Lane
    agent_id: str | None
    agent: str
    lines: list[CostLine] = field(default_factory=list[CostLine])
    below: list["NodeCosts"] = field(default_factory=list["NodeCosts"])
    total: CostSum = CostSum()


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamCosts:
    team_id: TeamId
    total: CostSum
    by_agent: dict[str, CostSum]
    by_purpose: dict[str, CostSum]
    by_model: dict[str, CostSum]
    runs: list[NodeCosts]
    """One bill for each run: a root node and everything below it."""
