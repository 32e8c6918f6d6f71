"""Attached files: lists the files that came with a team's messages, without their bytes."""

import base64
from datetime import datetime

from agiraph.domain.attached_files import path_of
from agiraph.domain.ids import TeamId
from agiraph.domain.value import value
from agiraph.store.rows import from_micros
from agiraph.store.tx import Tx

_EACH = {
    "sqlite": (
        "select m.id, m.created_at, f.key as place,"
        " json_extract(f.value, '$.name') as name, json_extract(f.value, '$.data') as data"
        " from {messages} m, json_each(m.attachments) f"
    ),
    "postgres": (
        "select m.id, m.created_at, f.place - 1 as place,"
        " f.value ->> 'name' as name, f.value ->> 'data' as data from {messages} m"
        " cross join lateral json_array_elements(cast(m.attachments as json))"
        " with ordinality f (value, place)"
    ),
}
_ONE = {
    "sqlite": "json_extract(attachments, '$[' || :place || '].data')",
    "postgres": "cast(attachments as json) -> cast(:place as integer) ->> 'data'",
}
# As many messages as files: each of these has one at least.
# A message that went to several agents, or that an agent passed on, is stored several times.
_MESSAGES = (
    "(select min(id) as id, min(created_at) as created_at, attachments from messages"
    " where team_id = :team and attachments <> '[]' group by attachments"
    " order by min(id) desc limit :limit)"
)


@value
class AttachedFile:
    path: str
    size: int
    created_at: datetime


def newest(tx: Tx, team: TeamId, *, limit: int) -> list[AttachedFile]:
    """Return the files of a team's messages, newest first."""
    each = _EACH[tx.dialect].format(messages=_MESSAGES)
    rows = tx.all(
        "select id, created_at, place, name, length(rtrim(data, '='))"
        f" from ({each}) files order by id desc, place limit :limit",
        team=team,
        limit=limit,
    )
    return [
        AttachedFile(
            path=path_of(message_id, place, name),
            size=characters * 3 // 4,  # of base64
            created_at=from_micros(at),
        )
        for message_id, at, place, name, characters in rows
    ]


def data_of(tx: Tx, team: TeamId, message_id: str, place: int) -> bytes | None:
    """Return the bytes of one file of a message, without the others; None if there is no such
    file."""
    row = tx.one(
        f"select {_ONE[tx.dialect]} from messages where id = :message and team_id = :team",
        place=place,
        message=message_id,
        team=team,
    )
    return None if row is None or row[0] is None else base64.b64decode(row[0])
