"""Endings: end a node, report the end, and start what depended on it. One transaction each.

A node's end, the answers to all who waited for it, the report to its creator and the start of its
dependents commit together. After a crash either all of that has happened or none of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.events.work import (
    NodeCancelled,
    NodeCompleted,
    NodeFailed,
    NodePartial,
    NodeWaiting,
)
from agiraph.core.domain.ids import SYSTEM, NodeId, TeamId
from agiraph.core.domain.messages import ASKS_FOR_WORK, MAX_HOPS, Draft
from agiraph.core.domain.outcomes import Failed, Finished
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.stages import Stage
from agiraph.core.domain.text import fence
from agiraph.core.domain.text.similarity import is_repetition
from agiraph.core.domain.value import changed
from agiraph.core.domain.work import NodeStatus, StopReason, WaitingOn, WorkNode, told_person
from agiraph.core.services.board import (
    labels,
    leases,
    planning,
    requests,
    stages,
    texts,
    unfinished,
    waiting,
)
from agiraph.core.services.board.feature_verbs import find_verbs, verbs_of
from agiraph.core.services.lifecycle import spoken_questions
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.services.triggers import definitions, due, firing
from agiraph.core.store import dependencies, messages, nodes, teams, threads, triggers, waits
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS
from agiraph.core.store.tx import Tx


def end_node(tx: Tx, lease: Lease, outcome: Finished | Failed) -> WorkNode:
    """End the node with this outcome, report it, and turn unread mail into the next work."""
    threads.check_lease(tx, lease)
    # Mail to this agent takes the same lock: it arrives before this end, and becomes work below, or
    # after it, and finds an idle agent.
    agent = teams.lock(tx, lease.agent_id)
    node = NODES.get(tx, lease.node_id, lock=True)
    if outcome.result:
        result = fence.to_store(outcome.result)
        outcome = replace(outcome, result=_with_remark(tx, node, result))
    status, text, doubts = _as_stored(node, outcome)
    node = nodes.move(
        tx,
        node,
        status,
        result=outcome.result,
        stop_reason=outcome.reason,
        manifest=outcome.manifest,
        doubts=doubts,
        ended_at=tx.now,
        owner=None,
    )
    _close_thread(tx, node)
    requests.close_all(tx, node.id)
    ended = _EVENTS[status](
        node_id=node.id, reason=outcome.reason, result=text, doubts=list(doubts) or None
    )
    tx.emit(node.team_id, ended)
    if not _children_run_on(node):
        _cancel_children(tx, node)
    _notify_waiters(tx, node, text)
    _turn_late_mail_into_work(tx, agent, node.id)
    spoken_questions.release_unheard(tx, agent.id)
    _start_if_idle(tx, agent, node)
    # After the late mail: an agent that just got new work stays.
    roster.retire(tx, agent)
    planning.assign_unowned(tx, node.team_id)
    unfinished.end_wait_for_tasks(tx, node)
    tx.wake(agent.id, node.lane)
    return node


_EVENTS = {
    NodeStatus.COMPLETED: NodeCompleted,
    NodeStatus.PARTIAL: NodePartial,
    NodeStatus.FAILED: NodeFailed,
}


_BY_ITS_WORD = {
    StopReason.PARTLY_REACHED: NodeStatus.PARTIAL,
    StopReason.NOT_REACHED: NodeStatus.FAILED,
}
"""The status of work whose agent says that it was not reached."""


def _with_remark(tx: Tx, node: WorkNode, result: str) -> str:
    """Return the result; one for a person with the remarks of features."""
    if not node.is_work or not is_person(node.creator_id):
        return result
    remarks = [verbs.remark(tx, node) for verbs in find_verbs()]
    return "\n\n".join([result, *filter(None, remarks)])


def _children_run_on(node: WorkNode) -> bool:
    """Whether the open children of a node that has ended go on.

    Those of a completed node run on in the background, those of a failed one have no reader. A
    partial node may be extended and read them. Turns are its own, so its children still have room;
    every other limit counts for them too, and a node that goes round in circles may have given
    its children nonsense.
    """
    if node.status is NodeStatus.PARTIAL:
        return node.stop_reason is StopReason.TURNS_SPENT
    return node.status is NodeStatus.COMPLETED


def _as_stored(
    node: WorkNode, outcome: Finished | Failed
) -> tuple[NodeStatus, str, tuple[Doubt, ...]]:
    """Return the final status, and text and doubts cut to the length that a message may have.

    A model or a program wrote them. An end must never be refused because of their length.
    """
    match outcome:
        case Finished(result, reason, doubts=doubts):
            status = _BY_ITS_WORD.get(reason, NodeStatus.COMPLETED)
            return status, texts.fit_message(result), texts.fit_doubts(doubts)
        case Failed(reason, detail, result, manifest):
            shows_something = bool(result or manifest or node.checkpoint)
            if node.is_work and reason.is_cut_off and shows_something:
                so_far = texts.so_far(detail, result or node.checkpoint)
                return NodeStatus.PARTIAL, texts.fit_message(so_far), ()
            said = texts.so_far(detail, result) if reason is StopReason.SILENT else detail
            return NodeStatus.FAILED, texts.fit_message(said), ()


def cancel(tx: Tx, node_id: NodeId, *, by: str | None = None) -> None:
    """Cancel a node and all below it. A running node stops at its next yield point.

    `by` is the person or agent who wants it; None: the runtime, because nothing needs it any more.
    """
    node = NODES.get(tx, node_id, lock=True)
    _cancel_children(tx, node, by=by)  # also of an ended node: its background work may still run
    if node.status.is_final:
        return
    if node.cancel_asked_at is None:
        node = changed(node, canceller_id=by, cancel_asked_at=tx.now)
    if node.status is NodeStatus.RUNNING and node.owner is not None:
        assert node.assignee_id is not None
        # The row, not the signal below, is the request: every later claim and yield point reads it.
        NODES.update(tx, node_id, cancel_requested=True, **_asked(node))
        tx.cancel(node.assignee_id, node.lane)
        # If the runner is dead, nobody hears the cancel. The wake makes another runner claim the
        # node, and the claim ends it.
        return tx.wake(node.assignee_id, node.lane)
    end_cancelled(tx, node)


def _asked(node: WorkNode) -> dict[str, Any]:
    """Return who has stopped a node and when, as columns."""
    return {"canceller_id": node.canceller_id, "cancel_asked_at": node.cancel_asked_at}


def stop(tx: Tx, node_id: NodeId, *, by: str, is_said: bool = False) -> bool:
    """Cancel work because the person `by` wants it. With the team's goal, what the team does by
    itself for it ends until there is a new goal; return whether it does.

    `is_said`: the person has said so to an agent; then it ends also with a cycle for the goal.
    """
    cancel(tx, node_id, by=by)
    node = NODES.get(tx, node_id)
    goal = nodes.last_goal(tx, node.team_id)
    heartbeat = triggers.team_heartbeat(tx, node.team_id)
    is_cycle = is_said and heartbeat is not None and node.trigger_id == heartbeat.id
    if not is_cycle and (goal is None or goal.id != node.id):
        return False
    definitions.rest(tx, node.team_id)
    return True


def give_up(tx: Tx, lease: Lease, names: Sequence[str]) -> None:
    """Cancel the open tasks below a node that these ids or titles name; the giver gets no report.

    Those that have ended or were told to stop are passed over. Any other name is refused.
    """
    threads.check_lease(tx, lease)
    open_tasks = nodes.open_below(tx, lease.node_id)
    known = {task.id: task for task in [*nodes.children(tx, lease.node_id), *open_tasks]}
    given_up: list[WorkNode] = []
    wrong: list[str] = []
    for name in (name.strip() for name in names):
        titled = [t for t in known.values() if is_repetition(texts.title_of(t), name)]
        still = [t for t in titled if t in open_tasks]
        found = [known[NodeId(name)]] if name in known else still or titled[:1]
        if len(found) != 1:
            wrong.append(f"{name!r} " + ("is the title of several" if found else "is none of them"))
        given_up += [task for task in found if task in open_tasks]
    if wrong:
        listed = texts.join_limited([f"{texts.title_of(t)!r} ({t.id})" for t in open_tasks])
        raise Refused(
            f"Nothing was given up: {'; '.join(wrong)}. Open tasks: {listed or 'none'}. Give ids."
        )
    why = f"{planning.name_of(tx, lease.agent_id)} gave it up, to end its own work without it."
    for task in given_up:
        NODES.update(tx, task.id, given_up=why)
        cancel(tx, task.id, by=lease.agent_id)


def _cancel_children(tx: Tx, node: WorkNode, *, by: str | None = None) -> None:
    for child in reversed(nodes.children(tx, node.id)):  # dependents before what they need
        cancel(tx, child.id, by=by)


def end_cancelled_run(tx: Tx, lease: Lease) -> None:
    """End a node whose runner has stopped it on request."""
    threads.check_lease(tx, lease)
    node = NODES.get(tx, lease.node_id, lock=True)
    end_cancelled(tx, node)
    tx.wake(lease.agent_id, node.lane)


def end_cancelled(tx: Tx, node: WorkNode, why: str = "What needed it has ended.") -> None:
    """End a node as cancelled. No runner is working on it, or its runner is the caller.

    `why` is said if nobody has stopped it.
    """
    if node.canceller_id is not None:
        why = f"{planning.name_of(tx, node.canceller_id)} stopped it."
    _end_without_run(tx, node, NodeStatus.CANCELLED, StopReason.CANCELLED, node.given_up or why)


def end_unstartable(tx: Tx, team_id: TeamId) -> None:
    """Cancel the pending tasks of a team whose goal has ended that nobody can start any more.

    They need a decision of the agent whose work has ended, a free agent in a team where nobody
    works, or another such task.
    """
    pending = [n for n in nodes.still_open(tx, team_id) if n.status is NodeStatus.PENDING]
    anybody_works = len(pending) < nodes.count_open(tx, team_id)
    needs = {node.id: dependencies.needs(tx, node.id) for node in pending}
    stuck: set[str] = set()
    while found := {
        node.id
        for node in pending
        if node.id not in stuck and _is_unstartable(needs[node.id], stuck, anybody_works)
    }:
        stuck |= found
    for node in pending:  # the newest first: dependents before what they need
        if node.id in stuck and nodes.is_open(tx, node.id):
            why = f" ({told_person(node.waiting_reason)})" if node.waiting_reason else ""
            end_cancelled(tx, node, f"The work above it ended before it could start{why}.")


def _is_unstartable(needs: Sequence[WorkNode], stuck: set[str], anybody_works: bool) -> bool:
    """Whether nothing can start a pending node: what it needs has ended, or never starts."""
    if any(needed.id in stuck for needed in needs):
        return True
    if any(not needed.status.is_final for needed in needs):
        return False
    return any(planning.is_unmet(needed) for needed in needs) or not anybody_works


def _end_without_run(
    tx: Tx, node: WorkNode, status: NodeStatus, reason: StopReason, why: str
) -> None:
    """End a node that no runner is working on."""
    node = nodes.move(
        tx,
        node,
        status,
        stop_reason=reason,
        ended_at=tx.now,
        waiting_reason=None,
        owner=None,
        **_asked(node),
    )
    _close_thread(tx, node)
    tx.emit(node.team_id, _ended_without_run(node, why))
    _cancel_children(tx, node, by=node.canceller_id)
    _notify_waiters(tx, node, why)
    if node.assignee_id is not None:
        # The agent after the node, the reverse of `claims.claim`. If both meet, PostgreSQL aborts
        # one of the transactions, and its verb starts again with the state that the other left.
        agent = teams.lock(tx, node.assignee_id)
        requests.close_all(tx, node.id)
        _turn_late_mail_into_work(tx, agent, node.id)
        spoken_questions.release_unheard(tx, agent.id)
        _start_if_idle(tx, agent, node)
        roster.retire(tx, agent)
    planning.assign_unowned(tx, node.team_id)
    unfinished.end_wait_for_tasks(tx, node)


def _ended_without_run(node: WorkNode, why: str) -> NodeCancelled | NodeFailed:
    if node.status is NodeStatus.FAILED:
        return NodeFailed(node_id=node.id, reason=node.stop_reason, result=why)
    by = node.canceller_id
    return NodeCancelled(node_id=node.id, reason=node.stop_reason, result=why, by=by)


def _close_thread(tx: Tx, node: WorkNode) -> None:
    """Drop the node's waits and close its thread. The raised epoch fences a runner still at it."""
    waits.drop(tx, node.id)
    waiting.pause_or_resume_above(tx, node.id)
    # A later node may have continued the thread; its run must not be fenced.
    if (thread := threads.of_node(tx, node.id)) is None or thread.node_id != node.id:
        return
    lease = Lease(
        team_id=node.team_id,
        agent_id=thread.agent_id,
        node_id=node.id,
        thread_id=thread.id,
        epoch=thread.epoch,
    )
    leases.charge_lost_call(tx, lease, cause="ended")
    leases.end_run(tx, lease, closed_at=tx.now)


