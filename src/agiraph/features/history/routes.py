"""History routes: a team's timeline, its board at any moment, and its event log."""

import asyncio
from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Annotated, Any

import orjson
from starlette.responses import Response

from agiraph.api.deps import ApiDep, Depends, Moment, Query
from agiraph.api.feature_views.history import (
    BoardMomentView,
    NodeMomentView,
    StageMomentView,
    TimelineView,
)
from agiraph.api.live import event_json
from agiraph.api.problems import documented
from agiraph.api.routing import Router
from agiraph.api.views import CostView
from agiraph.core.domain.errors import Conflict
from agiraph.core.domain.events import Event
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.value import dataclass, value
from agiraph.core.services.board import texts
from agiraph.core.store import events, nodes, spend, teams
from agiraph.core.store.database import Store
from agiraph.core.store.rows import to_json
from agiraph.core.store.tx import Tx
from agiraph.features.history.boards import BoardFold, BoardMoment, NodeMoment
from agiraph.features.history.spans import Span, SpanFold, Tick

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


def log_page(tx: Tx, team_id: TeamId, which: LogFilter, *, before: int, limit: int) -> LogPage:
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


MOST_TEAMS = 8
"""The number of histories in memory; the least recently used one is dropped."""
MOST_EVENTS = 200_000
"""A new history is computed from at most this many of a team's newest events (about 100 MB). When
it has grown by a quarter, it is dropped and computed anew."""
PAGE = 500
"""Events that one query reads."""


@dataclass(slots=True)
class TeamHistory:
    """The folds of one team's events up to `last`."""

    first: int = 1
    """The number of the first event that is folded."""
    last: int = 0
    spans: SpanFold = field(default_factory=SpanFold)
    boards: BoardFold = field(default_factory=BoardFold)

    def is_outdated(self, head: int) -> bool:
        """Return whether the events up to `head` need a new history: too many have been added, or a
        backup with fewer of them has replaced the database."""
        most = MOST_EVENTS if self.last < self.first else MOST_EVENTS * 5 // 4
        return self.last > head or head - self.first >= most

    def add(self, event: Event) -> None:
        """Fold the next event."""
        self.last = event.seq  # first: an event that cannot be folded is not tried again
        self.spans.add(event)
        self.boards.add(event)


@dataclass(slots=True)
class _Slot:
    history: TeamHistory = field(default_factory=TeamHistory)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Histories:
    """The histories of the teams that clients look at."""

    def __init__(self) -> None:
        self._slots: OrderedDict[TeamId, _Slot] = OrderedDict()

    async def of(self, store: Store, team_id: TeamId) -> TeamHistory:
        """Return what is folded from a team's events, continued up to its newest event."""
        slot = self._slots.setdefault(team_id, _Slot())
        self._slots.move_to_end(team_id)
        while len(self._slots) > MOST_TEAMS:
            self._slots.popitem(last=False)
        async with slot.lock:
            # Read the newest event number under the lock. A request that waited for it would
            # otherwise use a number older than the history that another request has just built.
            head = await store.read(events.head, team_id)
            if slot.history.is_outdated(head):
                first = max(1, head - MOST_EVENTS + 1)
                slot.history = TeamHistory(first=first, last=first - 1)
            history = slot.history
            while history.last < head:
                # Page by page: other requests are served in between.
                read = await store.read(events.after, team_id, history.last, limit=PAGE)
                if not read:
                    break
                for event in read:
                    history.add(event)
        return history


router: Router = Router("history")

PAGE_SPANS = 5000
PAGE_EVENTS = 500
Seq = Annotated[int, Query(ge=0, le=2**40)]
Since = Annotated[Moment | None, Query(description="Leave out what ended before it.")]
Until = Annotated[Moment | None, Query(description="Leave out what began after it.")]
Word = Annotated[str, Query(max_length=200)]


@router.get("/teams/{team}/timeline", response_model=TimelineView, responses=documented(404))
async def get_timeline(
    team: str,
    api: ApiDep,
    after: Annotated[int, Query(ge=0, le=2**40, description="`next_seq` of the last page.")] = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE_SPANS, description="The most spans.")] = 2000,
    since: Since = None,
    until: Until = None,
) -> Response:
    """Return how the time of a team's nodes was spent: queued, in models, tools and waits."""
    found = await api.store.read(teams.find, team)
    history = await api.part(Histories).of(api.store, found.id)
    if since is not None:
        after = max(after, await api.store.read(events.number_at, found.id, since))
    spans, ticks, next_seq = _page(history, after, limit)
    open_spans = history.spans.open_spans() if next_seq is None else []
    if until is not None:
        spans = [span for span in spans if span.start <= until]
        open_spans = [span for span in open_spans if span.start <= until]
        ticks = [tick for tick in ticks if tick.at <= until]
    named = {span.node_id for span in [*spans, *open_spans]}
    body = {
        "first_seq": history.first,
        "last_seq": history.last,
        "next_seq": next_seq,
        # orjson writes the dataclasses themselves: views of thousands of spans take half a second.
        "spans": spans,
        "open": open_spans,
        "ticks": ticks,
        "stops": history.spans.stops,
        "nodes": await api.store.read(_named_nodes, found.id, named),
        "other_usd": await api.store.read(spend.usd_without_event, found.id),
    }
    return Response(orjson.dumps(body), media_type="application/json")


