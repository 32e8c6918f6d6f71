"""Live: what happens in teams, as it happens; a line that breaks is taken up where it was."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import aiohttp
import orjson

from agiraph.api.routes.events import UNAUTHORIZED
from agiraph.client.connection import PAGE, Connection, path_of
from agiraph.domain.errors import Declined
from agiraph.domain.events import Event
from agiraph.domain.ids import TeamId
from agiraph.domain.work import Lane

QUIET_SECONDS = 45.0
"""A server shows every 15 seconds that it lives; after three times that, it does not."""
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 3.0


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
        cursors = {found["id"]: after}
        async for frame in self._lines(cursors, team=found["id"]):
            yield frame

    async def follow_all(
        self, cursors: Mapping[str, int] | None = None
    ) -> AsyncGenerator[Event | Resync]:
        """The events of all teams: of those named after these numbers, of others from now on."""
        await self.check()
        async for frame in self._lines(dict(cursors or {}), team=None):
            if isinstance(frame, Event | Resync):
                yield frame

    async def _lines(self, cursors: dict[str, int], *, team: str | None) -> AsyncGenerator[Frame]:
        """One line after another, each begun where the last one ended."""
        wait, is_first = _FIRST_WAIT, True
        while True:
            why = "The server closed the line."
            try:
                async for frame in self._line(cursors, team=team, is_first=is_first):
                    wait, is_first = _FIRST_WAIT, False
                    if frame is not None:
                        yield frame
            except aiohttp.WSServerHandshakeError as error:
                await self.check()  # which says why, if it is about the token
                if team is not None:
                    await self.ask("GET", path_of("teams", team))
                why = f"The server answered {error.status}."
            except (aiohttp.ClientError, OSError) as error:
                why = str(error) or "The line broke."
            yield Lost(why=why)
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def _line(
        self, cursors: dict[str, int], *, team: str | None, is_first: bool
    ) -> AsyncGenerator[Frame | None]:
        path = "/events"
        if team is not None:
            path = f"{path_of('teams', team)}/events?after={cursors[team]}"
        async with self.http.ws_connect(
            f"{self.url}/api{path}",
            headers=self.headers,
            ssl=self._trust or True,
            max_msg_size=64 * 2**20,
        ) as socket:
            if team is None:
                await socket.send_str(
                    orjson.dumps({"op": "subscribe", "cursors": cursors}).decode()
                )
            while (said := await _heard(socket)) is not None:
                yield None  # the line is good
                async for frame in self._understood(said, cursors, is_first=is_first):
                    yield frame
        if socket.close_code == UNAUTHORIZED:
            raise Declined(401, "Your token is no longer good.")

    async def _understood(
        self, said: dict[str, Any], cursors: dict[str, int], *, is_first: bool
    ) -> AsyncGenerator[Frame]:
        match said["op"]:
            case "hello":
                for team, head in said["heads"].items():
                    if team in cursors:
                        continue
                    # A team that is new since the line broke has been missed from its beginning.
                    cursors[team] = head if is_first else 0
                    async for event in self._missed(team, cursors, head):
                        yield event
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
