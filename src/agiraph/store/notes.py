"""Notes, as rows: what agents wrote down after they had read strangers' words."""

from collections.abc import Collection
from datetime import datetime

from agiraph.domain.ids import AgentId, TeamId
from agiraph.domain.notes import Note, NoteStatus
from agiraph.store.rows import Table, to_micros, to_text
from agiraph.store.tx import Tx

NOTES = Table("notes", Note)


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
