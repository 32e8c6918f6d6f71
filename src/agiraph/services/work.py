"""Work: how a node is claimed, parked, settled and ended. One transaction each."""

from datetime import timedelta
from typing import Any

from agiraph.domain.chat import AGAIN, THINKING, Lease, Thread
from agiraph.domain.errors import Refused
from agiraph.domain.ids import SYSTEM, AgentId, NodeId, TeamId, ThreadId, new_id
from agiraph.domain.messages import ASKS_FOR_WORK
from agiraph.domain.outcomes import Failed, Finished, Parked
from agiraph.domain.people import Agent
from agiraph.domain.work import NodeStatus, StopReason, Usage, WorkNode
from agiraph.services import mail
from agiraph.store import messages, nodes, spend, teams, threads, waits
from agiraph.store.nodes import NODES
from agiraph.store.threads import THREADS
from agiraph.store.tx import Tx

MAX_CRASHES = 3
"""A step that took the runtime down this often is not tried again without a person's word."""


TRY_AGAIN = "[Runtime] You are given another try. Look at where you stand and go about it anew."


def claim(tx: Tx, agent_id: AgentId, *, owner: str, only: TeamId | None = None) -> Lease | None:
    """Take up this agent's work: what a dead runner left, else the next in its queue.

    `only` leaves the work of other teams where it is.
    """
    agent = teams.lock(tx, agent_id)
    if only is not None and agent.team_id != only:
        return None
    if teams.TEAMS.get(tx, agent.team_id).status in ("paused", "archived"):
        return None
    left = nodes.running(tx, agent_id)
    if left is not None and left.owner not in (None, owner):
        return None
    node = left or nodes.next_assigned(tx, agent_id)
    if node is None:
        return None
    if node.cancel_requested:
        end_cancelled(tx, node)
        return claim(tx, agent_id, owner=owner, only=only)
    thread = threads.of_node(tx, node.id) or open_thread(tx, agent, node)
    spoken = threads.last_spoken(tx, thread.id)
    head = spoken.seq if spoken else 0
    crashes = node.crashes + 1 if left is not None and head == thread.claimed_seq else 0
    lease = Lease(
        team_id=node.team_id,
        agent_id=agent_id,
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
        node.team_id, "node.started", node_id=node.id, agent_id=agent_id, attempt=taken["attempt"]
    )
    charge_lost(tx, lease)
    if crashes >= MAX_CRASHES:
        ask_after_crashes(tx, lease, crashes)
        return None
    return lease


def charge_lost(tx: Tx, lease: Lease) -> None:
    """If the thread ends with the intent to ask the model, the call may have been made: pay it."""
    intent = threads.last(tx, lease.thread_id)
    if intent is None or (intent.role, intent.ref) != ("intent", THINKING):
        return
    held = Usage(input_tokens=intent.extra["tokens"], usd=intent.extra["usd"])
    spend.lose(tx, lease, purpose="work", model=intent.text, usage=held)
    page = threads.hold(tx, lease)
    threads.append(
        tx, page, node_id=lease.node_id, role="intent", ref="lost", text="The call was lost."
    )
    tx.emit(lease.team_id, "call.lost", node_id=lease.node_id, thread_id=lease.thread_id)


def disown(tx: Tx, agent_id: AgentId, *, owner: str) -> bool:
    """Free what this owner runs, for one with another name; False if it runs nothing.

    Whoever goes by the old name may only have been slow: it can claim nothing any more.
    """
    teams.lock(tx, agent_id)
    left = nodes.running(tx, agent_id)
    if left is None or left.owner != owner:
        return False
    NODES.update(tx, left.id, owner=None)
    tx.wake(agent_id)
    return True


def open_thread(tx: Tx, agent: Agent, node: WorkNode) -> Thread:
    thread = Thread(
        id=ThreadId(new_id("t")),
        team_id=node.team_id,
        agent_id=agent.id,
        node_id=node.id,
        created_at=tx.now,
    )
    THREADS.insert(tx, thread)
    tx.emit(node.team_id, "thread.opened", thread_id=thread.id, node_id=node.id, agent_id=agent.id)
    return thread


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
    question = mail.ask(tx, lease, text=text)
    on = f"answer:{question.id}"
    waits.open(tx, lease, call_id="", waiting_on=on, reason=reason)
    park(tx, lease, Parked((on,), reason))


