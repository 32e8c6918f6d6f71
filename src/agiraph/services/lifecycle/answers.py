"""Answers: a person answers a question or decides on a request for approval."""

from datetime import datetime

from agiraph.domain import fence, quotations
from agiraph.domain.chat import IN_WORDS
from agiraph.domain.errors import Refused
from agiraph.domain.grants import Grant, GrantKind
from agiraph.domain.ids import SYSTEM, AgentId, MessageId, PersonId, TeamId
from agiraph.domain.labels import CLEAN, Label
from agiraph.domain.messages import Decision, Message
from agiraph.domain.waits import WaitingOn
from agiraph.domain.work import NodeStatus
from agiraph.services.board import labels, stage_clocks, waiting
from agiraph.services.lifecycle import asks, burn_rate, daily_limit, grants
from agiraph.services.mail import bus
from agiraph.services.research import starting
from agiraph.store import daily_limits, messages, waits
from agiraph.store.nodes import NODES
from agiraph.store.teams import AGENTS, coordinator
from agiraph.store.tx import Tx

REFUSED = "The human refused this call."
AGAIN = "Make the same call again if you still want it: it is allowed now."
ENDED = "The work that asked has ended; nothing has to be done about it."


def answer_question(
    tx: Tx,
    question_id: MessageId,
    text: str,
    *,
    person_id: PersonId,
    decision: Decision | None = None,
    always: bool = False,
    label: Label = CLEAN,
) -> None:
    """Close a question or a request with a person's answer, and give it to the call that waits.

    The question is closed in the same transaction, so only the first answer counts. If no call
    waits any more, the answer goes to the agent as a message. `always` approves all later calls of
    the same kind as well, by a grant. The `label` is added to that of the person's words.
    """
    if (limited := daily_limits.asked_by(tx, question_id)) is not None:
        return daily_limit.decide(tx, limited.day, text, person_id=person_id, decision=decision)
    if always and decision != "approve":
        raise Refused("`always` belongs to an approval: set `decision` to `approve`.")
    question = bus.record_answer(
        tx, question_id, text, person_id=person_id, decision=decision, label=label
    )
    granted = grants.always(tx, question, person_id=person_id) if always else None
    if question.kind == "question":
        of_words = label | labels.of_person(tx, question.team_id, text)
        settled = waiting.settle(
            tx,
            WaitingOn("answer", question_id),
            lambda thread: quotations.enclose_quoted(text, thread=thread),
            label=of_words,
        )
        if not settled and not _goes_on_with(tx, question, text, person_id, of_words):
            asked = fence.one_line(question.text)
            _send(tx, question, f"(answering {asked!r}) {text}", person_id, label)
    elif burn_rate.is_about(question):
        burn_rate.decide(tx, question, decision)
    elif question.way_out is None:
        _decide_by_rule(tx, question, text, person_id=person_id, decision=decision)
    else:
        _decide(tx, question, text, person_id=person_id, decision=decision)
    if granted is not None:
        _approve_covered(tx, granted, person_id=person_id)
    if question.node_id is not None:
        stage_clocks.pause_or_resume_above(tx, question.node_id)
    return None


def _goes_on_with(tx: Tx, question: Message, text: str, person_id: PersonId, label: Label) -> bool:
    """Continue an ended research with the answer to its question. Return False if no research
    asked, if it still runs or was cancelled, or if the team has no room for another one."""
    node = None if question.node_id is None else NODES.get(tx, question.node_id)
    if node is None or node.research != "job":
        return False
    if not node.status.is_final or node.status is NodeStatus.CANCELLED:
        return False
    try:
        starting.continue_with_answer(tx, node, text, person_id=person_id, label=label)
    except Refused:
        return False
    return True


def _decide_by_rule(
    tx: Tx, question: Message, text: str, *, person_id: PersonId, decision: Decision | None
) -> None:
    """Give the decision on a request that a rule of the team made to the call that waits for it.

    If no call waits, it was interrupted and its agent is told, unless its node has ended.
    """
    note = f" They say: {text}" if text else ""
    # Without a text: the call is not answered but made, when the node runs again.
    refused = None if decision == "approve" else f"{REFUSED}{note}"
    on = WaitingOn("approval", question.id)
    if waiting.settle(tx, on, refused, failed=refused is not None) or _has_ended(tx, question):
        return
    _send(
        tx,
        question,
        f"(about {question.text!r}) {refused or f'Approved.{note} {AGAIN}'}",
        person_id,
    )


