"""Journal: every step of a thread, written under its lease before the next step starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from agiraph.domain.chat import (
    THINKING,
    Attachment,
    Lease,
    ProviderData,
    Reserved,
    ToolCall,
    Turn,
)
from agiraph.domain.events import PREVIEW
from agiraph.domain.ids import new_id
from agiraph.domain.outcomes import Answer, Done, Failed, Finished, Pending
from agiraph.domain.value import value
from agiraph.domain.waits import WaitingOn
from agiraph.domain.work import Halt, StopReason, Usage
from agiraph.services.board import budgets, leases, taint
from agiraph.services.board.budgets import Envelope
from agiraph.services.lifecycle import conversation, endings, teams
from agiraph.services.mail import bus
from agiraph.store import messages, nodes, spend, threads, waits
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

NO_REPLY = "I have your message, but something went wrong while I answered it: {why}"


@dataclass(frozen=True, slots=True)
class SystemNote:
    """Something the runtime has to say in a thread, once."""

    ref: str
    text: str


@value
class Reservation:
    """What the next model call may cost at most."""

    model: str
    tokens: int
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Heard:
    """What the yield point brought."""

    turns: list[Turn]
    halt: Halt | None = None
    spent: StopReason | None = None


def begin(
    tx: Tx,
    lease: Lease,
    *,
    system: str,
    assignment: str,
    attachments: tuple[Attachment, ...] = (),
    tainted_by: str | None = None,
) -> list[Turn]:
    """The first two entries of a thread: what the agent is told for good, and what to do.

    `tainted_by` is about the former; of the latter the node itself tells.
    """
    pen = _ThreadWriter(tx, lease)
    task = taint.of_task(tx, NODES.get(tx, lease.node_id))
    return [
        pen.write(role="system", ref="system", text=system, tainted_by=tainted_by),
        pen.write(
            role="user", ref="assignment", text=assignment, attachments=attachments, tainted_by=task
        ),
    ]


def answer(tx: Tx, lease: Lease, answers: Sequence[tuple[ToolCall, Done]]) -> Halt | None:
    """Answers of calls that neither end the node nor park it; and whether it should stop now."""
    pen = _ThreadWriter(tx, lease)
    for call, done in answers:
        pen.answer(call, done)
    return nodes.news(tx, lease.node_id).halt


def catch_up(
    tx: Tx,
    lease: Lease,
    *,
    answers: Sequence[tuple[ToolCall, Done]] = (),
    notices: Sequence[SystemNote] = (),
    hear: bool = True,
    reservation: Reservation | None = None,
    paid_from: Sequence[Envelope] = (),
) -> Heard:
    """The yield point: hear what was said meanwhile, and hold money for the next call.

    The answers that led here commit with it; what is held is the intent to ask the model. Not to
    hear leaves the mail for the next yield point.
    """
    pen = _ThreadWriter(tx, lease)
    for call, done in answers:
        pen.answer(call, done)
    news = nodes.news(tx, lease.node_id)
    if news.halt is not None:
        return Heard([], news.halt)
    if spent := budgets.check_envelopes(tx, lease, paid_from):
        return Heard([], spent=spent)
    turns = [pen.write(role="user", ref=n.ref, text=n.text) for n in notices]
    if hear and news.mail:
        unseen = messages.unseen(tx, lease.agent_id)
        messages.mark_seen(tx, [m.id for m in unseen])
        tx.emit(lease.team_id, "message.seen", message_ids=[m.id for m in unseen])
        turns += [
            pen.write(
                role="user",
                ref=m.id,
                text=bus.as_heard(tx, m),
                attachments=m.attachments,
                tainted_by=m.tainted_by,
            )
            for m in unseen
        ]
    if reservation is not None:
        reserved = Reserved(tokens=reservation.tokens, usd=reservation.usd)
        turns.append(
            pen.write(role="intent", ref=THINKING, text=reservation.model, reserved=reserved)
        )
    return Heard(turns)


def reply(
    tx: Tx,
    lease: Lease,
    *,
    text: str,
    calls: tuple[ToolCall, ...],
    model: str,
    usage: Usage,
    purpose: str = "work",
    provider_data: ProviderData | None = None,
) -> Turn:
    """A model's whole answer, with what it cost."""
    usage = usage.bounded()  # a count that no row can hold must not undo the reply
    turn = _ThreadWriter(tx, lease).write(
        role="assistant",
        text=text,
        calls=calls,
        model=model,
        usage=usage,
        provider_data=provider_data or ProviderData(),
    )
    spend.settle(tx, lease, purpose=purpose, model=model, usage=usage)
    tx.emit(
        lease.team_id,
        "turn.added",
        node_id=lease.node_id,
        thread_id=lease.thread_id,
        agent_id=lease.agent_id,
        seq=turn.seq,
        text=text[:PREVIEW],
        calls=[{"id": c.id, "name": c.name, "arguments": _argument_preview(c)} for c in calls],
        tokens=usage.tokens,
        usd=usage.usd,
    )
    return turn


