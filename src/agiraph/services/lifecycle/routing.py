"""Routing: delivers a person's message, unchanged, to the node that it is about.

The model that replies to the person chooses the node, and adds no words of its own. The message
then counts as read by the agent that replies, so that no second node is created from it.
"""

from collections.abc import Sequence

from agiraph.domain.agents import Agent
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.ids import AgentId, MessageId, NodeId, PersonId
from agiraph.domain.messages import NEEDS_ANSWER, Message
from agiraph.domain.status_questions import is_status_question
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.services.lifecycle import answers, endings
from agiraph.services.mail import bus
from agiraph.store import messages, nodes, teams
from agiraph.store.messages import MESSAGES
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

ON_THE_CARD = (
    "{id} is a request for approval. Words in a conversation approve nothing: the person decides "
    "on the card in their inbox, which shows exactly what would happen. Tell them that, and what "
    "it is about."
)


ONLY_ASKED = (
    "Not started: they only ask how things stand. Answer from what you see here and from "
    "look_into, read_report or search. If you have nothing on it, say so and offer to find it out."
)


def refuse_needless(tx: Tx, reply_id: NodeId) -> None:
    """Raise `Refused` if the messages that a reply answers only ask how things stand: work that is
    made of them would search for what the team already has."""
    asked = messages.to_answer(tx, reply_id)
    if asked and all(is_status_question(message.text) for message in asked):
        raise Refused(ONLY_ASKED)


def find_work(tx: Tx, agent: Agent, identity: str) -> WorkNode:
    """Return the node with this id; an agent's name means the work that the agent does now, or did
    last. Raise `NotFound` with the names of the agents that have work."""
    try:
        node = nodes.find(tx, agent.team_id, identity)
        if node.lane != "work":
            # Reflections hold insights, and replies what others were told in confidence.
            raise Refused(f"{node.id} is not work; check_board lists the team's work.")
        return node
    except NotFound:
        found = teams.find_agent(tx, agent.team_id, identity.strip())
        if found is None:
            raise
    work = nodes.open_of(tx, found.id)
    last = work[0] if work else nodes.last_of(tx, found.id)
    if last is None:
        raise Refused(f"{found.name} has had no work yet; check_board lists all work.")
    return last


def tell(tx: Tx, agent: Agent, reply_id: NodeId, identity: str) -> str:
    """Give the messages that a reply answers to the agent of open work, to the letter.

    Return the receipt. The agent reads them at its next step; a wait for teammates ends. Work of
    the replying agent itself hears them when the reply ends (`conversation.end_reply`).
    """
    node = find_work(tx, agent, identity)
    if node.is_research_part and node.parent_id is not None:
        # A reader is told nothing after it has begun; its job hears it, and plans by it.
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
    if node.is_public:
        raise Refused(
            f"{node.id} is a public reader, which is told nothing after it has begun. Stop it with "
            "stop_work and start the research anew, in the person's words."
        )
    if node.assignee_id is None:
        raise Refused(f"{node.id} is not assigned yet. Tell the work above it, or wait a minute.")
    if node.assignee_id == agent.id:
        return f"Your own work hears it at its next step ({node.id})."
    asked = messages.to_answer(tx, reply_id)
    for message in asked:
        bus.send(
            tx,
            team_id=agent.team_id,
            sender=message.sender,
            recipient=node.assignee_id,
            text=message.text,
            attachments=message.attachments,
            sets_to_work=False,
        )
    mark_heard(tx, asked)
    worker = teams.AGENTS.get(tx, node.assignee_id).name
    return f"Sent to {worker}, word for word; read at the next step of {node.id}."


def answer(tx: Tx, agent: Agent, reply_id: NodeId, question_id: str) -> str:
    """Answer an open question of the team with the messages that a reply answers, to the letter.

    Return the receipt. Raise `Refused` for a request for approval.
    """
    question = MESSAGES.find(tx, question_id.strip())
    if question is None or question.team_id != agent.team_id:
        known = ", ".join(q.id for q in messages.open_questions(tx, agent.team_id)) or "none"
        raise Refused(f"There is no question {question_id!r}. Open questions: {known}.")
    if question.kind == "approval":
        raise Refused(ON_THE_CARD.format(id=question.id))
    if question.kind not in NEEDS_ANSWER:
        raise Refused(f"{question.id} is not a question but a {question.kind}.")
    asked = messages.to_answer(tx, reply_id)
    said = "\n\n".join(message.text for message in asked)
    answers.answer_question(tx, question.id, said, person_id=PersonId(asked[-1].sender))
    mark_heard(tx, asked)
    return f"Answered {question.id} in the person's words."


def stop(tx: Tx, agent: Agent, reply_id: NodeId, identity: str) -> str:
    """Cancel open work and all below it, as a person's message asks for; return the receipt."""
    node = find_work(tx, agent, identity)
    has_open_below = nodes.count_open_children(tx, node.id) > 0
    if node.status.is_final and not has_open_below:
        raise Refused(f"{node.id} has ended already ({node.status}); there is nothing to stop.")
    endings.cancel(tx, node.id)
    mark_heard(tx, messages.to_answer(tx, reply_id))
    now = NODES.get(tx, node.id)
    how = "is cancelled" if now.status is NodeStatus.CANCELLED else "stops at its next step"
    below = " with all below it" if has_open_below else ""
    return f"{node.id} {how}{below}. What it wrote so far stays in its folder."


def settle_plain_answer(tx: Tx, agent_id: AgentId, said: Message) -> Message | None:
    """Answer the one open question of a conversation if a message is one of its options.

    The message is an option if it is its label or its number. No model is asked. Return the
    question; None if the message settles none. A request for approval is never settled here.
    """
    mine = [
        q
        for q in messages.open_questions(tx, said.team_id)
        if q.sender == agent_id and q.recipient == said.sender
    ]
    if len(mine) != 1 or mine[0].kind != "question" or said.attachments:
        return None
    [question] = mine
    chosen = _chosen(question.options, said.text)
    if chosen is None:
        return None
    answers.answer_question(tx, question.id, chosen, person_id=PersonId(said.sender))
    mark_heard(tx, [said])
    return question


def _chosen(options: Sequence[str], said: str) -> str | None:
    """Return the option that a text names, by its label or its number from 1; None if none."""
    plain = _plain(said)
    labels = [option for option in options if _plain(option) == plain]
    if len(labels) == 1:
        return labels[0]
    number = plain.removeprefix("number ").removeprefix("#")
    if not labels and number.isascii() and number.isdigit() and 1 <= int(number) <= len(options):
        return options[int(number) - 1]
    return None


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!,'\"")


def mark_heard(tx: Tx, asked: Sequence[Message]) -> None:
    """Mark messages as heard by their agent, so that no work is made of them a second time."""
    messages.mark_seen(tx, [MessageId(m.id) for m in asked if m.seen_at is None])
