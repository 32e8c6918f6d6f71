"""Event log: a team's events, newest first, filtered by type, agent, node, text and time."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from agiraph.core.domain.events import Event
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.value import value
from agiraph.core.store import events, nodes
from agiraph.core.store.rows import to_json
from agiraph.core.store.tx import Tx

MOST_SCANNED = 20_000
"""Events that one request looks at, whether they match or not; the next one continues there."""
_CHUNK = 1000
_MICROSECOND = timedelta(microseconds=1)


@value
class LogFilter:
    """Which events are listed. An empty field takes all of them."""

    types: tuple[str, ...] = ()
    """Types such as `node.failed`, or their first parts, such as `node`."""
    agent_id: str = ""
    node_id: str = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None


@value
class LogPage:
    """Events that match, newest first."""

    events: list[Event]
    next: int | None
    """Older events are listed with this number as `before`; None: there are none."""
    head: int
    """The number of the team's newest event."""


def page(tx: Tx, team_id: TeamId, which: LogFilter, *, before: int, limit: int) -> LogPage:
    """Return the newest matching events before a number."""
    head = events.head(tx, team_id)
    last = head if which.until is None else events.number_at(tx, team_id, which.until)
    at = min(before, last + 1) if before else last + 1
    agents: Mapping[str, str | None] = _agents(tx, team_id) if which.agent_id else {}
    needle = _needle(which.text)
    oldest = 0 if which.since is None else events.number_at(tx, team_id, which.since - _MICROSECOND)
    floor = max(oldest, at - 1 - MOST_SCANNED)
    found: list[Event] = []
    is_last = False
    while not is_last:
        read = events.before(
            tx,
            team_id,
            at,
            limit=_CHUNK,
            floor=floor,
            types=which.types,
            mentions=which.node_id,
            # Databases differ in the lower case of other letters: those are compared below.
            words=needle if needle.isascii() else "",
        )
        for event in read:
            at = event.seq
            if which.since is not None and event.at < which.since:
                return LogPage(events=found, next=None, head=head)
            if _matches(event, which, needle, agents):
                found.append(event)
            if len(found) == limit:
                return LogPage(events=found, next=at if at > 1 else None, head=head)
        is_last = len(read) < _CHUNK
    return LogPage(events=found, next=floor + 1 if floor > oldest else None, head=head)


def _agents(tx: Tx, team_id: TeamId) -> Mapping[str, str | None]:
    """Return who works on each node: many events name only the node."""
    return {node.id: node.assignee_id for node in nodes.everything(tx, team_id)}


def _needle(text: str) -> str:
    """Return words as they stand in the stored JSON, without regard to case."""
    return to_json(text)[1:-1].casefold()


def _matches(event: Event, which: LogFilter, needle: str, agents: Mapping[str, str | None]) -> bool:
    if which.agent_id and not _is_about(event.data, which.agent_id, agents):
        return False
    return needle.isascii() or needle in to_json(event.data).casefold()


def _is_about(data: dict[str, Any], agent_id: str, agents: Mapping[str, str | None]) -> bool:
    named = [data[key] for key in ("agent_id", "sender", "recipient", "creator_id") if key in data]
    return agent_id in named or agents.get(str(data.get("node_id"))) == agent_id
