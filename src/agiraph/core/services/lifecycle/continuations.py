"""Continuations: a node goes on after its end or with more of its limits.

A failed or partial node is run again with its used-up limits renewed (`retry`), an agent or a
person gives a node more of its limits (`extend`), and a person changes those of the team's goal
(`change_goal_budget`); the work that a goal's budget pays for goes on with it (`resume_paid`).
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from agiraph.core.domain.chat import AGAIN, Turn
from agiraph.core.domain.costs import GoalBudget, LimitUse
from agiraph.core.domain.errors import Conflict, Refused
from agiraph.core.domain.events.team import TeamResumed
from agiraph.core.domain.events.work import NodeAssigned, NodeExtended
from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.work import AMOUNTS, Budget, Extension, NodeStatus, StopReason, WorkNode
from agiraph.core.services.board import budgets, leases, timing
from agiraph.core.services.board.texts import subject_of
from agiraph.core.services.members import roster
from agiraph.core.services.triggers import definitions, firing, team_heartbeat
from agiraph.core.store import nodes, spend, teams, threads
from agiraph.core.store.nodes import NODES
from agiraph.core.store.spend import Total
from agiraph.core.store.tx import Tx

TRY_AGAIN = "[Runtime] You are given another try. Look at where you stand and go about it anew."
MORE = " You have more room: {added}."
CALLS = "calls of "
"""Prefix of the name of a limit on calls of one tool; the tool's name follows."""
RAISED = "[Runtime] A limit ended your work; it was raised. Continue where you stopped."
_NO_MORE = Extension()
_UNITS = {"usd": "dollars"}
LimitName = Literal["usd", "tokens", "turns", "seconds"]
_SHOWN: tuple[LimitName, ...] = ("usd", "tokens", "turns", "seconds")
BUDGET_RAISED = "[Runtime] The budget that ended your work was raised. Continue where you stopped."
OF_PAYER = (StopReason.MONEY_SPENT, StopReason.TOKENS_SPENT, StopReason.CALLS_SPENT)
"""Limits that a goal has in common with the work that it pays for."""


def retry(tx: Tx, node_id: NodeId, *, by: str | None = None, text: str = TRY_AGAIN) -> WorkNode:
    """Put a node that ended without success back into its queue. It continues in the same thread,
    with this text at its end.

    Each exhausted limit is raised so far that the node can use its original amount once more. The
    budgets of its ancestors still apply: if one of them is exhausted, the retry is refused. `by` is
    the person who wants it.
    """
    node = NODES.get(tx, node_id, lock=True)
    if not node.status.is_final or node.status is NodeStatus.COMPLETED:
        raise Conflict(
            f"{subject_of(node)!r} is {node.status}: only work that was stopped, has failed or "
            "ended in part starts again. For anything else, say what to do."
        )
    thread = threads.of_node(tx, node.id)
    budget, added = _renewed_budget(
        tx, node, [] if thread is None else threads.turns(tx, thread.id)
    )
    renewed: dict[str, Any] = {"worked_seconds": 0.0} if "seconds" in added else {}
    told = text + more_room(added)
    node = put_back(tx, node, added, by=by, text=told, budget=budget, **renewed)
    # After the move: an ancestor that refuses rolls everything back, and the check sees the new
    # budget.
    _check_ancestors(tx, node)
    return node


def more_room(added: dict[str, float]) -> str:
    """Return by how much each limit grew, as a sentence for the agent; empty if none did."""
    more = ", ".join(f"{amount:g} more {name}" for name, amount in added.items())
    return MORE.format(added=more) if more else ""


def put_back(
    tx: Tx,
    node: WorkNode,
    added: dict[str, float],
    *,
    text: str,
    by: str | None = None,
    **changes: Any,
) -> WorkNode:
    """Put an ended node back into its queue, with this text at the end of its thread.

    The team becomes active again. The caller holds the node's row lock.
    """
    changes = not_ended(node) | changes
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
    tx.emit(node.team_id, NodeAssigned(node_id=node.id, agent_id=assignee, added=added, by=by))
    tx.wake(assignee, node.lane)
    return node


def not_ended(node: WorkNode) -> dict[str, Any]:
    """Return the columns of an ended node that goes on, without what its end wrote."""
    return {
        # Until now the last run's time followed from `ended_at`.
        "worked_seconds": timing.worked_seconds(node),
        "stop_reason": None,
        "cancel_requested": False,
        "canceller_id": None,
        "cancel_asked_at": None,
        "ended_at": None,
        "crashes": 0,
    }


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
        spent = len(replies) + budget.closing_turns
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


