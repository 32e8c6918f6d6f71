"""Deliveries: queue the person's messages for channels, and record each attempt to send them.

A delivery never changes the message it carries: a failed channel loses nothing from the inbox.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from agiraph.domain.deliveries import Delivery, OutgoingMessage
from agiraph.domain.errors import Refused
from agiraph.domain.events.mail import DeliveryFailed, DeliverySent
from agiraph.domain.ids import PersonId, new_id
from agiraph.domain.messages import INBOX, NEEDS_ANSWER, Message, MessageKind
from agiraph.domain.persons import is_person
from agiraph.services.board import planning
from agiraph.services.mail import quiet_hours
from agiraph.store import deliveries
from agiraph.store.deliveries import DELIVERIES
from agiraph.store.messages import MESSAGES
from agiraph.store.persons import PERSONS
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

# Well above the time limits of the channels (20 s), so that a live owner has reported by then.
CLAIM_TIMEOUT = timedelta(minutes=2)
"""A claimed delivery without a report within this time is due again: its owner counts as dead."""
FIRST_BACKOFF = timedelta(seconds=10)
MAX_BACKOFF = timedelta(hours=1)
MAX_TRIES = 10
"""With a backoff that grows threefold, the last try is about five hours after the first."""
MAX_ERROR_CHARS = 500

ChannelKinds = Mapping[str, frozenset[MessageKind]]
"""The kinds of messages that each channel sends, by the channel's name."""


def open_channels(
    tx: Tx, wanted: ChannelKinds, *, person_id: PersonId, is_sole_process: bool
) -> None:
    """Register the channels of this process. They get messages to the person from now on.

    A process that is alone on the database removes all other channels; otherwise they may belong to
    another process.
    """
    deliveries.add_channels(tx, wanted, person_id=person_id)
    if not is_sole_process:
        return
    deliveries.forget_owners(tx)  # no other process is alive, so nobody else is sending
    for channel in deliveries.channels(tx):
        if channel not in wanted:
            deliveries.drop_channel(tx, channel)
            for delivery in deliveries.under_way(tx, channel):
                _give_up(tx, delivery, error="There is no such channel any more.")


def queue(tx: Tx, message: Message) -> None:
    """Queue a message to a person's inbox for each of their channels that sends its kind."""
    if not is_person(message.recipient) or message.kind not in INBOX:
        return
    for channel in _channels_for(tx, message, message.recipient):
        delivery = Delivery(
            id=new_id("delivery"),
            team_id=message.team_id,
            message_id=message.id,
            channel=channel,
            created_at=tx.now,
            due_at=_first_due(tx, message),
        )
        # In the transaction of the message: no crash leaves a message that no channel sends.
        DELIVERIES.insert(tx, delivery)
        tx.alarm()


def _channels_for(tx: Tx, message: Message, person_id: PersonId) -> list[str]:
    """Return the channels of a message: those that send its kind, or the one for questions that the
    team's owner has chosen."""
    sending = [
        channel
        for channel, kinds in deliveries.channels_to(tx, person_id).items()
        if message.kind in kinds
    ]
    if len(sending) < 2 or message.kind not in NEEDS_ANSWER:
        return sending
    team = TEAMS.get(tx, message.team_id)
    # A channel that was removed from the settings chooses nothing: a question must not be lost.
    is_chosen = person_id == team.owner_id and team.channel in sending
    return [team.channel] if is_chosen else sending


def check_channel(tx: Tx, person_id: PersonId, channel: str) -> None:
    """Raise `Refused` unless the person has this channel and it sends questions and approvals."""
    known = deliveries.channels_to(tx, person_id)
    if channel not in known:
        has = f"There are {', '.join(known)}" if known else "None is set up"
        raise Refused(
            f"There is no channel {channel!r}. {has}; add a [channels.NAME] table to agiraph.toml "
            "and start agiraph again."
        )
    if not known[channel] >= NEEDS_ANSWER:
        raise Refused(
            f"Channel {channel!r} does not send questions and approvals. Add both to `kinds` in "
            "its table in agiraph.toml, or choose another channel."
        )


def _first_due(tx: Tx, message: Message) -> datetime:
    """Return when the message may be sent: when the person is back, if they are away, and a
    briefing not before the quiet hours are over."""
    back = PERSONS.get(tx, PersonId(message.recipient)).away_until
    due = tx.now if back is None else max(back, tx.now)
    if message.kind != "briefing":
        return due
    team = TEAMS.get(tx, message.team_id)
    if message.recipient != team.owner_id:
        return due  # a team's quiet hours are its owner's
    return quiet_hours.end_of_quiet(team, due) or due


