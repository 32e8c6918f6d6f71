"""Events, as rows: numbered from one per team, without gaps, in commit order."""

from agiraph.domain.events import Event
from agiraph.domain.ids import TeamId
from agiraph.store.rows import Table, to_json, to_micros
from agiraph.store.tx import Tx

EVENTS = Table("events", Event)
_INSERT = (
    "insert into events (team_id, seq, type, at, data) values (:team_id, :seq, :type, :at, :data)"
)


def head(tx: Tx, team_id: TeamId) -> int:
    """The number of the newest event. Callers that add one must hold the team's row."""
    row = tx.one("select max(seq) from events where team_id = :team_id", team_id=team_id)
    assert row is not None
    return row[0] or 0


def append(tx: Tx, event: Event) -> None:
    tx.run(
        _INSERT,
        team_id=event.team_id,
        seq=event.seq,
        type=event.type,
        at=to_micros(event.at),
        data=to_json(event.data),
    )


def after(tx: Tx, team_id: TeamId, seq: int, *, limit: int = 1000) -> list[Event]:
    """What came after that number, oldest first."""
    where = "team_id = :team_id and seq > :seq order by seq limit :limit"
    return EVENTS.select(tx, where, team_id=team_id, seq=seq, limit=limit)
