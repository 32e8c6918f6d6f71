"""Retries: run a failed or partial node again, with its used-up limits renewed."""

from collections import Counter
from dataclasses import replace
from typing import Any

from agiraph.domain.chat import AGAIN, Turn
from agiraph.domain.errors import Conflict, Refused
from agiraph.domain.events.team import TeamResumed
from agiraph.domain.events.work import NodeAssigned
from agiraph.domain.ids import NodeId
from agiraph.domain.work import Budget, NodeStatus, StopReason, WorkNode
from agiraph.services.board import budgets, leases, timing
from agiraph.services.board.texts import subject_of
from agiraph.services.members import roster
from agiraph.services.triggers import definitions
from agiraph.store import nodes, spend, teams, threads
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

TRY_AGAIN = "[Runtime] You are given another try. Look at where you stand and go about it anew."
MORE = " You have more room: {added}."
CALLS = "calls of "
"""Prefix of the name of a limit on calls of one tool; the tool's name follows."""


def retry(tx: Tx, node_id: NodeId) -> WorkNode:
    """Put a failed or partial node back into its queue. It continues in the same thread.

    Each exhausted limit is raised so far that the node can use its original amount once more. The
    budgets of its ancestors still apply: if one of them is exhausted, the retry is refused.
    """
    node = NODES.get(tx, node_id, lock=True)
    if node.status not in (NodeStatus.FAILED, NodeStatus.PARTIAL):
        raise Conflict(
            f"{subject_of(node)!r} is {node.status}: only work that has failed or ended in part is "
            "tried again. For anything else, say what to do."
        )
    thread = threads.of_node(tx, node.id)
    budget, added = _renewed_budget(
        tx, node, [] if thread is None else threads.turns(tx, thread.id)
    )
    renewed: dict[str, Any] = {"worked_seconds": 0.0} if "seconds" in added else {}
    node = put_back(tx, node, added, text=TRY_AGAIN + more_room(added), budget=budget, **renewed)
    # After the move: an ancestor that refuses rolls everything back, and the check sees the new
    # budget.
    _check_ancestors(tx, node)
    return node


def more_room(added: dict[str, float]) -> str:
    """Return by how much each limit grew, as a sentence for the agent; empty if none did."""
    more = ", ".join(f"{amount:g} more {name}" for name, amount in added.items())
    return MORE.format(added=more) if more else ""


def put_back(
    tx: Tx, node: WorkNode, added: dict[str, float], *, text: str, **changes: Any
) -> WorkNode:
    """Put an ended node back into its queue, with this text at the end of its thread.

    The team becomes active again. The caller holds the node's row lock.
    """
    # Until now the last run's time followed from `ended_at`, which is cleared below.
    changes = {"worked_seconds": timing.worked_seconds(node), **changes}
    assignee = node.assignee_id
    if assignee is None:
        raise Refused(f"{subject_of(node)!r} belongs to nobody; assign it first.")
    # The agent may have left since: it was hired for this node.
    # The agent after the node, see `services/__init__.py`.
    roster.reinstate(tx, teams.lock(tx, assignee))
    node = nodes.move(
        tx,
        node,
        NodeStatus.ASSIGNED,
        attempt=node.attempt + 1,
        stop_reason=None,
        cancel_requested=False,
        ended_at=None,
        crashes=0,
        **changes,
    )
    if (thread := threads.of_node(tx, node.id)) is not None:
        leases.reopen(tx, thread.id, node, ref=f"{AGAIN}:{node.attempt}", text=text)
    if teams.TEAMS.get(tx, node.team_id).status in ("completed", "stopped"):
        teams.TEAMS.update(tx, node.team_id, status="active")
        tx.emit(node.team_id, TeamResumed())
        definitions.revive(tx, node.team_id)
    if node.is_goal:
        definitions.revive(tx, node.team_id, with_goal=True)
    tx.emit(node.team_id, NodeAssigned(node_id=node.id, agent_id=assignee, added=added))
    tx.wake(assignee, node.lane)
    return node


def _renewed_budget(tx: Tx, node: WorkNode, turns: list[Turn]) -> tuple[Budget, dict[str, float]]:
    """Return the budget of the next attempt, and by how much each limit grew."""
    budget, used = node.budget, spend.total(tx, node.id)
    replies = [t for t in turns if t.role == "assistant" and t.node_id == node.id]
    called = Counter(call.name for reply in replies for call in reply.calls)
    given, added, stop = dict(budget.given), dict[str, float](), node.stop_reason

    def renewed(name: str, limit: float, spent: float) -> float:
        again = given.setdefault(name, limit)
        added[name] = spent + again - limit
        return spent + again

    # The runtime keeps the last turn for a closing word; a node of one turn has no other turn.
    if len(replies) >= max(1, budget.turns - 1):
        spent = len(replies) + (1 if budget.is_single_turn else 0)
        budget = replace(budget, turns=int(renewed("turns", budget.turns, spent)))
    if budget.tokens is not None and (
        used.tokens >= budget.tokens or stop is StopReason.TOKENS_SPENT
    ):
        budget = replace(budget, tokens=int(renewed("tokens", budget.tokens, used.tokens)))
    if budget.usd is not None and (used.usd >= budget.usd or stop is StopReason.MONEY_SPENT):
        budget = replace(budget, usd=renewed("usd", budget.usd, used.usd))
    if budget.model_calls is not None and (
        used.calls >= budget.model_calls or stop is StopReason.CALLS_SPENT
    ):
        calls = renewed("model_calls", budget.model_calls, used.calls)
        budget = replace(budget, model_calls=int(calls))
    if budget.seconds is not None and _out_of_time(node):
        added["seconds"] = budget.seconds  # the caller resets worked_seconds; the limit stays
    limits = {
        tool: int(renewed(CALLS + tool, most, called[tool])) if called[tool] >= most else most
        for tool, most in budget.calls.items()
    }
    return replace(budget, calls=limits, given=given), added


def _out_of_time(node: WorkNode) -> bool:
    return node.stop_reason is StopReason.TIME_SPENT or timing.worked_seconds(node) >= (
        node.budget.seconds or 0.0
    )


def _check_ancestors(tx: Tx, node: WorkNode) -> None:
    """Refuse a retry that an ancestor's budget would end before its first model call."""
    spent = budgets.spent_limit(tx, node)
    if spent is None:
        return
    payer, reason = spent
    if payer.id == node.id:
        raise Refused(
            f"The budget of {subject_of(node)!r} is zero, so it cannot be retried: {reason.words}. "
            "Create a new task with a budget."
        )
    if reason is StopReason.TIME_SPENT:
        raise Refused(
            f"The time limit of {subject_of(payer)!r}, above {subject_of(node)!r}, is reached. "
            "Extend or retry that task first, or create a new task."
        )
    raise Refused(
        f"{subject_of(node)!r} is paid from the budget of {subject_of(payer)!r}, which is used up: "
        f"{reason.words}. Extend or retry {subject_of(payer)!r} first, or create a new task."
    )