def extend(tx: Tx, node_id: NodeId, more: Extension, *, by: str) -> WorkNode:
    """Raise the limits of a node by these amounts.

    A node that a limit or a loop ended goes back into its queue and continues in its thread; if it
    was the goal, the team works again. Open work goes on and finds the new limits at its next
    yield point. A goal that has ended for another reason only gets the limits: it pays for cycles
    and triggers. `by` is the person or agent who extends it.
    """
    node = NODES.get(tx, node_id, lock=True)
    _check_node(tx, node)
    return _extend(tx, node, more, by=by)


def extend_for_person(tx: Tx, node_id: NodeId, more: Extension, *, by: str) -> WorkNode:
    """Raise the limits of a node as `extend` does, and those of the nodes that pay for it.

    An amount is also added to each limit above the node that is used up. If the node has no such
    limit of its own, and none above it is used up, the nearest limit above it is raised.
    """
    above = budgets.payers_above(tx, NODES.get(tx, node_id))
    # Outermost first, the order of the locks.
    payers = {payer.id: NODES.get(tx, payer.id, lock=True) for payer in above}
    node = NODES.get(tx, node_id, lock=True)
    _check_node(tx, node)
    own, changed = more, dict[NodeId, None]()
    for name in AMOUNTS:
        amount = getattr(more, name)
        raised = _payers_to_raise(tx, node, [*payers.values()], name) if amount else []
        for payer in raised:
            part = replace(_NO_MORE, **{name: amount})
            # The raised payer is kept: the next amount is added to its new limits.
            payers[payer.id], _ = budgets.raise_limits(tx, payer, part, by=by)
            changed[payer.id] = None
        if raised and getattr(node.budget, name) is None:
            own = replace(own, **{name: 0})
    node = _extend(tx, node, own, by=by, is_raised_above=own != more)
    for payer_id in changed:
        resume_paid(tx, payers[payer_id])
    return node


def _payers_to_raise(tx: Tx, node: WorkNode, payers: list[WorkNode], name: str) -> list[WorkNode]:
    """Return the payers of a node whose limit of this name an extension of the node raises."""
    limited = [payer for payer in payers if getattr(payer.budget, name) is not None]
    used_up = [p for p in limited if name in budgets.used_up(tx, p)]
    if used_up or getattr(node.budget, name) is not None:
        return used_up
    return limited[-1:]


def _extend(
    tx: Tx, node: WorkNode, more: Extension, *, by: str, is_raised_above: bool = False
) -> WorkNode:
    added: dict[str, float] = {}
    if more != _NO_MORE or not is_raised_above:
        node, added = budgets.raise_limits(tx, node, more, by=by)
    if not node.status.is_final:
        _check_payers(tx, node)
    elif _is_cut_off(node):
        _check_payers(tx, node)
        _check_turns(tx, node)
        node = go_on(tx, node, added)
    resume_paid(tx, node)
    return node


def go_on(tx: Tx, node: WorkNode, added: dict[str, float]) -> WorkNode:
    """Put a node that a limit ended back into its queue, with a notice of what was added."""
    # The notice names every raised limit: the thread knows only the one that ended the node.
    by_itself = node.stop_reason is StopReason.PARTLY_REACHED
    text = TRY_AGAIN if by_itself else RAISED
    return put_back(tx, node, added, text=text + more_room(added))


def can_go_on(tx: Tx, node: WorkNode) -> bool:
    """Whether a limit ended this node, and no limit keeps it from going on now."""
    reason = node.stop_reason if node.status.is_final else None
    if reason is None or not reason.is_limit:
        return False
    return budgets.spent_limit(tx, node) is None and _missing_turns(tx, node) <= 0


def _is_cut_off(node: WorkNode) -> bool:
    """Whether the node has ended before it was done, and may go on with more room."""
    reason = node.stop_reason if node.status.is_final else None
    return reason is StopReason.PARTLY_REACHED or (reason is not None and reason.is_cut_off)


def _check_node(tx: Tx, node: WorkNode) -> None:
    """Refuse a node that higher limits cannot help. The newest goal is never refused."""
    name, reason = subject_of(node), node.stop_reason
    if not node.is_work:
        raise Refused(f"{name!r} is a {node.lane}, not a task: it cannot be extended.")
    team = teams.TEAMS.get(tx, node.team_id)
    team.refuse_archived()
    if node.is_goal:
        newest = nodes.last_goal(tx, node.team_id)
        if newest is None or newest.id == node.id:
            return
        raise Refused(
            f"The team {team.name!r} has a newer goal, {subject_of(newest)!r}. Extend that one."
        )
    if node.status is NodeStatus.COMPLETED:
        raise Refused(
            f"{name!r} is completed, so there is nothing to extend. Give a new task that says "
            "what is missing."
        )
    if node.status is NodeStatus.CANCELLED:
        raise Refused(f"{name!r} was cancelled. Create a new task.")
    if node.status is NodeStatus.FAILED and not _is_cut_off(node):
        why = "" if reason is None else f": {reason.words}"
        raise Refused(
            f"{name!r} did not fail because of a limit{why}. Higher limits would not help. Retry "
            "it, or create a new task."
        )