def _notify_waiters(tx: Tx, node: WorkNode, text: str) -> None:
    """Answer the waits for this node, check its stage, report to its creator, start dependents.

    A creator that waits gets the answer to its wait and no second message.
    """
    if verbs_of(node).ended(tx, node, text):
        return
    # Before `settle`, which deletes the waits.
    creator_is_told = _creator_waits(tx, node)
    worker = "nobody" if node.assignee_id is None else planning.name_of(tx, node.assignee_id)
    done = node.status is NodeStatus.COMPLETED

    def report(thread: str) -> str:
        label = labels.of_nodes(tx, [node.id])
        return texts.completion(node, worker=worker, text=text, thread=thread, label=label)

    waiting.settle(tx, WaitingOn("node", node.id), report, failed=not done)
    if node.stage_id is not None:
        told = tell_stage_end(tx, stages.check_contract(tx, node.stage_id))
        creator_is_told = creator_is_told or told == node.creator_id
    creator_is_told = verbs_of(node).delivered(tx, node, text) or creator_is_told
    answers_creator = spoken_questions.answer_with_result(tx, node, report)
    if not creator_is_told and not answers_creator:
        _report_end(tx, node, text, report)
    spoken_questions.release(tx, node)
    _release_dependents(tx, node)


def tell_stage_end(tx: Tx, stage: Stage | None) -> str | None:
    """Send the summary of an ended stage that nobody waits for to the agent that opened it; return
    that agent."""
    if stage is None:
        return None
    opener = NODES.get(tx, stage.node_id)
    assert opener.assignee_id is not None
    bus.send(
        tx,
        Draft(
            team_id=stage.team_id,
            sender=SYSTEM,
            recipient=opener.assignee_id,
            kind="result" if stage.status == "met" else "failure",
            title=texts.truncate(f"Stage {stage.name!r}", texts.TITLE),
            text=stages.summary(tx, stage, opener.thread_id or opener.id),
            topic="stage",
            ref=stage.id,
            label=labels.of_wait(tx, WaitingOn("stage", stage.id)),
        ),
        refusable=False,
    )
    return opener.assignee_id


