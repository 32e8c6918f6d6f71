"""Spending: how much of its limits a node has used, in words for its agent."""

from agiraph.domain.plurals import counted
from agiraph.domain.work import Budget, WorkNode
from agiraph.services.board import budgets
from agiraph.store import spend
from agiraph.store.nodes import NODES
from agiraph.store.spend import Total
from agiraph.store.tx import Tx

STEP = 10
"""Percent by which the share in `as_share` grows. A model that looks again while it waits must find
the same answer, or it would be taken for news."""


def as_line(tx: Tx, node: WorkNode) -> str:
    """Return what the node that pays for this one has spent, and of how much."""
    limits, used = _paid(tx, node)
    money = " (no limit)" if limits.usd is None else f" of ${limits.usd:.2f}"
    parts = [f"${used.usd:.2f}{money}"]
    if limits.tokens is not None:
        parts.append(f"{used.tokens:,} of {limits.tokens:,} tokens")
    if limits.model_calls is not None:
        parts.append(f"{used.calls:,} of {limits.model_calls:,} model calls")
    left = budgets.seconds_left(tx, node)
    time = "" if left is None else f" Working time left: {_hours(left)}."
    return f"Spent so far: {', '.join(parts)}. You have {counted(node.budget.turns, 'turn')}.{time}"


def as_share(tx: Tx, node: WorkNode) -> str:
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
    paid_from = budgets.envelopes(tx, node)
    payer = NODES.get(tx, paid_from[0].node_id) if paid_from else node
    return payer.budget, spend.total(tx, payer.id)


def _hours(seconds: float) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{max(seconds, 0) / 60:.0f} minutes"
