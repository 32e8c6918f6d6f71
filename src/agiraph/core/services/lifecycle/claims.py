"""Claims: a runner takes a node from a queue, gives it back, or parks it. One transaction each."""

from datetime import timedelta

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Lease, Thread, Transcript
from agiraph.core.domain.events.work import NodeAssigned, NodeStarted, NodeWaiting
from agiraph.core.domain.ids import TeamId, new_id
from agiraph.core.domain.messages import Message, Topic
from agiraph.core.domain.outcomes import Parked
from agiraph.core.domain.text.plurals import times
from agiraph.core.domain.work import NodeStatus, Queue, Timer, WaitingOn, WorkNode
from agiraph.core.services.board import budgets, leases, planning, texts, waiting
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.mail import bus
from agiraph.core.store import messages, nodes, teams, threads, waits
from agiraph.core.store.engine import work_stop
from agiraph.core.store.nodes import NODES
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Tx

MAX_CRASHES = 3
"""After so many crashes at one step, the node is not tried again in the same way: a tool call that
was under way is reported to the model as cut off, and without one a person decides."""


def claim(tx: Tx, queue: Queue, *, owner: str, only: TeamId | None = None) -> Lease | None:
    """Claim the node of this queue that a dead runner left running, else the next one; lease it.

    Return None if there is nothing to run, if another live owner runs the queue, or if the node
    was parked because it crashed too often. `only` limits the claim to one team.
    """
    # The agent's row lock makes claims of one queue wait for each other: one node runs at a time.
    agent = teams.AGENTS.find(tx, queue.agent_id, lock=True)
    if agent is None or only not in (None, agent.team_id):
        return None  # its team was deleted after the queue was woken, or is not the one asked for
    may_run = _may_run(tx, agent, queue)
    left = nodes.running(tx, queue)
    # No owner: it died. Our own: a run of this process ended without giving the node back, because
    # the store failed (`Dispatcher._release`).
    if left is not None and left.owner not in (None, owner):
        return None
    if not may_run or (left is not None and work_stop.find(tx) is not None):
        # A crash or a failed release left it running, and meanwhile its team was deleted or paused,
        # or all work was stopped. The deletion of a team waits until no node is running.
        if left is not None and left.cancel_requested:
            endings.end_cancelled(tx, left)
        return None
    node = left or nodes.next_assigned(tx, queue)
    if node is None:
        return None
    if node.cancel_requested:
        endings.end_cancelled(tx, node)
        # The same transaction goes on: the queue must not wait for another wake.
        return claim(tx, queue, owner=owner, only=only)
    found = None if node.thread_id is None else THREADS.find(tx, node.thread_id)
    thread = found or leases.open_thread(tx, agent, node)
    spoken = None if found is None else threads.last_turn_of_agent(tx, thread.id)
    head = spoken.seq if spoken else 0
    # If nothing but intents was written since the last claim, it is still at the same step.
    before = node.crashes if head == thread.claimed_seq else 0
    crashes = before + (left is not None)
    lease = _take_lease(tx, agent, node, thread, head=head)
    _start(tx, agent, node, owner=owner, crashes=crashes, was_running=left is not None)
    # The dead runner's last model call may have reached the vendor. Its cost is booked here, before
    # the new runner checks the budget.
    if found is not None:
        leases.charge_lost_call(tx, lease)
    if crashes > MAX_CRASHES or (crashes == MAX_CRASHES and not _has_open_call(tx, thread)):
        ask_after_crashes(tx, lease, crashes)
        return None
    return lease


def _has_open_call(tx: Tx, thread: Thread) -> bool:
    """Whether a call of the thread has no answer; the new run reports it (`Steps.recover`)."""
    return bool(Transcript(threads.turns(tx, thread.id)).open_calls())


def _may_run(tx: Tx, agent: Agent, queue: Queue) -> bool:
    """Whether the team's status lets this queue run; a paused team still replies to the person."""
    status = teams.TEAMS.get(tx, agent.team_id).status
    return status != "archived" and (status != "paused" or queue.lane == "reply")


def _take_lease(tx: Tx, agent: Agent, node: WorkNode, thread: Thread, *, head: int) -> Lease:
    """Raise the thread's epoch. A runner with the old epoch is fenced: its next append is refused,
    even if it is alive and only slow."""
    lease = Lease(
        team_id=node.team_id,
        agent_id=agent.id,
        node_id=node.id,
        thread_id=thread.id,
        epoch=thread.epoch + 1,
    )
    THREADS.update(tx, thread.id, epoch=lease.epoch, claimed_seq=head)
    return lease


def _start(
    tx: Tx, agent: Agent, node: WorkNode, *, owner: str, crashes: int, was_running: bool
) -> None:
    """Set the claimed node to running under this owner."""
    # A node that comes back from a wait continues its attempt; one that a crash left is a new one.
    attempt = node.attempt + 1 if was_running else max(node.attempt, 1)
    changes = {
        "attempt": attempt,
        "crashes": crashes,
        "owner": owner,
        "started_at": node.started_at or tx.now,
        "claimed_at": tx.now,
        "waiting_reason": None,
    }
    if was_running:
        NODES.update(tx, node.id, **changes)
    else:
        nodes.move(tx, node, NodeStatus.RUNNING, **changes)
    tx.emit(node.team_id, NodeStarted(node_id=node.id, agent_id=agent.id, attempt=attempt))