def _creator_waits(tx: Tx, node: WorkNode) -> bool:
    """Whether the node's creator waits for the node, or for its stage, whose end tells the result
    (`tell_stage_end`)."""
    open_waits = waits.on(tx, WaitingOn("node", node.id))
    if node.stage_id is not None:
        open_waits += waits.on(tx, WaitingOn("stage", node.stage_id))
    return any(NODES.get(tx, wait.node_id).assignee_id == node.creator_id for wait in open_waits)


def _report_end(tx: Tx, node: WorkNode, text: str, report: Callable[[str], str]) -> None:
    """Send the node's creator a message about its end, unless the creator did the work itself or
    gave it up, or a trigger started it and there was nothing to do: the trigger counts that."""
    if node.creator_id in (node.assignee_id, SYSTEM) or node.given_up is not None:
        return
    if firing.found_nothing_to_do(node):
        return
    if is_person(node.creator_id) and node.status is NodeStatus.CANCELLED:
        return  # the person cancelled it, or stopped the team
    recipient = _report_recipient(tx, node)
    if recipient == node.assignee_id:
        return
    bus.send(
        tx,
        Draft(
            team_id=node.team_id,
            sender=node.assignee_id or SYSTEM,
            recipient=recipient,
            kind="result" if node.status is NodeStatus.COMPLETED else "failure",
            title=texts.subject_of(node) if is_person(recipient) else texts.title_of(node),
            text=texts.for_person(node, text)
            if is_person(recipient)
            else report(_thread_above(tx, node) or recipient),
            doubts=node.doubts if is_person(recipient) else (),
            node_id=node.id,
        ),
        refusable=False,
    )


