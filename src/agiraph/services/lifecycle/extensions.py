"""Extensions: give a node more of its limits, while it works or after a limit ended it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from agiraph.domain.agents import ARCHIVED
from agiraph.domain.costs import GoalBudget, LimitUse
from agiraph.domain.errors import Refused
from agiraph.domain.ids import NodeId, TeamId
from agiraph.domain.work import Extension, NodeStatus, StopReason, WorkNode
from agiraph.services.board import budgets, timing
from agiraph.services.lifecycle import retries
from agiraph.store import nodes, spend, teams, threads
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

GO_ON = "[Runtime] A limit ended your work; it was raised. Go on where you stopped."
_AMOUNT = {
    StopReason.TURNS_SPENT: "turns",
    StopReason.CALLS_SPENT: "turns",
    StopReason.TOKENS_SPENT: "tokens",
    StopReason.MONEY_SPENT: "usd",
    StopReason.TIME_SPENT: "seconds",
}
"""Which amount of an extension raises the limit that is used up."""


def extend(tx: Tx, node_id: NodeId, more: Extension, *, by: str) -> WorkNode:
    """Raise the limits of a node by these amounts.

    A node that a limit or a loop ended goes back into its queue and continues in its thread; if it
    was the goal, the team works again. Open work goes on and finds the new limits at its next
    yield point. `by` is the person or agent who extends it.
    """
    node = NODES.get(tx, node_id, lock=True)
    _check_node(tx, node)
    node, added = budgets.raise_limits(tx, node, more, by=by)
    _check_payers(tx, node)
    if not node.status.is_final:
        return node
    _check_turns(tx, node)
    # One limit of a hit node is told, all of them are raised: the thread goes on with a notice.
    return retries.put_back(tx, node, added, text=GO_ON + retries.more_room(added))


def raise_to(tx: Tx, node_id: NodeId, totals: Mapping[str, float], *, by: str) -> WorkNode:
    """Give a node these limits: turns, tokens, usd or seconds in total, none lower than before.

    A limit that the node did not have holds from its next run on. Otherwise this is `extend`.
    """
    node = NODES.get(tx, node_id, lock=True)
    _check_node(tx, node)
    used = spend.total(tx, node_id)
    seconds = timing.used_seconds(node, tx.now)
    spent = {"tokens": used.tokens, "usd": used.usd, "seconds": seconds}
    more: dict[str, float] = {}
    for name, total in totals.items():
        limit = getattr(node.budget, name)
        if total <= spent.get(name, 0):
            raise Refused(
                f"{node.id} has used {spent.get(name, 0):g} {name} already: give it more than that."
            )
        if limit is not None and total < limit:
            raise Refused(f"{node.id} has {limit:g} {name}, and limits are only raised.")
        if limit is None:
            changed: dict[str, Any] = {name: total}
            node = replace(node, budget=replace(node.budget, **changed))
        elif total > limit:
            more[name] = total - max(limit, spent.get(name, 0))
    NODES.update(tx, node.id, budget=node.budget)
    return extend(tx, node_id, Extension(**more), by=by) if more else node  # pyright: ignore[reportArgumentType]


def budget_of_goal(tx: Tx, team_id: TeamId) -> GoalBudget | None:
    """Return the limits of the team's last goal, and what is used of them; None without a goal."""
    goal = nodes.last_goal(tx, team_id)
    if goal is None:
        return None
    problem = ""
    try:
        _check_node(tx, goal)
    except Refused as error:
        problem = str(error)
    total, seconds = spend.spent(tx, goal.id), timing.used_seconds(goal, tx.now)
    turns = sum(line.calls for line in spend.of_node(tx, goal.id) if line.purpose == "work")
    limits = [
        _use(goal, "usd", total.usd),
        _use(goal, "tokens", total.tokens),
        _use(goal, "turns", turns),
        _use(goal, "seconds", round(seconds)),
    ]
    return GoalBudget(node_id=goal.id, limits=limits, can_raise=not problem, problem=problem)


def _use(
    goal: WorkNode, name: Literal["usd", "tokens", "turns", "seconds"], used: float
) -> LimitUse:
    limit = getattr(goal.budget, name)
    left = None if limit is None else max(limit - used, 0)
    return LimitUse(name=name, limit=limit, used=used, left=left)


def _check_node(tx: Tx, node: WorkNode) -> None:
    """Refuse a node that more room cannot help."""
    reason = node.stop_reason
    if node.lane != "work":
        raise Refused(f"{node.id} is a {node.lane}, not a task: it cannot be extended.")
    if node.status is NodeStatus.COMPLETED:
        raise Refused(
            f"{node.id} is completed, so there is nothing to extend. Give a new task that says "
            "what is missing."
        )
    if node.status is NodeStatus.CANCELLED:
        raise Refused(f"{node.id} was cancelled. Give the task anew.")
    if node.status is NodeStatus.FAILED and (reason is None or not reason.is_cut_off):
        raise Refused(
            f"{node.id} did not fail by a limit ({reason}), so more room would not help. Retry it, "
            "or give the task anew."
        )
    if (team := teams.TEAMS.get(tx, node.team_id)).status == "archived":
        raise Refused(ARCHIVED.format(team.name))
    goal = nodes.last_goal(tx, node.team_id) if node.is_goal else node
    if goal is not None and goal.id != node.id:
        raise Refused(f"The team of {node.id} has a newer goal, {goal.id}. Extend that one.")


def _check_payers(tx: Tx, node: WorkNode) -> None:
    """Refuse an extension that a limit would end before the next model call."""
    spent = budgets.spent_limit(tx, node)
    if spent is None:
        return
    payer, reason = spent
    amount = _AMOUNT[reason]
    if payer.id != node.id:
        raise Refused(
            f"{payer.id}, above {node.id}, has used up its own limit ({reason}). Extend {payer.id} "
            f"by {amount} first."
        )
    raise Refused(f"{node.id} has also used up its {amount} ({reason}): extend it by {amount} too.")


def _check_turns(tx: Tx, node: WorkNode) -> None:
    """Refuse too few turns for an ended node: the last one is kept for its closing answer."""
    thread = threads.of_node(tx, node.id)
    turns = [] if thread is None else threads.turns(tx, thread.id)
    used = sum(turn.role == "assistant" and turn.node_id == node.id for turn in turns)
    short = used - max(1, node.budget.turns - 1) + 1
    if short > 0:
        raise Refused(
            f"{node.id} has used {used} of {node.budget.turns} turns, and keeps the last one for "
            f"its closing answer: extend it by at least {short} turns more."
        )
