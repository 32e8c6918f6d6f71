"""Knowledge: memories (for conversations), insights (for work), and their changes."""

from datetime import datetime
from typing import Any, Literal

from agiraph.core.domain.ids import AgentId, TeamId, ThreadId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.value import value

InsightType = Literal["fact", "technique", "pattern", "lesson"]
KnowledgeStatus = Literal["active", "unverified", "pending", "superseded", "removed"]
"""unverified: it comes from untrusted text. It is kept and found, always with its label, and it
ends after some time unless it is used or a person confirms it. pending: nobody uses it until a
person confirms it. superseded: another item says the same, better or earlier. removed: a person or
the agent removed it, or it is no longer valid."""


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


Action = Literal["add", "update", "supersede", "contradict"]


@value
class Relation:
    """How a new insight relates to a known one, as the model that found it has decided."""

    action: Action = "add"
    """update: it says the same, more exactly or once more. supersede: the known one is no longer
    true. contradict: only one of the two can be true, and it is not clear which."""
    id: str = ""
    """The known insight; empty if the new one is only added."""


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
