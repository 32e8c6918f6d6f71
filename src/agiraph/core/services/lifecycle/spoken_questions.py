"""Spoken questions: ask a teammate or a person for a node, and release those who wait in vain.

A reply without a tool call reaches nobody. If it ends in a question, the question is sent as a tool
would have sent it, and the node waits for the answer.
"""

from collections.abc import Callable
from dataclasses import replace

from agiraph.core.domain.chat import Lease, Turn
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.ids import SYSTEM, AgentId
from agiraph.core.domain.messages import MAX_HOPS, Message
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.text.spoken import for_person
from agiraph.core.domain.work import WaitingOn, WorkNode
from agiraph.core.services.board import labels, texts, unfinished, waiting
from agiraph.core.services.mail import bus
from agiraph.core.store import messages, nodes, teams, threads
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.tx import Tx

ASKED = (
    "[Runtime] You ended with a question, so it was sent to {whom}. You now wait for the answer, "
    "at no cost; a question to you, an urgent message or the person's word ends the wait, too."
)
NOT_HEARD = (
    "would not hear it: too many messages in a row have answered each other. Act on what you know, "
    "submit, or ask the human."
)
ANSWERED = " Your words were sent to {whom}, who had asked you and waited for your answer."


def park(
    tx: Tx, lease: Lease, *, reply: int, words: str, question: str | None, remark: str = ""
) -> list[Turn]:
    """Open waits for a node whose model replied in words: for unfinished work, else for an answer.

    Return the turn that tells the agent what it waits for; nothing if there is nothing to wait for.
    `reply` is the number of the reply in the thread, `question` the question that it ends with.
    If a worker on that unfinished work waits for an answer of this agent, the words are sent to it.
    """
    remark += _answer(tx, lease, words)
    turns = unfinished.open_waits(tx, lease, reply=reply, remark=remark)
    if turns or question is None or not for_person(question).strip():
        return turns
    return _ask(tx, lease, reply, question)


def _answer(tx: Tx, lease: Lease, words: str) -> str:
    """Send the words to the workers whose questions keep this node's tasks from ending.

    Return the sentence that tells the agent so; an empty string if nobody asked.
    """
    threads.check_lease(tx, lease)
    TEAMS.get(tx, lease.team_id, lock=True)  # first: see `unfinished.refuse_cycle`
    if not words.strip():
        return ""
    told: list[str] = []
    for asked in unfinished.questions_between(tx, lease, unfinished.awaited_ids(tx, lease)):
        if asked.seen_at is None:
            continue  # the words were said before the agent heard the question
        try:
            hops = bus.next_hops(tx, lease, asked.sender)
        except Refused:
            unfinished.release_asker(tx, asked)
            continue
        draft = bus.from_work(lease, asked.sender, words, hops=hops)
        bus.send(tx, draft, refusable=False)
        told.append(bus.name_of(tx, asked.sender))
    return ANSWERED.format(whom=", ".join(dict.fromkeys(told))) if told else ""


def _ask(tx: Tx, lease: Lease, reply: int, text: str) -> list[Turn]:
    append_at = threads.check_lease(tx, lease)
    # Two nodes that each begin to wait for the other would both find no cycle without this lock.
    TEAMS.get(tx, lease.team_id, lock=True)
    node = NODES.get(tx, lease.node_id)
    if _was_answered(tx, lease, text):
        return []
    teammate = _teammate(tx, node)
    try:
        asked = None if teammate is None else ask_teammate(tx, lease, AgentId(teammate), text)
    except Refused:
        asked = None
    if asked is None:
        asked = bus.ask(tx, lease, text=text, refusable=False)
    to_person = is_person(asked.recipient)
    if to_person and unfinished.has_waited(tx, lease, asked):
        return []
    on = WaitingOn("answer" if to_person else "reply", asked.id)
    text = ASKED.format(whom="the human" if to_person else bus.name_of(tx, asked.recipient))
    found = {on: texts.question_name(asked.text)}
    return unfinished.wait_in_words(tx, lease, append_at, found, reply=reply, text=text)


def _was_answered(tx: Tx, lease: Lease, text: str) -> bool:
    """Whether this node asked the same lately and was answered: it asks for nothing new."""
    words = text.split()
    since = tx.now - bus.ANSWER_HOLDS
    return any(
        asked.text.split()[: len(words)] == words
        for asked in messages.of_node(tx, lease.node_id)
        if asked.kind == "question" and asked.closed_at is None
        if asked.answered_at is not None and asked.answered_at >= since
    )


def _teammate(tx: Tx, node: WorkNode) -> str | None:
    """Return the id of the agent that assigned the node; its question goes to that agent.

    If that agent has left, return the coordinator, unless the assignee is the coordinator. None if
    the node is a goal, or if a person, a trigger, the runtime or the assignee itself created it.
    """
    creator = node.creator_id
    if node.is_goal or node.source == "trigger" or is_person(creator):
        return None
    if creator in (SYSTEM, node.assignee_id):
        return None
    agent = AGENTS.find(tx, creator)
    if agent is not None and agent.retired_at is None:
        return agent.id
    try:
        coordinator = teams.coordinator(tx, node.team_id).id
    except NotFound:
        return None
    return None if coordinator == node.assignee_id else coordinator


def ask_teammate(tx: Tx, lease: Lease, teammate: AgentId, text: str) -> Message:
    """Send a question to a teammate, or return the node's open question to them in these words.

    Raise `Refused` if the two have answered each other too often. The caller opens the wait and
    holds the team's row lock.
    """
    before = messages.open_question(tx, lease.node_id, text)
    if before is not None and before.recipient == teammate:
        return before
    hops = bus.next_hops(tx, lease, teammate)
    if hops >= MAX_HOPS and not nodes.has_open(tx, teammate):
        # The question would start no work, so nobody would read it.
        raise Refused(f"{bus.name_of(tx, teammate)} {NOT_HEARD}")
    draft = bus.from_work(lease, teammate, text.strip(), hops=hops)
    return bus.send(tx, replace(draft, kind="question"), refusable=False)


def answer_with_result(tx: Tx, node: WorkNode, report: Callable[[str], str]) -> bool:
    """Answer the question that an ended node was created from with the node's result, if it has no
    answer; return whether its asker waited for it."""
    if node.assignee_id is None or node.source != "delegation" or node.parent_id is not None:
        return False
    waited = 0
    for question in messages.open_questions_to(tx, node.assignee_id):
        if (question.sender, question.seen_at) == (node.creator_id, node.created_at):
            messages.answer(tx, question.id)
            label = labels.of_nodes(tx, [node.id])
            on = WaitingOn("reply", question.id)
            waited += waiting.settle(tx, on, report, label=label)
    return waited > 0


def release(tx: Tx, node: WorkNode) -> None:
    """End the waits of teammates for answers that this ended node's agent no longer gives.

    The caller has ended the node. A question that the agent has not seen becomes its next work.
    """
    if node.assignee_id is None or not node.is_work:
        return
    for question in messages.open_questions_to(tx, node.assignee_id):
        if question.seen_at is not None:
            unfinished.release_asker(tx, question)


def release_unheard(tx: Tx, agent_id: AgentId) -> None:
    """End the waits for answers of an agent that has no work left in which it could hear the
    questions. The caller holds the agent's row lock."""
    if not nodes.has_open(tx, agent_id):
        for question in messages.open_questions_to(tx, agent_id):
            unfinished.release_asker(tx, question)
