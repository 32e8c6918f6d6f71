"""Deliveries: queue the person's messages for channels, and record each attempt to send them.

A delivery never changes the message it carries: a failed channel loses nothing from the inbox.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events.mail import DeliveryFailed, DeliverySent
from agiraph.core.domain.ids import MessageId, PersonId, new_id
from agiraph.core.domain.messages import INBOX, NEEDS_ANSWER, Message, MessageKind
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import join
from agiraph.core.domain.records.channels import ChannelState, Receipt
from agiraph.core.domain.records.deliveries import Delivery, OutgoingMessage, StoredDelivery
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.times import hours as daily
from agiraph.core.domain.times.moments import as_text, parse_zone
from agiraph.core.services.board import planning, requests, team_hosts
from agiraph.core.store import channels, deliveries, messages, teams
from agiraph.core.store.channels import CHANNELS
from agiraph.core.store.deliveries import DELIVERIES
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.teams import PERSONS, TEAMS
from agiraph.core.store.tx import Tx

# Well above the time limits of the channels (20 s), so that a live owner has reported by then.
CLAIM_TIMEOUT = timedelta(minutes=2)
"""A claimed delivery without a report within this time is due again: its owner counts as dead."""
FIRST_BACKOFF = timedelta(seconds=10)
MAX_BACKOFF = timedelta(hours=1)
EDIT_BACKOFF = timedelta(minutes=1)
MAX_TRIES = 10
"""With a backoff that grows threefold, the last try is about five hours after the first."""
MAX_ERROR_CHARS = 500
COLLECT_FOR = timedelta(minutes=1)
"""How long a question waits for others if the team has asked one just before."""
HOW_TO_ANSWER = (
    "Answer each in the inbox, or reply to this message with /answer, its number and your words: "
    "/answer {number} Yes, please."
)
GOES_ON = "(Waits for you until {time}, then goes on without your answer.)"
CUT_OFF = "A crash of the server cut off the last try; it may or may not have been sent."

ChannelKinds = Mapping[str, frozenset[MessageKind]]
"""The kinds of messages that each channel sends, by the channel's name."""


def open_channels(
    tx: Tx,
    wanted: ChannelKinds,
    *,
    person_id: PersonId,
    is_sole_process: bool,
    two_way: Collection[str] = (),
) -> None:
    """Register the channels of this process. They get messages to the person from now on; those
    that also receive, the `two_way` ones, only once somebody is paired with them.

    A process that is alone on the database removes all other channels; otherwise they may belong to
    another process.
    """
    channels.add(tx, wanted, two_way=frozenset(two_way), person_id=person_id)
    if not is_sole_process:
        return
    deliveries.forget_owners(tx)  # no other process is alive, so nobody else is sending
    for channel in channels.every(tx):
        if channel.name not in wanted:
            close_channel(tx, channel.name)


def close_channel(tx: Tx, name: str) -> None:
    """Forget a channel and who is paired with it, and give up what was not sent by it yet."""
    channels.drop(tx, name)
    for delivery in deliveries.under_way(tx, name):
        give_up(tx, delivery, error="There is no such channel any more.")


def queue(tx: Tx, message: Message) -> None:
    """Queue a message to a person's inbox for each of their channels that sends its kind, and a
    reply for the channel that brought what it answers."""
    if not is_person(message.recipient):
        return
    if message.kind in INBOX:
        for channel in _channels_for(tx, message, message.recipient):
            queue_for(tx, message, channel)
    elif message.kind == "message" and message.in_reply_to is not None:
        queue_reply(tx, message, [message.in_reply_to])


def queue_once(tx: Tx, message: Message) -> None:
    """Queue a message as `queue` does, unless it was: a call begins to wait for its answer."""
    if not deliveries.of_message(tx, message.id):
        queue(tx, message)


def queue_reply(tx: Tx, reply: Message, answered: Sequence[MessageId]) -> None:
    """Queue a reply once for each channel that brought one of the messages which it answers."""
    origins = [channels.origin(tx, each) for each in answered]
    brought = dict.fromkeys(origin.channel for origin in origins if origin is not None)
    queued = {each.channel for each in deliveries.of_message(tx, reply.id)} if brought else ()
    for name in brought:
        channel = CHANNELS.find(tx, name)
        # The channel may have been removed, or paired anew, since.
        if name not in queued and channel is not None and channel.address is not None:
            queue_for(tx, reply, channel)


