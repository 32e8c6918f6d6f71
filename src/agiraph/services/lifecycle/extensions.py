"""Extensions: give a node more of its limits, while it works or after a limit ended it."""

from dataclasses import replace

from agiraph.domain.agents import ARCHIVED
from agiraph.domain.errors import Refused
from agiraph.domain.ids import NodeId
from agiraph.domain.plurals import counted
from agiraph.domain.work import AMOUNTS, Extension, NodeStatus, StopReason, WorkNode
from agiraph.services.board import budgets
from agiraph.services.board.texts import subject_of
from agiraph.services.lifecycle import paid_work, retries
from agiraph.store import nodes, teams, threads
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

GO_ON = "[Runtime] A limit ended your work; it was raised. Continue where you stopped."
_NO_MORE = Extension()
_UNITS = {"usd": "dollars"}


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
        paid_work.resume(tx, payers[payer_id])
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
    paid_work.resume(tx, node)
    return node


def go_on(tx: Tx, node: WorkNode, added: dict[str, float]) -> WorkNode:
    """Put a node that a limit ended back into its queue, with a notice of what was added."""
    # The notice names every raised limit: the thread knows only the one that ended the node.
    by_itself = node.stop_reason is StopReason.PARTLY_REACHED
    text = retries.TRY_AGAIN if by_itself else GO_ON
    return retries.put_back(tx, node, added, text=text + retries.more_room(added))


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
    if (team := teams.TEAMS.get(tx, node.team_id)).status == "archived":
        raise Refused(ARCHIVED.format(team.name))
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
