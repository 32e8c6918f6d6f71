"""Budgets: limits on money, tokens, model calls and time, nested as the nodes are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from agiraph.domain.agents import Mode
from agiraph.domain.chat import Lease
from agiraph.domain.errors import Refused
from agiraph.domain.events.work import NodeExtended
from agiraph.domain.ids import NodeId
from agiraph.domain.work import (
    GOAL_SECONDS,
    GOAL_TURNS,
    UNPRICED_TOKENS,
    Budget,
    Extension,
    NodeStatus,
    StopReason,
    WorkNode,
)
from agiraph.services.board import timing
from agiraph.store import spend
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

DEEPEST = 64
"""Ancestors that are looked at: a bound for damaged rows that form a cycle."""


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
    """The limits of a run, as the rows have them: they may be raised while it runs."""

    budget: Budget
    envelopes: tuple[Envelope, ...]
    deadline: datetime | None


def limits_of_run(tx: Tx, node_id: NodeId) -> LimitsOfRun:
    """Return what the run of this node has to keep to now."""
    node = NODES.get(tx, node_id)
    left = seconds_left(tx, node)
    deadline = None if left is None else tx.now + timedelta(seconds=left)
    return LimitsOfRun(budget=node.budget, envelopes=envelopes(tx, node), deadline=deadline)


def envelopes(tx: Tx, node: WorkNode) -> tuple[Envelope, ...]:
    """Return the envelopes that a call of this node is paid from, outermost first.

    They are the limits of the node, of its ancestors and of the nodes that pay for these.
    """
    found = (Envelope.of(each) for each in _payers(tx, node))
    return tuple(envelope for envelope in found if envelope.has_limit)


def _payers(tx: Tx, node: WorkNode) -> list[WorkNode]:
    """Return the node and the nodes that its calls are paid from, outermost first."""
    found = [node]
    while (above := found[-1].parent_id or found[-1].payer_id) and len(found) < DEEPEST:
        found.append(NODES.get(tx, above))
    return found[::-1]


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
            used = node.worked_seconds
            if node.status is NodeStatus.RUNNING and node.claimed_at is not None:
                used += (tx.now - node.claimed_at).total_seconds()
            left.append(node.budget.seconds - used)
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
            f"{node.id} has no limit of its own on {' and '.join(unlimited)}, so there is nothing "
            "to raise. Leave that out."
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
