"""Costs: what a team's model calls have cost, by node, agent, purpose and model."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import field, fields, replace
from typing import Literal

from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.value import dataclass, value
from agiraph.core.domain.work import Lane


@value
class CostSum:
    """The totals of a set of model calls and paid web searches."""

    calls: int = 0
    """Model calls that were answered. With `lost` this is the number that boards show."""
    searches: int = 0
    """Paid web searches. They have a cost and are no model calls."""
    lost: int = 0
    """Calls that a crash cut off: they are paid for, but their response never arrived."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that vendors read from their caches."""
    cache_write_tokens: int = 0
    thinking_tokens: int = 0
    """Output tokens spent on thinking; 0 if the vendor does not report it."""
    usd: float = 0.0
    unpriced: int = 0
    """Calls of models without a known price."""
    estimated: int = 0
    """Calls whose tokens were estimated, because the vendor did not report them."""


_COUNTS = [each.name for each in fields(CostSum)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCosts:
    """What all teams have spent today, and what they may spend. A day begins at 00:00 UTC."""

    day: str
    usd: float
    limit_usd: float | None = None
    """The daily limit, with what a person has allowed on top of it today; None: no limit."""
    allowed_usd: float = 0.0
    is_reached: bool = False
    """Whether paid model calls wait for a person or for the next day."""
    forecast_usd: float | None = None
    """What will be spent by the end of the day if it goes on as it did today; None: nothing was
    spent, or the day is too young to say."""


CostsBy = Literal["team", "agent", "model", "purpose"]
DELETED = "teams that were deleted"


@value
class DayPart:
    """What was spent on a day by one team or agent, on one model, or for one purpose."""

    day: str
    """In UTC, such as 2026-11-17."""
    key: str
    """The id of the team or agent, the model, or the purpose; empty: teams that were deleted."""
    name: str
    """As people see it."""
    calls: int
    tokens: int
    usd: float
    unpriced: int
    """Calls of models without a known price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostHistory:
    """What was spent day by day, in parts; days on which nothing was spent are left out."""

    by: CostsBy
    first_day: str
    today: DayCosts
    parts: list[DayPart]
    """Oldest day first."""

    def by_day(self) -> list[DayPart]:
        """Return the sum of each day, under its name."""
        return _summed(replace(each, key=each.day, name=each.day) for each in self.parts)

    def by_part(self) -> list[DayPart]:
        """Return the sum of each part over all days, the most expensive first."""
        sums = _summed(replace(each, day="") for each in self.parts)
        named = (each if each.key else replace(each, name=DELETED) for each in sums)
        return sorted(named, key=lambda each: (-each.usd, -each.tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """One limit of a goal, and how much of it is used."""

    name: Literal["usd", "tokens", "turns", "seconds"]
    limit: float | None
    """None: there is no limit."""
    used: float
    left: float | None
    """None: there is no limit. Never below zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalBudget:
    """The limits of a team's last goal, with all work below it."""

    node_id: str
    limits: list[LimitUse]
    waits: Literal["goal", "paid_work"] | None = None
    """The work that waits until a limit is raised and is then resumed automatically: the goal, or
    the cycles and triggers that it pays for. None: no work waits."""


@value
class CostLine:
    """What one node cost for one purpose with one model, without the nodes below it."""

    purpose: str
    model: str
    sum: CostSum


@value
class NodeCosts:
    """What a node has cost, with the nodes below it that are listed."""

    node_id: str
    above_id: str | None
    """The node above it, or the one that pays for it. None, or a node that is not listed: this is
    the first node of a run, or the page has only what is below."""
    title: str
    lane: Lane
    agent_id: str | None
    agent: str
    lines: list[CostLine] = field(default_factory=list[CostLine])
    below: list["NodeCosts"] = field(default_factory=list["NodeCosts"])
    total: CostSum = CostSum()


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamCosts:
    """A page of a team's costs. The sums are of the whole team, and stand on the first page only,
    as the budget does."""

    team_id: TeamId
    total: CostSum = CostSum()
    by_agent: dict[str, CostSum] = field(default_factory=dict[str, CostSum])
    by_purpose: dict[str, CostSum] = field(default_factory=dict[str, CostSum])
    by_model: dict[str, CostSum] = field(default_factory=dict[str, CostSum])
    runs: list[NodeCosts]
    """The nodes of this page as trees, one for each run if the page has all of it."""
    next: str | None = None
    """The `after` of the next page; None: this is the last."""
    budget: GoalBudget | None = None
    """The limits of the last goal; None: the team has no goal."""


def add_up(sums: Iterable[CostSum]) -> CostSum:
    """Return the sum of sums."""
    listed = list(sums)
    total = CostSum(**{name: sum(getattr(each, name) for each in listed) for name in _COUNTS})
    return replace(total, usd=round(total.usd, 6))


def _summed(parts: Iterable[DayPart]) -> list[DayPart]:
    """Return one part for each key, with the sums of all that have it."""
    sums: dict[str, DayPart] = {}
    for part in parts:
        known = sums.get(part.key)
        sums[part.key] = (
            part
            if known is None
            else replace(
                known,
                calls=known.calls + part.calls,
                tokens=known.tokens + part.tokens,
                usd=round(known.usd + part.usd, 6),
                unpriced=known.unpriced + part.unpriced,
            )
        )
    return list(sums.values())


def as_trees(nodes: Iterable[NodeCosts]) -> list[NodeCosts]:
    """Return these nodes, given without any below, as trees with their sums."""
    listed = {node.node_id: node for node in nodes}
    below: defaultdict[str | None, list[NodeCosts]] = defaultdict(list)
    for node in listed.values():
        below[node.above_id if node.above_id in listed else None].append(node)

    def tree(node: NodeCosts) -> NodeCosts:
        under = [tree(each) for each in below[node.node_id]]
        own = (line.sum for line in node.lines)
        return replace(node, below=under, total=add_up([*own, *(each.total for each in under)]))

    return [tree(node) for node in below[None]]


def joined(pages: Iterable[TeamCosts]) -> TeamCosts:
    """Return the costs of a team as if they were one page."""
    first, *others = pages
    nodes = (node for page in (first, *others) for node in _each_of(page.runs))
    return replace(first, runs=as_trees(sorted(nodes, key=lambda node: node.node_id)), next=None)


def _each_of(runs: Iterable[NodeCosts]) -> Iterator[NodeCosts]:
    for node in runs:
        yield replace(node, below=[], total=CostSum())
        yield from _each_of(node.below)


def day_text(today: DayCosts) -> str:
    """Return what was spent today, and how much of the limit that is."""
    words = f"Today ({today.day}, UTC): ${today.usd:.4f}"
    if today.limit_usd is None:
        words += ", without a daily limit"
    else:
        words += f" of ${today.limit_usd:.2f}"
    if today.allowed_usd:
        words += f" (${today.allowed_usd:.2f} of it allowed today)"
    if today.forecast_usd is not None and not today.is_reached:
        words += f"; at today's pace ${today.forecast_usd:.2f} by 00:00 UTC"
    if today.is_reached:
        words += ". The daily limit is reached: work waits for your approval (agiraph inbox --open)"
        words += " or for 00:00 UTC"
    return words
