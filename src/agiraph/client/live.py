"""Live: events of teams over a WebSocket, which is reconnected where it broke."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from agiraph.client.connection import PAGE, Connection, operation, path_of
from agiraph.core.domain.errors import Declined
from agiraph.core.domain.events import Event
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Lane

if TYPE_CHECKING:
    from aiohttp import ClientWebSocketResponse

QUIET_SECONDS = 45.0
"""The server pings every 15 s; after three missed pings the connection counts as broken."""
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 3.0
_UNAUTHORIZED = 4401
"""The close code for a revoked token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyDelta:
    """Text of a turn that a model is writing. Sent live only: it is never sent again."""

    team_id: str
    agent_id: str
    node_id: str
    thread_id: str
    lane: Lane
    text: str
    offset: int = 0
    """How many characters of the turn precede these."""
    is_draft: bool = False
    """Whether this is the whole text so far, as a client gets it after connecting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resync:
    """The event numbers of a team have become invalid: reload the data you show of it."""

    team_id: str
    head: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLost:
    """The connection broke and is being reconnected. No event is missed."""

    why: str


Frame = Event | ReplyDelta | Resync | ConnectionLost


@dataclass(slots=True, kw_only=True)
class _Position:
    """The last event numbers and the backoff of a follower, kept across connections."""

    cursors: dict[str, int]
    team: str | None
    """The team it follows; None: all teams."""
    epoch: str = ""
    """The id of the database that the numbers belong to."""
    wait_s: float = _FIRST_WAIT
    """How long to wait before the next connection: doubled after each, reset by each frame."""


class Live(Connection):
    @operation("GET", "/teams/{team}/events")
    async def events(self, team: str, *, after: int = 0, limit: int = PAGE) -> list[Event]:
        """Return a page of a team's events after a number."""
        ...

    async def follow(self, team: str, after: int = 0) -> AsyncGenerator[Event]:
        """Yield a team's events after a number, then new ones; each once and in order."""
        async for frame in self.watch(team, after):
            if isinstance(frame, Event):
                yield frame

    async def watch(self, team: str, after: int = 0) -> AsyncGenerator[Frame]:
        """Yield what `follow` yields, plus text of unfinished replies and lost connections."""
        found = await self.get(_Json, path_of("teams", team))
        position = _Position(cursors={found["id"]: after}, team=found["id"])
        async for frame in self._reconnecting(position):
            yield frame

    async def follow_all(
        self, cursors: Mapping[str, int] | None = None
    ) -> AsyncGenerator[Event | Resync]:
        """Yield the events of all teams: after the given number, or from now on for other teams."""
        await self.check()
        async for frame in self._reconnecting(_Position(cursors=dict(cursors or {}), team=None)):
            if isinstance(frame, Event | Resync):
                yield frame

    async def _reconnecting(self, position: _Position) -> AsyncGenerator[Frame]:
        """Connect again and again, each time from the last event number."""
        from aiohttp import ClientError, WSServerHandshakeError

        while True:
            why = "The server closed the connection."
            try:
                async for frame in self._connected(position):
                    yield frame
            except WSServerHandshakeError as error:
                await self.check()  # raises the reason if the token was refused
                if position.team is not None:
                    await self.ask("GET", path_of("teams", position.team))
                why = f"The server answered {error.status}."
            except (ClientError, OSError) as error:
                why = str(error) or "The connection broke."
            yield ConnectionLost(why=why)
            await asyncio.sleep(position.wait_s)
            position.wait_s = min(position.wait_s * 2, _LONGEST_WAIT)

    async def _connected(self, position: _Position) -> AsyncGenerator[Frame]:
        path = "/events"
        if position.team is not None:
            path = (
                f"{path_of('teams', position.team)}/events?after={position.cursors[position.team]}"
            )
        async with self.http.ws_connect(
            f"{self.url}/api{path}",
            headers=self.headers,
            ssl=self._trust or True,
            # One event may contain a long result; aiohttp's default of 4 MiB would close the
            # connection, and after reconnecting the same event would close it again.
            max_msg_size=64 * 2**20,
        ) as socket:
            if position.team is None:
                subscription = {"op": "subscribe", "cursors": position.cursors}
                await socket.send_str(orjson.dumps(subscription).decode())
            while (said := await _receive(socket)) is not None:
                position.wait_s = _FIRST_WAIT
                async for frame in self._frames_of(said, position):
                    yield frame
        if socket.close_code == _UNAUTHORIZED:
            raise Declined(401, "Your token is no longer valid.")

    async def _frames_of(self, said: dict[str, Any], position: _Position) -> AsyncGenerator[Frame]:
        cursors = position.cursors
        match said["op"]:
            case "hello":
                async for frame in self._after_hello(said["epoch"], said["heads"], position):
                    yield frame
            case "resync" if cursors.get(said["team_id"], 0) <= said["head"]:
                # Too many events for the WebSocket; they can still be read page by page.
                async for event in self._missed(said["team_id"], cursors, said["head"]):
                    yield event
            case "resync":
                cursors[said["team_id"]] = said["head"]
                yield Resync(team_id=said["team_id"], head=said["head"])
            case "event":
                event = _event(said["event"])
                if event.seq > cursors.get(event.team_id, 0):
                    cursors[event.team_id] = event.seq
                    yield event
            case "delta" | "draft":
                fields = {name: said[name] for name in _DELTA_FIELDS if name in said}
                yield ReplyDelta(**fields, is_draft=said["op"] == "draft")
            case _:
                pass

    async def _after_hello(
        self, epoch: str, heads: dict[str, int], position: _Position
    ) -> AsyncGenerator[Frame]:
        # Another epoch means another database, such as a restored backup: the numbers of the old
        # one say nothing about its events.
        is_first, is_other = not position.epoch, position.epoch not in ("", epoch)
        position.epoch = epoch
        for team, head in heads.items():
            if is_other and team in position.cursors:
                position.cursors[team] = head
                yield Resync(team_id=team, head=head)
            elif team not in position.cursors:
                # A team created while the connection was broken: read its events from the first.
                position.cursors[team] = head if is_first else 0
                async for event in self._missed(team, position.cursors, head):
                    yield event

    async def _missed(self, team: str, cursors: dict[str, int], head: int) -> AsyncGenerator[Event]:
        while cursors[team] < head:
            for event in await self.events(team, after=cursors[team]):
                if event.seq <= head:
                    cursors[team] = event.seq
                    yield event


_Json = dict[str, Any]
_DELTA_FIELDS = ("team_id", "agent_id", "node_id", "thread_id", "lane", "text", "offset")


async def _receive(socket: "ClientWebSocketResponse") -> dict[str, Any] | None:
    """Return the next frame, or None when the connection has ended."""
    from aiohttp import WSMsgType

    message = await socket.receive(timeout=QUIET_SECONDS)
    if message.type is not WSMsgType.TEXT:
        return None
    return orjson.loads(message.data)


def _event(told: dict[str, Any]) -> Event:
    return Event(
        team_id=TeamId(told["team_id"]),
        seq=told["seq"],
        type=told["type"],
        at=datetime.fromisoformat(told["at"]),
        data=told["data"],
    )