def _page(
    history: TeamHistory, after: int, limit: int
) -> tuple[list[Span], list[Tick], int | None]:
    """Return the spans that ended after an event, the ticks beside them, and the next cursor."""
    closed, ticks = history.spans.closed, history.spans.ticks
    start = bisect_right(closed, after, key=lambda span: span.seq)
    spans = closed[start : start + limit]
    is_last = start + limit >= len(closed)
    end = history.last if is_last else spans[-1].seq
    first = bisect_right(ticks, after, key=lambda tick: tick.seq)
    past = bisect_right(ticks, end, key=lambda tick: tick.seq)
    return spans, ticks[first:past], None if is_last else end


def _named_nodes(tx: Tx, team_id: TeamId, named: set[str]) -> list[dict[str, str | None]]:
    return [
        {
            "id": node.id,
            "title": texts.subject_of(node),
            "lane": node.lane,
            "status": node.status,
            "parent_id": node.parent_id,
        }
        for node in nodes.everything(tx, team_id)
        if node.id in named
    ]


@router.get("/teams/{team}/board/at", responses=documented(404, 409))
async def get_board_at(
    team: str,
    api: ApiDep,
    seq: Annotated[int | None, Query(ge=0, le=2**40, description="An event's number.")] = None,
    at: Annotated[Moment | None, Query(description="A time, instead of a number.")] = None,
) -> BoardMomentView:
    """Return a team's board as it was after an event or at a time; without either, as it is."""
    found = await api.store.read(teams.find, team)
    history = await api.part(Histories).of(api.store, found.id)
    if seq is None:
        seq = history.last
        if at is not None:
            seq = await api.store.read(events.number_at, found.id, at)
    seq = min(seq, history.last)
    if seq < history.first and history.first > 1:
        raise Conflict(f"The board is known from event {history.first} on.")
    moment = history.boards.moment(seq)

    def look(tx: Tx) -> _Rows:
        last = events.after(tx, found.id, seq - 1, limit=1) if seq else []
        rows = nodes.everything(tx, found.id)
        above: dict[str, str | None] = {n.id: n.parent_id or n.payer_id for n in rows}
        return _Rows(
            at=last[0].at if last else None,
            titles={n.id: texts.subject_of(n) for n in rows},
            above=above,
            other_usd=spend.usd_without_event(tx, found.id),
        )

    return _moment(moment, history, seq, await api.store.read(look))


@value
class _Rows:
    """The current rows that a replayed board needs besides its events."""

    at: datetime | None
    titles: dict[str, str]
    above: dict[str, str | None]
    other_usd: float


def _moment(moment: BoardMoment, history: TeamHistory, seq: int, rows: _Rows) -> BoardMomentView:
    costs = _tree_costs(moment.nodes, rows.above)
    return BoardMomentView(
        seq=seq,
        at=rows.at,
        first_seq=history.first,
        head=history.last,
        nodes=[
            _node(node, rows.titles.get(node.id, node.title), costs[node.id])
            for node in sorted(moment.nodes.values(), key=lambda node: node.id)
        ],
        stages=[StageMomentView.of(stage) for stage in moment.stages.values()],
        members=sorted(moment.members),
        usd=sum(node.usd for node in moment.nodes.values()),
        other_usd=rows.other_usd,
    )


def _tree_costs(
    moments: dict[str, NodeMoment], above: dict[str, str | None]
) -> dict[str, CostView]:
    """Return the cost of each node with all nodes below it."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0, 0.0])
    for node in moments.values():
        at: str | None = node.id
        seen: set[str] = set()
        while at is not None and at not in seen:  # damaged rows may form a cycle
            seen.add(at)
            for place, amount in enumerate((node.calls, node.tokens, node.usd)):
                sums[at][place] += amount
            at = above.get(at)
    return {
        id: CostView(calls=int(sums[id][0]), tokens=int(sums[id][1]), usd=sums[id][2])
        for id in moments
    }


def _node(node: NodeMoment, title: str, cost: CostView) -> NodeMomentView:
    return NodeMomentView.of(
        node, title=title, depends_on=node.needs, worked_seconds=node.worked_s, cost=cost
    )


# Described by reference, as in `routes/events.py`: a response model would be slow to build.
_LOG: dict[str, Any] = {
    "type": "object",
    "required": ["events", "next", "head"],
    "properties": {
        "events": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}},
        "next": {
            "anyOf": [{"type": "integer"}, {"type": "null"}],
            "description": "List older events with this number as `before`; null: there are none.",
        },
        "head": {"type": "integer", "description": "The number of the newest event."},
    },
}
_LISTED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": _LOG}}}
}


def _log_filter(
    types: Annotated[str, Query(max_length=500, description="Such as `node,tool.result`.")] = "",
    agent: Word = "",
    node: Word = "",
    text: Word = "",
    since: Since = None,
    until: Until = None,
) -> LogFilter:
    return LogFilter(
        types=tuple(filter(None, types.replace(" ", "").split(",")))[:20],
        agent_id=agent,
        node_id=node,
        text=text.strip(),
        since=since,
        until=until,
    )


@router.get("/teams/{team}/event-log", responses=_LISTED | documented(404), response_class=Response)
async def get_event_log(
    team: str,
    api: ApiDep,
    which: Annotated[LogFilter, Depends(_log_filter)],
    before: Seq = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE_EVENTS)] = 200,
) -> Response:
    """List a team's events, newest first. A page may have few events and still a next one."""
    found = await api.store.read(teams.find, team)
    page = await api.store.read(log_page, found.id, which, before=before, limit=limit)
    shown = [event_json(event) for event in page.events]
    body = {"events": shown, "next": page.next, "head": page.head}
    return Response(orjson.dumps(body), media_type="application/json")
