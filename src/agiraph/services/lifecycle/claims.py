"""Work: how a node is claimed, given back and parked. One transaction each."""

from datetime import timedelta
from typing import Any

from agiraph.domain.chat import Lease
from agiraph.domain.ids import StageId, TeamId, TriggerId, new_id
from agiraph.domain.messages import INTERRUPTS, Message
from agiraph.domain.outcomes import Parked
from agiraph.domain.work import NodeStatus, Queue, WorkNode
from agiraph.services.board import budgets, leases, notices, planning, stage_clocks, stages, waiting
from agiraph.services.lifecycle import endings
from agiraph.services.mail import bus
from agiraph.services.triggers import due, firing
from agiraph.store import messages, nodes, teams, threads, waits
from agiraph.store.nodes import NODES
from agiraph.store.threads import THREADS
from agiraph.store.tx import Tx

MAX_CRASHES = 3
"""A step that took the runtime down this often is not tried again without a person's word."""


def claim(tx: Tx, queue: Queue, *, owner: str, only: TeamId | None = None) -> Lease | None:
    """Take up what a dead runner left of this queue, else what is next in it.

    `only` leaves the work of other teams where it is.
    """
    agent = teams.lock(tx, queue.agent_id)
    if only is not None and agent.team_id != only:
        return None
    status = teams.TEAMS.get(tx, agent.team_id).status
    if status == "archived" or (status == "paused" and queue.lane != "reply"):
        return None
    left = nodes.running(tx, queue)
    if left is not None and left.owner not in (None, owner):
        return None
    node = left or nodes.next_assigned(tx, queue)
    if node is None:
        return None
    if node.cancel_requested:
        endings.end_cancelled(tx, node)
        return claim(tx, queue, owner=owner, only=only)
    thread = threads.of_node(tx, node.id) or leases.open_thread(tx, agent, node)
    spoken = threads.last_spoken(tx, thread.id)
    head = spoken.seq if spoken else 0
    crashes = node.crashes + 1 if left is not None and head == thread.claimed_seq else 0
    lease = Lease(
        team_id=node.team_id,
        agent_id=agent.id,
        node_id=node.id,
        thread_id=thread.id,
        epoch=thread.epoch + 1,
    )
    THREADS.update(tx, thread.id, epoch=lease.epoch, claimed_seq=head)
    taken: dict[str, Any] = {
        # Coming back from a wait goes on with the same attempt.
        "attempt": node.attempt + 1 if left is not None else max(node.attempt, 1),
        "crashes": crashes,
        "owner": owner,
        "started_at": node.started_at or tx.now,
        "claimed_at": tx.now,
        "waiting_reason": None,
    }
    if left is None:
        nodes.move(tx, node, NodeStatus.RUNNING, **taken)
    else:
        NODES.update(tx, node.id, **taken)
    tx.emit(
        node.team_id, "node.started", node_id=node.id, agent_id=agent.id, attempt=taken["attempt"]
    )
    leases.charge_lost(tx, lease)
    if crashes >= MAX_CRASHES:
        ask_after_crashes(tx, lease, crashes)
        return None
    return lease


def disown(tx: Tx, queue: Queue, *, owner: str) -> bool:
    """Free what this owner runs, for one with another name; False if it runs nothing.

    Whoever goes by the old name may only have been slow: it can claim nothing any more.
    """
    teams.lock(tx, queue.agent_id)
    left = nodes.running(tx, queue)
    if left is None or left.owner != owner:
        return False
    NODES.update(tx, left.id, owner=None)
    tx.wake(*queue)
    return True


def ask_after_crashes(tx: Tx, lease: Lease, crashes: int) -> None:
    """Do not walk into the same hole for ever: let a person decide."""
    NODES.update(tx, lease.node_id, crashes=0)
    ask_to_go_on(
        tx,
        lease,
        reason=f"crashed {crashes} times at the same step",
        text=f"My work was cut off {crashes} times at the same step, before anything new was "
        "written. Shall I try again, or do something else? Your answer goes into my thread.",
    )