def queue_for(tx: Tx, message: Message, channel: ChannelState) -> None:
    """Queue a message for one channel."""
    delivery = StoredDelivery(
        id=new_id("delivery"),
        team_id=message.team_id,
        message_id=message.id,
        channel=channel.name,
        created_at=tx.now,
        due_at=_first_due(tx, message, channel, since=_collected_from(tx, message, channel)),
    )
    # In the transaction of the message: no crash leaves a message that no channel sends.
    DELIVERIES.insert(tx, delivery)
    tx.alarm()


def _collected_from(tx: Tx, message: Message, channel: ChannelState) -> datetime:
    """Return when to send a message: a question waits for further ones if one of other work of
    its team is open that was asked just before, so that many questions do not make as many
    notifications. The questions of one work have a limit of their own (`bus.OPEN_QUESTIONS`)."""
    since = tx.now - COLLECT_FOR
    if message.kind != "question":
        return tx.now
    asked = deliveries.open_questions(
        tx, channel.name, message.team_id, message.node_id, since=since
    )
    if not asked:
        return tx.now
    waiting = [d.due_at for d in asked if d.status == "queued" and d.due_at > tx.now]
    return min(waiting, default=tx.now + COLLECT_FOR)


def queue_again(tx: Tx, message: Message, channel: ChannelState) -> None:
    """Queue a message for a channel that somebody was paired with just now."""
    for delivery in deliveries.of_message(tx, message.id):
        if delivery.channel == channel.name:
            fresh: dict[str, Any] = {"receipt": None, "is_open": False, "may_decide": False}
            if delivery.revoked is not None:
                fresh = {}  # the buttons in the other chat are removed before this is sent
            due = {"status": "queued", "error": None, "owner": None, "due_at": tx.now, "tries": 0}
            DELIVERIES.update(tx, delivery.id, **fresh, **due)
            return tx.alarm()
    return queue_for(tx, message, channel)


def queue_changed(tx: Tx, message: Message) -> None:
    """Queue a message that has got more text again, for each channel that may have sent it without.
    It waits a moment: more may be added."""
    for delivery in deliveries.of_message(tx, message.id):
        channel = CHANNELS.find(tx, delivery.channel)
        if channel is None or delivery.status == "queued":
            continue  # the text is read when it is sent
        due = _first_due(tx, message, channel, since=tx.now + FIRST_BACKOFF)
        # The tries are the fencing token of one who is sending it now.
        tries = delivery.tries if delivery.status == "sending" else 0
        changes = {"status": "queued", "owner": None, "error": None, "due_at": due, "tries": tries}
        DELIVERIES.update(tx, delivery.id, **changes)
    tx.alarm()


def revoke_receipts(tx: Tx, channel: ChannelState) -> None:
    """Make replies to messages of the channel prove nothing, because its pairing ends. Buttons
    under them decide nothing from now on, and are removed where the service can still be told."""
    deliveries.revoke_receipts(tx, channel.name, channel.address)
    tx.alarm()


def waiting_on(tx: Tx, channel: str) -> list[StoredDelivery]:
    """Return the deliveries that a channel has not sent yet."""
    return deliveries.under_way(tx, channel)


def _channels_for(tx: Tx, message: Message, person_id: PersonId) -> list[ChannelState]:
    """Return the channels of a message: those that send its kind, or the one for questions that the
    team's owner has chosen."""
    known = channels.of_person(tx, person_id)
    sending = [channel for channel in known if message.kind in channel.kinds]
    if len(sending) < 2 or message.kind not in NEEDS_ANSWER:
        return sending
    team = TEAMS.get(tx, message.team_id)
    # A channel that was removed from the settings chooses nothing: a question must not be lost.
    chosen = [channel for channel in sending if channel.name == team.channel]
    return chosen if chosen and person_id == team.owner_id else sending


def check_channel(tx: Tx, person_id: PersonId, channel: str) -> None:
    """Raise `Refused` unless the person has this channel and it sends questions and approvals."""
    known = {each.name: each.kinds for each in channels.every(tx) if each.person_id == person_id}
    if channel not in known:
        has = f"There are {', '.join(known)}" if known else "None is set up"
        raise Refused(
            f"There is no channel {channel!r}. {has}; add a [channels.NAME] table to agiraph.toml "
            "and start agiraph again."
        )
    if not set(known[channel]) >= NEEDS_ANSWER:
        raise Refused(
            f"Channel {channel!r} does not send questions and approvals. Add both to `kinds` in "
            "its table in agiraph.toml, or choose another channel."
        )


