"""Lease: opening a thread for a node, paying for calls that were lost, ending a run."""

from agiraph.domain.chat import THINKING, Lease, Thread
from agiraph.domain.ids import ThreadId, new_id
from agiraph.domain.people import Agent
from agiraph.domain.work import Usage, WorkNode
from agiraph.store import spend, threads
from agiraph.store.nodes import NODES
from agiraph.store.threads import THREADS
from agiraph.store.tx import Tx


def open_thread(tx: Tx, agent: Agent, node: WorkNode) -> Thread:
    """A fresh thread; under that of the work it was made for, if there is one."""
    above = None if node.parent_id is None else threads.of_node(tx, node.parent_id)
    thread = Thread(
        id=ThreadId(new_id("t")) if above is None else threads.next_child(tx, above.id),
        team_id=node.team_id,
        agent_id=agent.id,
        node_id=node.id,
        parent_id=None if above is None else above.id,
        created_at=tx.now,
    )
    THREADS.insert(tx, thread)
    NODES.update(tx, node.id, thread_id=thread.id)
    tx.emit(node.team_id, "thread.opened", thread_id=thread.id, node_id=node.id, agent_id=agent.id)
    return thread


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


def end_run(tx: Tx, lease: Lease) -> None:
    """The run is over: what is still under way of it, or does not know yet, is refused."""
    THREADS.update(tx, lease.thread_id, epoch=lease.epoch + 1)
