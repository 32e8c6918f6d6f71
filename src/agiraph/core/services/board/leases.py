"""Leases: open and reopen a node's thread, charge lost model calls, and end a run."""

from collections.abc import Sequence
from typing import Any

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import AGAIN, THINKING, Lease, Thread, Transcript, Turn
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events.work import CallLost, LossCause, ThreadOpened, ToolResult
from agiraph.core.domain.ids import ThreadId, new_id
from agiraph.core.domain.work import StopReason, Usage, WorkNode
from agiraph.core.services.board import labels, texts
from agiraph.core.store import nodes, spend, threads
from agiraph.core.store.nodes import NODES
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Tx

CUT_OFF = (
    "The work ended before this call was answered. It may or may not have happened. Find out "
    "before you make it again."
)

NOT_MADE = "Not made: another call of the same reply had ended the work."
"""The answer of a call beside one that ended the node, in a thread from before that was refused."""
_ENDED_BY_CALL = (
    StopReason.PUBLISHED,
    StopReason.FINISHED,
    StopReason.PARTLY_REACHED,
    StopReason.NOT_REACHED,
    StopReason.NOTHING_TO_DO,
)


def open_thread(tx: Tx, agent: Agent, node: WorkNode) -> Thread:
    """Create a thread for a node, as a child of its parent node's thread if there is one."""
    above = None if node.parent_id is None else threads.of_node(tx, node.parent_id)
    thread = Thread(
        id=ThreadId(new_id("t")) if above is None else threads.next_child(tx, above.id),
        team_id=node.team_id,
        agent_id=agent.id,
        node_id=node.id,
        parent_id=None if above is None else above.id,
        created_at=tx.now,
        kind=node.lane,
    )
    THREADS.insert(tx, thread)
    NODES.update(tx, node.id, thread_id=thread.id)
    tx.emit(node.team_id, ThreadOpened(thread_id=thread.id, node_id=node.id, agent_id=agent.id))
    return thread


def reopen(tx: Tx, thread_id: ThreadId, node: WorkNode, *, ref: str, text: str) -> None:
    """Reopen a closed thread with this text. Calls without an answer get one first: vendors refuse
    a message that follows an open call."""
    thread = THREADS.get(tx, thread_id, lock=True)
    if thread.pruned_at is not None:
        raise Refused(
            f"The steps of {node.id} were removed on {thread.pruned_at:%Y-%m-%d}, as the setting "
            "`retention` says, so nothing can go on there. Give the work anew; results are kept."
        )
    current = thread.node_id
    if current is not None and current != node.id and not NODES.get(tx, current).status.is_final:
        raise Refused(
            f"{current} is already being worked on in that thread; wait until it has ended."
        )
    # Nobody holds a lease of a closed thread; the row lock keeps two reopenings apart.
    append_at = threads.append_point(tx, thread_id)
    ended = None if current is None else NODES.get(tx, current).stop_reason
    said = NOT_MADE if ended in _ENDED_BY_CALL else CUT_OFF
    for call in Transcript(threads.turns(tx, thread_id)).open_calls():
        append_at, _ = threads.append(
            tx, append_at, node_id=node.id, role="tool", ref=call.id, text=said, failed=True
        )
        told = {"node_id": node.id, "call_id": call.id, "tool": call.name}
        tx.emit(node.team_id, ToolResult(**told, failed=True, text=said))
    label = labels.of_task(tx, node)
    threads.append(tx, append_at, node_id=node.id, role="user", ref=ref, text=text, label=label)
    THREADS.update(tx, thread_id, node_id=node.id, closed_at=None)


def continue_thread(
    tx: Tx, earlier: WorkNode, node: WorkNode, *, giver: str, said: Sequence[str] = ()
) -> None:
    """Let a new node continue the thread of an earlier one, with its assignment at the end, and
    what was `said` about it."""
    assert earlier.thread_id is not None
    if not earlier.kind.sees_team:
        # A retry of the public node would find the team's words in its thread.
        raise Refused(
            f"{earlier.id} was public, and nothing is added to its thread. Give a new task, with "
            "what is needed of its result in it."
        )
    thread_id = ThreadId(earlier.thread_id)
    NODES.update(tx, node.id, thread_id=thread_id)
    text = texts.assignment(node, giver=giver, thread=thread_id)
    reopen(tx, thread_id, node, ref=f"{AGAIN}:{node.id}", text="\n\n".join([text, *said]))


def last_task(tx: Tx, agent: Agent) -> WorkNode | None:
    """Return the ended task in whose thread an agent goes on that was hired for one task; None for
    other agents, and if nothing can go on there."""
    last = None if agent.persistent or not agent.has_model else nodes.last_of(tx, agent.id)
    if last is None or last.thread_id is None or not last.status.is_final:
        return None
    is_pruned = THREADS.get(tx, last.thread_id).pruned_at is not None
    return last if last.kind.goes_on and not is_pruned else None


def charge_lost_call(tx: Tx, lease: Lease, *, cause: LossCause = "interrupted") -> None:
    """Charge the reserved amount for a model call that has an intent but no reply.

    The call may have reached the vendor. An intent with the ref `lost` is appended to the thread,
    so that the same call is charged only once. `cause` tells people why there is no reply.
    """
    if (intent := _open_reservation(tx, lease)) is None or intent.reserved is None:
        return
    reserved = Usage(input_tokens=intent.reserved.tokens, usd=intent.reserved.usd)
    spend.lose(tx, lease, purpose="work", model=intent.text, usage=reserved)
    # A stale lease raises here, which takes back the charge with the rest of the transaction.
    append_at = threads.check_lease(tx, lease)
    threads.append(
        tx, append_at, node_id=lease.node_id, role="intent", ref="lost", text="The call was lost."
    )
    lost = CallLost(
        node_id=lease.node_id,
        thread_id=lease.thread_id,
        cause=cause,
        tokens=reserved.tokens,
        usd=reserved.usd,
    )
    tx.emit(lease.team_id, lost)


def release_reservation(tx: Tx, lease: Lease) -> None:
    """Release what was reserved for a call that certainly cost nothing."""
    if _open_reservation(tx, lease) is None:
        return
    append_at = threads.check_lease(tx, lease)
    said = "The call was refused before the model did anything; it cost nothing."
    threads.append(tx, append_at, node_id=lease.node_id, role="intent", ref="unused", text=said)


def charge_lost_try(tx: Tx, lease: Lease, *, purpose: str) -> None:
    """Charge the reserved amount for a model call that was answered only when it was made again."""
    if (intent := _open_reservation(tx, lease)) is not None and intent.reserved is not None:
        usage = Usage(input_tokens=intent.reserved.tokens, usd=intent.reserved.usd)
        spend.lose(tx, lease, purpose=purpose, model=intent.text, usage=usage)


def _open_reservation(tx: Tx, lease: Lease) -> Turn | None:
    """Return the intent to ask the model if it is the thread's last turn."""
    intent = threads.last(tx, lease.thread_id)
    is_open = intent is not None and (intent.role, intent.ref) == ("intent", THINKING)
    return intent if is_open else None


def end_run(tx: Tx, lease: Lease, **changes: Any) -> None:
    """End a run by raising the thread's epoch: a write that it still has under way is refused."""
    # Without a check: the caller has checked the lease, or ends a node that has no runner.
    THREADS.update(tx, lease.thread_id, epoch=lease.epoch + 1, **changes)
