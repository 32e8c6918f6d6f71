"""Spoken questions: send the question that ends a reply in words to an agent or a person.

A reply without a tool call reaches nobody. If it ends in a question, the question is sent as a tool
would have sent it, and the node waits for the answer.
"""

from agiraph.domain.chat import IN_WORDS, WAITS, Lease, Turn
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.ids import SYSTEM, AgentId, NodeId
from agiraph.domain.messages import MAX_HOPS, Message
from agiraph.domain.persons import is_person
from agiraph.domain.spoken import for_person
from agiraph.domain.spoken_question import asked_in
from agiraph.domain.waits import WaitingOn
from agiraph.domain.work import WorkNode
from agiraph.services.board import cycles, texts, unfinished
from agiraph.services.mail import bus
from agiraph.store import messages, nodes, teams, threads, waits
from agiraph.store.nodes import NODES
from agiraph.store.teams import AGENTS, TEAMS
from agiraph.store.tx import Tx

ASKED = (
    "[Runtime] You ended with a question, and nobody reads your words. So it was sent to {whom}. "
    "You now wait for the answer, at no cost; a message to you ends the wait, too."
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
    TEAMS.get(tx, lease.team_id, lock=True)  # before the questions are read: see `cycles.refuse`
    if not words.strip():
        return ""
    told: list[str] = []
    for asked in cycles.questions(tx, lease, unfinished.open_task_ids(tx, lease)):
        if asked.seen_at is None:
            continue  # the words were said before the agent heard the question
        try:
            hops = bus.next_hops(tx, lease, asked.sender)
        except Refused:
            cycles.release(tx, asked)
            continue
        bus.send(
            tx,
            team_id=lease.team_id,
            sender=lease.agent_id,
            recipient=asked.sender,
            text=words,
            node_id=lease.node_id,
            hops=hops,
            refusable=False,
        )
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
    asked = None if teammate is None else _ask_teammate(tx, lease, node, teammate, text)
    if asked is None:
        asked = bus.ask(tx, lease, text=text, refusable=False)
    to_person = is_person(asked.recipient)
    if to_person and unfinished.has_waited(tx, lease, asked):
        return []
    on = WaitingOn("answer" if to_person else "reply", asked.id)
    waits.open(tx, lease, call_id=IN_WORDS, waiting_on=on, reason=texts.question_name(asked.text))
    unfinished.limit_wait(tx, lease, [on])
    whom = "the human" if to_person else bus.name_of(tx, asked.recipient)
    _, turn = threads.append(
        tx,
        append_at,
        node_id=lease.node_id,
        role="user",
        ref=f"{WAITS}{reply}",
        text=ASKED.format(whom=whom),
    )
    return [turn]


def _was_answered(tx: Tx, lease: Lease, text: str) -> bool:
    """Whether this node asked the same lately and was answered: it asks for nothing new."""
    words = text.split()
    since = tx.now - bus.ANSWER_HOLDS
    return any(
        asked.text.split()[: len(words)] == words
        for asked in messages.of_node(tx, lease.node_id)
        if asked.kind == "question" and asked.answered_at is not None and asked.answered_at >= since
    )


def is_question_to_giver(tx: Tx, node_id: NodeId, recipient: str, text: str) -> bool:
    """Whether a message asks the teammate that gave this work for something."""
    if asked_in(text) != "question":
        return False
    return _teammate(tx, NODES.get(tx, node_id)) == recipient


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


def _ask_teammate(tx: Tx, lease: Lease, node: WorkNode, teammate: str, text: str) -> Message | None:
    """Send the question to a teammate; None if the two have answered each other too often."""
    name = bus.name_of(tx, lease.agent_id)
    about = f"\n\n({name} asks this about {texts.title_of(node)} and waits for your answer: "
    try:
        hops = bus.next_hops(tx, lease, teammate)
    except Refused:
        return None
    if hops >= MAX_HOPS and not nodes.has_open(tx, AgentId(teammate)):
        return None  # the question would start no work, so nobody would read it
    return bus.send(
        tx,
        team_id=lease.team_id,
        sender=lease.agent_id,
        recipient=teammate,
        kind="question",
        text=f"{text.strip()}{about}send it as a message to {name}.)",
        node_id=lease.node_id,
        hops=hops,
        refusable=False,
    )


def release(tx: Tx, node: WorkNode) -> None:
    """End the waits of teammates for answers that this ended node's agent no longer gives.

    The caller has ended the node. A question that the agent has not seen becomes its next work.
    """
    if node.assignee_id is None or node.lane != "work":
        return
    for question in messages.open_questions_to(tx, node.assignee_id):
        if question.seen_at is not None:
            cycles.release(tx, question)