def _first_due(tx: Tx, message: Message, channel: ChannelState, *, since: datetime) -> datetime:
    """Return when a message that could be sent from `since` on may be sent: when the person is
    back, if they are away or have muted the channel or the team, and a briefing or the notice of
    a digest not before the quiet hours are over. A reply is sent at once."""
    if message.kind not in INBOX:
        return tx.now  # they have just asked on this channel
    back = PERSONS.get(tx, PersonId(message.recipient)).away_until
    due = max(since, back or since, channel.muted_until or since)
    team = TEAMS.get(tx, message.team_id)
    if message.recipient != team.owner_id:
        return due  # a team is muted, and quiet, for its owner
    due = max(due, team.muted_until or due)
    can_wait = message.kind == "briefing" or message.topic == "digest"
    return end_of_quiet(team, due) or due if can_wait else due


def reschedule(tx: Tx, person_id: PersonId) -> None:
    """Compute again when to send the person's messages that no channel has tried to send yet."""
    for delivery in deliveries.untried(tx, person_id):
        message = MESSAGES.get(tx, delivery.message_id)
        # One that was due while no process ran has waited through its quiet hours.
        since = min(delivery.due_at, tx.now)
        due = _first_due(tx, message, CHANNELS.get(tx, delivery.channel), since=since)
        DELIVERIES.update(tx, delivery.id, due_at=due)
    tx.alarm()


def claim(tx: Tx, channel: str, *, owner: str, limit: int) -> list[OutgoingMessage]:
    """Return due deliveries of a channel, claimed by this owner until `CLAIM_TIMEOUT`.

    One whose last try was cut off is given up: it may be what crashes the process.
    """
    taken: list[OutgoingMessage] = []
    for delivery in deliveries.due(tx, channel, limit=limit):
        # Another process was faster; the delivery is its own now.
        if not deliveries.claim(tx, delivery, owner=owner, until=tx.now + CLAIM_TIMEOUT):
            continue
        if delivery.tries >= MAX_TRIES:
            give_up(tx, delivery, error=CUT_OFF)
            continue
        found = _outgoing(tx, DELIVERIES.get(tx, delivery.id))
        is_question = found.message.kind == "question"
        taken.append(_with_others(tx, found, delivery, owner) if is_question else found)
    return taken


def _with_others(tx: Tx, found: OutgoingMessage, before: Delivery, owner: str) -> OutgoingMessage:
    """Return a claimed question, together with all others of its team that are due. `before` is
    its delivery before the claim. Those are claimed as well."""
    until = tx.now + CLAIM_TIMEOUT
    others = tuple(
        DELIVERIES.get(tx, other.id)
        for other in deliveries.due_with(tx, before, found.message.node_id)
        if deliveries.claim(tx, other, owner=owner, until=until)
    )
    if not others:
        return found
    asked = sorted((found.delivery, *others), key=lambda delivery: delivery.id)
    message = _collected([_outgoing(tx, each) for each in asked])
    return replace(found, message=message, others=others, waits_until="")


def _collected(asked: Sequence[OutgoingMessage]) -> Message:
    """Return a message that lists those of these questions that are open.

    Each has its number in the person's mailbox, which never changes: `/answer` names it.
    """
    listed = [_numbered(each) for each in asked if each.message.answered_at is None]
    how = HOW_TO_ANSWER.format(number=asked[-1].message.seq)
    verb = "waits" if len(listed) == 1 else "wait"
    title = f"{counted(len(listed), 'question')} {verb} for you."
    return replace(
        asked[0].message,
        title=title,
        text="\n\n".join([f"{title} {how}", *listed]),
        options=(),
        label=join(each.message.label for each in asked),
    )


def _numbered(asked: OutgoingMessage) -> str:
    """Return a question as a part of a list, with its options and how long it waits."""
    options = asked.message.options
    chosen = f" ({' / '.join(options)})" if options else ""
    until = f" {GOES_ON.format(time=asked.waits_until)}" if asked.waits_until else ""
    return f"{asked.message.seq}. {asked.sender}: {asked.message.text}{chosen}{until}"


def mark_all_sent(
    tx: Tx, outgoing: OutgoingMessage, receipt: Receipt | None, *, address: str
) -> None:
    """Record that the channel accepted a message, for each delivery that it carries."""
    for delivery in (outgoing.delivery, *outgoing.others):
        mark_sent(tx, delivery, receipt, address=address)


