"""Mail: anyone says something to anyone; questions get their own answers, the first one wins."""

from collections.abc import Sequence
from typing import Any

from agiraph.domain.agents import Agent
from agiraph.domain.chat import Attachment, Lease, ToolCall
from agiraph.domain.errors import AlreadyAnswered, Conflict, Refused
from agiraph.domain.events.mail import MessageSent, QuestionAnswered, QuestionAsked
from agiraph.domain.ids import HUMAN, AgentId, MessageId, NodeId, TeamId, new_id
from agiraph.domain.messages import (
    ASKS_FOR_WORK,
    INTERRUPTS,
    MOST_HOPS,
    NEEDS_ANSWER,
    Decision,
    Message,
    MessageKind,
)
from agiraph.services.board import planning, taint, texts, waiting
from agiraph.services.board.planning import name_of
from agiraph.services.mail import deliveries
from agiraph.services.members import roster
from agiraph.store import messages, nodes, teams
from agiraph.store.messages import MESSAGES
from agiraph.store.tx import Tx

TEXT_LIMIT = texts.MESSAGE


def send(
    tx: Tx,
    *,
    team_id: TeamId,
    sender: str,
    recipient: str,
    text: str,
    kind: MessageKind = "message",
    title: str = "",
    options: tuple[str, ...] = (),
    node_id: NodeId | None = None,
    in_reply_to: MessageId | None = None,
    ref: str | None = None,
    client_id: str | None = None,
    hops: int = 0,
    sets_to_work: bool = True,
    reply_id: NodeId | None = None,
    attachments: tuple[Attachment, ...] = (),
    refusable: bool = True,
    call: ToolCall | None = None,
) -> Message:
    """Store a message; its recipient hears it at the next yield point, or is given it as work.

    What the runtime itself reports is not refusable: it is shortened or filled in instead, so that
    no text can keep a node from ending.
    """
    if not refusable:
        text, title = texts.fit_message(text), texts.truncate(title, texts.TITLE)
    if not text.strip():
        raise Refused("An empty message says nothing; write what you want to say.")
    if len(text) > TEXT_LIMIT:
        raise Refused(f"A message holds {TEXT_LIMIT:,} characters; publish a file and name it.")
    if client_id is not None and (before := messages.by_client(tx, team_id, client_id)):
        if (before.sender, before.recipient, before.text) == (sender, recipient, text):
            return before
        raise Conflict(f"{client_id!r} was used for another message; take a new client_id.")
    agent = None
    if recipient == HUMAN:
        teams.TEAMS.get(tx, team_id, lock=True)
    else:
        agent = teams.lock(tx, AgentId(recipient))
    becomes_work = (
        agent is not None
        and sets_to_work
        and kind in ASKS_FOR_WORK
        and hops < MOST_HOPS
        and not nodes.has_open(tx, agent.id)
    )
    message = Message(
        id=MessageId(new_id("msg")),
        team_id=team_id,
        seq=messages.next_seq(tx, team_id, recipient),
        sender=sender,
        recipient=recipient,
        text=text,
        created_at=tx.now,
        kind=kind,
        title=title,
        options=options,
        node_id=node_id,
        in_reply_to=in_reply_to,
        ref=ref,
        client_id=client_id,
        hops=hops,
        seen_at=tx.now if becomes_work else None,
        reply_id=reply_id,
        attachments=attachments,
        tainted_by=taint.of_words(tx, sender, node_id),
        call=call,
    )
    MESSAGES.insert(tx, message)
    deliveries.queue(tx, message)
    sent = QuestionAsked if kind in NEEDS_ANSWER else MessageSent
    tx.emit(
        team_id,
        sent(
            message_id=message.id,
            kind=kind,
            sender=sender,
            recipient=recipient,
            text=text,
            node_id=node_id,
        ),
    )
    if agent is not None:
        if becomes_work:
            become_work(tx, agent, [message])
        elif kind in INTERRUPTS and reply_id is None:  # a reply decides who should hear it now
            waiting.interrupt(tx, agent.id, [message])
    return message


def broadcast(
    tx: Tx,
    *,
    team_id: TeamId,
    sender: str,
    text: str,
    node_id: NodeId | None = None,
    hops: int = 0,
) -> list[Message]:
    """Say something to everyone on the team but oneself.

    Of those with nothing to do only the coordinator takes it up; the others hear it when they are
    next at work: what is said to all should not cost a piece of work each.
    """
    return [
        send(
            tx,
            team_id=team_id,
            sender=sender,
            recipient=agent.id,
            text=text,
            node_id=node_id,
            hops=hops,
            sets_to_work=agent.role == "coordinator",
        )
        for agent in teams.members(tx, team_id)
        if agent.id != sender
    ]


