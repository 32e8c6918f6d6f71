"""Routing: delivers a person's message, unchanged, to the node that it is about, and takes back one
thing that a reply did, because the person did not mean it.

The model that replies to the person chooses the node and, if the message has several parts, the
words of it; it adds none of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.events.mail import ReplyActUndone
from agiraph.core.domain.ids import SYSTEM, AgentId, MessageId, NodeId, PersonId, TriggerId
from agiraph.core.domain.messages import (
    NEEDS_ANSWER,
    Draft,
    Message,
    option_with_number,
)
from agiraph.core.domain.outcomes import Done
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import CLEAN, Label, join
from agiraph.core.domain.records.acts import Act, ActKind, describe
from agiraph.core.domain.text import fence, quotations
from agiraph.core.domain.tools import WorkDecision
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.board import texts
from agiraph.core.services.board.feature_verbs import find_verbs
from agiraph.core.services.lifecycle import answers, endings, restarts
from agiraph.core.services.lifecycle.teams import close_after
from agiraph.core.services.mail import bus
from agiraph.core.services.triggers import definitions, team_heartbeat
from agiraph.core.store import messages, nodes, teams
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx

ON_THE_CARD = (
    "{id} is a request for approval. Words in a conversation approve nothing: the person decides "
    "on the card in their inbox, which shows exactly what would happen. Tell them that, and what "
    "it is about."
)

OWN_WORK = "its own work \u201c{title}\u201d"
"""Who is told what a person says, if it is the agent that replies to them."""
RESTS = " The team does nothing more for its goal by itself, until it has a new one."
WORK_ENDED = (
    "The work that asked {id} has ended, so the question is closed. If they want something done "
    "with their answer, call start_work; else tell them."
)
USED_UP = (
    "These words have answered \u201c{name}\u201d already; they answer one question. If the "
    "message answers both, name the words for each."
)
GO_ON_AGAIN = "[Runtime] The person takes back that this work was stopped: go on."
READ_AGAIN = " What they had said to you before and you have not read counts again: {words}."
TAKEN_BACK = "The person takes back what reached you from them: {words!r}. Undo it, too."
NOT_MEANT = (
    "The person takes back the answer to your question {name!r}: {words!r} was not meant "
    "for it. The question is open again; to wait for the answer, ask it once more, word for word."
)


def find_work(tx: Tx, agent: Agent, identity: str) -> WorkNode:
    """Return the node with this id, or the open one with this title; an agent's name means the work
    that the agent does now, or did last. Raise `NotFound` with the names of the agents that have
    work."""
    try:
        node = nodes.find(tx, agent.team_id, identity)
        if not node.is_work:
            # Reflections hold insights, and replies what others were told in confidence.
            raise Refused(f"{node.id} is not work; check_board lists the team's work.")
        return node
    except NotFound:
        found = teams.find_agent(tx, agent.team_id, identity.strip())
        if found is None:
            titled = [
                node
                for node in nodes.still_open(tx, agent.team_id)
                if quotations.is_same(texts.subject_of(node), identity)
            ]
            if len(titled) != 1:
                raise
            return titled[0]
    work = nodes.open_of(tx, found.id)
    last = work[0] if work else nodes.last_of(tx, found.id)
    if last is None:
        raise Refused(f"{found.name} has had no work yet; check_board lists all work.")
    return last


def tell(tx: Tx, agent: Agent, reply_id: NodeId, identity: str, words: str = "") -> Done:
    """Give the messages that a reply answers, or these words of them, to the agent of open work.

    The agent reads them at its next step; a wait for teammates ends. Work of the replying agent
    itself hears every message in any case (`conversation.end_reply`).
    """
    node = _hearing(tx, find_work(tx, agent, identity))
    asked = messages.to_answer(tx, reply_id)
    said = passage(asked, words)
    worker = teams.AGENTS.get(tx, node.assignee_id or agent.id)
    did = told(agent, node, worker.name, said)
    if worker.id == agent.id:
        return Done(f"Your own work hears it at its next step ({node.id}).", did=did)
    bus.send(
        tx,
        Draft(
            team_id=agent.team_id,
            sender=asked[-1].sender,
            recipient=worker.id,
            text=said,
            attachments=tuple(file for message in asked for file in message.attachments),
            label=join(message.label for message in asked),
        ),
        sets_to_work=False,
    )
    receipt = f"Sent to {worker.name}, word for word; read at the next step of {node.id}."
    return Done(receipt, did=did)


def told(agent: Agent, node: WorkNode, name: str, words: str) -> Act:
    """Return the act of telling this work something; `name` is who does it."""
    is_own = node.assignee_id == agent.id
    who = OWN_WORK.format(title=texts.subject_of(node)) if is_own else name
    return Act(kind="told", about=node.id, name=who, words=words)


def _hearing(tx: Tx, node: WorkNode) -> WorkNode:
    """Return the open work that hears what is said to a node; raise `Refused` if nobody would."""
    if node.is_step and not node.kind.hears_mail and node.parent_id is not None:
        # It is told nothing after it has begun; the work above hears it, and plans by it.
        node = NODES.get(tx, node.parent_id)
    if node.assignee_id is not None:
        # Under the worker's lock its work cannot end before the message is stored.
        teams.lock(tx, node.assignee_id)
        node = NODES.get(tx, node.id)
    if node.status.is_final:
        raise Refused(
            f"{node.id} has ended ({node.status}), so nobody there would hear it. To go on with "
            f'it, call start_work(continues="{node.id}").'
        )
    if node.cancel_requested:
        raise Refused(f"{node.id} is being stopped, so nobody there would hear it.")
    if not node.kind.hears_mail:
        raise Refused(
            f"{node.id} is a public reader, which is told nothing after it has begun. Stop it with "
            "stop_work and start the research anew, in the person's words."
        )
    if node.assignee_id is None:
        raise Refused(f"{node.id} is not assigned yet. Tell the work above it, or wait a minute.")
    return node


def answer(
    tx: Tx,
    agent: Agent,
    reply_id: NodeId,
    question_id: str,
    words: str = "",
    *,
    acts: Sequence[Act] = (),
) -> Done:
    """Answer an open question of the team with the messages that a reply answers, or with these
    words of them. Raise `Refused` for a request for approval, and for words that have answered
    another question among the reply's `acts`."""
    asked = messages.to_answer(tx, reply_id)
    person_id = PersonId(asked[-1].sender)
    question = _question(tx, agent, person_id, question_id)
    said = passage(asked, words)
    _refuse_used_words(tx, said, acts)
    given = option_with_number(question.options, said) or said
    answers.answer_question(tx, question.id, given, person_id=person_id)
    if question.sender == agent.id and said == passage(asked, ""):
        mark_heard(tx, asked)  # its own work has it as the answer
    did = Act(kind="answered", about=question.id, name=question.text, words=given)
    return Done(f"Answered {question.id} in the person's words.", did=did)