def _thread_above(tx: Tx, node: WorkNode) -> str | None:
    """Return the thread of the work that this node is a part of; the report is fenced for it."""
    return None if node.parent_id is None else NODES.get(tx, node.parent_id).thread_id


def _report_recipient(tx: Tx, node: WorkNode) -> str:
    """Return who gets the report: the node's creator, or the coordinator if it has left."""
    if is_person(node.creator_id):
        return node.creator_id
    creator = AGENTS.find(tx, node.creator_id)
    if creator is not None and creator.retired_at is None:
        return creator.id
    return _coordinator_or_owner(tx, node.team_id)


def _coordinator_or_owner(tx: Tx, team_id: TeamId) -> str:
    """Return the coordinator's id. An end is never refused, so a team without members reports to
    its owner instead."""
    try:
        return teams.coordinator(tx, team_id).id
    except NotFound:
        return teams.owner_of(tx, team_id)


def _release_dependents(tx: Tx, node: WorkNode) -> None:
    """Start the nodes that depend on this one; if it failed, apply each one's `if_unmet` policy."""
    # A dependency that is being added waits for this node's row lock and then sees its end.
    for dependent in dependencies.dependents(tx, node.id):
        if NODES.get(tx, dependent.id).status is not NodeStatus.PENDING:
            continue  # an earlier round of this loop ended it
        needed = dependencies.needs(tx, dependent.id)
        unmet = [n for n in needed if planning.is_unmet(n)]
        what = texts.join_limited([f"{texts.title_of(n)} ({n.id}) is {n.status}" for n in unmet])
        if unmet and dependent.if_unmet == "fail":
            why = f"It needs what did not succeed: {what}."
            _end_without_run(tx, dependent, NodeStatus.FAILED, StopReason.UNMET, why)
        elif unmet and dependent.if_unmet == "skip":
            why = f"It was left out, because it needs what did not succeed: {what}."
            _end_without_run(tx, dependent, NodeStatus.CANCELLED, StopReason.SKIPPED, why)
        elif any(not n.status.is_final for n in needed):
            continue
        elif unmet and dependent.if_unmet == "ask":
            _ask_coordinator(tx, dependent, what)
        elif dependent.assignee_id is not None:
            # Nodes without an assignee follow in `planning.assign_unowned`,
            # at the end of the transaction.
            planning.assign_ready(tx, dependent)


