"""Notes: what an agent wrote into its note files after it had read untrusted text."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from agiraph.core.domain.ids import AgentId, TeamId, ThreadId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.value import value

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


def unverified_lines(text: str, confirmed: str) -> list[str]:
    """Return the lines of a file that are not in its last clean version, without blank ones."""
    known = {line.strip() for line in confirmed.splitlines()}
    return [line for line in text.splitlines() if line.strip() and line.strip() not in known]


def with_lines_kept(content: str, *, confirmed: str, others: Sequence[str], longest: int) -> str:
    """Return a new text for a file with the lines that it must not lose: all of its last clean
    version, and of the `others` those that fit into `longest` bytes."""
    text = content
    if unverified_lines(confirmed, content):
        text = _joined(confirmed, unverified_lines(content, confirmed))
    room = longest - len(text.encode(errors="replace"))
    kept: list[str] = []
    for line in unverified_lines("\n".join(others), text):
        room -= len(line.encode(errors="replace")) + 2
        if room > 0:
            kept.append(line)
    return _joined(text, kept) if kept else text


def _joined(text: str, more: Sequence[str]) -> str:
    return "\n".join([text.rstrip(), "", *more]).strip() + "\n"


def front_line(label: Label, at: datetime) -> str:
    """Return the line above a note in its unverified file."""
    return f"{FRONT} of {at:%Y-%m-%d}: nobody has confirmed it. Its words come from {label}."
