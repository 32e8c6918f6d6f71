"""Knowledge events: what agents remembered, learned and were corrected in."""

from typing import ClassVar, Literal

from agiraph.core.domain.events import EventType, TeamEvent, event

KnowledgeStatus = Literal["active", "unverified", "pending", "superseded", "removed"]
"""unverified: it comes from untrusted text. It is kept and found, always with its label, and it
ends after some time unless it is used or a person confirms it. pending: nobody uses it until a
person confirms it. superseded: another item says the same, better or earlier. removed: a person or
the agent removed it, or it is no longer valid."""


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