def _ask_coordinator(tx: Tx, node: WorkNode, what: str) -> None:
    """Ask the coordinator whether a node should start although a dependency failed."""
    reason = f"needs a decision: {what}"
    NODES.update(tx, node.id, waiting_reason=reason)
    tx.emit(node.team_id, NodeWaiting(node_id=node.id, on=[], reason=reason))
    bus.send(
        tx,
        Draft(
            team_id=node.team_id,
            sender=SYSTEM,
            recipient=_coordinator_or_owner(tx, node.team_id),
            kind="nudge",  # becomes new work for a coordinator that has none left
            title=texts.title_of(node),
            text=f"{texts.title_of(node)} ({node.id}) cannot start as planned: {what}. Give it to "
            "somebody with assign_worker all the same, or go on without it.",
            node_id=node.id,
        ),
        refusable=False,
    )


def _turn_late_mail_into_work(tx: Tx, agent: Agent, ended: NodeId) -> None:
    """Turn mail that arrived while the agent finished a node into its next node.

    The caller holds the agent's row lock, so no message can arrive between this and the commit.
    """
    unseen = messages.unseen(tx, agent.id)
    meant = [m for m in unseen if m.heard_by == ended]
    messages.set_hearer(tx, [m.id for m in meant], None)
    # What a reply has done, told to work that had read its messages, is about no other work.
    messages.mark_seen(tx, [m.id for m in meant if m.kind == "notice"])
    late = [
        m
        for m in unseen
        # A message that a reply answers becomes work through that reply. One at the end of a long
        # exchange starts no work, as when the agent has nothing to do (`bus.send`).
        if m.kind in ASKS_FOR_WORK and m.hops < MAX_HOPS and not nodes.is_open(tx, m.reply_id)
    ]
    if not late or nodes.has_open(tx, agent.id):
        return  # the agent's next run hears it at its first yield point
    settled = [m for m in late if bus.is_settled(tx, m)]
    messages.mark_seen(tx, [m.id for m in settled])
    late = [m for m in late if m not in settled]
    if not late:
        return
    if teams.TEAMS.get(tx, agent.team_id).status == "stopped":
        return
    try:
        bus.create_work(tx, agent, late)
    except Refused:
        return  # the team is full, so the agent cannot come back: its mail stays unread
    messages.mark_seen(tx, [m.id for m in late])


def _start_if_idle(tx: Tx, agent: Agent, last: WorkNode) -> None:
    """Start idle triggers, and what features do then, if the node that has just ended was the
    agent's last work."""
    verbs_of(last).agent_idle(tx, agent, last)
    if not last.is_work or nodes.has_open(tx, agent.id):
        return
    due.agent_idle(tx, agent, last)
    for verbs in find_verbs():
        verbs.agent_idle(tx, agent, last)