def release(tx: Tx, lease: Lease) -> None:
    """Give the node back to its queue: the runner stops, the work does not."""
    threads.hold(tx, lease)
    node = NODES.get(tx, lease.node_id, lock=True)
    nodes.move(tx, node, NodeStatus.ASSIGNED, owner=None)
    _end(tx, lease)
    tx.emit(node.team_id, "node.assigned", node_id=node.id, agent_id=lease.agent_id)
    tx.wake(lease.agent_id)


def park(tx: Tx, lease: Lease, outcome: Parked) -> None:
    """Let the node wait; unless what it waits for came about while it was still running."""
    threads.hold(tx, lease)
    node = NODES.get(tx, lease.node_id, lock=True)
    if not waits.of_node(tx, node.id):
        return release(tx, lease)
    reason = outcome.reason or "waiting for " + ", ".join(outcome.waiting_on)
    worked = node.worked_seconds + _since_claim(tx, node)
    nodes.move(
        tx, node, NodeStatus.WAITING, waiting_reason=reason, owner=None, worked_seconds=worked
    )
    _end(tx, lease)
    tx.emit(
        node.team_id, "node.waiting", node_id=node.id, on=list(outcome.waiting_on), reason=reason
    )
    tx.wake(lease.agent_id)  # the queue may hold something that need not wait
    return None


def _since_claim(tx: Tx, node: WorkNode) -> float:
    return 0.0 if node.claimed_at is None else (tx.now - node.claimed_at).total_seconds()


def sleep(tx: Tx, lease: Lease, *, seconds: float, reason: str) -> None:
    """Park the whole node until a time."""
    timer = new_id("timer")
    on = f"time:{timer}"
    waits.open(tx, lease, call_id="", waiting_on=on, reason=reason)
    waits.set_timer(tx, timer, tx.now + timedelta(seconds=seconds))
    park(tx, lease, Parked((on,), reason))


def ring(tx: Tx) -> int:
    """Settle every wait whose time has come; how many timers rang."""
    rung = [timer for timer in waits.due(tx) if waits.ring(tx, timer)]
    for timer in rung:
        settle(tx, f"time:{timer}", None)
    return len(rung)


def settle(tx: Tx, waiting_on: str, text: str | None, *, failed: bool = False) -> int:
    """Bring what waited for this back into its queue, with the answer in its thread.

    Without a text the call stays open and is made when the node runs again.
    """
    settled = waits.take(tx, waiting_on)
    for wait in settled:
        page = threads.page(tx, wait.thread_id)
        if text is not None:
            threads.append(
                tx,
                page,
                node_id=wait.node_id,
                role="tool" if wait.call_id else "user",
                ref=wait.call_id or waiting_on,
                text=text,
                extra={"failed": True} if failed else None,
            )
        node = NODES.get(tx, wait.node_id, lock=True)
        if node.status is NodeStatus.WAITING and not waits.of_node(tx, node.id):
            # Of all waits only those for a time are time the work takes.
            paused = (tx.now - wait.created_at).total_seconds()
            worked = node.worked_seconds + (paused if waiting_on.startswith("time:") else 0.0)
            node = nodes.move(
                tx, node, NodeStatus.ASSIGNED, waiting_reason=None, worked_seconds=worked
            )
            tx.emit(node.team_id, "node.assigned", node_id=node.id, agent_id=node.assignee_id)
            assert node.assignee_id is not None
            tx.wake(node.assignee_id)
    return len(settled)


def conclude(tx: Tx, lease: Lease, outcome: Finished | Failed) -> WorkNode:
    """End the node, tell whoever asked for it, and let nothing said meanwhile get lost."""
    threads.hold(tx, lease)
    agent = teams.lock(tx, lease.agent_id)
    node = NODES.get(tx, lease.node_id, lock=True)
    match outcome:
        case Finished(result, reason, manifest):
            status, text = NodeStatus.COMPLETED, result
        case Failed(reason, detail, result, manifest):
            status, text = NodeStatus.FAILED, detail
    node = nodes.move(
        tx,
        node,
        status,
        result=result,
        stop_reason=reason,
        manifest=manifest,
        ended_at=tx.now,
        owner=None,
    )
    _close(tx, node)
    tx.emit(
        node.team_id,
        "node.completed" if status is NodeStatus.COMPLETED else "node.failed",
        node_id=node.id,
        reason=reason,
        result=text,
    )
    _report(tx, node, agent, text)
    _take_up_late_mail(tx, agent)
    tx.wake(agent.id)
    return node


