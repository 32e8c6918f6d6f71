"""Events: rows numbered from one per team, without gaps, in commit order."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from agiraph.core.domain.events import Event, EventType, TeamEvent
from agiraph.core.domain.ids import TeamId
from agiraph.core.store.rows import from_json, from_micros, to_json, to_micros
from agiraph.core.store.tx import Row, Tx

# Of 63 bits: about 10^12 events for each of 8 million teams. 1099511627776 in the SQL is 2^40.
_SEQ_BITS = 40
_SEQ_MASK = (1 << _SEQ_BITS) - 1
_END = (
    "select number, (select max(place) from events"
    " where place > t.number * 1099511627776 and place < (t.number + 1) * 1099511627776)"
    " from teams t where id = :id"
)
_DISORDER = timedelta(minutes=1)
"""How much later than its neighbours an event may be numbered: it waited for the team's lock."""
_INSERT = "insert into events (place, type, at, data) values (:place, :type, :at, :data)"

NEWEST = (
    "(select max(place) from events where place > t.number * 1099511627776"
    " and place < (t.number + 1) * 1099511627776)"
)
"""The place of the newest event of a row `t` of the teams."""
_HEADS = f"select id, {NEWEST} from teams t"


def _base(tx: Tx, team_id: TeamId) -> int:
    """Return the place before a team's first event."""
    row = tx.one("select number from teams where id = :id", id=team_id)
    return 0 if row is None else row[0] << _SEQ_BITS


def head(tx: Tx, team_id: TeamId) -> int:
    """Return the number of a team's newest event."""
    return end(tx, team_id) & _SEQ_MASK


def end(tx: Tx, team_id: TeamId) -> int:
    """Return the place of a team's newest event, or the place before its first."""
    row = tx.one(_END, id=team_id)
    return 0 if row is None else row[1] or row[0] << _SEQ_BITS


def heads(tx: Tx, *, archived: bool = False) -> dict[TeamId, int]:
    """Return the number of every team's newest event; with `archived`, of archived teams too."""
    rows = tx.all(_HEADS + ("" if archived else " where status <> 'archived'"))
    return {row[0]: seq_at(row[1]) for row in rows}


def seq_at(place: int | None) -> int:
    """Return the number of the event at a place among those of its team."""
    return (place or 0) & _SEQ_MASK


def heads_of(tx: Tx, first: TeamId, last: TeamId) -> dict[TeamId, int]:
    """Return the number of the newest event of each team whose id lies between two ids."""
    rows = tx.all(f"{_HEADS} where id >= :first and id <= :last", first=first, last=last)
    return {row[0]: seq_at(row[1]) for row in rows}


def append(tx: Tx, team_id: TeamId, emitted: list[TeamEvent], *, end: int) -> list[Event]:
    """Number and insert these events of one team.

    The caller holds the team's row lock: without it two transactions would take the same numbers.
    """
    assert end, "there is no such team"
    at = to_micros(tx.now)
    written: list[Event] = []
    for place, event in enumerate(emitted, end + 1):
        type, data = event.event_type, event.data()
        tx.run(_INSERT, place=place, type=type, at=at, data=to_json(data))
        seq = place & _SEQ_MASK
        written.append(Event(team_id=team_id, seq=seq, type=type, at=tx.now, data=data))
    return written


def after(tx: Tx, team_id: TeamId, seq: int, *, limit: int = 1000, like: str = "%") -> list[Event]:
    """Return events after number `seq`, oldest first; `like` filters their types."""
    base = _base(tx, team_id)
    rows = tx.all(
        "select place, type, at, data from events where place > :place and place <= :end"
        + ("" if like == "%" else " and type like :like")
        + " order by place limit :limit",
        place=base + seq,
        end=base + _SEQ_MASK,
        limit=limit,
        like=like,
    )
    return [_event(team_id, row) for row in rows]


def between(
    tx: Tx, team_id: TeamId, *, since: datetime, until: datetime, types: Sequence[str]
) -> list[Event]:
    """Return the events of these types in a span of time, oldest first."""
    named = {f"type_{letter}": type for letter, type in zip("abcdefghij", types, strict=False)}
    rows = tx.all(
        "select place, type, at, data from events where place >= :place and place <= :end"
        f" and type in ({', '.join(f':{name}' for name in named)})"
        " and at >= :since and at <= :until order by place",
        place=_place_at(tx, team_id, since - _DISORDER),
        end=_place_at(tx, team_id, until + _DISORDER),
        since=to_micros(since),
        until=to_micros(until),
        **named,
    )
    return [_event(team_id, row) for row in rows]


