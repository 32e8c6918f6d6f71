"""Journal: write every step of a thread, under its lease, before the next step starts.

Each verb checks the lease first. The check locks the thread's row and compares epochs; a runner
whose thread was claimed again gets `Fenced` and writes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from agiraph.core.domain.chat import (
    AGAIN,
    LEAN_SYSTEM,
    THINKING,
    Attachment,
    Lease,
    Reserved,
    ToolCall,
    Turn,
)
from agiraph.core.domain.events import PREVIEW
from agiraph.core.domain.events.mail import MessageSeen
from agiraph.core.domain.events.work import (
    CallPreview,
    ModelFailed,
    ThreadCompacted,
    ToolResult,
    TurnAdded,
)
from agiraph.core.domain.ids import SYSTEM, new_id
from agiraph.core.domain.messages import ProviderFault
from agiraph.core.domain.outcomes import Answer, Done, Failed, Finished, Pending
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text.fence import without_marks
from agiraph.core.domain.value import dataclass, value
from agiraph.core.domain.work import Halt, StopReason, Timer, WaitingOn
from agiraph.core.services.board import budgets, labels, leases, texts
from agiraph.core.services.board.budgets import Envelope, LimitsOfRun
from agiraph.core.services.board.feature_verbs import verbs_of
from agiraph.core.services.lifecycle import claims, endings, teams
from agiraph.core.services.mail import bus
from agiraph.core.store import messages, nodes, spend, threads, waits
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS, coordinator
from agiraph.core.store.tx import Tx
from agiraph.models.base import Reply

GO_ON = "[Runtime] Your limits were raised meanwhile. Your tools are back: go on with the work."


@dataclass(frozen=True, slots=True)
class SystemNote:
    """A message of the runtime to the agent, written into a thread once; `ref` tells it apart."""

    ref: str
    text: str


@value
class Reservation:
    """The most that the next model call may cost: set aside from the budget until it ends."""

    model: str
    tokens: int
    usd: float = 0.0


@value
class CatchUpResult:
    """The result of a yield point: new turns, or new limits, or why the node must stop."""

    turns: Sequence[Turn] = ()
    halt: Halt | None = None
    spent: StopReason | None = None
    limits: LimitsOfRun | None = None


def begin(
    tx: Tx,
    lease: Lease,
    *,
    system: str,
    assignment: str,
    attachments: tuple[Attachment, ...] = (),
    label: Label = CLEAN,
    is_lean: bool = False,
    opened: Callable[[Tx], None] | None = None,
) -> list[Turn]:
    """Write the first two turns of a thread: the system prompt and the assignment.

    `label` is about the system prompt; the node knows about the assignment. `is_lean` is kept:
    it says which tools the thread shows. `opened` writes what else the beginning means.
    """
    if opened is not None:
        opened(tx)
    ref = LEAN_SYSTEM if is_lean else "system"
    write = _ThreadWriter(tx, lease).write
    task = labels.of_task(tx, NODES.get(tx, lease.node_id))
    return [
        write(role="system", ref=ref, text=system, label=label),
        write(role="user", ref="assignment", text=assignment, attachments=attachments, label=task),
    ]


def answer(
    tx: Tx, lease: Lease, answers: Sequence[tuple[ToolCall, Done | Turn]]
) -> tuple[Halt | None, bool]:
    """Write answers that neither end nor park the node; return a halt if one was requested, and
    whether a person's message waits."""
    writer = _ThreadWriter(tx, lease)
    for call, given in answers:
        if isinstance(given, Done):
            writer.answer(call, given)
        else:
            writer.keep(call, given)
    return nodes.news(tx, lease.node_id).halt, writer.has_word