def _refuse_used_words(tx: Tx, said: str, acts: Sequence[Act]) -> None:
    """Raise `Refused` if these words, or a part of them, have answered a question."""
    for act in (act for act in acts if act.kind == "answered"):
        options = MESSAGES.get(tx, act.about).options
        was_option = option_with_number(options, said) == act.words
        if was_option or said in act.words or act.words in said:
            raise Refused(USED_UP.format(name=act.name))


def _question(tx: Tx, agent: Agent, person_id: PersonId, question_id: str) -> Message:
    """Return the question with this id; without an id, the newest one of the conversation."""
    known = messages.open_questions(tx, agent.team_id)
    if not question_id.strip():
        mine = [q for q in known if (q.sender, q.recipient) == (agent.id, person_id)]
        mine = [q for q in mine if q.kind == "question"]
        if not mine:
            raise Refused("You have no open question to them, so there is nothing to answer here.")
        return max(mine, key=lambda question: question.seq)
    question = MESSAGES.find(tx, question_id.strip())
    if question is None or question.team_id != agent.team_id:
        listed = ", ".join(q.id for q in known) or "none"
        raise Refused(f"There is no question {question_id!r}. Open questions: {listed}.")
    if question.kind == "approval":
        raise Refused(ON_THE_CARD.format(id=question.id))
    if question.kind not in NEEDS_ANSWER:
        raise Refused(f"{question.id} is not a question but a {question.kind}.")
    if answers.is_late(tx, question):
        raise Refused(WORK_ENDED.format(id=question.id))
    return question


def stop(tx: Tx, agent: Agent, reply_id: NodeId, identity: str) -> Done:
    """Cancel open work and all below it, as a person's message asks for.

    What that person had said to its agent before, and the agent has not read, is dropped with it.
    """
    node = find_work(tx, agent, identity)
    below = nodes.count_open_children(tx, node.id)
    is_resting = not node.is_goal or team_heartbeat.is_resting(tx, node.team_id)
    has_ended = node.status.is_final or node.cancel_requested
    if has_ended and not nodes.open_below(tx, node.id) and is_resting:
        how = f"has ended already ({node.status})" if node.status.is_final else "is being stopped"
        raise Refused(f"{node.id} {how}; there is nothing to stop.")
    asked = messages.to_answer(tx, reply_id)
    dropped = _drop_unread(tx, node, asked)
    rests = endings.stop(tx, node.id, by=asked[-1].sender, is_said=True)
    now = NODES.get(tx, node.id)
    how = "is cancelled" if now.status is NodeStatus.CANCELLED else "stops at its next step"
    with_it = " with all below it" if below else ""
    words = "; ".join(_quoted(message.text) for message in dropped)
    did = Act(kind="stopped", about=node.id, name=texts.subject_of(node), words=words)
    receipt = f"{node.id} {how}{with_it}. What it wrote so far stays in its folder."
    receipt += f" Not read any more: {words}." if words else ""
    return Done(receipt + (RESTS if rests else ""), did=did)


