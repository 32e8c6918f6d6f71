"""Deliveries: messages that wait for a channel, are being sent, or were given up."""

from collections.abc import Mapping
from datetime import datetime

from agiraph.domain.deliveries import Delivery
from agiraph.domain.ids import MessageId, PersonId
from agiraph.domain.messages import MessageKind
from agiraph.store.rows import Table, from_json, from_micros, to_json, to_micros
from agiraph.store.tx import Tx

DELIVERIES = Table("deliveries", Delivery)


def channels(tx: Tx) -> list[str]:
    """Return the names of all registered channels."""
    return [name for (name,) in tx.all("select name from channels order by name")]


def channels_to(tx: Tx, person_id: PersonId) -> dict[str, frozenset[MessageKind]]:
    """Return the channels that send to a person, and the kinds of message each one sends."""
    sql = "select name, kinds from channels where person_id = :person order by name"
    return {n: frozenset(from_json(kinds)) for n, kinds in tx.all(sql, person=person_id)}


def add_channels(
    tx: Tx, wanted: Mapping[str, frozenset[MessageKind]], *, person_id: PersonId
) -> None:
    """Register channels that send to a person."""
    for name, kinds in wanted.items():
        sql = (
            "insert into channels (name, kinds, person_id) values (:name, :kinds, :person)"
            " on conflict (name) do update"
            " set kinds = excluded.kinds, person_id = excluded.person_id"
        )
        tx.run(sql, name=name, kinds=to_json(sorted(kinds)), person=person_id)


def drop_channel(tx: Tx, name: str) -> None:
    tx.run("delete from channels where name = :name", name=name)


def under_way(tx: Tx, channel: str) -> list[Delivery]:
    where = "channel = :channel and status in ('queued', 'sending') order by id"
    return DELIVERIES.select(tx, where, channel=channel)


def next_due(tx: Tx, channel: str) -> datetime | None:
    sql = (
        "select min(due_at) from deliveries"
        " where channel = :channel and status in ('queued', 'sending')"
    )
    row = tx.one(sql, channel=channel)
    return None if row is None or row[0] is None else from_micros(row[0])


def due(tx: Tx, channel: str, *, limit: int) -> list[Delivery]:
    # `sending` with a due time in the past is a claim that ran out. If its owner is alive after
    # all, `tries` tells the claims apart (`services/mail/deliveries.py`).
    where = (
        "channel = :channel and status in ('queued', 'sending') and due_at <= :now"
        " order by due_at, id limit :limit"
    )
    return DELIVERIES.select(tx, where, channel=channel, now=to_micros(tx.now), limit=limit)


def claim(tx: Tx, delivery: Delivery, *, owner: str, until: datetime) -> bool:
    """Claim a delivery until `until`; return False if another process claimed it first."""
    sql = (
        # Status and due time, as they were read, are the version of the row. If another process
        # claimed or postponed the delivery since, this update matches no row.
        "update deliveries set status = 'sending', owner = :owner, due_at = :until,"
        " tries = tries + 1 where id = :id and status = :status and due_at = :due"
    )
    values = {"owner": owner, "until": to_micros(until), "due": to_micros(delivery.due_at)}
    return tx.run(sql, id=delivery.id, status=delivery.status, **values) == 1


def forget_owners(tx: Tx) -> int:
    """Put deliveries under way back into the queue. Only for a runtime that is alone."""
    sql = "update deliveries set status = 'queued', owner = null, due_at = :now"
    return tx.run(f"{sql} where status = 'sending'", now=to_micros(tx.now))


def of_message(tx: Tx, message_id: MessageId) -> list[Delivery]:
    """Return the deliveries of a message, by channel."""
    return DELIVERIES.select(tx, "message_id = :id order by channel", id=message_id)


def untried(tx: Tx, person_id: PersonId) -> list[Delivery]:
    """Return the queued deliveries to a person of which no attempt was made yet."""
    where = (
        "status = 'queued' and tries = 0 and channel in (select name from channels"
        " where person_id = :person) order by id"
    )
    return DELIVERIES.select(tx, where, person=person_id)


def failed(tx: Tx, *, after: str = "", limit: int = 100) -> list[Delivery]:
    """Return the deliveries that were given up, oldest first."""
    where = "status = 'failed' and id > :after order by id limit :limit"
    return DELIVERIES.select(tx, where, after=after, limit=limit)