def clear_owner(tx: Tx, queue: Queue, *, owner: str) -> bool:
    """Remove a dead owner from the node it runs, so that another may claim it; False if none.

    The owner may be alive and only slow. It cannot write any more once the node is claimed again:
    the claim raises the epoch.
    """
    teams.lock(tx, queue.agent_id)
    left = nodes.running(tx, queue)
    if left is None or left.owner != owner:
        return False
    NODES.update(tx, left.id, owner=None)
    tx.wake(*queue)
    return True


def ask_after_crashes(tx: Tx, lease: Lease, crashes: int) -> None:
    """Park the node on a question to the person instead of crashing at the same step for ever."""
    NODES.update(tx, lease.node_id, crashes=0)
    ask_whether_to_continue(
        tx,
        lease,
        topic="crash",
        reason=f"crashed {times(crashes)} at the same step",
        text=f"My work was cut off {times(crashes)} at the same step, before anything new was "
        "written. Shall I try again, or do something else? Your answer goes into my thread.",
    )


def ask_whether_to_continue(
    tx: Tx, lease: Lease, *, reason: str, text: str, topic: Topic, ref: str | None = None
) -> None:
    """Ask the person a question and park the whole node on it; the answer goes into the thread.
    With a `ref`, all work that meets the same waits for one answer."""
    if ref is None:
        question = bus.ask(tx, lease, text=text, topic=topic, refusable=False)
    else:
        question = bus.ask_for_all(tx, lease, text, topic=topic, ref=ref)
    on = WaitingOn("answer", question.id)
    waits.open(tx, lease, call_id="", waiting_on=on, reason=reason)
    park(tx, lease, Parked((on,), reason))


def release(tx: Tx, lease: Lease) -> None:
    """Put the node back into its queue and end the lease: the runner stops, the work does not."""
    threads.check_lease(tx, lease)
    node = NODES.get(tx, lease.node_id, lock=True)
    worked = node.worked_seconds + _seconds_since_claim(tx, node)
    nodes.move(tx, node, NodeStatus.ASSIGNED, owner=None, worked_seconds=worked)
    leases.end_run(tx, lease)
    tx.emit(node.team_id, NodeAssigned(node_id=node.id, agent_id=lease.agent_id))
    tx.wake(lease.agent_id, node.lane)


def park(tx: Tx, lease: Lease, outcome: Parked) -> None:
    """Set the node to waiting and end the lease.

    If its waits were settled or it was cancelled while it still ran, it goes back into its queue.
    """
    threads.check_lease(tx, lease)
    # A sender takes the same lock before it writes a message. So the message is either here for
    # `_unseen_interrupts`, or its sender finds the node waiting and ends the wait.
    teams.lock(tx, lease.agent_id)
    node = NODES.get(tx, lease.node_id, lock=True)
    open_waits = waits.of_node(tx, node.id)
    if node.cancel_requested or not open_waits:
        return release(tx, lease)
    on = [str(each) for each in outcome.waiting_on or [w.waiting_on for w in open_waits]]
    reason = outcome.reason or "waiting for " + ", ".join(on)
    if not outcome.waiting_on:  # the node waits because of a reply without calls
        reason = texts.join_limited([wait.reason for wait in open_waits])
    worked = node.worked_seconds + _seconds_since_claim(tx, node)
    nodes.move(
        tx, node, NodeStatus.WAITING, waiting_reason=reason, owner=None, worked_seconds=worked
    )
    leases.end_run(tx, lease)
    tx.emit(node.team_id, NodeWaiting(node_id=node.id, on=on, reason=reason))
    waiting.pause_or_resume_above(tx, node.id)
    if said := _unseen_interrupts(tx, node):
        waiting.interrupt(tx, lease.agent_id, said)
    planning.assign_unowned(tx, node.team_id)  # the node may have created work for others
    tx.wake(lease.agent_id, node.lane)  # the next node of the queue may be able to run
    return None


def _unseen_interrupts(tx: Tx, node: WorkNode) -> list[Message]:
    """Return the unseen messages that end this node's waits at once.

    A node that parks as a whole (its model is refused, it crashed) may do so before it hears its
    mail. A message from before its claim must not end that wait: the node would park and start
    again in a circle.
    """
    assert node.assignee_id is not None
    unseen = messages.unseen(tx, node.assignee_id, node_id=node.id)
    said = [m for m in unseen if m.ends_waits != "none" and not bus.is_settled(tx, m)]
    if all(wait.call_id for wait in waits.of_node(tx, node.id)) or node.claimed_at is None:
        return said
    return [message for message in said if message.created_at > node.claimed_at]


def _seconds_since_claim(tx: Tx, node: WorkNode) -> float:
    return 0.0 if node.claimed_at is None else (tx.now - node.claimed_at).total_seconds()


def sleep(tx: Tx, lease: Lease, *, seconds: float, reason: str) -> None:
    """Park the whole node for some seconds, at most until its time limit is reached.

    Nobody but the timer wakes it, and at its time limit the budget check must end it.
    """
    left = budgets.seconds_left(tx, NODES.get(tx, lease.node_id))
    if left is not None:
        seconds = min(seconds, max(left, 0.0))
    timer = new_id("timer")
    on = WaitingOn("time", timer)
    waits.open(tx, lease, call_id="", waiting_on=on, reason=reason)
    # Timer and wait commit together: a node that sleeps without a timer would never wake.
    waits.set_timer(tx, Timer("wait", timer), tx.now + timedelta(seconds=seconds))
    park(tx, lease, Parked((on,), reason))
