"""Inbox: the messages of agents to a person, with their state. Items are never removed."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from agiraph.core.domain.agents import Agent, Team
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.events.mail import BriefingRated, MessageSeen
from agiraph.core.domain.ids import MessageId, PersonId, TeamId
from agiraph.core.domain.messages import INBOX, Box, Message, MessageKind, Rating, State
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.records.deliveries import Delivery
from agiraph.core.domain.value import dataclass
from agiraph.core.store import deliveries, messages, teams
from agiraph.core.store.lists import inbox_items
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx

MAX_PAGE_ITEMS = 500
STEP, LOWEST, HIGHEST = 0.05, 0.2, 0.95
"""How far one rating moves a team's threshold, and the bounds of the threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    message: Message
    state: State
    needs_answer: bool
    """Whether the person has not answered it yet. The node that asked may have ended since."""
    deliveries: tuple[Delivery, ...] = ()
    """The deliveries to the person's channels, with their state."""
    waiting_work: tuple[inbox_items.WaitingWork, ...] = ()
    """Of an open question about a provider: all work that waits for the answer."""


class InboxPage(NamedTuple):
    items: list[Item]
    cursor: str | None
    """The `after` of the next page; None on the last page."""


class InboxRow(NamedTuple):
    """An item as lists show it."""

    message: Message
    box: Box
    state: State
    needs_answer: bool
    around: inbox_items.Around
    waiting_work: tuple[inbox_items.WaitingWork, ...]


class Rows(NamedTuple):
    items: list[InboxRow]
    cursor: str | None
    """The `after` of the next page; None on the last page."""


def page(
    tx: Tx,
    person_id: PersonId,
    *,
    box: Box = "inbox",
    team_id: TeamId | None = None,
    kind: MessageKind | None = None,
    after: str = "",
    limit: int = 100,
) -> InboxPage:
    """Return items that need an answer, oldest first, then those that came back from a snooze and
    all others, newest first. Another box has one list, newest first."""
    asked = inbox_items.InboxFilter(person_id=person_id, box=box, team_id=team_id, kind=kind)
    found, cursor = _read(tx, asked, _parts(box), after, limit)
    # In another box, an item may still wait for its answer.
    shown = [
        _item(tx, m, name == "open" or (box != "inbox" and inbox_items.is_waiting(tx, m.id)))
        for name, m in found
    ]
    return InboxPage(shown, cursor)


def rows(
    tx: Tx,
    asked: inbox_items.InboxFilter,
    *,
    only_open: bool = False,
    after: str = "",
    limit: int = 100,
) -> Rows:
    """Return a page of a list, in the order of `page` and in a fixed number of statements; with
    `only_open` the items that need an answer."""
    parts = _PARTS[:1] if only_open else _parts(asked.box)
    found, cursor = _read(tx, asked, parts, after, limit)
    return Rows(_as_rows(tx, [message for _, message in found]), cursor)


def rows_of(tx: Tx, person_id: PersonId, ids: Sequence[str]) -> Rows:
    """Return those of these items that are in a box of this person, oldest first."""
    return Rows(_as_rows(tx, inbox_items.of_ids(tx, person_id, ids)), None)


def _as_rows(tx: Tx, found: list[Message]) -> list[InboxRow]:
    if not found:
        return []
    ids = [message.id for message in found]
    waiting, around = inbox_items.waiting_among(tx, ids), inbox_items.around(tx, ids)
    faults = [m.id for m in found if m.fault is not None and m.id in waiting]
    work = inbox_items.waiting_work_of(tx, faults)
    return [
        InboxRow(m, box_of(tx, m), _state(m), m.id in waiting, around[m.id], tuple(work[m.id]))
        for m in found
    ]


_Part = tuple[str, Callable[..., list[Message]]]


def _parts(box: Box) -> Sequence[_Part]:
    return _PARTS if box == "inbox" else _PARTS[-1:]


def _read(
    tx: Tx, asked: inbox_items.InboxFilter, parts: Sequence[_Part], after: str, limit: int
) -> tuple[list[tuple[str, Message]], str | None]:
    """Return messages with the names of their parts, and the cursor of the next page."""
    if not 1 <= limit <= MAX_PAGE_ITEMS:
        raise Refused(f"A page has 1 to {MAX_PAGE_ITEMS} items, not {limit}.")
    part, _, last = after.partition(":")
    names = [name for name, _ in parts]
    if after and (part not in names or not last):
        raise Refused(
            f"{after!r} is not a cursor of the inbox; use the cursor of the previous page."
        )
    found: list[tuple[str, Message]] = []
    for name, read in parts[names.index(part) if after else 0 :]:
        start = last if name == part else ""
        read_rows = read(tx, asked, start, limit=limit + 1 - len(found))
        found += [(name, message) for message in read_rows]
        if len(found) > limit:
            break
    if len(found) <= limit:
        return found, None
    name, end = found[limit - 1]
    return found[:limit], f"{name}:{end.id}"