def retry_all_later(
    tx: Tx, outgoing: OutgoingMessage, *, error: str, pause_s: float | None = None
) -> None:
    """Queue each delivery that a failed message carries again, or give it up."""
    for delivery in (outgoing.delivery, *outgoing.others):
        retry_later(tx, delivery, error=error, pause_s=pause_s)


def _outgoing(tx: Tx, delivery: Delivery) -> OutgoingMessage:
    """Return a delivery with its message and what a channel shows beside it."""
    message = MESSAGES.get(tx, delivery.message_id)
    team = TEAMS.get(tx, message.team_id)
    channel = CHANNELS.find(tx, delivery.channel)
    came_by = None if message.in_reply_to is None else channels.origin(tx, message.in_reply_to)
    # A reply to messages of several channels answers the last of them; the others' ids differ.
    is_here = came_by is not None and came_by.channel == delivery.channel
    answers = came_by.id.removeprefix(f"{came_by.channel}:") if came_by and is_here else ""
    return OutgoingMessage(
        delivery=delivery,
        message=_without_links(tx, message, team) if message.label else message,
        team=team.name,
        sender=planning.name_of(tx, message.sender),
        claimed_at=tx.now,
        address="" if channel is None else channel.address or "",
        answers=answers,
        waits_until=_waits_until(tx, message),
        is_silent=end_of_quiet(team, tx.now) is not None,
    )


def _waits_until(tx: Tx, message: Message) -> str:
    until = requests.waits_until(tx, message)
    return "" if until is None else as_text(until, teams.zone_of(tx, PersonId(message.recipient)))


def _without_links(tx: Tx, message: Message, team: Team) -> Message:
    """Return a labelled message as channels get it: they may open what is a link in it."""
    write = team_hosts.without_links(tx, team, message.label)
    call = message.call
    return replace(
        message,
        text=write(message.text),
        title=write(message.title),
        summary=write(message.summary),
        options=tuple(write(option) for option in message.options),
        acts=tuple(replace(a, name=write(a.name), words=write(a.words)) for a in message.acts),
        doubts=tuple(
            replace(d, title=write(d.title), words=write(d.words)) for d in message.doubts
        ),
        call=None if call is None else replace(call, arguments=_in_values(call.arguments, write)),
    )


def _in_values(given: Any, write: Callable[[str], str]) -> Any:
    match given:
        case str():
            return write(given)
        case dict():
            pairs = cast(dict[str, Any], given).items()
            return {write(name): _in_values(value, write) for name, value in pairs}
        case list():
            return [_in_values(value, write) for value in cast(list[Any], given)]
        case _:
            return given


def mark_sent(
    tx: Tx, claimed: Delivery, receipt: Receipt | None = None, *, address: str = ""
) -> None:
    """Record that the channel accepted a delivery for this address, unless the claim has passed to
    another owner."""
    if not _lock_if_claimed(tx, claimed):
        _remember_buttons(tx, claimed, receipt, address)
        return
    changes = {"status": "sent", "owner": None, "error": None, "sent_at": tx.now}
    if receipt is not None:
        changes |= {"receipt": receipt.id, "is_open": receipt.is_open, "revoked": None}
        changes |= {"may_decide": receipt.may_decide, "due_at": tx.now}
    DELIVERIES.update(tx, claimed.id, **changes)
    tx.emit(
        claimed.team_id,
        DeliverySent(
            delivery_id=claimed.id,
            message_id=claimed.message_id,
            channel=claimed.channel,
            tries=claimed.tries,
        ),
    )


def _remember_buttons(tx: Tx, sent: Delivery, receipt: Receipt | None, address: str) -> None:
    """Have the buttons removed under a message that was sent while its channel was unpaired. The
    caller holds the lock of the delivery's row."""
    row, channel = DELIVERIES.get(tx, sent.id), CHANNELS.find(tx, sent.channel)
    is_gone = channel is not None and channel.address != address
    is_kept = row.receipt is not None or row.revoked is not None
    if receipt is None or not receipt.is_open or is_kept or not is_gone:
        return
    DELIVERIES.update(tx, row.id, is_open=True, **deliveries.revoked(tx, address, receipt.id))
    tx.alarm()


