"""Inbox: the messages of agents to a person, with their state. Items are never removed."""

from dataclasses import dataclass
from typing import NamedTuple

from agiraph.domain.deliveries import Delivery
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.events.mail import MessageSeen
from agiraph.domain.ids import MessageId, PersonId
from agiraph.domain.messages import INBOX, Message, State
from agiraph.store import deliveries, messages
from agiraph.store.messages import MESSAGES
from agiraph.store.tx import Tx

MAX_PAGE_ITEMS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    message: Message
    state: State
    needs_answer: bool
    """Whether a node waits for the person's answer."""
    deliveries: tuple[Delivery, ...] = ()
    """The deliveries to the person's channels, with their state."""


class InboxPage(NamedTuple):
    items: list[Item]
    cursor: str | None
    """The `after` of the next page; None on the last page."""


def page(tx: Tx, person_id: PersonId, *, after: str = "", limit: int = 100) -> InboxPage:
    """Return items that need an answer, oldest first, followed by all others, newest first."""
    if not 1 <= limit <= MAX_PAGE_ITEMS:
        raise Refused(f"A page has 1 to {MAX_PAGE_ITEMS} items, not {limit}.")
    part, _, last = after.partition(":")
    if after and (part not in ("open", "rest") or not last):
        raise Refused(
            f"{after!r} is not a cursor of the inbox; use the cursor of the previous page."
        )
    found: list[Message] = []
    if part != "rest":
        found = messages.waiting_for_person(tx, person_id, after=last, limit=limit + 1)
    waiting = {message.id for message in found}
    if len(found) <= limit:
        before = last if part == "rest" else ""
        found += messages.at_rest(tx, person_id, before=before, limit=limit + 1 - len(found))
    shown = [_item(tx, message, message.id in waiting) for message in found[:limit]]
    if len(found) <= limit:
        return InboxPage(shown, None)
    end = shown[-1]
    return InboxPage(shown, f"{'open' if end.needs_answer else 'rest'}:{end.message.id}")


def item(tx: Tx, person_id: PersonId, message_id: MessageId) -> Item:
    """Return one item. Raise `NotFound` for messages that are not in this person's inbox."""
    message = _find(tx, person_id, message_id)
    return _item(tx, message, messages.is_waiting(tx, message_id))


def mark_read(tx: Tx, person_id: PersonId, message_id: MessageId) -> Item:
    """Record that the person has read an item."""
    # Two screens may mark the same item at once; with the lock only one emits the event.
    message = _find(tx, person_id, message_id, lock=True)
    if message.seen_at is None:
        messages.mark_seen(tx, [message.id])
        tx.emit(message.team_id, MessageSeen(message_ids=[message.id]))
    return item(tx, person_id, message_id)


def count_unread(tx: Tx, person_id: PersonId) -> int:
    """Return how many items the person has neither read nor answered."""
    return messages.count_unread(tx, person_id)


def _item(tx: Tx, message: Message, needs_answer: bool) -> Item:
    state: State = "answered" if message.answered_at else "read" if message.seen_at else "unread"
    sent = tuple(deliveries.of_message(tx, message.id))
    return Item(message=message, state=state, needs_answer=needs_answer, deliveries=sent)


def _find(tx: Tx, person_id: PersonId, message_id: MessageId, *, lock: bool = False) -> Message:
    message = MESSAGES.find(tx, message_id, lock=lock)
    if message is None or message.recipient != person_id or message.kind not in INBOX:
        raise NotFound("inbox item", message_id, known="`agiraph inbox` lists them.")
    return message
