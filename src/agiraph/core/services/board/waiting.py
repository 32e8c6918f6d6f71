"""Waiting: end the waits of parked nodes, because they are met or because a message arrived.

Removing a wait, writing the answer into the thread and putting the node back into its queue commit
together. A parked node has no runner, so its thread is written without a lease, under its row lock.
The clock of a stage is paused while a node in it waits for a person.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta

from agiraph.core.domain.chat import IN_WORDS, ToolCall
from agiraph.core.domain.events import PREVIEW
from agiraph.core.domain.events.mail import MessageSeen
from agiraph.core.domain.events.work import NodeAssigned, ToolResult
from agiraph.core.domain.ids import AgentId, MessageId, NodeId, TeamId, ThreadId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import CLEAN, Label, join
from agiraph.core.domain.stages import Stage
from agiraph.core.domain.text import quotations
from agiraph.core.domain.work import NodeStatus, Timer, WaitingOn
from agiraph.core.services.board import labels, requests
from agiraph.core.store import messages, nodes, stages, threads, waits
from agiraph.core.store.nodes import NODES
from agiraph.core.store.stages import STAGES
from agiraph.core.store.teams import AGENTS
from agiraph.core.store.tx import Tx
from agiraph.core.store.waits import Wait

_NO_CALL = ("", IN_WORDS)
"""Call ids of waits that belong to no tool call: the whole node parked, or its model replied in
plain text."""
_QUOTED = 2000
"""Characters of a person's message that are quoted in the answer to an interrupted call."""
_INTERRUPTED = (
    "Interrupted, because there is a message for you; it follows. What you waited for ({reason}) "
    "is still under way: wait again, or do something else first."
)
_SAID = "they said: {words}"
_FOLLOWS = "there is a message of a teammate for you, and it follows."
_NOT_ANSWERED = (
    "Not answered yet; {what}\n"
    "Your question stays open in their inbox.{settled} If you still need the answer, ask the same "
    "question again, word for word: you then wait for the same answer."
)
_SETTLED = " If they answered it with these words, go on."
_NOT_APPROVED = (
    "Not approved yet, so this call was not made; {what}\n"
    "The request for approval stays open in their inbox, and only a decision there approves the "
    "call. If you still want it, make the same call again: it then waits for the same decision."
)


def settle(
    tx: Tx,
    waiting_on: WaitingOn,
    text: str | Callable[[ThreadId], str] | None,
    *,
    failed: bool = False,
    label: Label = CLEAN,
) -> int:
    """Answer every wait for this and put the nodes back into their queues; return how many waited.

    Words of a teammate are given as a function of the waiting thread, which fences them for it.
    `label` is about the text; what the wait was for adds its own. Without a text the call gets no
    answer: it is made when the node runs again.
    """
    settled = waits.take(tx, waiting_on)
    label |= labels.of_wait(tx, waiting_on) if settled else CLEAN
    for wait in settled:
        answer = text(wait.thread_id) if callable(text) else text
        _append_answer(tx, wait, answer, failed=failed, label=label)
        _requeue(tx, wait)
    return len(settled)


def time_out(tx: Tx, timer: str) -> int:
    """End the waits for this timer. A call with a time limit gets its late answer."""
    settled = waits.take(tx, WaitingOn("time", timer))
    for wait in settled:
        for other in waits.of_node(tx, wait.node_id):
            if other.call_id == wait.call_id and other.kind == "approval":
                # The next call with these arguments finds the request, which is still open.
                requests.unbind(tx, MessageId(other.subject))
        _append_answer(tx, wait, wait.reason if wait.call_id else None, failed=False)
        _requeue(tx, wait)
        pause_or_resume_above(tx, wait.node_id)
    return len(settled)


def resume(tx: Tx, waiting_on: WaitingOn) -> int:
    """Put every node that waits for this back into its queue, whatever else it waits for.

    For nodes that parked as a whole; return how many. Their threads get no answer.
    """
    settled = waits.take(tx, waiting_on)
    for wait in settled:
        waits.drop(tx, wait.node_id)
        _requeue(tx, wait)
        pause_or_resume_above(tx, wait.node_id)
    return len(settled)