def hops_to(tx: Tx, lease: Lease, recipient: str) -> int:
    """How long the exchange with this recipient is that the next message would belong to."""
    node = nodes.NODES.get(tx, lease.node_id)
    last = messages.last_seen_from(tx, lease.agent_id, recipient)
    is_recent = last is not None and (
        node.started_at is None or last.seen_at is None or last.seen_at >= node.started_at
    )
    hops = 1 + max(node.hops, last.hops if last is not None and is_recent else 0)
    if hops > MOST_HOPS:
        raise Refused(
            f"You and {name_of(tx, recipient)} have answered each other {MOST_HOPS} times in a "
            "row. Act on what you know, hand in, or ask the human."
        )
    return hops


def become_work(tx: Tx, agent: Agent, heard: Sequence[Message]) -> None:
    """What was said to an agent with nothing to do is what it does next."""
    from_human = any(message.sender == HUMAN for message in heard)
    node = planning.create(
        tx,
        team_id=agent.team_id,
        task="\n\n".join(as_heard(tx, message) for message in heard),
        title=f"Message from {name_of(tx, heard[0].sender)}",
        source="user" if from_human else "delegation",
        creator_id=HUMAN if from_human else heard[0].sender,
        assignee_id=roster.reinstate(tx, agent).id,
        payer_id=None if from_human else heard[0].node_id,
        hops=max(message.hops for message in heard),
    )
    for message in heard:
        if message.attachments:
            MESSAGES.update(tx, message.id, node_id=node.id)


def as_heard(tx: Tx, message: Message) -> str:
    """A message the way it stands in its hearer's thread."""
    if message.kind in ("result", "failure"):
        return message.text  # in an envelope of its own
    kind = "" if message.kind in ("message", "nudge") else f" ({message.kind})"
    return f"[Message from {name_of(tx, message.sender)}{kind}] {message.text}"


def ask(
    tx: Tx,
    lease: Lease,
    *,
    text: str,
    kind: MessageKind = "question",
    options: Sequence[str] = (),
    ref: str | None = None,
    refusable: bool = True,
    call: ToolCall | None = None,
) -> Message:
    """Put a question before the person; its answer comes back by the question's id.

    A node that asks the same again while its question is open waits for that question.
    """
    if kind == "question":
        before = messages.open_question(tx, lease.node_id, text)
        if before is not None and before.options == tuple(options):
            return before
    return send(
        tx,
        team_id=lease.team_id,
        sender=lease.agent_id,
        recipient=HUMAN,
        kind=kind,
        text=text,
        options=tuple(options),
        node_id=lease.node_id,
        ref=ref,
        refusable=refusable,
        call=call,
    )


def close(tx: Tx, question_id: MessageId, text: str, *, decision: Decision | None) -> Message:
    """Write down the answer to a question, unless there is one already."""
    question = MESSAGES.get(tx, question_id)
    if question.kind not in NEEDS_ANSWER:
        raise Refused(
            f"{question_id} is a {question.kind}, not a question; send a message instead."
        )
    # The agent's row before the question's, as a message that interrupts the agent locks them.
    teams.lock(tx, AgentId(question.sender))
    question = MESSAGES.get(tx, question_id, lock=True)
    decided: dict[str, Any] = {} if decision is None else {"decision": decision}
    if not messages.answer(tx, question_id, **decided):
        assert question.answered_at is not None
        raise AlreadyAnswered(question_id, question.answered_at)
    tx.emit(
        question.team_id,
        QuestionAnswered(
            message_id=question_id,
            node_id=question.node_id,
            text=text,
            decision=decision,
        ),
    )
    reply = Message(
        id=MessageId(new_id("msg")),
        team_id=question.team_id,
        seq=messages.next_seq(tx, question.team_id, question.sender),
        sender=HUMAN,
        recipient=question.sender,
        text=text or (decision or ""),
        created_at=tx.now,
        kind="answer",
        node_id=question.node_id,
        in_reply_to=question_id,
        seen_at=tx.now,  # it is heard as the answer to its call
    )
    MESSAGES.insert(tx, reply)
    return question
