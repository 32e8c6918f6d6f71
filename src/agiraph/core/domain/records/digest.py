"""Digest: what a person may decide on in a team, and what they decide."""

from datetime import datetime
from typing import Literal

from agiraph.core.domain.ids import MessageId, NodeId, TeamId
from agiraph.core.domain.provenance.grants import Offer
from agiraph.core.domain.value import value
from agiraph.core.domain.work import NodeStatus

EntryKind = Literal["ask", "pending", "unverified", "file", "trigger", "use"]
"""ask: an open request for a call. pending: knowledge that nobody uses before it is confirmed.
unverified: knowledge that comes from untrusted text. file: a file of the team that holds such
words; its entry names the file only, so it is confirmed by its id and never with others. trigger:
an agent made it after it had read such words. use: a grant allowed a call."""

EntryDecision = Literal["confirm", "reject", "stop"]
"""What a person decides on entries that they have selected: knowledge, notes and triggers."""

COVERED: frozenset[EntryKind] = frozenset({"pending", "unverified", "trigger"})
"""What "confirm all" covers: knowledge, notes and triggers, never a way out and never a file."""


@value
class Entry:
    """One thing that a person may decide on, or should know of."""

    id: str
    kind: EntryKind
    title: str
    text: str
    """The exact words: of the knowledge, of the trigger (its task, and when it fires), or of the
    call."""
    source: str
    """Who wrote some of its words, if not the team; empty if nobody else did."""
    created_at: datetime
    agent_id: str | None = None
    is_waited_for: bool = False
    """Whether work is parked until the person decides."""
    always: Offer | None = None
    """For a request: the grant that allows all such calls; None if none does."""


@value
class EndedGoal:
    """The end of a team's goal that the person has not read about."""

    message_id: MessageId
    """The message with the result, or with why there is none."""
    node_id: NodeId
    status: NodeStatus
    goal: str
    ended_at: datetime


@value
class Digest:
    """What a person may decide on in one team, and whether it has ended meanwhile."""

    team_id: TeamId
    as_of: datetime
    entries: tuple[Entry, ...]
    ended: EndedGoal | None = None

    @property
    def groups(self) -> dict[tuple[EntryKind, str], list[str]]:
        """Return the ids of the entries by kind and source."""
        found: dict[tuple[EntryKind, str], list[str]] = {}
        for entry in self.entries:
            found.setdefault((entry.kind, entry.source), []).append(entry.id)
        return found


@value
class Decisions:
    """What a person decides on entries of digests."""

    confirm: tuple[str, ...] | Literal["all"] = ()
    """Knowledge, notes and triggers to confirm; `all`: those that the digest shows."""
    reject: tuple[str, ...] = ()
    """Knowledge to remove, and requests to deny."""
    always: tuple[str, ...] = ()
    """Requests to approve, with all later calls of their kind."""
    stop: tuple[str, ...] = ()
    """Triggers to cancel."""
