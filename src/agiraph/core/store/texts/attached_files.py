"""Attached files: the names and sizes of the files that came with messages, without their bytes.

The bytes are in the row of the message. To read any part of that JSON reads all of it.
"""

import base64
from datetime import datetime

from agiraph.core.domain.ids import MessageId, TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.records.attached_files import path_of
from agiraph.core.domain.value import value
from agiraph.core.store.rows import from_micros
from agiraph.core.store.tx import Tx

_ONE = {
    "sqlite": "json_extract(attachments, '$[' || :place || '].data')",
    "postgres": "cast(attachments as json) -> cast(:place as integer) ->> 'data'",
}


@value
class AttachedFile:
    path: str
    size: int
    created_at: datetime


def add(tx: Tx, message: Message) -> None:
    """Insert a row with name and size for each file of a message whose own row exists already."""
    # Of base64: four characters are three bytes.
    sizes = [len(file.data.rstrip("=")) * 3 // 4 for file in message.attachments]
    first = _first_with_same_files(tx, message, sizes[0]) if sizes else message.id
    for place, (file, size) in enumerate(zip(message.attachments, sizes, strict=True)):
        tx.run(
            "insert into attached_files (message_id, place, team_id, first_id, name, size)"
            " values (:message, :place, :team, :first, :name, :size)",
            message=message.id,
            place=place,
            team=message.team_id,
            first=first,
            name=file.name,
            size=size,
        )


def _first_with_same_files(tx: Tx, message: Message, size: int) -> MessageId:
    """Return the id of the team's first message with the files of this one. Bytes are read only of
    messages whose first file has the same name and size."""
    row = tx.one(
        "select min(m.id) from attached_files f join messages m on m.id = f.message_id"
        " where f.team_id = :team and f.first_id = f.message_id and f.place = 0 and f.name = :name"
        " and f.size = :size and m.attachments = (select attachments from messages where id = :id)",
        team=message.team_id,
        name=message.attachments[0].name,
        size=size,
        id=message.id,
    )
    return message.id if row is None or row[0] is None else MessageId(row[0])


def newest(tx: Tx, team: TeamId, *, limit: int) -> list[AttachedFile]:
    """Return the files of a team's messages, newest first. A message that went to several agents,
    or that an agent passed on, is stored several times; its files are there once."""
    rows = tx.all(
        "select f.message_id, m.created_at, f.place, f.name, f.size"
        " from attached_files f join messages m on m.id = f.message_id"
        " where f.team_id = :team and f.first_id = f.message_id"
        " order by f.message_id desc, f.place limit :limit",
        team=team,
        limit=limit,
    )
    return [
        AttachedFile(path=path_of(message_id, place, name), size=size, created_at=from_micros(at))
        for message_id, at, place, name, size in rows
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