def catch_up(
    tx: Tx,
    lease: Lease,
    *,
    answers: Sequence[tuple[ToolCall, Turn]] = (),
    notes: Sequence[SystemNote] = (),
    deliver_mail: bool = True,
    reservation: Reservation | None = None,
    paid_from: Sequence[Envelope] = (),
    outermost: str | None = None,
) -> CatchUpResult:
    """Write answers, notes and new mail, and reserve money for the next call: the yield point.

    All of it commits together. The reservation is an intent: if the thread ends with it after a
    crash, the call may have reached the vendor and is charged. `deliver_mail=False` leaves the mail
    for the next yield point. The envelopes in `paid_from` are locked, the outermost first. If their
    limits are new (the `outermost` budget is another), only the answers are written.
    """
    writer = _ThreadWriter(tx, lease)
    for call, turn in answers:
        writer.keep(call, turn)
    # The answers are written even if the node must stop now: the calls have been made.
    news = nodes.news(tx, lease.node_id)
    if news.halt is not None:
        return CatchUpResult(halt=news.halt)
    if outermost not in (None, news.outermost):
        return CatchUpResult(limits=budgets.current_limits(tx, lease.node_id, news.outermost))
    if spent := budgets.check_envelopes(tx, lease, paid_from):
        return CatchUpResult(spent=spent)
    turns = [writer.write(role="user", ref=n.ref, text=n.text) for n in notes]
    if deliver_mail and news.mail:
        turns += _deliver_mail(tx, lease, writer)
    if reservation is not None:
        reserved = Reserved(tokens=reservation.tokens, usd=reservation.usd)
        turns.append(
            writer.write(role="intent", ref=THINKING, text=reservation.model, reserved=reserved)
        )
    return CatchUpResult(turns=turns)


def _deliver_mail(tx: Tx, lease: Lease, writer: "_ThreadWriter") -> list[Turn]:
    """Write the agent's unseen messages into the thread and mark them as seen, together."""
    # Without the agent's lock: a message that commits meanwhile waits for the next yield point.
    unseen = messages.unseen(tx, lease.agent_id, node_id=lease.node_id)
    messages.mark_seen(tx, [m.id for m in unseen])
    tx.emit(lease.team_id, MessageSeen(message_ids=[m.id for m in unseen]))
    return [
        writer.write(
            role="user",
            ref=m.id,
            text=bus.thread_text(tx, m, lease.thread_id),
            attachments=m.attachments,
            label=m.label,
        )
        for m in unseen
    ]


def reply(
    tx: Tx,
    lease: Lease,
    given: Reply,
    *,
    purpose: str = "work",
    readings: Mapping[str, str],
) -> tuple[Turn, bool]:
    """Write a model's whole reply, and book what it cost in the same transaction. Return it, and
    whether a person's message waits.

    `readings` tells by a call's id how it was read, if the model wrote it in another form. If a
    try before it got no answer, that one costs what was reserved.
    """
    if given.after_lost:
        leases.charge_lost_try(tx, lease, purpose=purpose)
    usage = given.usage.bounded()  # a count that no row can hold must not undo the reply
    writer = _ThreadWriter(tx, lease)
    turn = writer.write(
        role="assistant",
        text=given.text,
        calls=given.calls,
        model=given.model,
        usage=usage,
        provider_data=given.provider_data,
        is_cut=given.is_cut,
    )
    # In one commit with the reply: a crash between the two would lose the cost or charge it twice.
    spend.settle(tx, lease, purpose=purpose, model=given.model, usage=usage)
    tx.emit(
        lease.team_id,
        TurnAdded(
            node_id=lease.node_id,
            thread_id=lease.thread_id,
            agent_id=lease.agent_id,
            seq=turn.seq,
            text=without_marks(given.text)[:PREVIEW],
            calls=[_call_preview(call, readings) for call in given.calls],
            tokens=usage.tokens,
            usd=usage.usd,
            refusal=turn.provider_data.refusal or None,
        ),
    )
    return turn, writer.has_word