def _place_at(tx: Tx, team_id: TeamId, moment: datetime) -> int:
    """Return the place of a team's first event at or after a moment, else the one behind its last.

    A binary search: events have no index by time, but are numbered in the order of time.
    """
    first, behind = _base(tx, team_id) + 1, end(tx, team_id) + 1
    while first < behind:
        middle = (first + behind) // 2
        row = tx.one(
            "select place, at from events where place >= :place order by place limit 1",
            place=middle,
        )
        if row is None or row[1] >= to_micros(moment) or row[0] >= behind:
            behind = middle
        else:
            first = row[0] + 1
    return first


def page(tx: Tx, team_id: TeamId, seq: int, *, limit: int, most_bytes: int) -> list[Event]:
    """Return events after number `seq`, oldest first, up to about `most_bytes`; at least one if
    there is any."""
    base = _base(tx, team_id)
    found: list[Row] = []
    size, step = 0, 2
    while step:
        rows = tx.all(
            "select place, type, at, data from events where place > :place and place <= :end"
            " order by place limit :limit",
            place=found[-1][0] if found else base + seq,
            end=base + _SEQ_MASK,
            limit=step,
        )
        found += rows
        size += sum(len(row[3]) for row in rows)
        if len(rows) < step or size >= most_bytes:
            break
        # As many as fit by the average size so far; few at a time, as the next may be large.
        fitting = (most_bytes - size) * len(found) // max(size, 1)
        step = min(fitting, len(found), limit - len(found))
    return [_event(team_id, row) for row in found]


def before(
    tx: Tx,
    team_id: TeamId,
    seq: int,
    *,
    limit: int,
    floor: int = 0,
    types: Sequence[str] = (),
    mentions: str = "",
    words: str = "",
) -> list[Event]:
    """Return events before number `seq` and after `floor`, newest first. Each of `types` is a type
    or its first part; `mentions` is an id that the event's data must contain, and `words` are ASCII
    words in lower case that its type or data must contain."""
    base = _base(tx, team_id)
    where = "place < :place and place > :floor"
    values: dict[str, str] = {}
    if types:
        # Names of parameters are letters.
        named = {f"type_{chr(97 + n)}": one for n, one in enumerate(types[:26])}
        where += " and (" + " or ".join(f"type like :{name}" for name in named) + ")"
        values = {name: one if "." in one else f"{one}.%" for name, one in named.items()}
    if mentions:
        where += " and data like :mentions"
        values["mentions"] = f"%{mentions}%"
    if words:
        where += " and (lower(data) like :words escape '!' or type like :words escape '!')"
        literal = words.replace("!", "!!").replace("%", "!%").replace("_", "!_")
        values["words"] = f"%{literal}%"
    rows = tx.all(
        f"select place, type, at, data from events where {where} order by place desc limit :limit",
        place=base + min(seq, _SEQ_MASK),
        floor=base + floor,
        limit=limit,
        **values,
    )
    return [_event(team_id, row) for row in rows]


def last_at(tx: Tx, team_id: TeamId, type: EventType) -> datetime | None:
    """Return when the team's newest event of a type was; None if it has none."""
    row = tx.one(
        "select at from events where place > :base and place <= :end and type = :type"
        " order by place desc limit 1",
        base=_base(tx, team_id),
        end=end(tx, team_id),
        type=type,
    )
    return None if row is None else from_micros(row[0])


def number_at(tx: Tx, team_id: TeamId, moment: datetime) -> int:
    """Return the number of a team's last event at or before this time; 0 if there is none."""
    behind = _place_at(tx, team_id, moment + timedelta(microseconds=1))
    return (behind - 1) & _SEQ_MASK


def _event(team_id: TeamId, row: Row) -> Event:
    place, type, at, data = row
    return Event(
        team_id=team_id,
        seq=place & _SEQ_MASK,
        type=type,
        at=from_micros(at),
        data=from_json(data),
    )