_PARTS: tuple[_Part, ...] = (
    ("open", inbox_items.waiting_for_person),
    ("back", inbox_items.back_from_snooze),
    ("rest", inbox_items.needing_no_answer),
)
"""The parts of the inbox in their order. A cursor names one of them."""


def item(tx: Tx, person_id: PersonId, message_id: MessageId) -> Item:
    """Return one item. Raise `NotFound` for messages that are not in this person's inbox."""
    message = _find(tx, person_id, message_id)
    return _item(tx, message, inbox_items.is_waiting(tx, message_id))


def mark_read(tx: Tx, person_id: PersonId, message_id: MessageId) -> Item:
    """Record that the person has read an item."""
    # Two screens may mark the same item at once; with the lock only one emits the event.
    message = _find(tx, person_id, message_id, lock=True)
    if message.seen_at is None:
        messages.mark_seen(tx, [message.id])
        tx.emit(message.team_id, MessageSeen(message_ids=[message.id]))
    return item(tx, person_id, message_id)


def read_conversation(tx: Tx, agent: Agent, person_id: PersonId, seq: int) -> None:
    """Record that the person has read the agent's messages up to `seq`. The event tells the
    person's other screens."""
    teams.TEAMS.get(tx, agent.team_id, lock=True)  # two screens may do it at once
    if new := messages.read_up_to(tx, agent.team_id, agent.id, person_id, seq):
        tx.emit(agent.team_id, MessageSeen(message_ids=list(new[-MAX_PAGE_ITEMS:])))


class Counts(NamedTuple):
    unread: int
    """Items that the person has neither read nor answered."""
    open: int
    """Items that wait for the person's answer."""
    newest: str
    """The id of the newest item in any box; empty if there is none."""


def counts(tx: Tx, person_id: PersonId) -> Counts:
    """Return what badges say of a person's inbox."""
    return Counts(
        inbox_items.count_unread(tx, person_id),
        inbox_items.count_open(tx, person_id),
        inbox_items.newest(tx, person_id),
    )


def count_unread(tx: Tx, person_id: PersonId) -> int:
    """Return how many items the person has neither read nor answered."""
    return inbox_items.count_unread(tx, person_id)


def _item(tx: Tx, message: Message, needs_answer: bool) -> Item:
    sent = tuple(deliveries.of_message(tx, message.id))
    waiting: tuple[inbox_items.WaitingWork, ...] = ()
    if needs_answer and message.fault is not None:
        waiting = tuple(inbox_items.waiting_work_of(tx, [message.id])[message.id])
    return Item(
        message=message,
        state=_state(message),
        needs_answer=needs_answer,
        deliveries=sent,
        waiting_work=waiting,
    )


def box_of(tx: Tx, message: Message) -> Box:
    """Return where an item is now."""
    if message.archived_at is not None:
        return "archived"
    is_asleep = message.snoozed_until is not None and message.snoozed_until > tx.now
    return "snoozed" if is_asleep else "inbox"


def _state(message: Message) -> State:
    if message.closed_at:
        return "closed"
    return "answered" if message.answered_at else "read" if message.seen_at else "unread"


def _find(tx: Tx, person_id: PersonId, message_id: MessageId, *, lock: bool = False) -> Message:
    message = MESSAGES.find(tx, message_id, lock=lock)
    if message is None or message.recipient != person_id or message.kind not in INBOX:
        raise NotFound("inbox item", message_id, known="`agiraph inbox` lists them.")
    return message


def rate(tx: Tx, message_id: MessageId, *, up: bool) -> Team:
    """Rate a briefing: up lowers the team's threshold, down raises it; the last rating counts."""
    message = MESSAGES.get(tx, message_id, lock=True)
    if message.kind != "briefing" or not is_person(message.recipient):
        raise Refused(f"{message_id} is a {message.kind}; only briefings are rated.")
    # Two ratings at once must not move the threshold from the same value.
    team = TEAMS.get(tx, message.team_id, lock=True)
    rating: Rating = "up" if up else "down"
    if message.rating == rating:
        return team
    step = STEP if message.rating is None else 2 * STEP  # also takes back the earlier rating
    moved = team.briefing_threshold + (-step if up else step)
    threshold = round(min(max(moved, LOWEST), HIGHEST), 2)
    MESSAGES.update(tx, message_id, rating=rating, seen_at=message.seen_at or tx.now)
    TEAMS.update(tx, team.id, briefing_threshold=threshold)
    tx.emit(team.id, BriefingRated(message_id=message_id, rating=rating, threshold=threshold))
    return TEAMS.get(tx, team.id)