def interrupt(
    tx: Tx,
    agent_id: AgentId,
    said: Sequence[Message],
    *,
    asking_only: bool = False,
    remark: str = "",
) -> bool:
    """End the agent's waits that these messages end (`Message.ends_waits`), so that it hears them
    now.

    A question or request to a person stays open; the call's answer quotes a person's message with
    the `remark`. `asking_only` leaves nodes alone that wait for no person.
    Return whether a resumed node has the message in no answer and must hear it as mail.
    """
    unquoted = False
    for node in nodes.waiting(tx, agent_id):
        # A call with a time limit has two waits; sort the timer behind the real one.
        open_waits = sorted(waits.of_node(tx, node.id), key=_is_time)
        asks = any(_is_for_person(wait) for wait in open_waits)
        # It sleeps because its model cannot be reached, or the day's money is spent: woken early,
        # it would fail and sleep again.
        if any(_is_time(wait) and not wait.call_id for wait in open_waits):
            continue
        heard = [m for m in said if m.is_heard_in(node.id) and _is_heard(m, open_waits)]
        if not heard or (asking_only and not asks):
            continue
        if any(wait.call_id == IN_WORDS for wait in open_waits):
            unquoted |= _end_waits(tx, open_waits)
            continue
        # Its run has ended, or has not begun: it could not read the message now. The wait is the
        # runtime's own, for an approval or a review; woken, the node would only wait again.
        if open_waits[0].call_id and _is_program(tx, agent_id):
            continue
        if not asks:
            unquoted |= _end_waits(tx, open_waits)
            continue
        new = [m for m in heard if not threads.has_ref(tx, open_waits[0].thread_id, m.id)]
        if new:
            unquoted |= _end_waits(tx, open_waits, new, remark)
            pause_or_resume_above(tx, node.id)
    return unquoted


def _is_heard(message: Message, open_waits: Sequence[Wait]) -> bool:
    """Whether a message ends the waits of a node."""
    if any(_is_for_person(wait) and not wait.call_id for wait in open_waits):
        # The node cannot go on before a person has acted: its model is refused, or it crashed.
        return message.ends_waits == "all" and is_person(message.sender)
    is_for_teammates = not any(_is_for_person(wait) for wait in open_waits) or any(
        wait.call_id == IN_WORDS and not _is_for_person(wait) and not _is_time(wait)
        for wait in open_waits
    )
    return message.ends_waits == "all" or (message.ends_waits == "teammates" and is_for_teammates)


def mark_told(tx: Tx, team_id: TeamId, unread: list[MessageId]) -> None:
    """Mark messages as seen whose recipient is told what they say in another way."""
    if unread:
        messages.mark_seen(tx, unread)
        tx.emit(team_id, MessageSeen(message_ids=[*unread]))


def asks_person(tx: Tx, agent_id: AgentId) -> bool:
    """Whether a node of this agent waits for a person."""
    parked = nodes.waiting(tx, agent_id)
    return any(_is_for_person(wait) for node in parked for wait in waits.of_node(tx, node.id))


def _end_waits(
    tx: Tx, open_waits: Sequence[Wait], heard: Sequence[Message] = (), remark: str = ""
) -> bool:
    """Answer every waiting call of a node and requeue it; return whether a wait had no call.

    `heard` are the messages that end a wait for a person: those of people are quoted.
    """
    quoted = [message for message in heard if is_person(message.sender)]
    label = join(message.label for message in quoted)
    words = _quote(quoted, open_waits[0].thread_id) + remark
    what = _SAID.format(words=words) if quoted else _FOLLOWS
    settled = _SETTLED if quoted else ""
    answered: set[str] = set()
    for wait in open_waits:
        if wait.call_id in answered:
            continue
        answered.add(wait.call_id)
        if wait.call_id in _NO_CALL:
            waits.drop_call(tx, wait)
        elif wait.kind == "approval":
            requests.unbind(tx, MessageId(wait.subject))
            _append_answer(tx, wait, _NOT_APPROVED.format(what=what), failed=True, label=label)
        elif _is_for_person(wait):
            text = _NOT_ANSWERED.format(what=what, settled=settled)
            _append_answer(tx, wait, text, failed=False, label=label)
        else:
            # The agent needs the id to wait again; people read the reason without it.
            on = wait.waiting_on
            is_named = on.kind == "node" and on.id not in wait.reason
            reason = f"{wait.reason} ({on.id})" if is_named else wait.reason
            _append_answer(tx, wait, _INTERRUPTED.format(reason=reason), failed=False)
    _requeue(tx, open_waits[0])
    return not answered.isdisjoint(_NO_CALL)