def cancel(tx: Tx, node_id: NodeId) -> None:
    """End a node without a result: at once if it is at rest, at its next yield point if not."""
    node = NODES.get(tx, node_id, lock=True)
    if node.status.is_final:
        return
    if node.status is NodeStatus.RUNNING:
        NODES.update(tx, node_id, cancel_requested=True)
        assert node.assignee_id is not None
        return tx.cancel(node.assignee_id)
    end_cancelled(tx, node)


def cancelled(tx: Tx, lease: Lease) -> None:
    """The runner has stopped a node it was asked to cancel."""
    threads.hold(tx, lease)
    end_cancelled(tx, NODES.get(tx, lease.node_id, lock=True))
    tx.wake(lease.agent_id)


def end_cancelled(tx: Tx, node: WorkNode) -> None:
    nodes.move(
        tx,
        node,
        NodeStatus.CANCELLED,
        stop_reason=StopReason.CANCELLED,
        ended_at=tx.now,
        waiting_reason=None,
        owner=None,
    )
    _close(tx, node)
    tx.emit(node.team_id, "node.cancelled", node_id=node.id)
    if node.assignee_id is not None:
        _take_up_late_mail(tx, teams.lock(tx, node.assignee_id))


def retry(tx: Tx, node_id: NodeId) -> WorkNode:
    """Put a failed node back into its queue; its thread goes on where it ended."""
    node = NODES.get(tx, node_id, lock=True)
    assignee = node.assignee_id
    if assignee is None:
        raise Refused(f"{node_id} belongs to nobody; assign it first.")
    node = nodes.move(
        tx,
        node,
        NodeStatus.ASSIGNED,
        attempt=node.attempt + 1,
        stop_reason=None,
        ended_at=None,
        crashes=0,
    )
    thread = threads.of_node(tx, node.id)
    if thread is not None:
        THREADS.update(tx, thread.id, closed_at=None)
        page = threads.page(tx, thread.id)
        ref = f"{AGAIN}{node.attempt}"
        threads.append(tx, page, node_id=node.id, role="user", ref=ref, text=TRY_AGAIN)
    if teams.TEAMS.get(tx, node.team_id).status in ("completed", "stopped"):
        teams.TEAMS.update(tx, node.team_id, status="active")
        tx.emit(node.team_id, "team.resumed")
    tx.emit(node.team_id, "node.assigned", node_id=node.id, agent_id=assignee)
    tx.wake(assignee)
    return node


def _end(tx: Tx, lease: Lease) -> None:
    """The run is over: what is still under way of it, or does not know yet, is refused."""
    THREADS.update(tx, lease.thread_id, epoch=lease.epoch + 1)


def _close(tx: Tx, node: WorkNode) -> None:
    """Nothing more is written to the thread of a node that has ended, by whoever it may be."""
    waits.drop(tx, node.id)
    if (thread := threads.of_node(tx, node.id)) is None:
        return
    lease = Lease(
        team_id=node.team_id,
        agent_id=thread.agent_id,
        node_id=node.id,
        thread_id=thread.id,
        epoch=thread.epoch,
    )
    charge_lost(tx, lease)
    _end(tx, lease)
    THREADS.update(tx, thread.id, closed_at=tx.now)


def _report(tx: Tx, node: WorkNode, agent: Agent, text: str) -> None:
    """Every request ends in a delivery; nobody is told what they did themselves."""
    if node.creator_id in (agent.id, SYSTEM):
        return
    done = node.status is NodeStatus.COMPLETED
    mail.send(
        tx,
        team_id=node.team_id,
        sender=agent.id,
        recipient=node.creator_id,
        kind="result" if done else "failure",
        title=node.title or node.task[:80],
        text=text,
        node_id=node.id,
    )


def _take_up_late_mail(tx: Tx, agent: Agent) -> None:
    """A message that came as the agent finished becomes its next piece of work."""
    late = [m for m in messages.unseen(tx, agent.id) if m.kind in ASKS_FOR_WORK]
    if not late or nodes.has_open(tx, agent.id):
        return  # whoever works next hears it at the first yield point
    if teams.TEAMS.get(tx, agent.team_id).status == "stopped":
        return
    messages.mark_seen(tx, [m.id for m in late])
    mail.become_work(tx, agent, late)