def retry_later(tx: Tx, claimed: Delivery, *, error: str, pause_s: float | None = None) -> None:
    """Queue a failed delivery again with backoff, or give it up after `MAX_TRIES`.

    `pause_s` is the pause that the receiver asked for; it applies if it is longer.
    """
    if not _lock_if_claimed(tx, claimed):
        return
    error = error[:MAX_ERROR_CHARS]
    if claimed.tries >= MAX_TRIES:
        return give_up(tx, claimed, error=error)
    backoff = max(FIRST_BACKOFF * 3 ** (claimed.tries - 1), timedelta(seconds=pause_s or 0.0))
    # The receiver's wish is bounded as well: a Retry-After of a year would be a lost message.
    due = tx.now + min(backoff, MAX_BACKOFF)
    DELIVERIES.update(tx, claimed.id, status="queued", owner=None, error=error, due_at=due)
    return tx.alarm()


def give_up(tx: Tx, delivery: Delivery, *, error: str) -> None:
    """Record that a delivery is not tried again, and why."""
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
    row = DELIVERIES.find(tx, claimed.id, lock=True)
    if row is None:  # its team was deleted meanwhile
        return False
    return (row.status, row.owner, row.tries) == ("sending", claimed.owner, claimed.tries)


def redeliver(tx: Tx, delivery_id: str) -> StoredDelivery:
    """Queue a failed or sent delivery again, with all its tries."""
    delivery = DELIVERIES.get(tx, delivery_id, lock=True)
    if delivery.status not in ("failed", "sent"):
        raise Refused(
            f"{delivery_id} is {delivery.status}: it is still to be sent, so there is nothing to "
            "send again. Failed and sent deliveries can be."
        )
    if CHANNELS.find(tx, delivery.channel) is None:
        raise Refused(f"There is no channel {delivery.channel!r} any more; set it up first.")
    DELIVERIES.update(tx, delivery_id, status="queued", tries=0, error=None, due_at=tx.now)
    tx.alarm()
    return DELIVERIES.get(tx, delivery_id)


def to_edit(tx: Tx, channel: str, *, limit: int) -> list[OutgoingMessage]:
    """Return messages on a channel that still offer an answer although none is wanted there. One
    whose receiver is not paired any more has their address, but not the answer."""
    found: list[OutgoingMessage] = []
    for delivery in deliveries.to_edit(tx, channel, limit=limit):
        outgoing = _outgoing(tx, delivery)
        if delivery.revoked is not None:
            address, receipt = delivery.revoked
            told = replace(delivery, receipt=receipt)
            found.append(replace(outgoing, delivery=told, address=address, is_unpaired=True))
            continue
        given = messages.answers_to(tx, delivery.message_id)
        found.append(replace(outgoing, answer=given[-1].text if given else ""))
    return found


def mark_edited(tx: Tx, edited: OutgoingMessage) -> None:
    """Record that a message offers no answer any more."""
    row = DELIVERIES.find(tx, edited.delivery.id, lock=True)
    if row is None:
        return  # its team was deleted meanwhile
    if edited.is_unpaired and row.revoked is None:
        return  # it was sent to another address meanwhile, with new buttons
    DELIVERIES.update(tx, row.id, revoked=None, is_open=False, may_decide=False)


def edit_later(tx: Tx, failed: OutgoingMessage, *, pause_s: float | None = None) -> None:
    """Try again later to edit a message. One to somebody who is not paired any more, and may have
    blocked us, is given up after `MAX_TRIES`, or at once if it is to be sent to another address."""
    row = DELIVERIES.find(tx, failed.delivery.id, lock=True)
    if row is None:
        return  # its team was deleted meanwhile
    pause = max(timedelta(seconds=pause_s or 0.0), EDIT_BACKOFF)
    changes: dict[str, Any] = {}
    if failed.is_unpaired:
        if row.status in ("queued", "sending") or row.tries + 1 >= MAX_TRIES:
            return mark_edited(tx, failed)
        pause, changes = max(pause, EDIT_BACKOFF * 2**row.tries), {"tries": row.tries + 1}
    DELIVERIES.update(tx, row.id, due_at=tx.now + min(pause, MAX_BACKOFF), **changes)
    return tx.alarm()


def check_quiet_hours(hours: str, zone: str) -> None:
    """Raise `Refused` for hours or a time zone that cannot be read."""
    if hours and daily.parse(hours).is_whole_day:
        raise Refused(
            f"Quiet hours {hours!r} leave no time to send anything; leave out at least a minute."
        )
    parse_zone(zone)


def end_of_quiet(team: Team, now: datetime) -> datetime | None:
    """Return when the current quiet hours end, or None outside of quiet hours."""
    if not team.quiet_hours:
        return None
    quiet = daily.parse(team.quiet_hours)
    return quiet.next_end(now, team.quiet_zone) if quiet.contain(now, team.quiet_zone) else None