def _decide(
    tx: Tx,
    question: Message,
    text: str,
    *,
    person_id: PersonId,
    decision: Decision | None,
) -> None:
    """Give the decision on a request about a way out to its agent.

    A call that waits for it is made or refused. An agent that went on is told; if its node has
    ended, the approval allows the exact call once, to whatever work of the team makes it.
    """
    assert question.call is not None
    note = f" They say: {text}" if text else ""
    about = f"your request {question.id} to call {question.call.name}"
    is_approved = decision == "approve"
    on = WaitingOn("approval", question.id)
    told = f"[Runtime] The human approved {about}.{note} {AGAIN}"
    if not is_approved:
        told = f"[Runtime] The human refused {about}.{note}{_end_of_asking(tx, question)}"
    answer = None if is_approved else f"{REFUSED}{note}{_end_of_asking(tx, question)}"
    # A model that replied in words has no call that could be made or answered.
    in_words = any(wait.call_id == IN_WORDS for wait in waits.on(tx, on))
    if waiting.settle(tx, on, told if in_words else answer, failed=not is_approved):
        if is_approved and note and not in_words:
            # The call is made, and its answer has no place for the person's words.
            _tell(tx, question, f"The human approved {about}.{note}")
        return None
    if not _has_ended(tx, question):
        return _tell(tx, question, told.removeprefix("[Runtime] "))
    if is_approved and not _is_cancelled(tx, question) and not grants.is_covered(tx, question):
        grants.allow_once(tx, question, person_id=person_id)
    return _tell(tx, question, f"{told.removeprefix('[Runtime] ')} {ENDED}", with_call=True)


def _end_of_asking(tx: Tx, question: Message) -> str:
    """Return the sentence that forbids further requests, if too many were denied in a row."""
    if question.node_id is None:
        return ""
    sent = messages.asks_of_node(tx, question.node_id)
    return f" {asks.SUBMIT}" if asks.is_denied_often(sent) else ""


def allow(
    tx: Tx,
    *,
    kind: GrantKind,
    pattern: str,
    person_id: PersonId,
    team_id: TeamId | None,
    until: datetime | None = None,
) -> Grant:
    """Make a grant for a person, and approve the open requests that it covers."""
    made = grants.make(
        tx, kind=kind, pattern=pattern, person_id=person_id, team_id=team_id, until=until
    )
    _approve_covered(tx, made, person_id=person_id)
    return made


def _approve_covered(tx: Tx, grant: Grant, *, person_id: PersonId) -> None:
    """Approve the open requests that a new grant covers: their calls may wait for a decision."""
    for other in messages.open_asks(tx, grant.team_id):
        if grants.covers(grant, other, now=tx.now):
            answer_question(tx, other.id, "", person_id=person_id, decision="approve")


def _send(tx: Tx, question: Message, text: str, person_id: PersonId, label: Label = CLEAN) -> None:
    """Send the answer to the agent that asked, as a message of the person."""
    bus.send(
        tx,
        team_id=question.team_id,
        sender=person_id,
        recipient=_member_or_coordinator(tx, AgentId(question.sender)),
        text=text,
        in_reply_to=question.id,
        label=label,
    )


def _tell(tx: Tx, question: Message, text: str, *, with_call: bool = False) -> None:
    """Tell the agent that asked, by a notice: it starts no work and ends no wait for a person.

    The notice names the tool only. With the call it has the label of the request, because a page
    may have dictated the arguments.
    """
    bus.send(
        tx,
        team_id=question.team_id,
        sender=SYSTEM,
        recipient=_member_or_coordinator(tx, AgentId(question.sender)),
        kind="notice",
        text=text,
        in_reply_to=question.id,
        call=question.call if with_call else None,
        label=question.label if with_call else CLEAN,
        refusable=False,
    )


def _has_ended(tx: Tx, question: Message) -> bool:
    """Whether the node that asked has ended."""
    return question.node_id is None or NODES.get(tx, question.node_id).status.is_final


def _is_cancelled(tx: Tx, question: Message) -> bool:
    return (
        question.node_id is not None
        and NODES.get(tx, question.node_id).status is NodeStatus.CANCELLED
    )


def _member_or_coordinator(tx: Tx, agent_id: AgentId) -> AgentId:
    """Return this agent's id, or the coordinator's if the agent has left the team."""
    agent = AGENTS.get(tx, agent_id)
    return agent.id if agent.retired_at is None else coordinator(tx, agent.team_id).id
