"""Journal: every step of a thread, written under its lease before the next step starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from agiraph.domain.chat import THINKING, Attachment, Lease, ToolCall, Turn
from agiraph.domain.events import PREVIEW
from agiraph.domain.ids import HUMAN, AgentId, MessageId, new_id
from agiraph.domain.messages import Decision, Message
from agiraph.domain.outcomes import Answer, Done, Failed, Finished, Pending
from agiraph.domain.value import value
from agiraph.domain.work import Halt, StopReason, Usage
from agiraph.services.board import budgets, leases, stage_clocks, taint, waiting
from agiraph.services.board.budgets import Envelope
from agiraph.services.lifecycle import conversation, endings, teams
from agiraph.services.mail import bus
from agiraph.store import messages, nodes, spend, threads, waits
from agiraph.store.nodes import NODES
from agiraph.store.teams import AGENTS, TEAMS, members
from agiraph.store.tx import Tx

NO_REPLY = "I have your message, but something went wrong while I answered it: {why}"


@dataclass(frozen=True, slots=True)
class Notice:
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
    pen = _Pen(tx, lease)
    task = taint.extra(taint.of_task(tx, nodes.NODES.get(tx, lease.node_id)))
    return [
        pen.write(role="system", ref="system", text=system, extra=taint.extra(tainted_by)),
        pen.write(
            role="user", ref="assignment", text=assignment, attachments=attachments, extra=task
        ),
    ]


def answer(tx: Tx, lease: Lease, answers: Sequence[tuple[ToolCall, Done]]) -> Halt | None:
    """Answers of calls that neither end the node nor park it; and whether it should stop now."""
    pen = _Pen(tx, lease)
    for call, done in answers:
        pen.answer(call, done)
    return nodes.news(tx, lease.node_id).halt


def catch_up(
    tx: Tx,
    lease: Lease,
    *,
    answers: Sequence[tuple[ToolCall, Done]] = (),
    notices: Sequence[Notice] = (),
    hear: bool = True,
    reservation: Reservation | None = None,
    paid_from: Sequence[Envelope] = (),
) -> Heard:
    """The yield point: hear what was said meanwhile, and hold money for the next call.

    The answers that led here commit with it; what is held is the intent to ask the model. Not to
    hear leaves the mail for the next yield point.
    """
    pen = _Pen(tx, lease)
    for call, done in answers:
        pen.answer(call, done)
    news = nodes.news(tx, lease.node_id)
    if news.halt is not None:
        return Heard([], news.halt)
    if spent := budgets.spent(tx, lease, paid_from):
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
                text=bus.thread_text(tx, m),
                attachments=m.attachments,
                extra=taint.extra(m.tainted_by),
            )
            for m in unseen
        ]
    if reservation is not None:
        held = {"tokens": reservation.tokens, "usd": reservation.usd}
        turns.append(pen.write(role="intent", ref=THINKING, text=reservation.model, extra=held))
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
    extra: dict[str, Any] | None = None,
) -> Turn:
    """A model's whole answer, with what it cost."""
    usage = usage.bounded()  # a count that no row can hold must not undo the reply
    turn = _Pen(tx, lease).write(
        role="assistant", text=text, calls=calls, model=model, usage=usage, extra=extra
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
        calls=[{"id": c.id, "name": c.name, "arguments": _preview(c)} for c in calls],
        tokens=usage.tokens,
        usd=usage.usd,
    )
    return turn


def compact(tx: Tx, lease: Lease, *, ref: str, text: str) -> Turn:
    """The point from which the thread is shown again: a summary in place of all before it.

    What came before stays where it is; it is only no longer shown.
    """
    turn = _Pen(tx, lease).write(role="user", ref=ref, text=text, extra={"cut": True})
    tx.emit(lease.team_id, "thread.compacted", node_id=lease.node_id, thread_id=lease.thread_id)
    return turn


def lose_call(tx: Tx, lease: Lease, *, reason: str, unused: bool = False) -> None:
    """Write down that a model call brought nothing, and charge what was held for it.

    A call that certainly cost nothing (`unused`) is not charged.
    """
    if unused:
        leases.free_held(tx, lease)
    else:
        leases.charge_lost(tx, lease)
    tx.emit(lease.team_id, "model.failed", node_id=lease.node_id, reason=reason)