def compact(tx: Tx, lease: Lease, *, ref: str, text: str) -> Turn:
    """Write a summary that the model is shown in place of all turns before it.

    The turns before it stay in the thread.
    """
    turn = _ThreadWriter(tx, lease).write(role="user", ref=ref, text=text, is_summary=True)
    tx.emit(lease.team_id, ThreadCompacted(node_id=lease.node_id, thread_id=lease.thread_id))
    return turn


def record_lost_call(tx: Tx, lease: Lease, *, reason: str, unused: bool = False) -> None:
    """Record that a model call gave no reply, and charge what was reserved for it.

    A call that certainly cost nothing (`unused`) is not charged.
    """
    if unused:
        leases.release_reservation(tx, lease)
    else:
        leases.charge_lost_call(tx, lease, cause="failed")
    tx.emit(lease.team_id, ModelFailed(node_id=lease.node_id, reason=reason))


def intend(
    tx: Tx,
    lease: Lease,
    call: ToolCall,
    foreseen: dict[str, Any],
    *,
    timeout_s: float | None = None,
    label: Label = CLEAN,
) -> Turn:
    """Write that a call is about to be made that must not be made twice.

    The tool may act only after this has committed: after a crash the intent is its only trace.
    """
    return _ThreadWriter(tx, lease).write(
        role="intent",
        ref=call.id,
        text=call.name,
        foreseen=foreseen,
        timeout_s=timeout_s,
        label=label,
    )


def record(tx: Tx, lease: Lease, call: ToolCall, answer: Answer) -> list[Turn]:
    """Write a call's answer, or its wait; if the answer ends the node, the end commits with it."""
    writer = _ThreadWriter(tx, lease)
    if isinstance(answer, Pending):
        for on in (answer.waiting_on, *answer.or_on):
            waits.open(tx, lease, call_id=call.id, waiting_on=on, reason=answer.reason)
        if answer.seconds is not None:
            timer = new_id("timer")
            # Two waits of one call. The first that ends answers the call and drops the other.
            late = WaitingOn("time", timer)
            waits.open(tx, lease, call_id=call.id, waiting_on=late, reason=answer.if_late)
            waits.set_timer(tx, Timer("wait", timer), tx.now + timedelta(seconds=answer.seconds))
        return []
    turn = writer.answer(call, answer)
    if answer.outcome is not None:
        end(tx, lease, answer.outcome)
    return [turn]


def perform(
    tx: Tx, lease: Lease, call: ToolCall, act: Callable[[Tx], Answer]
) -> tuple[Answer, list[Turn], bool]:
    """Run a transaction tool and write its answer: both commit, or neither. Return also whether a
    person's message waits."""
    has_word = threads.check_lease(tx, lease).has_word
    # After the check of the lease, which locks the thread: a fenced runner must change nothing.
    answer = act(tx)
    return answer, record(tx, lease, call, answer), has_word


def begin_wait(
    tx: Tx, lease: Lease, call: ToolCall, begin: Callable[[Tx], Answer]
) -> tuple[Answer, list[Turn]]:
    """Begin what a call of the runtime waits for; the wait and what was begun commit together."""
    threads.check_lease(tx, lease)
    answer = begin(tx)
    return answer, record(tx, lease, call, answer) if isinstance(answer, Pending) else []


def ask_permission(
    tx: Tx, lease: Lease, call: ToolCall, ask: Callable[[Tx], Answer]
) -> tuple[Answer, list[Turn]]:
    """Ask whether a call may be made; write the answer if it is a refusal or must be waited for."""
    threads.check_lease(tx, lease)
    answer = ask(tx)
    if isinstance(answer, Pending) or answer.failed:
        return answer, record(tx, lease, call, answer)
    return answer, []


