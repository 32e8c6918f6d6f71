"""Notes: what an agent wrote into its note files after it had read untrusted text."""

from datetime import datetime, timedelta
from typing import Literal

from agiraph.domain.ids import AgentId, TeamId, ThreadId
from agiraph.domain.labels import CLEAN, Label
from agiraph.domain.value import value

NoteStatus = Literal[
    "pending", "unverified", "confirmed", "written", "rejected", "expired", "superseded"
]
"""pending: it waits for a person and is in no file. unverified: it is in memory/unverified/.
confirmed: a person confirmed it, and it is not in its file yet; written: it is there. rejected: a
person does not want it. expired: nobody has used it for too long. superseded: another unverified
note has taken its place."""
FRONT = "> Unverified,"
"""How the line begins that the runtime writes above an unverified note."""
UNVERIFIED_FOR: timedelta = timedelta(days=90)
"""How long an unverified note is kept after it was written or last read."""


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


def front_line(label: Label, at: datetime) -> str:
    """Return the line above a note in its unverified file."""
    return f"{FRONT} of {at:%Y-%m-%d}: nobody has confirmed it. Its words come from {label}."