def _check_payers(tx: Tx, node: WorkNode) -> None:
    """Refuse an extension that a limit would end before the next model call."""
    spent = budgets.spent_limit(tx, node)
    if spent is None:
        return
    payer, reason = spent
    amount = _unit(reason)
    if payer.id != node.id:
        raise Refused(
            f"{subject_of(payer)!r}, above {subject_of(node)!r}, has used up its own {amount}. "
            f"Extend {subject_of(payer)!r} by {amount} first."
        )
    raise Refused(f"{subject_of(node)!r} has also used up its {amount}: extend it by {amount} too.")


def _unit(reason: StopReason) -> str:
    name = budgets.LIMIT_OF[reason]
    return _UNITS.get(name, name)


def _missing_turns(tx: Tx, node: WorkNode) -> int:
    """Return how many turns an ended node lacks to go on: its last one is kept for its closing
    answer."""
    return _used_turns(tx, node) - max(1, node.budget.turns - 1) + 1


def _used_turns(tx: Tx, node: WorkNode) -> int:
    thread = threads.of_node(tx, node.id)
    turns = [] if thread is None else threads.turns(tx, thread.id)
    return sum(turn.role == "assistant" and turn.node_id == node.id for turn in turns)


def _check_turns(tx: Tx, node: WorkNode) -> None:
    """Refuse too few turns for an ended node."""
    short = _missing_turns(tx, node)
    if short > 0:
        raise Refused(
            f"{subject_of(node)!r} has used {_used_turns(tx, node)} of {node.budget.turns} turns, "
            "and keeps the last one for its closing answer: extend it by at least "
            f"{counted(short, 'turn')} more."
        )


def change_goal_budget(
    tx: Tx, team_id: TeamId, totals: Mapping[str, float], *, by: str
) -> WorkNode:
    """Give the team's last goal these limits in total, in any status of the goal; return the goal.

    A limit may be higher or lower than before, but not lower than what is used. A goal that a limit
    had ended goes on if a limit was raised and none is used up any more; so does the work that the
    goal pays for. `by` is the person who changes it.
    """
    goal, team = nodes.last_goal(tx, team_id), teams.TEAMS.get(tx, team_id)
    if goal is None:
        raise Refused(f"The team {team.name!r} has no goal yet; give the budget with its goal.")
    team.refuse_archived()
    goal = NODES.get(tx, goal.id, lock=True)
    used = _used_by_goal(tx, goal, spend.spent(tx, goal.id))
    for name, total in totals.items():
        if total < used[name]:
            raise Refused(
                f"The goal of {team.name!r} has used {_amount(name, used[name])} already. Give it "
                "at least that much."
            )
    goal, added = _with_limits(tx, goal, totals)
    if added:
        tx.emit(team_id, NodeExtended(node_id=goal.id, by=by, added=added))
    team_heartbeat.pay_from(tx, goal)
    return _goal_goes_on(tx, goal, {name: more for name, more in added.items() if more > 0})


def goal_budget(tx: Tx, team_id: TeamId) -> GoalBudget | None:
    """Return the limits of the team's last goal, and what is used of them; None without a goal."""
    goal = nodes.last_goal(tx, team_id)
    return None if goal is None else budget_of(tx, goal, spend.spent(tx, goal.id))


def budget_of(tx: Tx, goal: WorkNode, spent: Total) -> GoalBudget:
    """Return the limits of a goal that has spent this much, and what is used of them."""
    used = _used_by_goal(tx, goal, spent)
    return GoalBudget(
        node_id=goal.id,
        limits=[_limit_use(goal, name, used[name]) for name in _SHOWN],
        waits=_waits_for_limit(tx, goal),
    )


def _used_by_goal(tx: Tx, goal: WorkNode, spent: Total) -> dict[str, float]:
    """Return what the goal has used of each limit, as people see it."""
    turns = sum(line.calls for line in spend.of_node(tx, goal.id) if line.purpose == "work")
    seconds = timing.used_seconds(goal, tx.now)
    return {"usd": spent.usd, "tokens": spent.tokens, "turns": turns, "seconds": seconds}


def _limit_use(goal: WorkNode, name: LimitName, used: float) -> LimitUse:
    limit = getattr(goal.budget, name)
    left = None if limit is None else max(limit - used, 0)
    return LimitUse(name=name, limit=limit, used=used, left=left)


