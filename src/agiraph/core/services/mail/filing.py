"""Filing: archives, snoozes or marks the items of a person's inbox.

A snoozed item is out of the inbox and counts as read. A timer brings it back as unread, also after
a restart. An item that waits for an answer can be snoozed, but not archived.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events.mail import MessageFiled, MessageSeen
from agiraph.core.domain.ids import MessageId, PersonId, TeamId
from agiraph.core.domain.messages import INBOX, Filing, Message
from agiraph.core.domain.value import value
from agiraph.core.domain.work import Timer
from agiraph.core.store import waits
from agiraph.core.store.lists import inbox_items
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.tx import Tx

MOST_ITEMS = 500
LONGEST = timedelta(days=366)
NOT_HERE = "It is not in your inbox."
STILL_OPEN = "It still waits for your answer. Answer it, or snooze it."


@value
class Outcome:
    """The result of a bulk action for one item."""

    id: str
    reason: str = ""
    """Why nothing was done; empty if it was."""


def file(
    tx: Tx,
    person_id: PersonId,
    ids: Sequence[str],
    action: Filing,
    *,
    until: datetime | None = None,
) -> list[Outcome]:
    """File these items; return what became of each, in their order. `until` is for `snooze`."""
    check(ids, action, until=until, now=tx.now)
    outcomes: list[Outcome] = []
    done: dict[TeamId, list[MessageId]] = defaultdict(list)
    for identity in ids:
        message = MESSAGES.find(tx, identity, lock=True)
        reason = _refusal(tx, message, person_id, action)
        outcomes.append(Outcome(id=identity, reason=reason))
        if message is not None and not reason:
            _apply(tx, message, action, until)
            done[message.team_id].append(message.id)
    for team_id, filed in done.items():
        tx.emit(team_id, _event(action, filed))
    return outcomes


def check(ids: Sequence[str], action: Filing, *, until: datetime | None, now: datetime) -> None:
    """Raise `Refused` if an action cannot be meant for any item."""
    if len(ids) > MOST_ITEMS:
        raise Refused(f"Select at most {MOST_ITEMS} items at once, not {len(ids):,}.")
    if len(set(ids)) != len(ids):
        raise Refused("An item is named twice; name each once.")
    if (until is not None) != (action == "snooze"):
        raise Refused("`until` says when a snoozed item comes back: send it with `snooze` only.")
    if until is not None and not now < until <= now + LONGEST:
        raise Refused("An item is snoozed until a moment in the next 366 days.")


def bring_back(tx: Tx, message_id: MessageId) -> None:
    """Bring a snoozed item back into the inbox as unread, unless it was answered meanwhile. Its
    timer has fired."""
    message = MESSAGES.find(tx, message_id, lock=True)
    if message is None or message.snoozed_until is None or message.archived_at is not None:
        return
    if message.answered_at is not None:
        return
    MESSAGES.update(tx, message.id, seen_at=None)
    tx.emit(message.team_id, MessageFiled(message_ids=[message.id], filing="return"))


def _refusal(tx: Tx, message: Message | None, person_id: PersonId, action: Filing) -> str:
    if message is None or message.recipient != person_id or message.kind not in INBOX:
        return NOT_HERE
    if action == "archive" and inbox_items.is_waiting(tx, message.id):
        return STILL_OPEN
    return ""


def _apply(tx: Tx, message: Message, action: Filing, until: datetime | None) -> None:
    changes: dict[str, Any] = {}
    match action:
        case "read":
            changes = {"seen_at": message.seen_at or tx.now}
        case "unread":
            changes = {"seen_at": None}
        case "archive":
            seen = message.seen_at or tx.now
            changes = {"archived_at": tx.now, "snoozed_until": None, "seen_at": seen}
        case "snooze":
            assert until is not None
            changes = {"snoozed_until": until, "archived_at": None, "seen_at": tx.now}
            waits.set_timer(tx, Timer("snooze", message.id), until)
        case "restore":
            changes = {"archived_at": None, "snoozed_until": None}
    if action in ("archive", "restore") and message.snoozed_until is not None:
        waits.drop_timer(tx, Timer("snooze", message.id))
    MESSAGES.update(tx, message.id, **changes)


def _event(action: Filing, ids: list[MessageId]) -> MessageFiled | MessageSeen:
    if action == "read":
        return MessageSeen(message_ids=list(ids))
    return MessageFiled(message_ids=list(ids), filing=action)
