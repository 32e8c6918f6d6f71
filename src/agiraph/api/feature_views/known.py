"""Known: memories (for conversations), insights (for work), notes with untrusted text, and changes.

Whoever reads the API has these types, with the feature or without it.
"""

from datetime import datetime
from typing import Any, Literal

from agiraph.core.domain.events.knowledge import KnowledgeStatus
from agiraph.core.domain.ids import AgentId, TeamId, ThreadId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.value import value

InsightType = Literal["fact", "technique", "pattern", "lesson"]
NoteStatus = Literal[
    "pending", "unverified", "confirmed", "written", "rejected", "expired", "superseded"
]
"""pending: it waits for a person and is in no file. unverified: it is in memory/unverified/.
confirmed: a person confirmed it, and it is not in its file yet; written: it is there. rejected: a
person does not want it. expired: nobody has used it for too long. superseded: another unverified
note has taken its place."""


@value
class Memory:
    """What an agent knows about the person it talks to. Appears in reply prompts only."""

    id: str
    team_id: TeamId
    agent_id: AgentId
    content: str
    created_at: datetime
    author: str
    status: KnowledgeStatus = "active"
    valid_until: datetime | None = None
    superseded_by: str | None = None
    sources: tuple[str, ...] = ()
    """The ids of all threads and messages it was learned from."""
    contradicts: str | None = None
    """The id of an older item that it contradicts."""
    label: Label = CLEAN
    """Where its words came from."""


@value
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
    sources: tuple[str, ...] = ()
    contradicts: str | None = None
    label: Label = CLEAN
    owner: str = ""
    """Which agents get the insight in their prompts and searches: an agent's id, `specialist:NAME`
    or `everyone` on the team. `agent_id` names the agent that learned it."""
    uses: int = 0
    """How many prompts of work it was chosen for."""
    used_at: datetime | None = None


@value
class ChangedItem:
    """One row that a change altered, with its columns before; None if the change created it."""

    id: str
    before: dict[str, Any] | None = None


ChangeVerb = Literal[
    "learned", "merged", "superseded", "removed", "confirmed", "rejected", "expired", "maintained"
]


@value
class Change:
    """One change of an agent's knowledge, with the state that undoing it restores."""

    id: str
    team_id: TeamId
    agent_id: AgentId
    verb: ChangeVerb
    author: str
    created_at: datetime
    touched: tuple[ChangedItem, ...] = ()
    undone_at: datetime | None = None


@value
class Note:
    """A note with untrusted text in it, which no person has confirmed yet."""

    id: str
    team_id: TeamId
    agent_id: AgentId
    path: str
    """Where a person's confirmation puts it: MEMORY.md, a path below memory/, or a whole path in
    the team's folder that begins with agents/."""
    content: str
    created_at: datetime
    author: str
    source_thread_id: ThreadId | None = None
    label: Label = CLEAN
    status: NoteStatus = "pending"
    used_at: datetime | None = None
    """When an agent last read it or was shown it at work."""
    filed_at: datetime | None = None
    """When its file in memory/unverified/ was written; None if there is none."""
