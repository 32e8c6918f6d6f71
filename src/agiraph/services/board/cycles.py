"""Cycles: keeps an agent from waiting for work that cannot end before the agent's own work does.

If that work depends on the agent's own node, the wait is refused. If its worker waits for an answer
of the agent, the agent is reminded once; if the agent waits again without answering, the worker
decides by itself.
"""

from collections.abc import Iterable

from agiraph.domain import fence
from agiraph.domain.chat import Lease
from agiraph.domain.errors import AnswerFirst, Refused
from agiraph.domain.ids import NodeId
from agiraph.domain.messages import Message
from agiraph.domain.waits import WaitingOn
from agiraph.domain.work import WorkNode
from agiraph.services.board import planning, texts, waiting
from agiraph.store import dependencies, messages, threads, waits
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

REMINDER = (
    "Not waiting yet: {name} waits for your answer to {id}, and what you want to wait for cannot "
    "end before. Send the answer as a message to {name}, then wait again. If you wait again "
    "without an answer, {name} decides without you."
)
UNANSWERED = (
    "[Runtime] {whom} gave no answer to {question}. Decide yourself, go on, and say in your result "
    "what you decided."
)


def refuse(tx: Tx, lease: Lease, target: WorkNode) -> None:
    """Refuse a wait for this node if it would close a cycle.

    Locks the team's row: without it two transactions could each add half of a cycle.
    """
    # Held until the wait commits, so that the next transaction that looks for a cycle sees it.
    TEAMS.get(tx, target.team_id, lock=True)
    remind_or_release(tx, lease, [target.id])
    if dependencies.leads_to(tx, target.id, lease.node_id):
        raise Refused(
            f"{target.id} needs or waits for your own work, so neither would ever end. Go on "
            "without it, or submit what you have first."
        )


def questions(tx: Tx, lease: Lease, work: Iterable[NodeId]) -> list[Message]:
    """Return the questions to this agent that keep one of these nodes from ending."""
    nodes = list(work)
    return [
        question
        for question in messages.open_questions_to(tx, lease.agent_id)
        if question.node_id is not None
        and waits.on(tx, WaitingOn("reply", question.id))
        and any(dependencies.leads_to(tx, node, question.node_id) for node in nodes)
    ]


def remind_or_release(tx: Tx, lease: Lease, work: Iterable[NodeId]) -> None:
    """Settle what these nodes ask this agent, before the agent waits for them.

    Raise `AnswerFirst` with the question if the agent's thread holds no such reminder yet; else
    tell the node that asked to decide by itself. The caller holds the team's row lock.
    """
    for question in questions(tx, lease, work):
        if not _was_reminded(tx, lease, question):
            name = planning.name_of(tx, question.sender)
            asked = fence.enclose_words(
                texts.truncate(question.text, texts.REASON),
                thread=lease.thread_id,
                author=name,
                kind="a question",
            )
            told = f"{REMINDER.format(name=name, id=question.id)}\n{asked}"
            raise AnswerFirst(told, question.id)
        release(tx, question)


def _was_reminded(tx: Tx, lease: Lease, question: Message) -> bool:
    return any(turn.reminds_of == question.id for turn in threads.turns(tx, lease.thread_id))


def release(tx: Tx, question: Message) -> None:
    """End a teammate's wait for the answer to this question: it decides by itself."""
    messages.answer(tx, question.id)
    text = UNANSWERED.format(
        whom=planning.name_of(tx, question.recipient),
        question=texts.question_name(question.text),
    )
    waiting.settle(tx, WaitingOn("reply", question.id), text)