def reschedule(tx: Tx, person_id: PersonId) -> None:
    """Set again when the person's messages are sent that no channel has tried yet."""
    for delivery in deliveries.untried(tx, person_id):
        message = MESSAGES.get(tx, delivery.message_id)
        DELIVERIES.update(tx, delivery.id, due_at=_first_due(tx, message))
    tx.alarm()


def claim(tx: Tx, channel: str, *, owner: str, limit: int) -> list[OutgoingMessage]:
    """Return due deliveries of a channel, claimed by this owner until `CLAIM_TIMEOUT`."""
    taken: list[OutgoingMessage] = []
    for delivery in deliveries.due(tx, channel, limit=limit):
        # Another process was faster; the delivery is its own now.
        if not deliveries.claim(tx, delivery, owner=owner, until=tx.now + CLAIM_TIMEOUT):
            continue
        message = MESSAGES.get(tx, delivery.message_id)
        outgoing = OutgoingMessage(
            delivery=DELIVERIES.get(tx, delivery.id),
            message=message,
            team=TEAMS.get(tx, message.team_id).name,
            sender=planning.name_of(tx, message.sender),
            claimed_at=tx.now,
        )
        taken.append(outgoing)
    return taken


def mark_sent(tx: Tx, claimed: Delivery) -> None:
    """Record that the channel accepted a delivery, unless the claim has passed to another owner."""
    if not _lock_if_claimed(tx, claimed):
        return
    DELIVERIES.update(tx, claimed.id, status="sent", owner=None, error=None, sent_at=tx.now)
    tx.emit(
        claimed.team_id,
        DeliverySent(
            delivery_id=claimed.id,
            message_id=claimed.message_id,
            channel=claimed.channel,
            tries=claimed.tries,
        ),
    )


def retry_later(tx: Tx, claimed: Delivery, *, error: str, pause_s: float | None = None) -> None:
    """Queue a failed delivery again with backoff, or give it up after `MAX_TRIES`.

    `pause_s` is the pause that the receiver asked for; it applies if it is longer.
    """
    if not _lock_if_claimed(tx, claimed):
        return
    error = error[:MAX_ERROR_CHARS]
    if claimed.tries >= MAX_TRIES:
        return _give_up(tx, claimed, error=error)
    backoff = max(FIRST_BACKOFF * 3 ** (claimed.tries - 1), timedelta(seconds=pause_s or 0.0))
    # The receiver's wish is bounded as well: a Retry-After of a year would be a lost message.
    due = tx.now + min(backoff, MAX_BACKOFF)
    DELIVERIES.update(tx, claimed.id, status="queued", owner=None, error=error, due_at=due)
    return tx.alarm()


def _give_up(tx: Tx, delivery: Delivery, *, error: str) -> None:
    DELIVERIES.update(tx, delivery.id, status="failed", owner=None, error=error)
    tx.emit(
        delivery.team_id,
        DeliveryFailed(
            delivery_id=delivery.id,
            message_id=delivery.message_id,
            channel=delivery.channel,
            tries=delivery.tries,
            error=error,
        ),
    )


def _lock_if_claimed(tx: Tx, claimed: Delivery) -> bool:
    """Lock the delivery's row. Return False if the claim is over; `tries` is the fencing token."""
    row = DELIVERIES.get(tx, claimed.id, lock=True)
    return (row.status, row.owner, row.tries) == ("sending", claimed.owner, claimed.tries)


def redeliver(tx: Tx, delivery_id: str) -> Delivery:
    """Queue a failed or sent delivery again, with all its tries."""
    delivery = DELIVERIES.get(tx, delivery_id, lock=True)
    if delivery.status not in ("failed", "sent"):
        raise Refused(f"{delivery_id} is {delivery.status} and goes out by itself.")
    if delivery.channel not in deliveries.channels(tx):
        raise Refused(f"There is no channel {delivery.channel!r} any more; set it up first.")
    DELIVERIES.update(tx, delivery_id, status="queued", tries=0, error=None, due_at=tx.now)
    tx.alarm()
    return DELIVERIES.get(tx, delivery_id)