def _waits_for_limit(tx: Tx, goal: WorkNode) -> Literal["goal", "paid_work"] | None:
    """Return what waits for a higher limit: the goal, or work that it pays for; None: nothing."""
    reason = goal.stop_reason if goal.status.is_final else None
    if reason is not None and reason.is_limit and _is_newest(tx, goal):
        return "goal"
    if budgets.exhausted_above(tx, goal) is not None:
        return "goal" if not goal.status.is_final else "paid_work"
    return None


def _with_limits(
    tx: Tx, goal: WorkNode, totals: Mapping[str, float]
) -> tuple[WorkNode, dict[str, float]]:
    """Store these limits; return the goal, and by how much each limit that it had has changed."""
    budget, given = goal.budget, dict(goal.budget.given)
    chosen = budgets.chosen_limits(budget) | dict(totals)
    changes: dict[str, Any] = {}
    added: dict[str, float] = {}
    for name, total in totals.items():
        before: float | None = getattr(budget, name)
        changes[name] = total
        # A retry grants the first amount again: never more than the person allows now.
        given[name] = total if before is None else min(given.get(name, before), total)
        if before is not None and before != total:
            added[name] = total - before
    more = int(added.get("turns", 0))
    # Never lowered: calls of the work below the goal count, too, so they may exceed the turns.
    if more > 0 and budget.model_calls is not None:
        changes["model_calls"] = budget.model_calls + more
    if "turns" in totals and budget.model_calls is not None:
        # Stored with the chosen turns, because the next goal inherits both limits.
        chosen["model_calls"] = changes.get("model_calls", budget.model_calls)
    goal = replace(goal, budget=replace(budget, given=given, chosen=chosen, **changes))
    NODES.update(tx, goal.id, budget=goal.budget)
    return goal, added


def _goal_goes_on(tx: Tx, goal: WorkNode, raised: dict[str, float]) -> WorkNode:
    if not raised:
        return goal
    # An open goal finds the new limits at its next yield point.
    if _is_newest(tx, goal) and can_go_on(tx, goal):
        goal = go_on(tx, goal, raised)
    resume_paid(tx, goal)
    return goal


def _is_newest(tx: Tx, goal: WorkNode) -> bool:
    """Return whether the goal is still its agent's newest work. Without cycles it always is; with
    cycles, until the next cycle starts."""
    if teams.TEAMS.get(tx, goal.team_id).mode == "finite" or goal.assignee_id is None:
        return True
    newest = nodes.last_of(tx, goal.assignee_id)
    return newest is None or newest.id == goal.id


def _amount(name: str, used: float) -> str:
    assert name in AMOUNTS
    if name == "usd":
        return f"${math.ceil(used * 100) / 100:.2f}"
    return f"{math.ceil(used):,} {name}"


def resume_paid(tx: Tx, goal: WorkNode) -> None:
    """Resume the work that stopped because this goal's budget was used up.

    An agent's newest work goes back into its queue if such a limit ended it, and triggers that
    waited for the budget are due now. Nothing happens while the budget is used up, or if the team
    was stopped. Work whose agent has left a team that is full now stays ended. The caller holds the
    goal's row lock.
    """
    if budgets.exhausted_above(tx, goal) is not None:
        return
    if teams.TEAMS.get(tx, goal.team_id).status == "stopped":
        return
    for node in cut_off_by(tx, goal):
        node = NODES.get(tx, node.id, lock=True)
        if node.status not in (NodeStatus.FAILED, NodeStatus.PARTIAL):
            continue  # somebody else put it back before the lock
        # A limit of its own would end it again.
        if budgets.spent_limit(tx, node) is None and _is_member(tx, node):
            put_back(tx, node, {}, text=BUDGET_RAISED)
    firing.recheck_budget(tx, goal.id)


def _is_member(tx: Tx, node: WorkNode) -> bool:
    """Return whether the node's agent is a member of the team. One that had left comes back, unless
    the team is full: then its work stays ended, and the new budget is kept."""
    assert node.assignee_id is not None  # see `cut_off_by`
    try:
        roster.reinstate(tx, teams.lock(tx, node.assignee_id))
    except Refused:
        return False
    return True


def cut_off_by(tx: Tx, goal: WorkNode) -> list[WorkNode]:
    """Return the nodes that this goal's budget ended, if they are their agents' newest work."""
    found: list[WorkNode] = []
    for node in nodes.cut_off(tx, goal.id, OF_PAYER):
        newest = None if node.assignee_id is None else nodes.last_of(tx, node.assignee_id)
        if newest is not None and newest.id == node.id:
            found.append(node)
    return found