def _quote(words: Sequence[Message], thread: str) -> str:
    said = "\n".join(message.text for message in words)
    return quotations.enclose_quoted(said, thread=thread, longest=_QUOTED)


def _is_program(tx: Tx, agent_id: AgentId) -> bool:
    return not AGENTS.get(tx, agent_id).has_model


def _is_for_person(wait: Wait) -> bool:
    return wait.waiting_on.is_for_person


def _is_time(wait: Wait) -> bool:
    return wait.kind in ("time", "day")


def _append_answer(
    tx: Tx, wait: Wait, text: str | None, *, failed: bool, label: Label = CLEAN
) -> None:
    if wait.call_id:
        waits.drop_call(tx, wait)
    append_at = threads.append_point(tx, wait.thread_id)
    if text is None:
        return
    calls = threads.open_calls(tx, wait.thread_id)
    if not wait.call_id and (calls or append_at.head == 0):
        # Vendors refuse a message between a call and its answer, and nothing may precede the
        # assignment. The agent hears the answer as mail at its next yield point instead.
        return messages.mark_answer_unseen(tx, wait.subject)
    for call in calls:
        if call.id == wait.call_id:
            _emit_result(tx, wait, call, text, failed=failed)
    is_call = wait.call_id not in _NO_CALL
    if wait.call_id == IN_WORDS and wait.kind == "answer":
        # No call shows which question was answered.
        text = f"[Message from human] (answering {wait.reason}) {text}"
    threads.append(
        tx,
        append_at,
        node_id=wait.node_id,
        role="tool" if is_call else "user",
        ref=wait.call_id if is_call else str(wait.waiting_on),
        text=text,
        failed=failed,
        label=label,
    )


def _emit_result(tx: Tx, wait: Wait, call: ToolCall, text: str, *, failed: bool) -> None:
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


def _requeue(tx: Tx, wait: Wait) -> None:
    node = NODES.get(tx, wait.node_id, lock=True)
    # Two waits of a node may end at the same time. The second transaction waits for the row lock
    # above and only then counts the waits, so one of the two finds none left and requeues the node.
    if node.status is not NodeStatus.WAITING or waits.of_node(tx, node.id):
        return
    # A sleep counts towards the node's time limit; waiting for people, for teammates or for the
    # next day's money does not.
    is_work = wait.kind == "time" and not wait.call_id
    paused = (tx.now - wait.created_at).total_seconds() if is_work else 0.0
    worked = node.worked_seconds + paused
    node = nodes.move(tx, node, NodeStatus.ASSIGNED, waiting_reason=None, worked_seconds=worked)
    assert node.assignee_id is not None
    tx.emit(node.team_id, NodeAssigned(node_id=node.id, agent_id=node.assignee_id))
    tx.wake(node.assignee_id, node.lane)


def stage_timer(stage: Stage) -> Timer:
    return Timer("stage", stage.id)


def stage_seconds_left(tx: Tx, stage: Stage) -> float:
    """Return the seconds until the stage times out, without its finished pauses."""
    passed = (tx.now - stage.created_at).total_seconds() - stage.paused_seconds
    return stage.contract.timeout_seconds - passed


def pause_or_resume_above(tx: Tx, node_id: NodeId) -> None:
    """Pause or resume the clocks of all stages above a node, by what their nodes wait for now.

    Call it after a node's waits changed, in the same transaction. Locks the rows of these stages.
    """
    for stage in stages.above(tx, node_id):
        pause_or_resume(tx, stage)


def pause_or_resume(tx: Tx, stage: Stage) -> None:
    """Pause a stage's clock while a node in it waits for a person; resume it afterwards.

    A pause leaves the timer's row: if it fires, `stages.check_deadline` ignores it. Resuming sets
    the timer anew, by the time that is left.
    """
    asked = stages.waits_for_person(tx, stage.id)
    if asked and stage.paused_since is None:
        STAGES.update(tx, stage.id, paused_since=tx.now)
    elif not asked and stage.paused_since is not None:
        paused = stage.paused_seconds + (tx.now - stage.paused_since).total_seconds()
        STAGES.update(tx, stage.id, paused_since=None, paused_seconds=paused)
        left = stage_seconds_left(tx, STAGES.get(tx, stage.id))
        waits.set_timer(tx, stage_timer(stage), tx.now + timedelta(seconds=max(left, 0)))
