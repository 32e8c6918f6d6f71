"""Summaries: keep what a person and an agent said long ago as a few sentences.

A reply shows the newest messages. What is older stands in a summary, which a node in the reflection
lane writes after the reply: the person does not wait for it, its cost is booked as any other, and
after a crash the node is claimed again. Until it is written, the older messages stand in the prompt
as single lines.
"""

from collections.abc import Sequence
from typing import NamedTuple

from agiraph.domain.agents import Agent
from agiraph.domain.chat import Lease
from agiraph.domain.ids import SYSTEM, NodeId, PersonId
from agiraph.domain.labels import Label
from agiraph.domain.messages import Message
from agiraph.domain.outcomes import Finished
from agiraph.domain.work import Budget, StopReason
from agiraph.domain.work_kinds import CONVERSATION_SUMMARY
from agiraph.redaction import mask_secrets
from agiraph.services.board import planning
from agiraph.services.lifecycle import endings
from agiraph.store import conversation_summaries, messages, nodes, threads
from agiraph.store.conversation_summaries import SUMMARIES, ConversationSummary
from agiraph.store.tx import Tx

SHOWN = 30
"""The newest messages, which a reply shows as they are."""
FULL = 20
"""Older messages without a summary; with so many, one is written."""
READ = SHOWN + 2 * FULL
"""Messages that are read of a conversation."""
MOST = 300
"""Messages that one summary adds; of a longer conversation from before there were summaries, the
newest ones."""
TASK = "Write the summary of the older part of your conversation with the person."
TURNS = 3
CHARACTERS = 3000
"""Characters of a summary."""


class History(NamedTuple):
    """A conversation as a reply sees it."""

    summary: ConversationSummary | None
    older: list[Message]
    """Messages between the summary and the newest ones."""
    newest: list[Message]

    @property
    def is_full(self) -> bool:
        """Whether so many older messages are in no summary that one should be written.

        Messages of which a summary was asked for do not count again: a model that writes none is
        asked anew after as many further messages, not after each reply.
        """
        asked = "" if self.summary is None else self.summary.next_upto
        return sum(message.id > asked for message in self.older) >= FULL


def history(tx: Tx, agent: Agent, person_id: PersonId, *, without: NodeId) -> History:
    """Return the conversation of an agent and a person, without what this reply answers."""
    found = conversation_summaries.of(tx, agent.id, person_id)
    said = messages.lately(tx, agent.team_id, agent.id, person_id, limit=READ)
    known = "" if found is None else found.upto
    fresh = [m for m in said if m.reply_id != without and not _is_repeated(m, said)]
    newest = fresh[-SHOWN:]
    return History(found, [m for m in fresh[:-SHOWN] if m.id > known], newest)


def _is_repeated(message: Message, said: Sequence[Message]) -> bool:
    """Whether an answer repeats a message of the person: one that a reply gave to the question."""
    if message.kind != "answer":
        return False
    return any(m.text == message.text and m.reply_id is not None for m in said)


def queue(tx: Tx, agent: Agent, person_id: PersonId, *, upto: str) -> None:
    """Create the node that writes the next summary, unless one is open. The caller holds the
    agent's row lock."""
    key = conversation_summaries.key(agent.id, person_id)
    found = SUMMARIES.find(tx, key, lock=True)
    if found is not None and nodes.is_open(tx, found.node_id):
        return
    node = planning.create(
        tx,
        team_id=agent.team_id,
        task=TASK,
        title="Summarise the conversation",
        source="self",
        creator_id=SYSTEM,
        assignee_id=agent.id,
        budget=Budget(turns=TURNS),
        kind=CONVERSATION_SUMMARY,
    )
    if found is None:
        made = ConversationSummary(
            id=key,
            team_id=agent.team_id,
            agent_id=agent.id,
            person_id=person_id,
            updated_at=tx.now,
            node_id=node.id,
            next_upto=upto,
        )
        SUMMARIES.insert(tx, made)
    else:
        SUMMARIES.update(tx, key, node_id=node.id, next_upto=upto)


def to_summarise(tx: Tx, node_id: NodeId) -> tuple[ConversationSummary, list[Message]] | None:
    """Return the row that a node writes, and the messages that its summary adds; None if the node
    writes no summary."""
    found = conversation_summaries.of_node(tx, node_id)
    if found is None:
        return None
    said = messages.between(
        tx,
        found.team_id,
        found.agent_id,
        found.person_id,
        after=found.upto,
        upto=found.next_upto,
        limit=MOST,
    )
    return found, said


def store(tx: Tx, lease: Lease, text: str, *, label: Label) -> None:
    """Store the summary that a node has written, and end the node, in one transaction."""
    threads.check_lease(tx, lease)
    found = conversation_summaries.of_node(tx, lease.node_id)
    if found is not None:
        SUMMARIES.update(
            tx,
            found.id,
            text=mask_secrets(text.strip())[:CHARACTERS],
            upto=found.next_upto,
            label=label,
            updated_at=tx.now,
        )
    endings.end_node(tx, lease, Finished("Summarised.", StopReason.FINISHED))
