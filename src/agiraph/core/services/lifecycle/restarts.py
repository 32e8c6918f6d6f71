"""Restarts: work that was stopped goes on where it was, with what was stopped below it: a task, or
all the work of a team. What was done is kept. One transaction each.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import Conflict, Refused
from agiraph.core.domain.events.work import NodeChanged
from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.board import planning, stages, texts
from agiraph.core.services.lifecycle import continuations, teams
from agiraph.core.store import dependencies, events, messages, nodes
from agiraph.core.store.nodes import NODES
from agiraph.core.store.stages import STAGES
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx

AGAIN = "[Runtime] This work was stopped. A person starts it again: go on where you were."
GOES_ON = " These tasks of yours go on too: {tasks}."
STAYS = " These stay cancelled; give them again if you still need them: {tasks}."


def resume(tx: Tx, team_id: TeamId, *, by: str) -> Team:
    """Let a paused team go on; start the work of one again that was stopped, or whose goal was."""
    team, goal = TEAMS.get(tx, team_id, lock=True), nodes.last_goal(tx, team_id)
    is_at_rest = team.status == "active" and not nodes.count_open(tx, team_id)
    if team.status != "stopped" and not (is_at_rest and goal is not None and goal.status.is_final):
        return teams.resume(tx, team_id)
    _refuse_stopping(nodes.still_open(tx, team_id))
    started = _put_back(tx, _stopped_with(tx, team), by=by)
    goal = nodes.last_goal(tx, team_id)
    # The goal had ended before the team was stopped, and perhaps that is why.
    if goal is not None and goal.status.is_final and goal.status is not NodeStatus.COMPLETED:
        if goal.stop_reason is None or not goal.stop_reason.is_limit:
            started.append(start(tx, goal.id, by=by))
        elif not started:
            raise Refused(
                f"The goal of {team.name!r} ended at a limit: {goal.stop_reason.words}. Extend it."
            )
    if not started and team.status == "stopped":
        raise Refused(
            f"Nothing of {team.name!r} was left undone when it stopped. Send it a message, or give "
            "it a new goal."
        )
    return TEAMS.get(tx, team_id)


def _stopped_with(tx: Tx, team: Team) -> list[WorkNode]:
    """Return what was stopped when the team was; nothing, if it was not."""
    since = events.last_at(tx, team.id, "team.stopped") if team.status == "stopped" else None
    ended = [] if since is None else nodes.ended_since(tx, team.id, since)
    return [node for node in ended if _is_stopped(node)]


def start(tx: Tx, node_id: NodeId, *, by: str) -> WorkNode:
    """Start work again that was stopped, has failed or ended in part, in its thread; stopped work
    with what was stopped below it. `by` is the person who wants it."""
    node = NODES.get(tx, node_id, lock=True)
    TEAMS.get(tx, node.team_id).refuse_archived()
    if node.status is not NodeStatus.CANCELLED:
        _refuse_stopping([node])
        return continuations.retry(tx, node_id, by=by)
    if not node.is_work or node.is_step:
        raise Refused(f"{texts.subject_of(node)!r} is a part of other work: start that one again.")
    since = node.cancel_asked_at or node.ended_at or tx.now
    if not with_below(tx, node, since=since, by=by, text=AGAIN):
        raise Refused(
            f"{texts.subject_of(node)!r} needs work that did not succeed: start that one again "
            "first."
        )
    return NODES.get(tx, node_id)


def with_below(
    tx: Tx, node: WorkNode, *, since: datetime, by: str, text: str, own_text: str = ""
) -> list[WorkNode]:
    """Put a stopped node back, and all below it that was stopped since then; return what goes on.

    `text` is what their agents are told, `own_text` what the agent of the node is told instead. The
    caller holds the node's row lock.
    """
    below = _stopped_below(tx, node, since)
    _refuse_stopping([node, *below])
    own = [node] if node.status is NodeStatus.CANCELLED else []
    told = {node.id: own_text} if own_text else {}
    return _put_back(tx, [*own, *filter(_is_stopped, below)], by=by, text=text, told=told)


def _refuse_stopping(found: Iterable[WorkNode]) -> None:
    if any(node.cancel_requested and not node.status.is_final for node in found):
        raise Conflict("That work stops at its next step. Try again in a moment.")


def _stopped_below(tx: Tx, node: WorkNode, since: datetime) -> list[WorkNode]:
    """Return the tasks below a node that ended with it or are about to, those above first."""
    found: list[WorkNode] = []
    for child in nodes.children(tx, node.id):
        is_stopping = not child.status.is_final and child.cancel_requested
        if is_stopping or (_is_stopped(child) and child.ended_at and child.ended_at >= since):
            found += [child, *_stopped_below(tx, child, since)]
    return found


def _is_stopped(node: WorkNode) -> bool:
    """Whether a node was stopped with the work of its team. What its agents gave up themselves,
    reviews and parts of a research were not."""
    is_part = node.given_up is not None or node.is_step
    return node.status is NodeStatus.CANCELLED and node.is_work and not is_part


def _put_back(
    tx: Tx,
    stopped: Sequence[WorkNode],
    *,
    by: str,
    text: str = AGAIN,
    told: dict[NodeId, str] | None = None,
) -> list[WorkNode]:
    """Put stopped nodes back, those above first; return those that can go on."""
    back = _startable(tx, stopped)
    for node in sorted(back.values(), key=lambda each: (each.depth, each.id)):
        node = NODES.get(tx, node.id, lock=True)
        own = [each for each in stopped if each.parent_id == node.id]
        listed = _listed(GOES_ON, (each for each in own if each.id in back))
        listed += _listed(STAYS, (each for each in own if each.id not in back))
        _start(tx, node, by=by, text=(told or {}).get(node.id, text) + listed)
    if back:
        teams.reactivate(tx, stopped[0].team_id)  # for those that only wait for others
        planning.assign_unowned(tx, stopped[0].team_id)
    return [*back.values()]


def _startable(tx: Tx, stopped: Sequence[WorkNode]) -> dict[NodeId, WorkNode]:
    """Return the nodes that need nothing that did not succeed, unless it goes on with them."""
    back = {node.id: node for node in stopped}
    needs = {node.id: dependencies.needs(tx, node.id) for node in stopped}

    def is_stuck(node: WorkNode) -> bool:
        unmet = (each.id for each in needs[node.id] if planning.is_unmet(each))
        return node.if_unmet != "go_on" and any(each not in back for each in unmet)

    while stuck := [node.id for node in back.values() if is_stuck(node)]:
        for node_id in stuck:
            del back[node_id]
    return back


def _start(tx: Tx, node: WorkNode, *, by: str, text: str) -> None:
    """Put a node into its queue, or among those that wait for others. The caller holds its lock.

    A message about its end that its creator has not read is out of date.
    """
    about = (m for m in messages.unseen(tx, node.creator_id) if m.node_id == node.id)
    messages.mark_seen(tx, [message.id for message in about if message.kind == "failure"])
    if node.assignee_id is not None and planning.is_ready(tx, node):
        continuations.retry(tx, node.id, by=by, text=text)
    else:
        nodes.move(tx, node, NodeStatus.PENDING, **continuations.not_ended(node))
        place = {"status": NodeStatus.PENDING.value, "assignee_id": node.assignee_id}
        tx.emit(node.team_id, NodeChanged(node_id=node.id, changed=place, by=by))
    stage = None if node.stage_id is None else STAGES.get(tx, node.stage_id, lock=True)
    if stage is not None and stage.status in ("broken", "timed_out"):
        stages.reopen(tx, stage)
        tx.emit(node.team_id, NodeChanged(node_id=node.id, changed={"stage_id": stage.id}))


def _listed(sentence: str, tasks: Iterable[WorkNode]) -> str:
    named = texts.join_limited([f"{texts.title_of(task)!r} ({task.id})" for task in tasks])
    return sentence.format(tasks=named) if named else ""
