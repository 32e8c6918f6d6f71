"""Costs: what a team's work has cost, as a tree of its nodes and over time."""

from dataclasses import dataclass, field

from agiraph.domain.ids import TeamId
from agiraph.domain.work import Lane


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
