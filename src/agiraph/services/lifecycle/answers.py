"""Answers: a person answers a question or decides on a request for approval."""

from agiraph.domain import quotations
from agiraph.domain.ids import AgentId, MessageId, PersonId
from agiraph.domain.messages import Decision, Message
from agiraph.domain.waits import WaitingOn
from agiraph.services.board import labels, stage_clocks, waiting
from agiraph.services.lifecycle import daily_limit
from agiraph.services.mail import bus
from agiraph.store import daily_limits
from agiraph.store.nodes import NODES
from agiraph.store.teams import AGENTS, coordinator
from agiraph.store.tx import Tx


def answer_question(
    tx: Tx,
    question_id: MessageId,
    text: str,
    *,
    person_id: PersonId,
    decision: Decision | None = None,
) -> None:
    """Close a question or a request with a person's answer, and give it to the call that waits.

    The question is closed in the same transaction, so only the first answer counts. If no call
    waits any more, the answer goes to the agent as a message.
    """
    if (limited := daily_limits.asked_by(tx, question_id)) is not None:
        return daily_limit.decide(tx, limited.day, text, person_id=person_id, decision=decision)
    question = bus.record_answer(tx, question_id, text, person_id=person_id, decision=decision)
    note = f" They say: {text}" if text else ""
    if question.kind == "question":
        settled = waiting.settle(
            tx,
            WaitingOn("answer", question_id),
            lambda thread: quotations.enclose_quoted(text, thread=thread),
            label=labels.of_person(tx, question.team_id, text),
        )
        late = f"(answering {question.text!r}) {text}"
    elif decision == "approve":
        # Without a text: the call is not answered but made, when the node runs again.
        settled = waiting.settle(tx, WaitingOn("approval", question_id), None) or _has_ended(
            tx, question
        )
        allowed = "Make the same call again if you still want it: it is allowed now."
        late = f"(about {question.text!r}) Approved.{note} {allowed}"
    else:
        refused = f"The human refused this call.{note}"
        settled = waiting.settle(tx, WaitingOn("approval", question_id), refused, failed=True)
        settled = settled or _has_ended(tx, question)
        late = f"(about {question.text!r}) {refused}"
    if not settled:
        # No call waits: it was interrupted, or its node has ended.
        bus.send(
            tx,
            team_id=question.team_id,
            sender=person_id,
            recipient=_member_or_coordinator(tx, AgentId(question.sender)),
            text=late,
            in_reply_to=question_id,
        )
    if question.node_id is not None:
        stage_clocks.pause_or_resume_above(tx, question.node_id)
    return None


def _has_ended(tx: Tx, question: Message) -> bool:
    """Whether the node that asked has ended, so that there is no call left to approve."""
    return question.node_id is None or NODES.get(tx, question.node_id).status.is_final


def _member_or_coordinator(tx: Tx, agent_id: AgentId) -> AgentId:
    """Return this agent's id, or the coordinator's if the agent has left the team."""
    agent = AGENTS.get(tx, agent_id)
    return agent.id if agent.retired_at is None else coordinator(tx, agent.team_id).id
