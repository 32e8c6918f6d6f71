"""Notes, as rows: what agents wrote down after they had read untrusted text."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from agiraph.api.feature_views.known import Note, NoteStatus
from agiraph.core.domain.ids import AgentId, TeamId
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.store.rows import Table, to_label, to_micros, to_text
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge.rows import CHANGES, INSIGHTS, MEMORIES

NOTES = Table("notes", Note)
TABLES: tuple[Table[Any], ...] = (MEMORIES, INSIGHTS, NOTES, CHANGES)
"""Those of the feature."""


class NoteTitle(NamedTuple):
    """The path and the heading of a note."""

    name: str
    """The path that it would be confirmed as."""
    path: str
    """The path in memory/ at which it is read."""
    title: str
    label: Label


def with_status(tx: Tx, status: NoteStatus, team_id: TeamId | None = None) -> list[Note]:
    """Return the notes with this status, of one team or of all, oldest first."""
    if team_id is None:
        return NOTES.select(tx, "status = :status order by created_at, id", status=status)
    where = "team_id = :team_id and status = :status order by created_at, id"
    return NOTES.select(tx, where, team_id=team_id, status=status)


def to_file(tx: Tx, agent_id: AgentId) -> list[Note]:
    """Return the notes of an agent whose files do not match their rows yet, oldest first."""
    where = (
        "agent_id = :agent_id and (status = 'confirmed'"
        " or (status = 'unverified' and filed_at is null)"
        " or (status in ('rejected', 'expired') and filed_at is not null)) order by created_at, id"
    )
    return NOTES.select(tx, where, agent_id=agent_id)


def unverified_at(tx: Tx, agent_id: AgentId, paths: Collection[str]) -> list[Note]:
    """Return the unverified notes of an agent at these paths."""
    where = "agent_id = :agent_id and status = 'unverified'"
    return [n for n in NOTES.select(tx, where, agent_id=agent_id) if n.path in paths]


def titles(tx: Tx, agent_id: AgentId, *, limit: int) -> list[NoteTitle]:
    """Return the unverified notes of an agent without their texts, the last used first."""
    rows = tx.all(
        "select path, substr(content, 1, 200), label from notes"
        " where agent_id = :agent_id and status = 'unverified'"
        " order by coalesce(used_at, created_at) desc, id limit :limit",
        agent_id=agent_id,
        limit=limit,
    )
    return [
        NoteTitle(path, f"unverified/{path}", _heading(text), to_label(label))
        for path, text, label in rows
    ]


def _heading(text: str) -> str:
    bare = (line.strip().lstrip("#").strip() for line in text.splitlines())
    return next((words[:100] for words in bare if words), "")


def was_rejected(tx: Tx, agent_id: AgentId, path: str, content: str) -> bool:
    """Whether a person has rejected a note of this agent with the same words."""
    sql = (
        "select 1 from notes where agent_id = :agent_id and path = :path and content = :content"
        " and status = 'rejected' limit 1"
    )
    return tx.one(sql, agent_id=agent_id, path=to_text(path), content=to_text(content)) is not None


def unused_since(tx: Tx, team_id: TeamId, moment: datetime) -> list[Note]:
    """Return the unverified notes of a team that nobody has written or read since a moment."""
    where = (
        "team_id = :team_id and status = 'unverified'"
        " and coalesce(used_at, created_at) <= :moment order by id"
    )
    return NOTES.select(tx, where, team_id=team_id, moment=to_micros(moment))