def intend(tx: Tx, lease: Lease, call: ToolCall, known: dict[str, Any]) -> Turn:
    """A call that must not be made twice is about to be made."""
    return _Pen(tx, lease).write(role="intent", ref=call.id, text=call.name, extra=known)


def record(tx: Tx, lease: Lease, call: ToolCall, answer: Answer) -> list[Turn]:
    """A call's answer; if it ends the node, the end commits with it."""
    pen = _Pen(tx, lease)
    if isinstance(answer, Pending):
        waits.open(tx, lease, call_id=call.id, waiting_on=answer.waiting_on, reason=answer.reason)
        if answer.seconds is not None:
            timer = new_id("timer")
            late = f"time:{timer}"
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


def weigh(
    tx: Tx, lease: Lease, call: ToolCall, ask: Callable[[Tx], Answer]
) -> tuple[Answer, list[Turn]]:
    """Whether a call may be made: recorded if the answer is no, or not known yet."""
    threads.check_lease(tx, lease)
    answer = ask(tx)
    if isinstance(answer, Pending) or answer.failed:
        return answer, record(tx, lease, call, answer)
    return answer, []


def answer_question(
    tx: Tx, question_id: MessageId, text: str, *, decision: Decision | None = None
) -> None:
    """A person's word, to the call that waits for it and to no other."""
    question = bus.record_answer(tx, question_id, text, decision=decision)
    note = f" They say: {text}" if text else ""
    if question.kind == "question":
        heard = waiting.settle(tx, f"answer:{question_id}", text)
        late = f"(answering {question.text!r}) {text}"
    elif decision == "approve":
        heard = waiting.settle(tx, f"approval:{question_id}", None) or _is_over(tx, question)
        allowed = "Make the same call again if you still want it: it is allowed now."
        late = f"(about {question.text!r}) Approved.{note} {allowed}"
    else:
        refused = f"The human refused this call.{note}"
        heard = waiting.settle(tx, f"approval:{question_id}", refused, failed=True)
        heard = heard or _is_over(tx, question)
        late = f"(about {question.text!r}) {refused}"
    if not heard:
        # Whoever asked has moved on; a late answer still counts, as a message.
        bus.send(
            tx,
            team_id=question.team_id,
            sender=HUMAN,
            recipient=_still_here(tx, AgentId(question.sender)),
            text=late,
            in_reply_to=question_id,
        )
    if question.node_id is not None:
        stage_clocks.hold_above(tx, question.node_id)


def _is_over(tx: Tx, question: Message) -> bool:
    """Whether the node that asked has ended, so that no call of it is left to approve."""
    return question.node_id is None or NODES.get(tx, question.node_id).status.is_final


def _still_here(tx: Tx, agent_id: AgentId) -> AgentId:
    """This agent; or the coordinator, if it has left the team since."""
    agent = AGENTS.get(tx, agent_id)
    return agent.id if agent.retired_at is None else members(tx, agent.team_id)[0].id


def end(tx: Tx, lease: Lease, outcome: Finished | Failed) -> None:
    """End the node. Only the goal's own node ends a finite team with it."""
    if isinstance(outcome, Failed) and NODES.get(tx, lease.node_id).lane == "reply":
        return conversation.conclude(tx, lease, outcome, text=NO_REPLY.format(why=outcome.detail))
    node = endings.conclude(tx, lease, outcome)
    team = TEAMS.get(tx, lease.team_id)
    if team.mode != "finite" or team.status != "active" or node.lane != "work":
        return None
    if node.parent_id is not None:
        return None
    if not node.is_goal:
        teams.close_again(tx, team.id)
    elif isinstance(outcome, Finished):
        teams.complete(tx, team.id, unless=node.id)
    elif not nodes.any_open_beside(tx, node):
        teams.stop(tx, team.id)
    return None


class _Pen:
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
        return self.write(role="tool", ref=call.id, text=done.text, extra=done.about)


def _preview(call: ToolCall) -> dict[str, Any]:
    """A call's arguments, short enough for an event."""
    if call.malformed is not None:
        return {"malformed": call.malformed[:PREVIEW]}
    return {
        name: value
        if not isinstance(value, str) or len(value) <= PREVIEW
        else value[:PREVIEW] + "…"
        for name, value in call.arguments.items()
    }