def end(tx: Tx, lease: Lease, outcome: Finished | Failed) -> None:
    """End the node, and with it a finite team whose goal that node was."""
    if isinstance(outcome, Failed) and verbs_of(NODES.get(tx, lease.node_id)).failed(
        tx, lease, outcome
    ):
        return None
    if isinstance(outcome, Failed) and _has_new_limits(tx, lease, outcome):
        _ThreadWriter(tx, lease).write(role="user", ref=f"{AGAIN}:raised-{lease.epoch}", text=GO_ON)
        return claims.release(tx, lease)
    teams.close_after(tx, endings.end_node(tx, lease, outcome))
    return None


def _has_new_limits(tx: Tx, lease: Lease, outcome: Failed) -> bool:
    """Whether the node was extended after its run had met a limit. Then it must not end."""
    if outcome.under is None or not outcome.reason.is_limit:
        return False
    threads.check_lease(tx, lease)
    node = NODES.get(tx, lease.node_id, lock=True)
    return node.budget != outcome.under and not node.cancel_requested


def stop_for_model(
    tx: Tx,
    lease: Lease,
    *,
    reason: str,
    alternatives: Callable[[str], str],
    fault: ProviderFault | None = None,
) -> None:
    """End a run whose model refuses to work. A delegated node fails, so that its creator can choose
    another model of those that exist; any other node waits for a person's answer. A fault of its
    provider is asked about once, whatever work meets it."""
    node, model = NODES.get(tx, lease.node_id), AGENTS.get(tx, lease.agent_id).model
    is_asked_for = is_person(node.creator_id) or node.creator_id == SYSTEM
    if not node.is_step and (node.parent_id is None or is_asked_for):
        leads = lease.agent_id == coordinator(tx, lease.team_id).id
        text = texts.stopped_by_model(reason, lease.team_id if leads else None)
        return claims.ask_whether_to_continue(
            tx,
            lease,
            reason=reason,
            text=text,
            topic=fault or "model",
            ref=None if fault is None else model.removeprefix("text/").partition("/")[0],
        )
    detail = f"Its model {model!r} gave no answer: {reason} {alternatives(model)}".strip()
    return end(tx, lease, Failed(StopReason.MODEL_REFUSED, detail))


class _ThreadWriter:
    """Appends turns to a thread. Making one checks the lease and locks the thread's row.

    `has_word` says whether a person's message waited for the agent at that moment.
    """

    def __init__(self, tx: Tx, lease: Lease) -> None:
        self._tx = tx
        self._lease = lease
        self._append_at = threads.check_lease(tx, lease)
        self.has_word = self._append_at.has_word

    def write(self, **turn: Any) -> Turn:
        at, node_id = self._append_at, self._lease.node_id
        self._append_at, written = threads.append(self._tx, at, node_id=node_id, **turn)
        return written

    def answer(self, call: ToolCall, done: Done) -> Turn:
        self._tell(call, done.text, failed=done.failed)
        return self.write(role="tool", ref=call.id, text=done.text, **done.details)

    def keep(self, call: ToolCall, turn: Turn) -> None:
        """Write an answer whose turn the transcript has already."""
        self._tell(call, turn.text, failed=turn.failed)
        self._append_at = threads.put(self._tx, self._append_at, turn)

    def _tell(self, call: ToolCall, text: str, *, failed: bool) -> None:
        self._tx.emit(
            self._lease.team_id,
            ToolResult(
                node_id=self._lease.node_id,
                call_id=call.id,
                tool=call.name,
                failed=failed,
                text=without_marks(text)[:PREVIEW],
            ),
        )


def _call_preview(call: ToolCall, readings: Mapping[str, str]) -> CallPreview:
    return CallPreview(
        id=call.id,
        name=call.name,
        arguments=_argument_preview(call),
        reading=readings.get(call.id, "")[:PREVIEW] or None,
    )


def _argument_preview(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments, each cut to the length that an event may carry."""
    if call.malformed is not None:
        return {"malformed": call.malformed[:PREVIEW]}
    return {
        name: value
        if not isinstance(value, str) or len(value) <= PREVIEW
        else value[:PREVIEW] + "…"
        for name, value in call.arguments.items()
    }
