"""Knowledge events: what agents remembered, learned and were corrected in."""

from typing import ClassVar

from agiraph.core.domain.events import EventType, TeamEvent, event
from agiraph.core.domain.knowledge import KnowledgeStatus


@event
class MemoryWritten(TeamEvent):
    """An agent wrote a memory (with its ids) or a note (with its path)."""

    event_type: ClassVar[EventType] = "memory.written"

    agent_id: str
    id: str | None = None
    stands: str | None = None
    change_id: str | None = None
    status: KnowledgeStatus | None = None
    path: str | None = None


@event
class InsightLearned(TeamEvent):
    """An agent learned an insight."""

    event_type: ClassVar[EventType] = "insight.learned"

    id: str
    agent_id: str
    stands: str
    """The insight that is in force for this content: this one, or one that was known before."""
    change_id: str
    status: KnowledgeStatus


@event
class KnowledgePending(TeamEvent):
    """Content waits for a person before it is used."""

    event_type: ClassVar[EventType] = "knowledge.pending"

    id: str
    agent_id: str
    path: str


@event
class KnowledgeChanged(TeamEvent):
    """Known items were changed, removed, merged, or a change was undone."""

    event_type: ClassVar[EventType] = "knowledge.changed"

    verb: str
    change_id: str
    ids: list[str]


@event
class ThreadHarvested(TeamEvent):
    """Reflection on a closed thread ended."""

    event_type: ClassVar[EventType] = "thread.harvested"

    thread_id: str
    agent_id: str
    insights: int
    passed_over: bool | None = None
    """Nobody looked back on it; only in events of older versions."""
