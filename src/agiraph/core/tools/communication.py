"""Communication tools: messages to teammates, and messages and questions to the person."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events.mail import MessageSeen
from agiraph.core.domain.ids import AgentId
from agiraph.core.domain.messages import Message, MessageKind
from agiraph.core.domain.outcomes import Answer, Done, Pending
from agiraph.core.domain.persons import is_person, means_a_person
from agiraph.core.domain.provenance.grants import ASK_LASTS
from agiraph.core.domain.provenance.labels import join
from agiraph.core.domain.tools import ON_DEMAND
from agiraph.core.domain.work import ASKED_PERSON, WaitingOn
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import planning, requests, unfinished
from agiraph.core.services.lifecycle import spoken_questions
from agiraph.core.services.mail import absence, bus
from agiraph.core.services.members import roster
from agiraph.core.services.triggers import firing
from agiraph.core.store import messages, nodes, teams
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import tool
from agiraph.core.tools.work import SUMMARY_CHARACTERS

TOO_MANY = (
    f"Added to your last message: you have sent them {bus.MESSAGES_AN_HOUR} within an hour. Say "
    "the rest at the end, in your result; a question goes to them at once."
)

MAX_MINUTES = 366 * 24 * 60
IF_NOBODY = "If nobody answers in time, I do this: {}"
NO_DEFAULT = (
    "Go on without an answer: take the choice that is easiest to undo, and say in your result what "
    "you assumed."
)

MessageText = Annotated[
    str,
    Field(min_length=1, max_length=SUMMARY_CHARACTERS, description="Short; more goes into a file"),
]


@tool(
    effect="transaction",
    asks_teammate=True,
    always_granted=True,
    counts_as_work=False,
)
def send_message(
    tx: Tx,
    ctx: RunContext,
    to: Annotated[str, Field(description="A teammate, 'human' or 'everyone'")],
    content: MessageText,
    kind: Literal["info", "question", "urgent"] = "info",
) -> Answer:
    """Send a message. It is read at their next step; urgent ends their wait. After a question you
    wait for the answer.
    """
    stored: MessageKind = "message"
    match to.strip().lower():
        case roster.EVERYONE | "*":
            if kind == "question":
                raise Refused("A question goes to one teammate or the human: name whom you ask.")
            return _broadcast(tx, ctx, content, is_urgent=kind == "urgent")
        case word if means_a_person(word):
            if kind == "question":
                return ask_person(tx, ctx, content)
            # Hops count messages between agents; a person ends every such chain.
            recipient, hops = planning.person_for(tx, ctx.node), 0
            if (last := bus.last_of_too_many(tx, ctx.lease, recipient, content)) is not None:
                bus.append(tx, last, content)
                return Done(TOO_MANY)
            stored = _kind_for_person(ctx)
        case _:
            # One who has left comes back for a question: it starts work of theirs.
            recipient = teams.by_name(tx, ctx.team.id, to, with_retired=kind == "question").id
            if recipient == ctx.agent.id:
                raise Refused("That is you. Use a note or a checkpoint to remember something.")
            if kind == "question":
                return _ask_teammate(tx, ctx, recipient, content)
            hops = bus.next_hops(tx, ctx.lease, recipient)
    draft = bus.from_work(ctx.lease, recipient, content, hops=hops)
    title = firing.REMINDER if stored == "report" else ""
    draft = replace(draft, kind=stored, title=title)
    message = bus.send(tx, draft, is_urgent=kind == "urgent")
    return Done(f"Sent to {to}.{'' if is_person(recipient) else _receipt(message)}")


def _kind_for_person(ctx: RunContext) -> MessageKind:
    """Return `report`, which the inbox and channels show, for work that the agent has scheduled for
    itself: nobody is told its end. Other work speaks in the conversation."""
    is_own = ctx.node.source == "trigger" and ctx.node.creator_id == ctx.agent.id
    return "report" if is_own else "message"


def _receipt(message: Message) -> str:
    """Return whether the recipient reads the message now or at its next step."""
    if message.kind == "answer":
        return " It is the answer to their question."
    if message.seen_at is not None:
        return " Seen: they had nothing to do and take it up now."
    return " Queued: they hear it at their next step."


def _broadcast(tx: Tx, ctx: RunContext, content: str, *, is_urgent: bool) -> Done:
    draft = bus.from_work(ctx.lease, roster.EVERYONE, content, hops=ctx.node.hops + 1)
    sent = bus.broadcast(tx, draft, is_urgent=is_urgent)
    names = ", ".join(bus.name_of(tx, message.recipient) for message in sent)
    return Done(f"Sent to {names or 'nobody: you are alone on this team'}.")


def _ask_teammate(tx: Tx, ctx: RunContext, teammate: AgentId, question: str) -> Answer:
    """Send a question to a teammate and wait for the answer. Raise `Refused` with their question if
    they wait for an answer of this agent."""
    # Before waits are read: two nodes that begin to wait for each other must see each other.
    TEAMS.get(tx, ctx.team.id, lock=True)
    at_work = nodes.open_of(tx, teammate)
    unfinished.remind_or_release(tx, ctx.lease, [node.id for node in at_work])
    asked = spoken_questions.ask_teammate(tx, ctx.lease, teammate, question)
    reason = f"asked {bus.name_of(tx, teammate)}: {question}"
    return Pending(WaitingOn("reply", asked.id), reason)


@tool(
    effect="transaction",
    always_granted=True,
    counts_as_work=False,
    polls=True,
    in_sight=ON_DEMAND,
)
def check_messages(tx: Tx, ctx: RunContext) -> Answer:
    """Read messages that have come for you. They also reach you by themselves between steps."""
    unseen = messages.unseen(tx, ctx.agent.id, node_id=ctx.node.id)
    said = [bus.thread_text(tx, m, ctx.lease.thread_id) for m in unseen] or ["No new messages."]
    if unseen:
        # In the transaction that commits this answer: a crash leaves the messages unseen, and not
        # lost.
        messages.mark_seen(tx, [m.id for m in unseen])
        tx.emit(ctx.team.id, MessageSeen(message_ids=[m.id for m in unseen]))
    for sent in messages.unseen_from(tx, ctx.agent.id):
        said.append(f"Not heard yet by {bus.name_of(tx, sent.recipient)}: {sent.text[:80]!r}")
    label = join(m.label for m in unseen)
    return Done("\n".join(said), label=label, is_fenced=True)


@tool(
    effect="transaction",
    roles=frozenset({"worker"}),
    always_granted=True,
    counts_as_work=False,
)
def suggest_next(
    tx: Tx,
    ctx: RunContext,
    suggestion: Annotated[str, Field(min_length=1, max_length=SUMMARY_CHARACTERS)],
) -> Answer:
    """Suggest a further task to the coordinator, who decides. Say why."""
    coordinator = teams.coordinator(tx, ctx.team.id)
    if coordinator.id == ctx.agent.id:
        raise Refused("You are the coordinator: decide, and put it on the board if you agree.")
    hops = bus.next_hops(tx, ctx.lease, coordinator.id)
    draft = bus.from_work(ctx.lease, coordinator.id, suggestion, hops=hops)
    bus.send(tx, replace(draft, kind="suggestion"))
    return Done("The coordinator will hear it and decide.")


@tool(
    effect="transaction",
    asks_person=True,
    always_granted=True,
    counts_as_work=False,
    rare=frozenset({"default", "timeout_minutes"}),
    basic_for=frozenset({"coordinator"}),
)
def ask_human(
    tx: Tx,
    ctx: RunContext,
    question: Annotated[str, Field(min_length=1)],
    options: Annotated[list[str] | None, Field(description="To choose from")] = None,
    default: Annotated[
        str | None,
        Field(max_length=SUMMARY_CHARACTERS, description="Done if nobody answers"),
    ] = None,
    timeout_minutes: Annotated[float | None, Field(ge=1, le=MAX_MINUTES)] = None,
) -> Answer:
    """Ask the human what they alone can decide, all at once, and wait for the answer, which may
    take days.
    """
    return ask_person(tx, ctx, question, options, default, timeout_minutes)


def ask_person(
    tx: Tx,
    ctx: RunContext,
    question: str,
    options: list[str] | None = None,
    default: str | None = None,
    timeout_minutes: float | None = None,
) -> Answer:
    """Return the wait for a person's answer to a question, or the answer that they gave before."""
    text = question if default is None else f"{question}\n\n{IF_NOBODY.format(default)}"
    since = tx.now - bus.ANSWER_HOLDS
    if (before := messages.answered_question(tx, ctx.node.id, text, since=since)) is not None:
        return Done(
            f"You asked this before, and they answered: {before.text}\nGo on with that answer. If "
            "something has changed since, ask with what is new in the question."
        )
    own = None if timeout_minutes is None else timedelta(minutes=timeout_minutes)
    wait = requests.limit_of_question(ctx.team, own=own, has_default=default is not None)
    away = _away(absence.until(tx, planning.person_for(tx, ctx.node)))
    if wait is not None and _has_waited(tx, ctx, text, wait):
        return Done(unanswered(wait, default, away))
    asked = bus.ask(tx, ctx.lease, text=text, options=options or ())
    on, reason = WaitingOn("answer", asked.id), f"{ASKED_PERSON}{away}: {question}"
    if wait is None:
        return Pending(on, reason)
    left = wait - (tx.now - asked.created_at)
    return Pending(on, reason, left.total_seconds(), unanswered(wait, default, away))


def _has_waited(tx: Tx, ctx: RunContext, text: str, wait: timedelta) -> bool:
    """Whether this question has waited its time already, in this work or, if this work began by
    itself, in earlier work that has ended lately."""
    since = tx.now if ctx.node.trigger_id is None else tx.now - ASK_LASTS
    earlier = messages.unanswered_question(tx, ctx.agent.id, text, since=since)
    return earlier is not None and earlier.created_at + wait <= (earlier.closed_at or tx.now)


def _away(until: datetime | None) -> str:
    return "" if until is None else f" (away until {until:%Y-%m-%d %H:%M} UTC)"


def unanswered(waited: timedelta, default: str | None, away: str = "") -> str:
    """Return what the asker is told when the time limit is over."""
    then = f"Do now what you said you would: {default}" if default is not None else NO_DEFAULT
    minutes = round(waited.total_seconds() / 60)
    return (
        f"The human{away} has not answered within {minutes:,} minutes. {then}\n"
        "The question stays in their inbox, and an answer that comes while you work reaches you as "
        "a message. Do not ask it again."
    )