def drop_told_to_stopped(acts: Sequence[Act]) -> list[Act]:
    """Return a reply's acts with what it told to work that it has stopped as dropped with it:
    nobody hears it there."""
    stopped = {act.about for act in acts if act.kind == "stopped"}
    told = [act for act in acts if act.kind == "told" and act.about in stopped]
    found: list[Act] = []
    for act in (act for act in acts if act not in told):
        dropped = [_quoted(each.words) for each in told if each.about == act.about]
        new = (
            [words for words in dropped if words not in act.words] if act.kind == "stopped" else []
        )
        found.append(replace(act, words="; ".join(filter(None, (act.words, *new)))))
    return found


def drop_said_before(
    tx: Tx,
    agent: Agent,
    reply_id: NodeId,
    decided: frozenset[WorkDecision],
    acts: list[Act],
) -> list[Act]:
    """Return a reply's acts; if it did nothing but stop its agent's own work, with what the person
    had said in the messages before the last one, and nobody has read, as dropped with it."""
    before = [m.text for m in messages.to_answer(tx, reply_id)[:-1] if m.seen_at is None]
    if decided != frozenset[WorkDecision]({"stop"}) or not before:
        return acts
    stopped = (act for act in acts if act.kind == "stopped")
    own = [a for a in stopped if NODES.get(tx, NodeId(a.about)).assignee_id == agent.id]
    words = "; ".join(filter(None, [act.words for act in own[-1:]] + [*map(_quoted, before)]))
    return [replace(act, words=words) if act in own[-1:] else act for act in acts]


def _quoted(words: str) -> str:
    return f"\u201c{fence.one_line(words)}\u201d"


def _drop_unread(tx: Tx, node: WorkNode, asked: Sequence[Message]) -> list[Message]:
    """Mark what a person said to the agent of a node before, and it has not read, as seen."""
    if node.assignee_id is None:
        return []
    teams.lock(tx, node.assignee_id)
    now = {message.id for message in asked}
    unread = [
        message
        for message in messages.unseen(tx, node.assignee_id, node_id=node.id)
        if message.sender == asked[-1].sender
        and message.id not in now
        and not _is_later(message, asked[-1])
    ]
    mark_heard(tx, unread)
    return [message for message in unread if not bus.is_settled(tx, message)]


def _is_later(message: Message, other: Message) -> bool:
    """Whether a message was written after another one, perhaps to another agent."""
    if message.recipient == other.recipient:
        return message.seq > other.seq
    return message.created_at > other.created_at


def passage(asked: Sequence[Message], words: str) -> str:
    """Return the passage of a person's messages that a call names; without one, all of them."""
    said = [message.text for message in asked]
    part = words.strip()
    is_theirs = bool(part) and any(part in text for text in said)
    return part if is_theirs else "\n\n".join(said)


def left_over(
    tx: Tx, asked: Sequence[Message], decided: frozenset[WorkDecision], acts: Sequence[Act]
) -> str:
    """Return the words of a person's messages that nothing was done about, if only parts of them
    were passed on; empty if something was decided about all of them."""
    if not decided or not decided <= {"about_work", "answer"}:
        return ""
    rest = [message.text for message in asked]
    for act in (act for act in acts if act.kind in ("told", "answered")):
        options = MESSAGES.get(tx, act.about).options if act.kind == "answered" else ()
        # The number of an option stands for its words.
        said = str(options.index(act.words) + 1) if act.words in options else act.words
        rest = ["" if text in said else _without(text, said) for text in rest]
    words = [text.strip() for text in rest if any(character.isalnum() for character in text)]
    return "\n\n".join(words)


def _without(text: str, said: str) -> str:
    """Return a text without the first place where it says this, in the digits of any script."""
    at = _with_plain_digits(text).find(_with_plain_digits(said))
    return text if at < 0 else text[:at] + text[at + len(said) :]


def _with_plain_digits(text: str) -> str:
    return "".join(str(int(c)) if c.isdecimal() else c for c in text)


def mark_heard(tx: Tx, asked: Sequence[Message]) -> None:
    """Mark messages as heard by their agent, so that no work is made of them a second time."""
    messages.mark_seen(tx, [MessageId(m.id) for m in asked if m.seen_at is None])


