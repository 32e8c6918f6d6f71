"""Goal budget: the limits of a team's goal, what is used of them, and how a person changes them."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from agiraph.domain.agents import ARCHIVED
from agiraph.domain.costs import GoalBudget, LimitUse
from agiraph.domain.errors import Refused
from agiraph.domain.events.work import NodeExtended
from agiraph.domain.ids import TeamId
from agiraph.domain.work import AMOUNTS, WorkNode
from agiraph.services.board import budgets, timing
from agiraph.services.lifecycle import extensions, paid_work
from agiraph.services.triggers import team_heartbeat
from agiraph.store import nodes, spend, teams
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

LimitName = Literal["usd", "tokens", "turns", "seconds"]
_SHOWN: tuple[LimitName, ...] = ("usd", "tokens", "turns", "seconds")


def change(tx: Tx, team_id: TeamId, totals: Mapping[str, float], *, by: str) -> WorkNode:
    """Give the team's last goal these limits in total, in any status of the goal; return the goal.

    A limit may be higher or lower than before, but not lower than what is used. A goal that a limit
    had ended goes on if a limit was raised and none is used up any more; so does the work that the
    goal pays for. `by` is the person who changes it.
    """
    goal, team = nodes.last_goal(tx, team_id), teams.TEAMS.get(tx, team_id)
    if goal is None:
        raise Refused(f"The team {team.name!r} has no goal yet; give the budget with its goal.")
    if team.status == "archived":
        raise Refused(ARCHIVED.format(team.name))
    goal = NODES.get(tx, goal.id, lock=True)
    used = _used(tx, goal)
    for name, total in totals.items():
        if total < used[name]:
            raise Refused(
                f"The goal of {team.name!r} has used {_words(name, used[name])} already. Give it "
                "at least that much."
            )
    goal, added = _with_limits(tx, goal, totals)
    if added:
        tx.emit(team_id, NodeExtended(node_id=goal.id, by=by, added=added))
    team_heartbeat.pay_from(tx, goal)
    return _go_on(tx, goal, {name: more for name, more in added.items() if more > 0})


def of_team(tx: Tx, team_id: TeamId) -> GoalBudget | None:
    """Return the limits of the team's last goal, and what is used of them; None without a goal."""
    goal = nodes.last_goal(tx, team_id)
    if goal is None:
        return None
    used = _used(tx, goal)
    return GoalBudget(
        node_id=goal.id,
        limits=[_use(goal, name, used[name]) for name in _SHOWN],
        waits=_waits(tx, goal),
    )


def _used(tx: Tx, goal: WorkNode) -> dict[str, float]:
    """Return what the goal has used of each limit, as people see it."""
    total = spend.spent(tx, goal.id)
    turns = sum(line.calls for line in spend.of_node(tx, goal.id) if line.purpose == "work")
    seconds = timing.used_seconds(goal, tx.now)
    return {"usd": total.usd, "tokens": total.tokens, "turns": turns, "seconds": seconds}


def _use(goal: WorkNode, name: LimitName, used: float) -> LimitUse:
    limit = getattr(goal.budget, name)
    left = None if limit is None else max(limit - used, 0)
    return LimitUse(name=name, limit=limit, used=used, left=left)


def _waits(tx: Tx, goal: WorkNode) -> Literal["goal", "paid_work"] | None:
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


def _go_on(tx: Tx, goal: WorkNode, raised: dict[str, float]) -> WorkNode:
    if not raised:
        return goal
    # An open goal finds the new limits at its next yield point.
    if _is_newest(tx, goal) and extensions.can_go_on(tx, goal):
        goal = extensions.go_on(tx, goal, raised)
    paid_work.resume(tx, goal)
    return goal


def _is_newest(tx: Tx, goal: WorkNode) -> bool:
    """Return whether the goal is still its agent's newest work. Without cycles it always is; with
    cycles, until the next cycle starts."""
    if teams.TEAMS.get(tx, goal.team_id).mode == "finite" or goal.assignee_id is None:
        return True
    newest = nodes.last_of(tx, goal.assignee_id)
    return newest is None or newest.id == goal.id


def _words(name: str, used: float) -> str:
    assert name in AMOUNTS
    if name == "usd":
        return f"${math.ceil(used * 100) / 100:.2f}"
    return f"{math.ceil(used):,} {name}"
