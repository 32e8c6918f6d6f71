"""History: a team's timeline, its board at any moment, and its event log."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agiraph.api.features.history_views import BoardMomentView, TimelineView
from agiraph.client.connection import Connection, path_of
from agiraph.domain.events import Event
from agiraph.domain.value import value


@value
class EventLogPage:
    """Events, newest first. `next` is the number to list older ones with; None: there are none."""

    events: list[Event]
    next: int | None
    head: int


class HistoryCalls(Connection):
    async def timeline(self, team: str, *, after: int = 0, limit: int = 2000) -> TimelineView:
        """Return a page of how the time of a team's nodes was spent."""
        path = path_of("teams", team, "timeline")
        return await self.get(TimelineView, path, after=after, limit=limit)

    async def board_at(
        self, team: str, *, seq: int | None = None, at: datetime | None = None
    ) -> BoardMomentView:
        """Return a team's board after an event or at a time; without either, as it is."""
        moment = {"seq": seq, "at": None if at is None else at.isoformat()}
        given = {name: each for name, each in moment.items() if each is not None}
        return await self.get(BoardMomentView, path_of("teams", team, "board", "at"), **given)

    async def event_log(
        self,
        team: str,
        *,
        before: int = 0,
        limit: int = 200,
        types: Sequence[str] = (),
        agent: str = "",
        node: str = "",
        text: str = "",
    ) -> EventLogPage:
        """Return the newest events of a team that match all of this."""
        asked: dict[str, Any] = {"before": before, "limit": limit, "types": ",".join(types)}
        asked |= {"agent": agent, "node": node, "text": text}
        return await self.get(EventLogPage, path_of("teams", team, "event-log"), **asked)
