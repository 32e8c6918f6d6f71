"""Events, as rows: numbered from one per team, without gaps, in commit order."""

from agiraph.domain.events import Event, TeamEvent
from agiraph.domain.ids import TeamId
from agiraph.store.rows import from_json, from_micros, to_json, to_micros
from agiraph.store.tx import Row, Tx

_BITS = 40
_MOST = (1 << _BITS) - 1
_END = (
    "select number, (select max(place) from events"
    " where place > t.number * 1099511627776 and place < (t.number + 1) * 1099511627776)"
    " from teams t where id = :id"
)
_INSERT = "insert into events (place, type, at, data) values (:place, :type, :at, :data)"


def _base(tx: Tx, team_id: TeamId) -> int:
    """The place before a team's first event."""
    row = tx.one("select number from teams where id = :id", id=team_id)
    return 0 if row is None else row[0] << _BITS


def head(tx: Tx, team_id: TeamId) -> int:
    """The number of the newest event."""
    return end(tx, team_id) & _MOST


def end(tx: Tx, team_id: TeamId) -> int:
    """The place of a team's newest event, or the one before its first."""
    row = tx.one(_END, id=team_id)
    return 0 if row is None else row[1] or row[0] << _BITS


def heads(tx: Tx, *, archived: bool = False) -> dict[TeamId, int]:
    """The number of the newest event of every team; of those put away, too, if wanted."""
    rows = tx.all(
        "select id, (select max(place) from events where place > t.number * 1099511627776"
        " and place < (t.number + 1) * 1099511627776) from teams t"
        + ("" if archived else " where status <> 'archived'")
    )
    return {row[0]: (row[1] or 0) & _MOST for row in rows}


def append(tx: Tx, team_id: TeamId, emitted: list[TeamEvent], *, end: int) -> list[Event]:
    """Number and insert events of one team. The caller holds the team's row lock."""
    assert end, "there is no such team"
    at = to_micros(tx.now)
    written: list[Event] = []
    for place, event in enumerate(emitted, end + 1):
        type, data = event.event_type, event.data()
        tx.run(_INSERT, place=place, type=type, at=at, data=to_json(data))
        seq = place & _MOST
        written.append(Event(team_id=team_id, seq=seq, type=type, at=tx.now, data=data))
    return written


def after(tx: Tx, team_id: TeamId, seq: int, *, limit: int = 1000, like: str = "%") -> list[Event]:
    """What came after that number, oldest first; only of some types, if wanted."""
    base = _base(tx, team_id)
    rows = tx.all(
        "select place, type, at, data from events where place > :place and place <= :end"
        + ("" if like == "%" else " and type like :like")
        + " order by place limit :limit",
        place=base + seq,
        end=base + _MOST,
        limit=limit,
        like=like,
    )
    return [_event(team_id, row) for row in rows]


def page(tx: Tx, team_id: TeamId, seq: int, *, limit: int, most_bytes: int) -> list[Event]:
    """What came after that number, oldest first, up to about that many bytes; at least one event
    if there is any."""
    base = _base(tx, team_id)
    found: list[Row] = []
    size, step = 0, 2
    while step:
        rows = tx.all(
            "select place, type, at, data from events where place > :place and place <= :end"
            " order by place limit :limit",
            place=found[-1][0] if found else base + seq,
            end=base + _MOST,
            limit=step,
        )
        found += rows
        size += sum(len(row[3]) for row in rows)
        if len(rows) < step or size >= most_bytes:
            break
        # As many as fit by the average so far. Few at a time: the next ones may be large.
        fitting = (most_bytes - size) * len(found) // max(size, 1)
        step = min(fitting, len(found), limit - len(found))
    return [_event(team_id, row) for row in found]


def _event(team_id: TeamId, row: Row) -> Event:
    place, type, at, data = row
    return Event(
        team_id=team_id,
        seq=place & _MOST,
        type=type,
        at=from_micros(at),
        data=from_json(data),
    )
