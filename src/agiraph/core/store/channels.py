"""Channels: the registered channels, who is paired with them, and what they have received."""

from collections.abc import Mapping
from datetime import datetime

from agiraph.core.domain.ids import MessageId, PersonId, TeamId
from agiraph.core.domain.messages import MessageKind
from agiraph.core.domain.records.channels import ChannelState, ReceivedRow
from agiraph.core.store.rows import Table, to_json, to_micros
from agiraph.core.store.tx import Tx

CHANNELS = Table("channels", ChannelState, key="name")
RECEIVED = Table("received", ReceivedRow)


def every(tx: Tx) -> list[ChannelState]:
    """Return all registered channels, by name."""
    return CHANNELS.select(tx, "true order by name")


def of_person(tx: Tx, person_id: PersonId) -> list[ChannelState]:
    """Return the channels to a person that can send now, by name. A two-way channel can send once
    it is paired."""
    where = "person_id = :person and (is_two_way = 0 or address is not null) order by name"
    return CHANNELS.select(tx, where, person=person_id)


def add(
    tx: Tx,
    wanted: Mapping[str, frozenset[MessageKind]],
    *,
    person_id: PersonId,
    two_way: frozenset[str] = frozenset(),
) -> None:
    """Register channels to a person. A channel that is registered already keeps its pairing and
    cursor."""
    for name, kinds in wanted.items():
        sql = (
            "insert into channels (name, kinds, person_id, is_two_way)"
            " values (:name, :kinds, :person, :two_way) on conflict (name) do update"
            " set kinds = excluded.kinds, person_id = excluded.person_id,"
            " is_two_way = excluded.is_two_way"
        )
        shown = to_json(sorted(kinds))
        tx.run(sql, name=name, kinds=shown, person=person_id, two_way=int(name in two_way))


def drop(tx: Tx, name: str) -> None:
    tx.run("delete from channels where name = :name", name=name)


def claim_reading(tx: Tx, name: str, *, reader: str, until: datetime) -> bool:
    """Make this process the reader of a channel; return False while another one is."""
    sql = (
        "update channels set reader = :reader, reader_until = :until where name = :name"
        " and (reader is null or reader = :reader or reader_until <= :now)"
    )
    return tx.run(sql, name=name, reader=reader, until=to_micros(until), now=to_micros(tx.now)) == 1


def is_received(tx: Tx, channel: str, key: str) -> bool:
    return RECEIVED.find(tx, f"{channel}:{key}") is not None


def record(tx: Tx, channel: str, key: str, message_id: MessageId | None) -> None:
    """Record that a message was taken in."""
    row = ReceivedRow(
        id=f"{channel}:{key}", channel=channel, message_id=message_id, received_at=tx.now
    )
    RECEIVED.insert(tx, row)


def origin(tx: Tx, message_id: MessageId) -> ReceivedRow | None:
    """Return how a person's message came in; None if it came by no channel."""
    found = RECEIVED.select(tx, "message_id = :id limit 1", id=message_id)
    return found[0] if found else None


def mail_texts(tx: Tx, team_id: TeamId, *, limit: int = 200) -> list[str]:
    """Return the texts of the messages of a team that came by mail, newest first: by a channel
    whose person has a mail address."""
    rows = tx.all(
        "select m.text from received r join messages m on m.id = r.message_id"
        " join channels c on c.name = r.channel"
        " where m.team_id = :team_id and c.address like '%@%' order by m.id desc limit :limit",
        team_id=team_id,
        limit=limit,
    )
    return [row[0] for row in rows]


def forget_pairings(tx: Tx) -> None:
    """Unpair every channel. Called for a restored backup, which must not decide who speaks as the
    person."""
    tx.run(
        "update channels set address = null, paired_at = null, code_digest = null,"
        " code_until = null, agent_id = null, reader = null, reader_until = null"
    )