def compact(tx: Tx, lease: Lease, *, ref: str, text: str) -> Turn:
    """The point from which the thread is shown again: a summary in place of all before it.

    What came before stays where it is; it is only no longer shown.
    """
    turn = _ThreadWriter(tx, lease).write(role="user", ref=ref, text=text, is_summary=True)
    tx.emit(lease.team_id, "thread.compacted", node_id=lease.node_id, thread_id=lease.thread_id)
    return turn


def record_lost_call(tx: Tx, lease: Lease, *, reason: str, unused: bool = False) -> None:
    """Write down that a model call brought nothing, and charge what was held for it.

    A call that certainly cost nothing (`unused`) is not charged.
    """
    if unused:
        leases.release_reservation(tx, lease)
    else:
        leases.charge_lost_call(tx, lease)
    tx.emit(lease.team_id, "model.failed", node_id=lease.node_id, reason=reason)


def intend(
    tx: Tx,
    lease: Lease,
    call: ToolCall,
    foreseen: dict[str, Any],
    *,
    timeout_s: float | None = None,
    tainted_by: str | None = None,
) -> Turn:
    """A call that must not be made twice is about to be made."""
    return _ThreadWriter(tx, lease).write(
        role="intent",
        ref=call.id,
        text=call.name,
        foreseen=foreseen,
        timeout_s=timeout_s,
        tainted_by=tainted_by,
    )


def record(tx: Tx, lease: Lease, call: ToolCall, answer: Answer) -> list[Turn]:
    """A call's answer; if it ends the node, the end commits with it."""
    pen = _ThreadWriter(tx, lease)
    if isinstance(answer, Pending):
        waits.open(tx, lease, call_id=call.id, waiting_on=answer.waiting_on, reason=answer.reason)
        if answer.seconds is not None:
            timer = new_id("timer")
            late = WaitingOn("time", timer)
            waits.open(tx, lease, call_id=call.id, waiting_on=late, reason=answer.if_late)
            waits.set_timer(tx, timer, tx.now + timedelta(seconds=answer.seconds))
        return []
    turn = pen.answer(call, answer)
    if answer.outcome is not None:
        end(tx, lease, answer.outcome)
    return [turn]


def perform(
    tx: Tx, lease: Lease, call: ToolCall, act: Callable[[Tx], Answer]
) -> tuple[Answer, list[Turn]]:
    """Do what the call asks and record its answer, together or not at all."""
    threads.check_lease(tx, lease)
    answer = act(tx)
    return answer, record(tx, lease, call, answer)


def ask_permission(
    tx: Tx, lease: Lease, call: ToolCall, ask: Callable[[Tx], Answer]
) -> tuple[Answer, list[Turn]]:
    """Whether a call may be made: recorded if the answer is no, or not known yet."""
    threads.check_lease(tx, lease)
    answer = ask(tx)
    if isinstance(answer, Pending) or answer.failed:
        return answer, record(tx, lease, call, answer)
    return answer, []


def end(tx: Tx, lease: Lease, outcome: Finished | Failed) -> None:
    """End the node, and with it a finite team whose goal that node was."""
    if isinstance(outcome, Failed) and NODES.get(tx, lease.node_id).lane == "reply":
        return conversation.end_reply(tx, lease, outcome, text=NO_REPLY.format(why=outcome.detail))
    teams.close_after(tx, endings.end_node(tx, lease, outcome))
    return None


class _ThreadWriter:
    """Writes on where a thread ends, as long as its lease holds."""

    def __init__(self, tx: Tx, lease: Lease) -> None:
        self._tx = tx
        self._lease = lease
        self._page = threads.check_lease(tx, lease)

    def write(self, **turn: Any) -> Turn:
        node_id = self._lease.node_id
        self._page, written = threads.append(self._tx, self._page, node_id=node_id, **turn)
        return written

    def answer(self, call: ToolCall, done: Done) -> Turn:
        self._tx.emit(
            self._lease.team_id,
            "tool.result",
            node_id=self._lease.node_id,
            call_id=call.id,
            tool=call.name,
            failed=done.failed,
            text=done.text[:PREVIEW],
        )
        return self.write(
            role="tool",
            ref=call.id,
            text=done.text,
            failed=done.failed,
            tainted_by=done.tainted_by,
        )


def _argument_preview(call: ToolCall) -> dict[str, Any]:
    """A call's arguments, short enough for an event."""
    if call.malformed is not None:
        return {"malformed": call.malformed[:PREVIEW]}
    return {
        name: value
        if not isinstance(value, str) or len(value) <= PREVIEW
        else value[:PREVIEW] + "…"
        for name, value in call.arguments.items()
    }
