"""Paid work: the work that a goal's budget pays for besides the goal, resumed when it is raised."""

from agiraph.domain.errors import Refused
from agiraph.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.services.board import budgets
from agiraph.services.lifecycle import retries
from agiraph.services.members import roster
from agiraph.services.triggers import firing
from agiraph.store import nodes, teams
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

GO_ON = "[Runtime] The budget that ended your work was raised. Continue where you stopped."
OF_PAYER = (StopReason.MONEY_SPENT, StopReason.TOKENS_SPENT, StopReason.CALLS_SPENT)
"""Limits that a goal has in common with the work that it pays for."""


def resume(tx: Tx, goal: WorkNode) -> None:
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
    for node in waiting(tx, goal):
        node = NODES.get(tx, node.id, lock=True)
        if node.status not in (NodeStatus.FAILED, NodeStatus.PARTIAL):
            continue  # somebody else put it back before the lock
        # A limit of its own would end it again.
        if budgets.spent_limit(tx, node) is None and _is_member(tx, node):
            retries.put_back(tx, node, {}, text=GO_ON)
    firing.recheck_budget(tx, goal.id)


def _is_member(tx: Tx, node: WorkNode) -> bool:
    """Return whether the node's agent is a member of the team. One that had left comes back, unless
    the team is full: then its work stays ended, and the new budget is kept."""
    assert node.assignee_id is not None  # see `waiting`
    try:
        roster.reinstate(tx, teams.lock(tx, node.assignee_id))
    except Refused:
        return False
    return True


def waiting(tx: Tx, goal: WorkNode) -> list[WorkNode]:
    """Return the nodes that this goal's budget ended, if they are their agents' newest work."""
    found: list[WorkNode] = []
    for node in nodes.cut_off(tx, goal.id, OF_PAYER):
        newest = None if node.assignee_id is None else nodes.last_of(tx, node.assignee_id)
        if newest is not None and newest.id == node.id:
            found.append(node)
    return found
