"""Events: the numbered record of a team, read back and followed live."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Response, WebSocket
from starlette.websockets import WebSocketDisconnect, WebSocketState

from agiraph.api.deps import Api, TheApi
from agiraph.api.frames import EventView, Subscribe, event_json
from agiraph.api.gate import SUBPROTOCOL
from agiraph.api.listening import ABORT
from agiraph.api.live import Watcher
from agiraph.api.problems import documented
from agiraph.domain.errors import AgiraphError, StoreUnavailable
from agiraph.domain.events import Event
from agiraph.domain.ids import TeamId
from agiraph.services import access
from agiraph.store import events, teams
from agiraph.store.tx import Tx

router = APIRouter(tags=["events"])

PAGE = 500
MOST_MISSED = 2000
"""Events after which a client should load what it shows anew instead of hearing them all."""
PAGE_BYTES = 64 * 1024
"""History is read in pages of this size, so that a client that replays it takes little memory."""
PAGE_EVENTS = 128
HOLD_S = 0.25
"""How long a page waits for a client that is slow to take it; it is read again later."""
TOO_SLOW, UNAUTHORIZED, UNREADABLE, RESTARTING, TOO_MANY = 4008, 4401, 4400, 1012, 4029


Number = Annotated[int, Query(ge=0, le=2**40, description="The last number you have.")]


@router.get("/teams/{team}/events", responses=documented(404), response_model=list[EventView])
async def events_of(
    team: str,
    api: TheApi,
    after: Number = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE, description="How many at most.")] = PAGE,
) -> Response:
    """What happened in a team after that number, oldest first, without gaps."""
    found = await api.store.read(teams.find, team)
    rows = await api.store.read(events.after, found.id, after, limit=limit)
    # As they were written: an event of an older version is no reason to fail.
    body = orjson.dumps([event_json(event) for event in rows])
    return Response(body, media_type="application/json")


@router.websocket("/teams/{team}/events")
async def follow_team(socket: WebSocket, team: str, after: Number = 0) -> None:
    """One team: what was missed since `after`, then what happens."""
    api: Api = socket.app.state.api
    try:
        found = await api.store.read(teams.find, team)
    except AgiraphError as error:
        await socket.close(UNREADABLE, str(error)[:120])
        return
    await socket.accept(_subprotocol(socket))
    async with _place(api, socket) as is_free:
        if is_free:
            await _Line(api, socket).run({found.id: after})


@router.websocket("/events")
async def follow_all(socket: WebSocket) -> None:
    """All teams over one socket: the client says how far it has got in each."""
    api: Api = socket.app.state.api
    await socket.accept(_subprotocol(socket))
    async with _place(api, socket) as is_free:
        if not is_free:
            return
        line = _Line(api, socket)
        try:
            cursors = await line.greet()
        except (ValueError, KeyError, TimeoutError, WebSocketDisconnect, RuntimeError):
            if socket.client_state is WebSocketState.CONNECTED:
                await socket.close(UNREADABLE, 'Say {"op": "subscribe", "cursors": {}} first.')
            return
        await line.run(cursors, everything=True)


@contextlib.asynccontextmanager
async def _place(api: Api, socket: WebSocket) -> AsyncGenerator[bool]:
    """Count the client among the open WebSockets, or close it with a code if there are too many."""
    caller: str = socket.state.caller.name
    if not api.hub.enter(caller):
        await socket.close(TOO_MANY, "Too many WebSockets are open; close some and come again.")
        yield False
        return
    try:
        yield True
    finally:
        api.hub.exit(caller)


def _subprotocol(socket: WebSocket) -> str | None:
    """One that was offered, as browsers want it; the token only if there is nothing else."""
    offered: list[str] = socket.scope.get("subprotocols", [])
    return next((o for o in offered if not o.startswith(SUBPROTOCOL)), *offered[:1] or [None])


def _heads(tx: Tx, teams: set[TeamId] | None) -> dict[TeamId, int]:
    """Of these teams, archived ones too; or of all that are not."""
    return events.heads(tx) if teams is None else {t: events.head(tx, t) for t in teams}


class _Line:
    """One client's connection: sends what it asked for until it goes, or falls behind."""

    def __init__(self, api: Api, socket: WebSocket) -> None:
        self._api = api
        self._socket = socket
        self._watcher = Watcher()
        self._sent: dict[TeamId, int] = {}

    async def greet(self) -> dict[TeamId, int]:
        """Where the client has got to, by its first frame."""
        async with asyncio.timeout(self._api.pace.send):
            said = Subscribe.model_validate_json(await self._socket.receive_text())
        return {TeamId(team): seq for team, seq in said.cursors.items()}

    async def run(self, cursors: dict[TeamId, int], *, everything: bool = False) -> None:
        self._watcher.teams = None if everything else set(cursors)
        self._api.hub.join(self._watcher)  # first, so that nothing falls between old and new
        sending = asyncio.create_task(self._send_all(cursors, everything=everything))
        hearing = asyncio.create_task(self._hear())
        beating = asyncio.create_task(self._beat())
        try:
            await asyncio.wait({sending, hearing, beating}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, hearing, beating):
                task.cancel()
            await asyncio.gather(sending, hearing, beating, return_exceptions=True)
            self._api.hub.leave(self._watcher)

    async def _send_all(self, cursors: dict[TeamId, int], *, everything: bool) -> None:
        try:
            await self._replay(cursors, everything=everything)
            while (frame := await self._watcher.take()) is not None:
                if frame["op"] == "event":
                    await self._send_event(frame["event"])
                else:
                    await self._send(frame)
        except TimeoutError:
            self._watcher.is_lost = True
        except (WebSocketDisconnect, RuntimeError, OSError):
            return
        if self._watcher.is_lost:
            await self._close(TOO_SLOW, "You fell behind; come again with the last number you got.")
        else:
            await self._close(RESTARTING, "The server stops; come again with the last number.")

    async def _replay(self, cursors: dict[TeamId, int], *, everything: bool) -> None:
        """Greet, then send what was missed, page by page."""
        heads = await self._api.store.read(_heads, None if everything else set(cursors))
        epoch = await self._api.store.write(access.epoch)
        await self._send({"op": "hello", "epoch": epoch, "build": self._api.build, "heads": heads})
        for team_id, head in heads.items():
            after = cursors.get(team_id, head if everything else 0)
            if after > head or (everything and head - after > MOST_MISSED):
                await self._send({"op": "resync", "team_id": team_id, "head": head})
                after = head
            self._sent[team_id] = after
            await self._catch_up(team_id, head)
        for frame in self._api.hub.unfinished(self._watcher.teams):
            await self._send(frame)

    async def _catch_up(self, team_id: TeamId, until: int) -> None:
        """Send what the client has not got, up to this number at least."""
        before = -1
        while before < self._sent[team_id] < until:
            before = self._sent[team_id]
            async with self._api.hub.pages:
                late = await self._send_page(team_id)
            if late is not None:  # without the page: others have their turn meanwhile
                await self._send({"op": "event", "event": event_json(late)})
                self._sent[team_id] = late.seq

    async def _send_page(self, team_id: TeamId) -> Event | None:
        """Send a page of history; return the event that the client was too slow for, if any."""
        after = self._sent[team_id]
        rows = await self._api.store.read(
            events.page, team_id, after, limit=PAGE_EVENTS, most_bytes=PAGE_BYTES
        )
        for event in rows:
            try:
                await self._send({"op": "event", "event": event_json(event)}, most_s=HOLD_S)
            except TimeoutError:
                return event
            self._sent[team_id] = event.seq
        return None

    async def _send_event(self, event: dict[str, Any]) -> None:
        """In order and without a gap, whatever order commits were told in."""
        team_id, seq = event["team_id"], event["seq"]
        sent = self._sent.setdefault(team_id, 0)
        if seq == sent + 1:
            await self._send({"op": "event", "event": event})
            self._sent[team_id] = seq
        elif seq > sent:
            await self._catch_up(team_id, seq)

    async def _send(self, frame: dict[str, Any], *, most_s: float = 3600.0) -> None:
        async with asyncio.timeout(min(self._api.pace.send, most_s)):
            await self._socket.send_text(orjson.dumps(frame).decode())

    async def _hear(self) -> None:
        """Clients say nothing more; this ends when they go."""
        try:
            while True:
                await self._socket.receive_text()
        except (WebSocketDisconnect, RuntimeError, KeyError):
            return

    async def _beat(self) -> None:
        """Let a quiet line show that it lives, and end one whose pass was taken back."""
        quiet = 0.0
        while True:
            await asyncio.sleep(self._api.pace.look)
            quiet += self._api.pace.look
            with contextlib.suppress(StoreUnavailable):  # until it can be looked at again
                if await self._api.door.caller(self._socket.state.secret) is None:
                    return await self._close(UNAUTHORIZED, "Your token is no longer good.")
            if quiet >= self._api.pace.ping:
                quiet = 0.0
                self._watcher.put({"op": "ping"})

    async def _close(self, code: int, reason: str) -> None:
        try:
            async with asyncio.timeout(1):
                await self._socket.close(code, reason)
        except TimeoutError:
            # The client reads nothing, so nothing can be said to it: a polite close would wait for
            # it, and its socket with it.
            self._socket.scope["state"].get(ABORT, lambda: None)()
        except (RuntimeError, OSError):
            return