def ask_to_go_on(tx: Tx, lease: Lease, *, reason: str, text: str) -> None:
    """Park the whole node on a question; the answer goes into the thread, and the work goes on."""
    question = bus.ask(tx, lease, text=text, refusable=False)
    on = f"answer:{question.id}"
    waits.open(tx, lease, call_id="", waiting_on=on, reason=reason)
    park(tx, lease, Parked((on,), reason))


def release(tx: Tx, lease: Lease) -> None:
    """Give the node back to its queue: the runner stops, the work does not."""
    threads.check_lease(tx, lease)
    node = NODES.get(tx, lease.node_id, lock=True)
    worked = node.worked_seconds + _since_claim(tx, node)
    nodes.move(tx, node, NodeStatus.ASSIGNED, owner=None, worked_seconds=worked)
    leases.end_run(tx, lease)
    tx.emit(node.team_id, "node.assigned", node_id=node.id, agent_id=lease.agent_id)
    tx.wake(lease.agent_id, node.lane)


def park(tx: Tx, lease: Lease, outcome: Parked) -> None:
    """Let the node wait; unless what it waits for came about while it was still running."""
    threads.check_lease(tx, lease)
    teams.lock(tx, lease.agent_id)  # whoever speaks now is heard: before the wait, or by ending it
    node = NODES.get(tx, lease.node_id, lock=True)
    open_waits = waits.of_node(tx, node.id)
    if node.cancel_requested or not open_waits:
        return release(tx, lease)
    on = outcome.waiting_on or [wait.waiting_on for wait in open_waits]
    reason = outcome.reason or "waiting for " + ", ".join(on)
    if not outcome.waiting_on:  # no call said for what
        reason = notices.listed([wait.reason for wait in open_waits])
    worked = node.worked_seconds + _since_claim(tx, node)
    nodes.move(
        tx, node, NodeStatus.WAITING, waiting_reason=reason, owner=None, worked_seconds=worked
    )
    leases.end_run(tx, lease)
    tx.emit(node.team_id, "node.waiting", node_id=node.id, on=list(on), reason=reason)
    stage_clocks.hold_above(tx, node.id)
    if said := _said_meanwhile(tx, node):
        waiting.interrupt(tx, lease.agent_id, said)
    planning.distribute(tx, node.team_id)  # whoever made work and waits leaves it to others
    tx.wake(lease.agent_id, node.lane)  # the queue may hold something that need not wait
    return None


def _said_meanwhile(tx: Tx, node: WorkNode) -> list[Message]:
    """Return the unheard messages that end this node's waits at once.

    A node that parks as a whole (its model is refused, it crashed) may do so before it hears its
    mail. A message from before its claim must not end that wait: the node would park and start
    again in a circle.
    """
    assert node.assignee_id is not None
    said = [m for m in messages.unseen(tx, node.assignee_id) if m.kind in INTERRUPTS]
    if all(wait.call_id for wait in waits.of_node(tx, node.id)) or node.claimed_at is None:
        return said
    return [message for message in said if message.created_at > node.claimed_at]


def _since_claim(tx: Tx, node: WorkNode) -> float:
    return 0.0 if node.claimed_at is None else (tx.now - node.claimed_at).total_seconds()


def sleep(tx: Tx, lease: Lease, *, seconds: float, reason: str) -> None:
    """Park the whole node until a time; no longer than it may still work, so that it ends then."""
    left = budgets.seconds_left(tx, NODES.get(tx, lease.node_id))
    if left is not None:
        seconds = min(seconds, max(left, 0.0))
    timer = new_id("timer")
    on = f"time:{timer}"
    waits.open(tx, lease, call_id="", waiting_on=on, reason=reason)
    waits.set_timer(tx, timer, tx.now + timedelta(seconds=seconds))
    park(tx, lease, Parked((on,), reason))


def ring(tx: Tx, *timers: str) -> int:
    """Settle every wait whose time has come, or only these; how many timers rang."""
    rung = [timer for timer in timers or waits.due(tx) if waits.ring(tx, timer)]
    for timer in rung:
        if timer.startswith(stage_clocks.TIMER):
            stages.ring(tx, StageId(timer.removeprefix(stage_clocks.TIMER)))
        elif timer.startswith(firing.TIMER):
            due.fire_due(tx, TriggerId(timer.removeprefix(firing.TIMER)))
        else:
            waiting.run_out(tx, timer)
    return len(rung)
