"""Conversation summaries: one row for each person and agent with what they said long ago."""

from datetime import datetime

from agiraph.core.domain.ids import AgentId, NodeId, PersonId, TeamId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.value import value
from agiraph.core.store.rows import Table
from agiraph.core.store.tx import Tx


@value
class ConversationSummary:
    id: str
    team_id: TeamId
    agent_id: AgentId
    person_id: PersonId
    updated_at: datetime
    text: str = ""
    """Empty until the first summary is written."""
    upto: str = ""
    """The id of the last message that the text is about."""
    label: Label = CLEAN
    """The sources outside the team of words in those messages."""
    node_id: NodeId | None = None
    """The node that writes, or wrote, the newest summary."""
    next_upto: str = ""
    """The id of the last message that this node's summary is about."""


SUMMARIES = Table("conversation_summaries", ConversationSummary)


def key(agent_id: AgentId, person_id: PersonId) -> str:
    return f"{agent_id}:{person_id}"


def of(tx: Tx, agent_id: AgentId, person_id: PersonId) -> ConversationSummary | None:
    """Return the summary of a conversation; None if nobody has asked for one yet."""
    return SUMMARIES.find(tx, key(agent_id, person_id))


def of_node(tx: Tx, node_id: NodeId) -> ConversationSummary | None:
    """Return the row whose next summary this node writes."""
    found = SUMMARIES.select(tx, "node_id = :id", id=node_id)
    return found[0] if found else None
