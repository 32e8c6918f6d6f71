"""Live: what happens in teams, as it happens; a line that breaks is taken up where it was."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import aiohttp
import orjson

from agiraph.client.connection import PAGE, Connection, path_of
from agiraph.domain.errors import Declined
from agiraph.domain.events import Event
from agiraph.domain.ids import TeamId
from agiraph.domain.work import Lane

QUIET_SECONDS = 45.0
"""A server shows every 15 seconds that it lives; after three times that, it does not."""
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 3.0
_UNAUTHORIZED = 4401
"""How a server closes a line whose token was taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Some words of a turn that is being written. Live only: nobody is sent them again."""

    team_id: str
    agent_id: str
    node_id: str
    thread_id: str
    lane: Lane
    text: str
    offset: int = 0
    """How many characters of the turn came before these."""
    is_draft: bool = False
    """All there is of it so far, as it is sent to somebody who has just come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resync:
    """The numbers of a team no longer mean what they did: load anew what you show of it."""

    team_id: str
    head: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The line broke; it is being taken up again. Nothing is missed meanwhile."""

    why: str


Frame = Event | Words | Resync | Lost


@dataclass(slots=True, kw_only=True)
class _Place:
    """How far a follower has got, from one line to the next."""

    cursors: dict[str, int]
    team: str | None
    """The one team it follows; None: all of them."""
    epoch: str = ""
    """Which database the numbers are of."""


class Live(Connection):
    async def events(self, team: str, *, after: int = 0, limit: int = PAGE) -> list[Event]:
        """A page of what happened in a team after that number."""
        path = path_of("teams", team, "events")
        return await self.get(list[Event], path, after=after, limit=limit)

    async def follow(self, team: str, after: int = 0) -> AsyncGenerator[Event]:
        """What happened in a team after that number and whatever happens, each once, in order."""
        async for frame in self.watch(team, after):
            if isinstance(frame, Event):
                yield frame

    async def watch(self, team: str, after: int = 0) -> AsyncGenerator[Frame]:
        """The same with words as they come, and what becomes of the line."""
        found = await self.get(_Named, path_of("teams", team))
        place = _Place(cursors={found["id"]: after}, team=found["id"])
        async for frame in self._lines(place):
            yield frame

    async def follow_all(
        self, cursors: Mapping[str, int] | None = None
    ) -> AsyncGenerator[Event | Resync]:
        """The events of all teams: of those named after these numbers, of others from now on."""
        await self.check()
        async for frame in self._lines(_Place(cursors=dict(cursors or {}), team=None)):
            if isinstance(frame, Event | Resync):
                yield frame

    async def _lines(self, place: _Place) -> AsyncGenerator[Frame]:
        """One line after another, each begun where the last one ended."""
        wait = _FIRST_WAIT
        while True:
            why = "The server closed the line."
            try:
                async for frame in self._line(place):
                    wait = _FIRST_WAIT
                    if frame is not None:
                        yield frame
            except aiohttp.WSServerHandshakeError as error:
                await self.check()  # which says why, if it is about the token
                if place.team is not None:
                    await self.ask("GET", path_of("teams", place.team))
                why = f"The server answered {error.status}."
            except (aiohttp.ClientError, OSError) as error:
                why = str(error) or "The line broke."
            yield Lost(why=why)
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def _line(self, place: _Place) -> AsyncGenerator[Frame | None]:
        path = "/events"
        if place.team is not None:
            path = f"{path_of('teams', place.team)}/events?after={place.cursors[place.team]}"
        async with self.http.ws_connect(
            f"{self.url}/api{path}",
            headers=self.headers,
            ssl=self._trust or True,
            max_msg_size=64 * 2**20,
        ) as socket:
            if place.team is None:
                subscription = {"op": "subscribe", "cursors": place.cursors}
                await socket.send_str(orjson.dumps(subscription).decode())
            while (said := await _heard(socket)) is not None:
                yield None  # the line is good
                async for frame in self._understood(said, place):
                    yield frame
        if socket.close_code == _UNAUTHORIZED:
            raise Declined(401, "Your token is no longer good.")

    async def _understood(self, said: dict[str, Any], place: _Place) -> AsyncGenerator[Frame]:
        cursors = place.cursors
        match said["op"]:
            case "hello":
                async for frame in self._greeted(said["epoch"], said["heads"], place):
                    yield frame
            case "resync" if cursors.get(said["team_id"], 0) <= said["head"]:
                # More than the server tells over a line; it can still be read page by page.
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
                fields = {name: said[name] for name in _WORDS if name in said}
                yield Words(**fields, is_draft=said["op"] == "draft")
            case _:
                pass

    async def _greeted(
        self, epoch: str, heads: dict[str, int], place: _Place
    ) -> AsyncGenerator[Frame]:
        is_first, is_other = not place.epoch, place.epoch not in ("", epoch)
        place.epoch = epoch
        for team, head in heads.items():
            if is_other and team in place.cursors:
                place.cursors[team] = head
                yield Resync(team_id=team, head=head)
            elif team not in place.cursors:
                # A team that is new since the line broke has been missed from its beginning.
                place.cursors[team] = head if is_first else 0
                async for event in self._missed(team, place.cursors, head):
                    yield event

    async def _missed(self, team: str, cursors: dict[str, int], head: int) -> AsyncGenerator[Event]:
        while cursors[team] < head:
            for event in await self.events(team, after=cursors[team]):
                if event.seq <= head:
                    cursors[team] = event.seq
                    yield event


_Named = dict[str, Any]
_WORDS = ("team_id", "agent_id", "node_id", "thread_id", "lane", "text", "offset")


async def _heard(socket: aiohttp.ClientWebSocketResponse) -> dict[str, Any] | None:
    """The next frame; None when the line has ended."""
    message = await socket.receive(timeout=QUIET_SECONDS)
    if message.type is not aiohttp.WSMsgType.TEXT:
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
