"""Budgets: limits on money, tokens, model calls and time, nested as the nodes are."""

from collections.abc import Sequence
from dataclasses import dataclass

from agiraph.domain.chat import Lease
from agiraph.domain.ids import NodeId
from agiraph.domain.work import Budget, NodeStatus, StopReason, WorkNode
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


def envelopes(tx: Tx, node: WorkNode) -> tuple[Envelope, ...]:
    """Return the envelopes that a call of this node is paid from, outermost first.

    They are the limits of the node, of its ancestors and of the nodes that pay for these.
    """
    found: list[Envelope] = []
    for _ in range(DEEPEST):
        budget = node.budget
        envelope = Envelope(
            node_id=node.id, tokens=budget.tokens, usd=budget.usd, calls=budget.model_calls
        )
        if (envelope.tokens, envelope.usd, envelope.calls) != (None, None, None):
            found.append(envelope)
        above = node.parent_id or node.payer_id
        if above is None:
            break
        node = NODES.get(tx, above)
    return tuple(reversed(found))


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
        NODES.get(tx, envelope.node_id, lock=True)
        if reason := exhausted_limit(
            envelope, spend.total(tx, envelope.node_id, apart_from=lease.thread_id)
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
