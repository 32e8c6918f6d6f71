"""Inbox items: queries on the messages of agents to a person."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from agiraph.core.domain.ids import MessageId, NodeId, PersonId, TeamId
from agiraph.core.domain.messages import Box, Message, MessageKind
from agiraph.core.domain.value import value
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.rows import is_among, to_micros
from agiraph.core.store.tx import Tx

# The kinds of the index `messages_in_inbox`: neither database would use it for any further kind.
_TO_PERSON = (
    "recipient = :person"
    " and kind in ('question', 'approval', 'briefing', 'report', 'failure', 'result')"
)
_WAITING = (
    "(answered_at is null and kind in ('question', 'approval') and not exists (select 1"
    " from nodes n where n.id = messages.node_id and n.status = 'cancelled')"
    # A question about a provider is asked once, and the work that waits for it may have gone on.
    " and (topic is null or topic not in ('key', 'quota') or exists (select 1 from waits w"
    " where w.kind = 'answer' and w.subject = messages.id)))"
)


_BOXES: dict[Box, str] = {
    "inbox": "archived_at is null and (snoozed_until is null or snoozed_until <= :now)",
    "snoozed": "archived_at is null and snoozed_until > :now",
    "archived": "archived_at is not null",
}
UNANSWERED = f"{_TO_PERSON} and {_BOXES['inbox']} and {_WAITING}"
"""The questions and requests in a person's inbox that they have not answered yet, of `messages`."""
_IS_BACK = "(snoozed_until is not null and seen_at is null)"
"""Whether an item of the inbox came back from a snooze and was not read since."""


_OF_TEAM = (
    "(team_id = :team_id or topic in ('key', 'quota') and exists (select 1 from waits w"
    " join nodes n on n.id = w.node_id where w.kind = 'answer' and w.subject = messages.id"
    " and n.team_id = :team_id))"
)
"""What belongs to a team: also another team's question whose answer its work waits for."""


@value
class InboxFilter:
    """Which items of a person's inbox are asked for."""

    person_id: PersonId
    box: Box = "inbox"
    team_id: TeamId | None = None
    kind: MessageKind | None = None
    newer_than: str = ""
    """Only items with a later id."""


def waiting_for_person(tx: Tx, of: InboxFilter, last: str = "", *, limit: int) -> list[Message]:
    """Return the inbox items after one that wait for the person's answer, oldest first."""
    return _filed(tx, of, f"{_WAITING} and id > :last", "id", last=last, limit=limit)


def back_from_snooze(tx: Tx, of: InboxFilter, last: str = "", *, limit: int) -> list[Message]:
    """Return the inbox items that need no answer and came back unread, newest first."""
    return _newest(tx, of, f"not {_WAITING} and {_IS_BACK}", last, limit)


def needing_no_answer(tx: Tx, of: InboxFilter, last: str = "", *, limit: int) -> list[Message]:
    """Return the other inbox items that need no answer, newest first; of another box, all items."""
    rest = f"not {_WAITING} and not {_IS_BACK}" if of.box == "inbox" else "1 = 1"
    return _newest(tx, of, rest, last, limit)


def _newest(tx: Tx, of: InboxFilter, where: str, last: str, limit: int) -> list[Message]:
    older = " and id < :last" if last else ""
    return _filed(tx, of, f"{where}{older}", "id desc", last=last, limit=limit)


def _filed(tx: Tx, of: InboxFilter, where: str, order: str, **more: Any) -> list[Message]:
    conditions = [_TO_PERSON, _BOXES[of.box], where]
    if of.box != "archived":
        more["now"] = to_micros(tx.now)
    if of.team_id is not None:
        conditions.append(_OF_TEAM)
        more["team_id"] = of.team_id
    if of.kind is not None:
        conditions.append("kind = :kind")
        more["kind"] = of.kind
    if of.newer_than:
        conditions.append("id > :newer_than")
        more["newer_than"] = of.newer_than
    where = f"{' and '.join(conditions)} order by {order} limit :limit"
    return MESSAGES.select(tx, where, person=of.person_id, **more)


def is_waiting(tx: Tx, message_id: MessageId) -> bool:
    sql = f"select 1 from messages where id = :id and {_WAITING}"
    return tx.one(sql, id=message_id) is not None


def of_ids(tx: Tx, person_id: PersonId, ids: Sequence[str]) -> list[Message]:
    """Return those of these messages that are items of a person, in any box, oldest first."""
    is_one, named = is_among("id", ids, "item")
    where = f"{_TO_PERSON} and {is_one} order by id"
    return MESSAGES.select(tx, where, person=person_id, **named)


def waiting_among(tx: Tx, ids: Sequence[str]) -> set[str]:
    """Return those of these items that wait for an answer."""
    is_one, named = is_among("id", ids, "item")
    return {
        row[0] for row in tx.all(f"select id from messages where {is_one} and {_WAITING}", **named)
    }


class Around(NamedTuple):
    """What a list shows of an item besides the message."""

    team_name: str
    sender_name: str | None
    """The name of the agent that sent it; None if no agent did."""
    node_status: NodeStatus | None
    stop_reason: StopReason | None


def around(tx: Tx, ids: Sequence[str]) -> dict[str, Around]:
    """Return team, sender and the state of the node that each of these messages is about."""
    is_one, named = is_among("m.id", ids, "item")
    rows = tx.all(
        "select m.id, t.name, a.name, n.status, n.stop_reason from messages m"
        " join teams t on t.id = m.team_id left join agents a on a.id = m.sender"
        f" left join nodes n on n.id = m.node_id where {is_one}",
        **named,
    )
    return {
        message: Around(
            team,
            sender,
            NodeStatus(status) if status else None,
            StopReason(reason) if reason else None,
        )
        for message, team, sender, status, reason in rows
    }


class WaitingWork(NamedTuple):
    team_id: TeamId
    node_id: NodeId


def waiting_work_of(tx: Tx, ids: Sequence[str]) -> defaultdict[str, list[WaitingWork]]:
    """Return the nodes that wait for the answers to these questions, oldest first."""
    found: defaultdict[str, list[WaitingWork]] = defaultdict(list)
    if ids:
        is_one, named = is_among("w.subject", ids, "item")
        rows = tx.all(
            "select distinct w.subject, n.team_id, n.id from waits w join nodes n"
            f" on n.id = w.node_id where w.kind = 'answer' and {is_one} order by n.id",
            **named,
        )
        for subject, team_id, node_id in rows:
            found[subject].append(WaitingWork(team_id, node_id))
    return found


def count_unread(tx: Tx, person_id: PersonId) -> int:
    """Return how many items in a person's inbox were neither read nor answered. What is archived
    or snoozed does not count."""
    sql = f"select count(*) from messages where {_TO_PERSON} and {_BOXES['inbox']}"
    unread = f"{sql} and seen_at is null and answered_at is null"
    row = tx.one(unread, person=person_id, now=to_micros(tx.now))
    return 0 if row is None else int(row[0])


def count_open(tx: Tx, person_id: PersonId) -> int:
    """Return how many items in a person's inbox wait for their answer."""
    sql = f"select count(*) from messages where {UNANSWERED}"
    row = tx.one(sql, person=person_id, now=to_micros(tx.now))
    return 0 if row is None else int(row[0])


def newest(tx: Tx, person_id: PersonId) -> str:
    """Return the id of a person's newest item in any box; empty if there is none."""
    sql = f"select id from messages where {_TO_PERSON} order by id desc limit 1"
    row = tx.one(sql, person=person_id)
    return "" if row is None else str(row[0])
