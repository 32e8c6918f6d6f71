"""Budgets: limits on money, tokens, model calls and time, nested as the nodes are, and how much of
them is used, in words for an agent."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from agiraph.core.domain.agents import Mode
from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events.work import NodeExtended
from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import (
    AMOUNTS,
    GOAL_SECONDS,
    GOAL_TURNS,
    UNPRICED_TOKENS,
    Budget,
    Extension,
    StopReason,
    WorkNode,
)
from agiraph.core.services.board import timing
from agiraph.core.services.board.texts import subject_of
from agiraph.core.store import nodes, spend
from agiraph.core.store.nodes import NODES
from agiraph.core.store.rows import to_json
from agiraph.core.store.spend import Total
from agiraph.core.store.tx import Tx

LIMIT_OF = {
    StopReason.TURNS_SPENT: "turns",
    StopReason.CALLS_SPENT: "turns",
    StopReason.TOKENS_SPENT: "tokens",
    StopReason.MONEY_SPENT: "usd",
    StopReason.TIME_SPENT: "seconds",
}
"""Which amount of an extension raises the limit that is used up."""
_DEFAULTS = {"seconds": GOAL_SECONDS, "tokens": UNPRICED_TOKENS}
"""Limits that a goal gets if nobody chose one, see `for_goal`."""
DEEPEST = 64
"""Ancestors that are looked at: a bound for damaged rows that form a cycle."""
STEP = 10
"""Percent by which the share in `spent_share` grows. A model that looks again while it waits must
find the same answer, or it would be taken for news."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Limits on what a node and everything below it may cost together; None: no limit."""

    node_id: NodeId
    tokens: int | None
    usd: float | None
    calls: int | None

    @classmethod
    def of(cls, node: WorkNode) -> "Envelope":
        budget = node.budget
        return cls(node_id=node.id, tokens=budget.tokens, usd=budget.usd, calls=budget.model_calls)

    @property
    def has_limit(self) -> bool:
        return (self.tokens, self.usd, self.calls) != (None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsOfRun:
    """The limits of a run, as the rows have them: they may be changed while it runs."""

    budget: Budget
    envelopes: tuple[Envelope, ...]
    deadline: datetime | None
    outermost: str
    """The budget of the outermost payer, as `nodes.news` returns it. A person can set, raise and
    lower its limits at any time; those of other nodes are only raised."""


def limits_of_run(tx: Tx, node: WorkNode) -> LimitsOfRun:
    """Return what the run of this node has to keep to now."""
    payers, left = _payers(tx, node), seconds_left(tx, node)
    return LimitsOfRun(
        budget=node.budget,
        envelopes=_limited(payers),
        deadline=None if left is None else tx.now + timedelta(seconds=left),
        outermost=to_json(payers[0].budget),
    )


def current_limits(tx: Tx, node_id: NodeId, outermost: str | None = None) -> LimitsOfRun:
    """Read the node again, and return what its run has to keep to now.

    `outermost` is the budget of the outermost payer as it is stored, if the caller has read it: an
    earlier release may have written the same budget in another way.
    """
    limits = limits_of_run(tx, NODES.get(tx, node_id))
    return replace(limits, outermost=outermost or limits.outermost)


def envelopes(tx: Tx, node: WorkNode) -> tuple[Envelope, ...]:
    """Return the envelopes that a call of this node is paid from, outermost first.

    They are the limits of the node, of its ancestors and of the nodes that pay for these.
    """
    return _limited(_payers(tx, node))


def _limited(payers: Sequence[WorkNode]) -> tuple[Envelope, ...]:
    found = (Envelope.of(each) for each in payers)
    return tuple(envelope for envelope in found if envelope.has_limit)


def _payers(tx: Tx, node: WorkNode) -> list[WorkNode]:
    """Return the node and the nodes that its calls are paid from, outermost first."""
    found = [node]
    while (above := found[-1].parent_id or found[-1].payer_id) and len(found) < DEEPEST:
        found.append(NODES.get(tx, above))
    return found[::-1]


def payers_above(tx: Tx, node: WorkNode) -> list[WorkNode]:
    """Return the other nodes that the calls of this node are paid from, outermost first."""
    return _payers(tx, node)[:-1]


def is_paid_by_goal(tx: Tx, node: WorkNode) -> bool:
    """Return whether the outermost payer of this node is a goal, and not work that somebody asked
    for beside it."""
    return _payers(tx, node)[0].is_goal


def used_up(tx: Tx, node: WorkNode) -> set[str]:
    """Return the names of the node's limits that are used up, of money, tokens, calls and time."""
    used, envelope = spend.total(tx, node.id), Envelope.of(node)
    names = {
        LIMIT_OF[reason]
        for single in (
            replace(envelope, tokens=None, usd=None),
            replace(envelope, calls=None, usd=None),
            replace(envelope, calls=None, tokens=None),
        )
        if (reason := exhausted_limit(single, used)) is not None
    }
    limit = node.budget.seconds
    is_late = limit is not None and timing.used_seconds(node, tx.now) >= limit
    return names | {"seconds"} if is_late else names


def share(tx: Tx, parent: WorkNode, *, turns: int | None = None) -> Budget:
    """Return a child's budget: half of what its parent has left of each limit, and all its time.

    Time is not halved, because parent and child may work at the same time.
    """
    budget = parent.budget
    used = spend.total(tx, parent.id)

    def half(limit: float | None, spent: float) -> float | None:
        return None if limit is None else max((limit - spent) / 2, 0.0)

    seconds = seconds_left(tx, parent)
    tokens, calls = half(budget.tokens, used.tokens), half(budget.model_calls, used.calls)
    return Budget(
        turns=turns or Budget().turns,
        tokens=None if tokens is None else int(tokens),
        usd=half(budget.usd, used.usd),
        model_calls=None if calls is None else int(calls),
        seconds=None if seconds is None else max(seconds, 0.0),
        given={} if turns is None else {"turns": turns},
    )


def for_next_goal(tx: Tx, team_id: TeamId, chosen: Mapping[str, Any]) -> Budget:
    """Return the limits of a team's next goal: those that a person chose, and of all others as much
    as was chosen for its last goal, without what retries and extensions added; with it, if an
    earlier release stored that goal. Nothing of them is used yet.

    A default of the last goal is not kept, because `for_goal` sets it again where it is needed.
    """
    last = nodes.last_goal(tx, team_id)
    before = Budget(turns=GOAL_TURNS) if last is None else last.budget
    first = {} if before.chosen is None else before.given | before.chosen
    limits: dict[str, Any] = {n: first.get(n, now) for n, now in _current(before).items()}
    for name in ("turns", "tokens", "model_calls"):
        limits[name] = None if limits[name] is None else int(limits[name])
    kept = {n: limit for n, limit in limits.items() if limit != _DEFAULTS.get(n)}
    return Budget(**(kept | dict(chosen)))


def chosen_limits(budget: Budget) -> dict[str, float]:
    """Return the limits that a person has set since the goal started. If that was not recorded,
    return all limits that the goal has now."""
    if budget.chosen is not None:
        return budget.chosen
    return {name: limit for name, limit in _current(budget).items() if limit is not None}


def _current(budget: Budget) -> dict[str, float | None]:
    return {name: getattr(budget, name) for name in (*AMOUNTS, "model_calls")}


def for_goal(budget: Budget | None, *, mode: Mode, is_priced: bool) -> Budget:
    """Return the limits of a goal that a person gave: those they chose, and the defaults."""
    chosen = budget or Budget(turns=GOAL_TURNS)
    if chosen.seconds is None and mode == "finite":
        chosen = replace(chosen, seconds=GOAL_SECONDS)
    if chosen.tokens is None and not is_priced:
        chosen = replace(chosen, tokens=UNPRICED_TOKENS)
    return chosen


def seconds_left(tx: Tx, node: WorkNode) -> float | None:
    """Return how long this node may still work: by its time limit and by those of its ancestors.

    None: no limit. Time a node spends waiting for people or teammates does not count.
    """
    left: list[float] = []
    for _ in range(DEEPEST):
        if node.budget.seconds is not None:
            left.append(node.budget.seconds - timing.used_seconds(node, tx.now))
        if node.parent_id is None:
            break
        node = NODES.get(tx, node.parent_id)
    return min(left, default=None)


def check_envelopes(tx: Tx, lease: Lease, paid_from: Sequence[Envelope]) -> StopReason | None:
    """Return why no further call may be made, if an envelope is spent or reserved for other calls.

    Locks the envelopes' nodes, outermost first: of two runners that want the last dollar one waits,
    and sees the other's reservation.
    """
    for envelope in paid_from:
        # All runners lock from the outside in, so two of them cannot hold one lock each
        # and wait for the other's.
        # The row's limits, not those that the run began with: they may have been raised since.
        current = Envelope.of(NODES.get(tx, envelope.node_id, lock=True))
        if reason := exhausted_limit(
            current, spend.total(tx, envelope.node_id, apart_from=lease.thread_id)
        ):
            return reason
    return None


def exhausted_above(tx: Tx, node: WorkNode) -> StopReason | None:
    """Return which limit of this node or of its payers is used up, if one is. Locks nothing."""
    found = (exhausted_limit(each, spend.total(tx, each.node_id)) for each in envelopes(tx, node))
    return next(filter(None, found), None)


def can_be_raised(tx: Tx, node: WorkNode) -> bool:
    """Return whether somebody can still raise each limit of this node and its payers that is used
    up: not that of an earlier goal, nor of work that ended for another reason."""
    return all(
        _takes_more(tx, payer)
        for payer in _payers(tx, node)
        if exhausted_limit(Envelope.of(payer), spend.total(tx, payer.id)) is not None
    )


def _takes_more(tx: Tx, node: WorkNode) -> bool:
    if node.is_goal:
        newest = nodes.last_goal(tx, node.team_id)
        return newest is None or newest.id == node.id
    reason = node.stop_reason
    return not node.status.is_final or (reason is not None and reason.is_cut_off)


def exhausted_limit(envelope: Envelope, used: spend.Total) -> StopReason | None:
    """Return which limit of an envelope is used up, if one is."""
    if envelope.calls is not None and used.calls >= envelope.calls:
        return StopReason.CALLS_SPENT
    if envelope.tokens is not None and used.tokens >= envelope.tokens:
        return StopReason.TOKENS_SPENT
    if envelope.usd is not None and used.usd >= envelope.usd:
        return StopReason.MONEY_SPENT
    return None


def raise_limits(
    tx: Tx, node: WorkNode, more: Extension, *, by: str
) -> tuple[WorkNode, dict[str, float]]:
    """Give a node more of its limits, in any status; return it, and by how much each limit grew.

    Each amount is new room: it is added to what is used if that exceeds the limit. The caller holds
    the node's row lock.
    """
    _check_amounts(node, more)
    budget, used, given = node.budget, spend.total(tx, node.id), dict(node.budget.given)
    changes: dict[str, Any] = {}

    def add(name: str, amount: float, spent: float = 0.0) -> None:
        limit = getattr(budget, name)
        if amount and limit is not None:
            changes[name] = max(limit, spent) + amount
            # Chosen by somebody now, so that no default lowers it.
            given.setdefault(name, limit)

    add("turns", more.turns)
    add("model_calls", more.turns, used.calls)
    add("tokens", more.tokens, used.tokens)
    add("usd", more.usd, used.usd)
    add("seconds", more.seconds, timing.used_seconds(node, tx.now))
    added = {name: limit - getattr(budget, name) for name, limit in changes.items()}
    node = replace(node, budget=replace(budget, given=given, **changes))
    NODES.update(tx, node.id, budget=node.budget)
    tx.emit(node.team_id, NodeExtended(node_id=node.id, by=by, added=added))
    return node, added


def _check_amounts(node: WorkNode, more: Extension) -> None:
    amounts = {name: getattr(more, name) for name in ("turns", "tokens", "usd", "seconds")}
    wrong = [name for name, amount in amounts.items() if not 0 <= amount < float("inf")]
    if wrong:
        raise Refused(f"{' and '.join(wrong)} must be numbers above zero: limits are only raised.")
    chosen = [name for name, amount in amounts.items() if amount]
    if not chosen:
        raise Refused("Say how much more to give: turns, tokens, usd or seconds, above zero.")
    unlimited = [name for name in chosen if getattr(node.budget, name) is None]
    if unlimited:
        raise Refused(
            f"{subject_of(node)!r} has no limit of its own on {' and '.join(unlimited)}, so there "
            "is nothing to raise. Leave that out."
        )


def spent_limit(tx: Tx, node: WorkNode) -> tuple[WorkNode, StopReason] | None:
    """Return the outermost of the node and its payers that has a limit used up, and which one."""
    for payer in _payers(tx, node):
        reason = exhausted_limit(Envelope.of(payer), spend.total(tx, payer.id))
        if reason is not None:
            return payer, reason
        # Time counts for children, but not for work that is only paid from the node.
        left = seconds_left(tx, payer)
        if left is not None and left <= 0 and _is_above(tx, payer, node):
            return payer, StopReason.TIME_SPENT
    return None


def _is_above(tx: Tx, upper: WorkNode, node: WorkNode) -> bool:
    for _ in range(DEEPEST):
        if node.id == upper.id:
            return True
        if node.parent_id is None:
            return False
        node = NODES.get(tx, node.parent_id)
    return False


def spent_line(tx: Tx, node: WorkNode) -> str:
    """Return what the node that pays for this one has spent, and of how much."""
    limits, used = _paid(tx, node)
    money = " (no limit)" if limits.usd is None else f" of ${limits.usd:.2f}"
    parts = [f"${used.usd:.2f}{money}"]
    if limits.tokens is not None:
        parts.append(f"{used.tokens:,} of {limits.tokens:,} tokens")
    if limits.model_calls is not None:
        parts.append(f"{used.calls:,} of {limits.model_calls:,} model calls")
    left = seconds_left(tx, node)
    time = "" if left is None else f" Working time left: {_hours(left)}."
    return f"Spent so far: {', '.join(parts)}. You have {counted(node.budget.turns, 'turn')}.{time}"


def spent_share(tx: Tx, node: WorkNode) -> str:
    """Return roughly which share is spent of the limit that is used most; empty without a limit."""
    limits, used = _paid(tx, node)
    shares: dict[str, float] = {}
    if limits.usd:
        shares[f"${limits.usd:.2f}"] = used.usd / limits.usd
    if limits.tokens:
        shares[f"{limits.tokens:,} tokens"] = used.tokens / limits.tokens
    if not shares:
        return ""
    what, share = max(shares.items(), key=lambda each: each[1])
    return f"Spent: {min(int(share * 100) // STEP * STEP, 100)} % or a little more of {what}."


def _paid(tx: Tx, node: WorkNode) -> tuple[Budget, Total]:
    """Return the limits of the outermost node that pays for this one, and what it has spent."""
    paid_from = envelopes(tx, node)
    payer = NODES.get(tx, paid_from[0].node_id) if paid_from else node
    return payer.budget, spend.total(tx, payer.id)


def _hours(seconds: float) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{max(seconds, 0) / 60:.0f} minutes"