def undo(tx: Tx, message_id: MessageId, place: int) -> Message:
    """Undo the act at this place of a reply; return the reply with the act marked as undone.

    Raise `Conflict` if it was undone before or cannot be undone any more.
    """
    reply = MESSAGES.get(tx, message_id, lock=True)
    if is_person(reply.sender) or not 0 <= place < len(reply.acts):
        raise NotFound("act", f"{message_id}/{place}")
    act = reply.acts[place]
    if act.undone_at is not None:
        raise Conflict(f"Undone before: {describe(replace(act, undone_at=None))}")
    _UNDO.get(act.kind, _undo_in_feature)(tx, reply, act)
    undone = replace(act, undone_at=tx.now)
    MESSAGES.update(tx, reply.id, acts=(*reply.acts[:place], undone, *reply.acts[place + 1 :]))
    tx.emit(
        reply.team_id,
        ReplyActUndone(
            message_id=reply.id,
            sender=reply.sender,
            recipient=reply.recipient,
            place=place,
            kind=act.kind,
            about=act.about,
            text=describe(undone),
        ),
    )
    return MESSAGES.get(tx, reply.id)


def _take_back_words(tx: Tx, reply: Message, act: Act) -> None:
    node = NODES.get(tx, NodeId(act.about))
    if node.status.is_final or node.assignee_id is None:
        raise Conflict("The work that was told has ended; nobody there hears it any more.")
    _tell_agent(tx, reply, node.assignee_id, TAKEN_BACK.format(words=act.words))


def _cancel_work(tx: Tx, reply: Message, act: Act) -> None:
    node = NODES.get(tx, NodeId(act.about))
    if node.status.is_final:
        raise Conflict(f"That work is {node.status} already; there is nothing to undo.")
    endings.cancel(tx, node.id, by=reply.recipient)
    if (ended := NODES.get(tx, node.id)).status.is_final:
        close_after(tx, ended)


def _go_on(tx: Tx, reply: Message, act: Act) -> None:
    """Put the stopped work back, and below it what was stopped with it and can go on."""
    node = NODES.get(tx, NodeId(act.about), lock=True)
    since = reply.created_at if reply.node_id is None else NODES.get(tx, reply.node_id).created_at
    read = READ_AGAIN.format(words=act.words) if act.words else ""
    back = restarts.with_below(
        tx, node, since=since, by=reply.recipient, text=GO_ON_AGAIN, own_text=GO_ON_AGAIN + read
    )
    # Of a goal that had ended only what the team does for it by itself was stopped.
    if not back and not (node.is_goal and node.status.is_final):
        raise Conflict(f"That work is {node.status} now; there is nothing to undo.")
    if node.is_goal or node.trigger_id is not None:
        definitions.revive(tx, node.team_id, with_goal=True)


def _reopen(tx: Tx, reply: Message, act: Act) -> None:
    question = MESSAGES.get(tx, MessageId(act.about), lock=True)
    node = None if question.node_id is None else NODES.get(tx, question.node_id)
    if node is None or node.status.is_final:
        raise Conflict("The work that asked has ended; that answer cannot be taken back any more.")
    messages.reopen(tx, question.id)
    text = NOT_MEANT.format(name=act.name, words=act.words)
    _tell_agent(tx, reply, AgentId(question.sender), text, question.label)


def _cancel_trigger(tx: Tx, reply: Message, act: Act) -> None:
    trigger = TRIGGERS.get(tx, act.about)
    if trigger.status not in ("active", "paused"):
        raise Conflict("It has fired or ended already; there is nothing to undo.")
    definitions.cancel(tx, TriggerId(act.about))


def _undo_in_feature(tx: Tx, reply: Message, act: Act) -> None:
    since = reply.created_at if reply.node_id is None else NODES.get(tx, reply.node_id).created_at
    if not any(verbs.undo_act(tx, reply, act, since=since) for verbs in find_verbs()):
        raise Conflict("What did it is not installed any more; there is nothing to undo.")


def _tell_agent(tx: Tx, reply: Message, to: AgentId, text: str, label: Label = CLEAN) -> None:
    """Tell an agent at its next step, before it can end its work; it starts no work, and a wait for
    teammates ends."""
    bus.send(
        tx,
        Draft(
            team_id=reply.team_id,
            sender=SYSTEM,
            recipient=to,
            kind="notice",
            text=text,
            topic="taken_back",
            label=label,
        ),
        refusable=False,
    )


_UNDO: Mapping[ActKind, Callable[[Tx, Message, Act], None]] = {
    "told": _take_back_words,
    "started": _cancel_work,
    "stopped": _go_on,
    "answered": _reopen,
    "reminder": _cancel_trigger,
    "trigger": _cancel_trigger,
}
