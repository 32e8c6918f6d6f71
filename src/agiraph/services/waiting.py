"""Waiting: what is parked goes on when that comes about, or when somebody speaks."""

from agiraph.domain.chat import ToolCall
from agiraph.domain.errors import Refused
from agiraph.domain.events import PREVIEW
from agiraph.domain.ids import AgentId, NodeId
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.services import taint
from agiraph.store import dependencies, messages, nodes, threads, waits
from agiraph.store.nodes import NODES
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx
from agiraph.store.waits import Wait

_FOR_TEAMMATES = ("node:", "stage:", "time:")
_INTERRUPTED = (
    "Interrupted, because there is a message for you; it follows. What you waited for ({reason}) "
    "is still under way: wait again, or do something else first."
)


def settle(tx: Tx, waiting_on: str, text: str | None, *, failed: bool = False) -> int:
    """Bring what waited for this back into its queue, with the answer in its thread.

    Without a text the call stays open and is made when the node runs again.
    """
    settled = waits.take(tx, waiting_on)
    tainted_by = taint.of_wait(tx, waiting_on) if settled else None
    for wait in settled:
        _answer(tx, wait, text, failed=failed, tainted_by=tainted_by)
        _go_on(tx, wait)
    return len(settled)


def run_out(tx: Tx, timer: str) -> int:
    """A time has come. A call that had only so long is answered with what was agreed for then."""
    settled = waits.take(tx, f"time:{timer}")
    for wait in settled:
        _answer(tx, wait, wait.reason if wait.call_id else None, failed=False)
        _go_on(tx, wait)
    return len(settled)


def interrupt(tx: Tx, agent_id: AgentId) -> None:
    """Somebody has something to say: end waits for teammates; a person's answer is waited for."""
    for node in nodes.waiting(tx, agent_id):
        # A call with a time limit has two waits; what it really waits for comes first.
        open_waits = sorted(waits.of_node(tx, node.id), key=_is_time)
        if not all(w.call_id and w.waiting_on.startswith(_FOR_TEAMMATES) for w in open_waits):
            continue
        answered: set[str] = set()
        for wait in open_waits:
            if wait.call_id not in answered:
                answered.add(wait.call_id)
                _answer(tx, wait, _INTERRUPTED.format(reason=wait.reason), failed=False)
        _go_on(tx, open_waits[0])


def _is_time(wait: Wait) -> bool:
    return wait.waiting_on.startswith("time:")


def refuse_cycle(tx: Tx, waiter: NodeId, target: WorkNode) -> None:
    """No two may wait for each other, be it by way of others; nor decide on it at a time."""
    TEAMS.get(tx, target.team_id, lock=True)
    if dependencies.leads_to(tx, target.id, waiter):
        raise Refused(
            f"{target.id} needs or waits for your own work, so neither would ever end. Go on "
            "without it, or hand in what you have first."
        )


def _answer(
    tx: Tx, wait: Wait, text: str | None, *, failed: bool, tainted_by: str | None = None
) -> None:
    if wait.call_id:
        waits.drop_call(tx, wait)
    page = threads.page(tx, wait.thread_id)
    if text is None:
        return
    calls = threads.open_calls(tx, wait.thread_id)
    if not wait.call_id and (calls or page.head == 0):
        # Nothing may stand between a call and its answer, nor before what the agent is to do: it
        # is heard at the yield point instead.
        return messages.unhear_answer(tx, wait.waiting_on.removeprefix("answer:"))
    for call in calls:
        if call.id == wait.call_id:
            _tell(tx, wait, call, text, failed=failed)
    threads.append(
        tx,
        page,
        node_id=wait.node_id,
        role="tool" if wait.call_id else "user",
        ref=wait.call_id or wait.waiting_on,
        text=text,
        extra=taint.extra(tainted_by, **({"failed": True} if failed else {})),
    )


def _tell(tx: Tx, wait: Wait, call: ToolCall, text: str, *, failed: bool) -> None:
    tx.emit(
        NODES.get(tx, wait.node_id).team_id,
        "tool.result",
        node_id=wait.node_id,
        call_id=call.id,
        tool=call.name,
        failed=failed,
        text=text[:PREVIEW],
    )


def _go_on(tx: Tx, wait: Wait) -> None:
    node = NODES.get(tx, wait.node_id, lock=True)
    if node.status is not NodeStatus.WAITING or waits.of_node(tx, node.id):
        return
    # Of all waits only those for a time are time the work takes.
    is_work = _is_time(wait) and not wait.call_id
    paused = (tx.now - wait.created_at).total_seconds() if is_work else 0.0
    worked = node.worked_seconds + paused
    node = nodes.move(tx, node, NodeStatus.ASSIGNED, waiting_reason=None, worked_seconds=worked)
    tx.emit(node.team_id, "node.assigned", node_id=node.id, agent_id=node.assignee_id)
    assert node.assignee_id is not None
    tx.wake(node.assignee_id, node.lane)
