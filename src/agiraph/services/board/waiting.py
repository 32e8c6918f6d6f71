"""Waiting: what is parked goes on when that comes about, or when somebody speaks."""

from collections.abc import Sequence

from agiraph.domain.chat import IN_WORDS, ToolCall
from agiraph.domain.errors import Refused
from agiraph.domain.events import PREVIEW
from agiraph.domain.events.work import NodeAssigned, ToolResult
from agiraph.domain.ids import HUMAN, AgentId, MessageId, NodeId
from agiraph.domain.messages import Message
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.services.board import approvals, stage_clocks, taint
from agiraph.store import dependencies, messages, nodes, threads, waits
from agiraph.store.nodes import NODES
from agiraph.store.teams import AGENTS, TEAMS
from agiraph.store.tx import Tx
from agiraph.store.waits import Wait

_FOR_PERSON = ("answer:", "approval:")
_NO_CALL = ("", IN_WORDS)
"""Call ids of waits that no call opened: the whole node parked, or it replied in words."""
_QUOTED = 2000
"""Characters of a person's message that the answer to an interrupted call repeats."""
_INTERRUPTED = (
    "Interrupted, because there is a message for you; it follows. What you waited for ({reason}) "
    "is still under way: wait again, or do something else first."
)
_NOT_ANSWERED = (
    "Not answered yet; they said: {words}\n"
    "Your question stays open in their inbox. If they answered it with these words, go on. If you "
    "still need the answer, ask the same question again, word for word: you then wait for the same "
    "answer."
)
_NOT_APPROVED = (
    "Not approved yet, so this call was not made; they said: {words}\n"
    "The request for approval stays open in their inbox, and only a decision there approves the "
    "call. If you still want it, make the same call again: it then waits for the same decision."
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


def interrupt(
    tx: Tx,
    agent_id: AgentId,
    said: Sequence[Message],
    *,
    asking_only: bool = False,
    remark: str = "",
) -> bool:
    """End the agent's waits because of these messages, so that it hears them now.

    Anyone's words end waits for teammates. Only a person's words end waits for a person, whose
    question or request for approval stays open; `remark` goes with the words. `asking_only` leaves
    nodes waiting that wait for no person.
    Return whether a node goes on that has the words in no answer and must hear them as mail.
    """
    from_person = [message for message in said if message.sender == HUMAN]
    unquoted = False
    for node in nodes.waiting(tx, agent_id):
        # A call with a time limit has two waits; what it really waits for comes first.
        open_waits = sorted(waits.of_node(tx, node.id), key=_is_time)
        asks = any(_is_for_person(wait) for wait in open_waits)
        if any(_is_time(wait) and not wait.call_id for wait in open_waits):
            continue  # its model cannot be reached: it tries again by itself
        if any(wait.call_id == IN_WORDS for wait in open_waits):
            if not asking_only or (asks and from_person):
                unquoted |= _end_waits(tx, open_waits, "")
            continue
        if asks and _is_program(tx, agent_id) and open_waits[0].call_id:
            continue  # it is not running, so it cannot hear: its inbox file holds the words later
        if asks:
            new = [m for m in from_person if not threads.has_ref(tx, open_waits[0].thread_id, m.id)]
            if new:
                unquoted |= _end_waits(tx, open_waits, _quoted(new) + remark)
                stage_clocks.hold_above(tx, node.id)
        elif not asking_only:
            unquoted |= _end_waits(tx, open_waits, "")
    return unquoted


def asks_person(tx: Tx, agent_id: AgentId) -> bool:
    """Whether work of this agent is parked on a question or an approval."""
    parked = nodes.waiting(tx, agent_id)
    return any(_is_for_person(wait) for node in parked for wait in waits.of_node(tx, node.id))


def _end_waits(tx: Tx, open_waits: Sequence[Wait], words: str) -> bool:
    """Answer every parked call of a node and let it go on; whether a wait had no call to answer."""
    answered: set[str] = set()
    for wait in open_waits:
        if wait.call_id in answered:
            continue
        answered.add(wait.call_id)
        if wait.call_id in _NO_CALL:
            waits.drop_call(tx, wait)
        elif wait.waiting_on.startswith("approval:"):
            approvals.unbind(tx, MessageId(wait.waiting_on.removeprefix("approval:")))
            _answer(tx, wait, _NOT_APPROVED.format(words=words), failed=True)
        elif _is_for_person(wait):
            _answer(tx, wait, _NOT_ANSWERED.format(words=words), failed=False)
        else:
            _answer(tx, wait, _INTERRUPTED.format(reason=wait.reason), failed=False)
    _go_on(tx, open_waits[0])
    return not answered.isdisjoint(_NO_CALL)


def _quoted(words: Sequence[Message]) -> str:
    said = "\n".join(message.text for message in words)
    return said if len(said) <= _QUOTED else said[:_QUOTED] + "…"


def _is_program(tx: Tx, agent_id: AgentId) -> bool:
    return AGENTS.get(tx, agent_id).kind == "cli"


def _is_for_person(wait: Wait) -> bool:
    return wait.waiting_on.startswith(_FOR_PERSON)


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
    is_call = wait.call_id not in _NO_CALL
    if wait.call_id == IN_WORDS and wait.waiting_on.startswith("answer:"):
        text = f"[Message from human] (answering {wait.reason}) {text}"  # no call says what to
    threads.append(
        tx,
        page,
        node_id=wait.node_id,
        role="tool" if is_call else "user",
        ref=wait.call_id if is_call else wait.waiting_on,
        text=text,
        extra=taint.extra(tainted_by, **({"failed": True} if failed else {})),
    )


def _tell(tx: Tx, wait: Wait, call: ToolCall, text: str, *, failed: bool) -> None:
    tx.emit(
        NODES.get(tx, wait.node_id).team_id,
        ToolResult(
            node_id=wait.node_id,
            call_id=call.id,
            tool=call.name,
            failed=failed,
            text=text[:PREVIEW],
        ),
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
    assert node.assignee_id is not None
    tx.emit(node.team_id, NodeAssigned(node_id=node.id, agent_id=node.assignee_id))
    tx.wake(node.assignee_id, node.lane)
