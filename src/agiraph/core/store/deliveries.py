"""Deliveries: messages that wait for a channel, are being sent, or were given up."""

from datetime import datetime
from typing import Any

from agiraph.core.domain.ids import MessageId, NodeId, PersonId, TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.records.deliveries import Delivery, StoredDelivery
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.rows import Table, from_micros, to_micros
from agiraph.core.store.tx import Tx

DELIVERIES = Table("deliveries", StoredDelivery)


def under_way(tx: Tx, channel: str) -> list[StoredDelivery]:
    where = "channel = :channel and status in ('queued', 'sending') order by id"
    return DELIVERIES.select(tx, where, channel=channel)


def next_due(tx: Tx, channel: str) -> datetime | None:
    sql = (
        "select min(due_at) from deliveries"
        " where channel = :channel and status in ('queued', 'sending')"
    )
    row = tx.one(sql, channel=channel)
    return None if row is None or row[0] is None else from_micros(row[0])


def due(tx: Tx, channel: str, *, limit: int) -> list[StoredDelivery]:
    # `sending` with a due time in the past is a claim that ran out. If its owner is alive after
    # all, `tries` tells the claims apart (`services/mail/deliveries.py`).
    where = (
        "channel = :channel and status in ('queued', 'sending') and due_at <= :now"
        " order by due_at, id limit :limit"
    )
    return DELIVERIES.select(tx, where, channel=channel, now=to_micros(tx.now), limit=limit)


_OF_OTHER_WORK = (
    "exists (select 1 from messages m where m.id = deliveries.message_id and m.kind = 'question'"
    " and (m.node_id is null or m.node_id <> :node)"
)


def open_questions(
    tx: Tx, channel: str, team_id: TeamId, node_id: NodeId | None, *, since: datetime
) -> list[StoredDelivery]:
    """Return the deliveries of open questions of a team's other work that were queued since
    then."""
    where = (
        "channel = :channel and team_id = :team and created_at > :since and"
        f" {_OF_OTHER_WORK} and m.answered_at is null) order by id"
    )
    values = {"team": team_id, "node": node_id or "", "since": to_micros(since)}
    return DELIVERIES.select(tx, where, channel=channel, **values)


def due_with(tx: Tx, delivery: Delivery, node_id: NodeId | None) -> list[StoredDelivery]:
    """Return the due deliveries of questions of the team's other work that were tried as often."""
    where = (
        "channel = :channel and team_id = :team and status in ('queued', 'sending') and"
        f" due_at <= :now and tries = :tries and id <> :id and {_OF_OTHER_WORK}) order by id"
    )
    values = {"team": delivery.team_id, "tries": delivery.tries, "now": to_micros(tx.now)}
    values |= {"id": delivery.id, "node": node_id or ""}
    return DELIVERIES.select(tx, where, channel=delivery.channel, **values)


def of_receipt(tx: Tx, channel: str, receipt: str) -> list[StoredDelivery]:
    """Return the deliveries that one message on a channel has carried, in the order of its
    numbers."""
    where = "channel = :channel and receipt = :receipt order by id"
    return DELIVERIES.select(tx, where, channel=channel, receipt=receipt)


def claim(tx: Tx, delivery: StoredDelivery, *, owner: str, until: datetime) -> bool:
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


def of_message(tx: Tx, message_id: MessageId) -> list[StoredDelivery]:
    """Return the deliveries of a message, ordered by channel."""
    return DELIVERIES.select(tx, "message_id = :id order by channel", id=message_id)


def untried(tx: Tx, person_id: PersonId) -> list[StoredDelivery]:
    """Return the queued deliveries to a person of which no attempt was made yet."""
    where = (
        "status = 'queued' and tries = 0 and channel in (select name from channels"
        " where person_id = :person) order by id"
    )
    return DELIVERIES.select(tx, where, person=person_id)


def failed(tx: Tx, *, after: str = "", limit: int = 100) -> list[StoredDelivery]:
    """Return the deliveries that were given up, oldest first."""
    where = "status = 'failed' and id > :after order by id limit :limit"
    return DELIVERIES.select(tx, where, after=after, limit=limit)


def by_receipt(tx: Tx, channel: str, receipts: tuple[str, ...]) -> StoredDelivery | None:
    """Return the delivery with the first of these receipts that is known on the channel."""
    for receipt in receipts:
        where = "channel = :channel and receipt = :receipt order by id desc limit 1"
        if found := DELIVERIES.select(tx, where, channel=channel, receipt=receipt):
            return found[0]
    return None


def last_with_acts(tx: Tx, channel: str) -> Message | None:
    """Return the newest reply that was queued for a channel and did something."""
    where = (
        "id in (select message_id from deliveries where channel = :channel)"
        " and acts <> '[]' order by id desc limit 1"
    )
    found = MESSAGES.select(tx, where, channel=channel)
    return found[0] if found else None


def revoke_receipts(tx: Tx, channel: str, address: str | None) -> None:
    """Forget what the receiver at this address knows of the channel's messages. Of a message that
    has buttons the receipt is kept apart, with the address, so that they can be removed."""
    of_channel = "channel = :channel and receipt is not null"
    has_buttons = f"{of_channel} and is_open = 1"
    for delivery in DELIVERIES.select(tx, has_buttons, channel=channel) if address else ():
        changes = revoked(tx, address or "", delivery.receipt or "")
        DELIVERIES.update(tx, delivery.id, **changes)
    sql = "update deliveries set receipt = null, is_open = 0, may_decide = 0"
    tx.run(f"{sql} where {of_channel}", channel=channel)


def revoked(tx: Tx, address: str, receipt: str) -> dict[str, Any]:
    """Return the fields of a message whose receiver is not paired any more, but whose buttons are
    still there."""
    left = {"revoked": (address, receipt), "receipt": None, "may_decide": False}
    return {**left, "due_at": tx.now, "tries": 0}


# A message that still offers an answer although there is one, or although nobody waits for it, or
# although its receiver is not paired any more.
_TO_EDIT = (
    "is_open = 1 and channel = :channel and (revoked is not null or exists"
    " (select 1 from messages m where m.id = deliveries.message_id and (m.answered_at is not null"
    " or exists (select 1 from nodes n where n.id = m.node_id and n.status = 'cancelled'))))"
)


def next_edit(tx: Tx, channel: str) -> datetime | None:
    """Return when the first message of a channel is to be edited; None if there is none."""
    row = tx.one(f"select min(due_at) from deliveries where {_TO_EDIT}", channel=channel)
    return None if row is None or row[0] is None else from_micros(row[0])


def to_edit(tx: Tx, channel: str, *, limit: int) -> list[StoredDelivery]:
    """Return deliveries whose message is to be edited now."""
    where = f"{_TO_EDIT} and due_at <= :now order by id limit :limit"
    return DELIVERIES.select(tx, where, channel=channel, now=to_micros(tx.now), limit=limit)
