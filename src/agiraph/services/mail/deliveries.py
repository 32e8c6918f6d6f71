"""Deliveries: every message for the person goes out through channels, however long that takes.

What became of the work is written down before and stays whatever a channel does.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from agiraph.domain.deliveries import Delivery, OutgoingMessage
from agiraph.domain.errors import Refused
from agiraph.domain.ids import HUMAN, new_id
from agiraph.domain.messages import INBOX, Message, MessageKind
from agiraph.services.board import planning
from agiraph.services.mail import quiet_hours
from agiraph.store import deliveries
from agiraph.store.deliveries import DELIVERIES
from agiraph.store.messages import MESSAGES
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

CLAIMED = timedelta(minutes=2)
"""How long somebody may take to send before they count as dead."""
FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(hours=1)
MOST_TRIES = 10
"""With pauses that grow threefold, the last one is some five hours after the first."""
LONGEST_ERROR = 500

Wanted = Mapping[str, frozenset[MessageKind]]
"""Which kinds of messages go through which channel."""


def open_channels(tx: Tx, wanted: Wanted, *, alone: bool) -> None:
    """From now on messages go through these channels. A new one does not get all that ever was.

    Whoever is alone decides which there are; where there may be others, theirs stay open.
    """
    deliveries.add_channels(tx, wanted)
    if not alone:
        return
    deliveries.forget_owners(tx)  # whoever was sending is dead
    for channel in deliveries.channels(tx):
        if channel not in wanted:
            deliveries.drop_channel(tx, channel)
            for delivery in deliveries.under_way(tx, channel):
                _give_up(tx, delivery, error="There is no such channel any more.")


def queue(tx: Tx, message: Message) -> None:
    """A message for the person's inbox is also for their channels, in the same transaction."""
    if message.recipient != HUMAN or message.kind not in INBOX:
        return
    for channel, kinds in deliveries.channels(tx).items():
        if message.kind in kinds:
            delivery = Delivery(
                id=new_id("delivery"),
                team_id=message.team_id,
                message_id=message.id,
                channel=channel,
                created_at=tx.now,
                due_at=_first_due(tx, message),
            )
            DELIVERIES.insert(tx, delivery)
            tx.alarm()


def _first_due(tx: Tx, message: Message) -> datetime:
    """Now; but nobody is woken for news that they did not ask for."""
    if message.kind != "briefing":
        return tx.now
    return quiet_hours.end_of_quiet(TEAMS.get(tx, message.team_id), tx.now) or tx.now


def claim(tx: Tx, channel: str, *, owner: str, limit: int) -> list[OutgoingMessage]:
    """What is due for a channel, to be sent by this owner and nobody else."""
    taken: list[OutgoingMessage] = []
    for delivery in deliveries.due(tx, channel, limit=limit):
        if not deliveries.claim(tx, delivery, owner=owner, until=tx.now + CLAIMED):
            continue
        message = MESSAGES.get(tx, delivery.message_id)
        parcel = OutgoingMessage(
            delivery=DELIVERIES.get(tx, delivery.id),
            message=message,
            team=TEAMS.get(tx, message.team_id).name,
            sender=planning.name_of(tx, message.sender),
            claimed_at=tx.now,
        )
        taken.append(parcel)
    return taken


def sent(tx: Tx, claimed: Delivery) -> None:
    """It was taken at the other end."""
    if _mine(tx, claimed) is None:
        return
    DELIVERIES.update(tx, claimed.id, status="sent", owner=None, error=None, sent_at=tx.now)
    tx.emit(
        claimed.team_id,
        "delivery.sent",
        delivery_id=claimed.id,
        message_id=claimed.message_id,
        channel=claimed.channel,
        tries=claimed.tries,
    )


def put_off(tx: Tx, claimed: Delivery, *, error: str, pause: float | None = None) -> None:
    """It was not taken: try again later, at the other end's wish if it has one; or give up."""
    if _mine(tx, claimed) is None:
        return
    error = error[:LONGEST_ERROR]
    if claimed.tries >= MOST_TRIES:
        return _give_up(tx, claimed, error=error)
    wished = timedelta(seconds=pause or 0.0)
    grown = max(FIRST_PAUSE * 3 ** (claimed.tries - 1), wished)
    due = tx.now + min(grown, LONGEST_PAUSE)
    DELIVERIES.update(tx, claimed.id, status="queued", owner=None, error=error, due_at=due)
    return tx.alarm()


def _give_up(tx: Tx, delivery: Delivery, *, error: str) -> None:
    DELIVERIES.update(tx, delivery.id, status="failed", owner=None, error=error)
    tx.emit(
        delivery.team_id,
        "delivery.failed",
        delivery_id=delivery.id,
        message_id=delivery.message_id,
        channel=delivery.channel,
        tries=delivery.tries,
        error=error,
    )


def _mine(tx: Tx, claimed: Delivery) -> Delivery | None:
    """The row, unless somebody else has taken the delivery over meanwhile."""
    row = DELIVERIES.get(tx, claimed.id, lock=True)
    is_mine = (row.status, row.owner, row.tries) == ("sending", claimed.owner, claimed.tries)
    return row if is_mine else None


def redeliver(tx: Tx, delivery_id: str) -> Delivery:
    """Try again what was given up, or send once more what may not have been read."""
    delivery = DELIVERIES.get(tx, delivery_id, lock=True)
    if delivery.status not in ("failed", "sent"):
        raise Refused(f"{delivery_id} is {delivery.status} and goes out by itself.")
    if delivery.channel not in deliveries.channels(tx):
        raise Refused(f"There is no channel {delivery.channel!r} any more; set it up first.")
    DELIVERIES.update(tx, delivery_id, status="queued", tries=0, error=None, due_at=tx.now)
    tx.alarm()
    return DELIVERIES.get(tx, delivery_id)
