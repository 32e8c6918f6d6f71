"""Knowledge: memories are for talking to a person, insights are for doing work."""

from datetime import datetime
from typing import Literal

from agiraph.domain.ids import AgentId, TeamId, ThreadId
from agiraph.domain.nouns import noun

InsightType = Literal["fact", "technique", "pattern", "lesson"]
KnowledgeStatus = Literal["active", "held", "superseded", "removed"]


@noun
class Memory:
    """What an agent knows of the person it talks to. Appears in reply prompts only."""

    id: str
    team_id: TeamId
    agent_id: AgentId
    content: str
    created_at: datetime
    author: str
    status: KnowledgeStatus = "active"
    valid_until: datetime | None = None
    superseded_by: str | None = None


@noun
class Insight:
    """What an agent learned for its profession. Appears in work prompts only."""

    id: str
    team_id: TeamId
    agent_id: AgentId
    type: InsightType
    content: str
    created_at: datetime
    author: str
    confidence: float | None = None
    source_thread_id: ThreadId | None = None
    status: KnowledgeStatus = "active"
    valid_until: datetime | None = None
    superseded_by: str | None = None
