"""Event routes: a team's events, as pages and live over WebSockets."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Annotated, Any

import orjson
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from agiraph.api.access_control import KEY_SUBPROTOCOL, SUBPROTOCOL
from agiraph.api.deps import Api, ApiDep, Query
from agiraph.api.live import ENDS_A_REPLY, SubscribeFrame, Subscriber, event_json
from agiraph.api.problems import documented
from agiraph.api.routing import Router
from agiraph.api.server import ABORT
from agiraph.core.domain.errors import AgiraphError, StoreUnavailable
from agiraph.core.domain.events import Event
from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.services import access
from agiraph.core.store import events, teams
from agiraph.core.store.tx import Tx

router: Router = Router("events")

PAGE = 500
MOST_MISSED = 2000
"""A client that missed more events is told to reload its data instead of getting them all."""
PAGE_BYTES = 64 * 1024
"""History is read in pages of this size, so that a replay needs little memory."""
PAGE_EVENTS = 128
HOLD_S = 0.25
"""How long a page stays in memory for a slow client; afterwards it is read again."""
# RFC 6455 leaves 4000 to 4999 to applications; 1012 is the registered code for a restart.
TOO_SLOW, UNAUTHORIZED, UNREADABLE, RESTARTING, TOO_MANY = 4008, 4401, 4400, 1012, 4029


Number = Annotated[int, Query(ge=0, le=2**40, description="The number of the last event you have.")]


# Described by reference: a response model would build the models of all events at every start.
_EVENTS: dict[str, Any] = {"type": "array", "items": {"$ref": "#/components/schemas/Event"}}
_LISTED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": _EVENTS}}}
}


@router.get("/teams/{team}/events", responses=_LISTED | documented(404), response_class=Response)
async def events_of(
    team: str,
    api: ApiDep,
    after: Number = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE, description="The most events to return.")] = PAGE,
) -> Response:
    """List a team's events after a number, oldest first, without gaps."""
    found = await api.store.read(teams.find, team)
    rows = await api.store.read(events.after, found.id, after, limit=limit)
    # Not validated: an event that an older version wrote must not make the request fail.
    body = orjson.dumps([event_json(event) for event in rows])
    return Response(body, media_type="application/json")


@router.websocket("/teams/{team}/events")
async def follow_team(socket: WebSocket, team: str, after: Number = 0) -> None:
    """Send one team's events after `after`, then new ones as they are committed."""
    api: Api = socket.app.state.api
    try:
        found = await api.store.read(teams.find, team)
    except AgiraphError as error:
        await socket.close(UNREADABLE, str(error)[:120])
        return
    await socket.accept(_subprotocol(socket))
    async with _place(api, socket) as is_free:
        if is_free:
            await _LiveConnection(api, socket).run({found.id: after})


@router.websocket("/events")
async def follow_all(socket: WebSocket) -> None:
    """Send the events of all teams over one socket. The client names its last number per team."""
    api: Api = socket.app.state.api
    await socket.accept(_subprotocol(socket))
    async with _place(api, socket) as is_free:
        if not is_free:
            return
        connection = _LiveConnection(api, socket)
        try:
            cursors = await connection.read_cursors()
        except (ValueError, KeyError, TimeoutError, WebSocketDisconnect, RuntimeError):
            if socket.client_state is WebSocketState.CONNECTED:
                await socket.close(UNREADABLE, 'Send {"op": "subscribe", "cursors": {}} first.')
            return
        await connection.run(cursors, everything=True)


@contextlib.asynccontextmanager
async def _place(api: Api, socket: WebSocket) -> AsyncGenerator[bool]:
    """Count the client's WebSocket; close it and yield False if too many are open."""
    caller: str = socket.state.caller.name
    if not api.hub.enter(caller):
        await socket.close(TOO_MANY, "Too many WebSockets are open; close some and connect again.")
        yield False
        return
    try:
        yield True
    finally:
        api.hub.exit(caller)


def _subprotocol(socket: WebSocket) -> str | None:
    """Return the subprotocol to accept: browsers require one of those offered. One with a secret
    is echoed only if there is no other."""
    offered: list[str] = socket.scope.get("subprotocols", [])
    secret = (SUBPROTOCOL, KEY_SUBPROTOCOL)
    return next((o for o in offered if not o.startswith(secret)), *offered[:1] or [None])


def _heads(tx: Tx, teams: set[TeamId] | None) -> dict[TeamId, int]:
    """Return the last event number of these teams, or of all teams that are not archived."""
    return events.heads(tx) if teams is None else {t: events.head(tx, t) for t in teams}


class _LiveConnection:
    """One client's WebSocket: sends events until the client leaves or is too slow."""

    def __init__(self, api: Api, socket: WebSocket) -> None:
        self._api = api
        self._socket = socket
        self._subscriber = Subscriber()
        self._sent: dict[TeamId, int] = {}
        self._published_before: dict[TeamId, int] = {}
        """The last event of each team that was published before this client subscribed."""
        self._ended: dict[NodeId, int] = {}
        """Nodes whose reply ended with an event that was sent from history, and its number. Until
        the queue delivers that event, text of the node in the queue belongs to the ended reply."""

    async def read_cursors(self) -> dict[TeamId, int]:
        """Read the client's first frame; return its last event number per team."""
        async with asyncio.timeout(self._api.timeouts.send_s):
            said = SubscribeFrame.model_validate_json(await self._socket.receive_text())
        return {TeamId(team): seq for team, seq in said.cursors.items()}

    async def run(self, cursors: dict[TeamId, int], *, everything: bool = False) -> None:
        self._subscriber.teams = None if everything else set(cursors)
        # Before history is read: an event committed in between would be in neither. One that is in
        # both is recognised by its number.
        self._api.hub.join(self._subscriber)
        self._published_before = dict(self._api.hub.published)
        sending = asyncio.create_task(self._send_all(cursors, everything=everything))
        closing = asyncio.create_task(self._wait_for_close())
        keeping_alive = asyncio.create_task(self._keep_alive())
        try:
            await asyncio.wait(
                {sending, closing, keeping_alive}, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in (sending, closing, keeping_alive):
                task.cancel()
            # Wait until the tasks have ended: they still use the socket and the subscriber's queue.
            await asyncio.gather(sending, closing, keeping_alive, return_exceptions=True)
            self._api.hub.leave(self._subscriber)

    async def _send_all(self, cursors: dict[TeamId, int], *, everything: bool) -> None:
        try:
            await self._replay(cursors, everything=everything)
            while (frame := await self._subscriber.take()) is not None:
                if frame["op"] == "event":
                    await self._send_event(frame["event"])
                else:
                    await self._send_text(frame)
        except TimeoutError:
            self._subscriber.is_lost = True
        except (WebSocketDisconnect, RuntimeError, OSError):
            return
        if self._subscriber.is_lost:
            await self._close(TOO_SLOW, "You are too slow; connect again with your last number.")
        else:
            await self._close(
                RESTARTING, "The server is stopping; connect again with your last number."
            )

    async def _replay(self, cursors: dict[TeamId, int], *, everything: bool) -> None:
        """Send `hello`, then the missed events, page by page."""
        heads = await self._api.store.read(_heads, None if everything else set(cursors))
        # A write, because the first call creates the id.
        epoch = await self._api.store.write_first(access.epoch)
        await self._send({"op": "hello", "epoch": epoch, "build": self._api.build, "heads": heads})
        for team_id, head in heads.items():
            after = cursors.get(team_id, head if everything else 0)
            # A number from the future belongs to another database: one that a backup has replaced.
            if after > head or (everything and head - after > MOST_MISSED):
                await self._send({"op": "resync", "team_id": team_id, "head": head})
                after = head
            if after == head:
                await self._skip(team_id, head)
            self._sent[team_id] = after
            await self._catch_up(team_id, head)
        for frame in self._api.hub.partial_replies(self._subscriber.teams):
            await self._send_text(frame)

    async def _skip(self, team_id: TeamId, head: int) -> None:
        """Read the events that were committed between the subscription and the reading of the head,
        which this client does not get: the queue may have text of replies that they ended."""
        first = self._published_before.get(team_id, head)
        if first < head:
            for event in await self._api.store.read(events.after, team_id, first):
                self._record_sent(event)

    async def _catch_up(self, team_id: TeamId, until: int) -> None:
        """Send the events the client has not got, at least up to this number."""
        before = -1
        # `before` ends the loop when a page brought nothing new; it would be read for ever
        # otherwise.
        while before < self._sent[team_id] < until:
            before = self._sent[team_id]
            async with self._api.hub.pages:
                late = await self._send_page(team_id)
            # Sent without the semaphore, so that a slow client does not block others.
            if late is not None:
                await self._send({"op": "event", "event": event_json(late)})
                self._record_sent(late)

    async def _send_page(self, team_id: TeamId) -> Event | None:
        """Send a page of history; return the event the client was too slow for, or None."""
        after = self._sent[team_id]
        rows = await self._api.store.read(
            events.page, team_id, after, limit=PAGE_EVENTS, most_bytes=PAGE_BYTES
        )
        for event in rows:
            try:
                await self._send({"op": "event", "event": event_json(event)}, most_s=HOLD_S)
            except TimeoutError:
                return event
            self._record_sent(event)
        return None

    def _record_sent(self, event: Event) -> None:
        """Record that an event of the history was sent."""
        self._sent[event.team_id] = event.seq
        is_queued = event.seq > self._published_before.get(event.team_id, 0)
        if is_queued and event.type in ENDS_A_REPLY:
            self._ended[event.data["node_id"]] = event.seq

    async def _send_event(self, event: dict[str, Any]) -> None:
        """Send an event in order and without gaps, whatever the order of notifications."""
        team_id, seq = event["team_id"], event["seq"]
        sent = self._sent.setdefault(team_id, 0)
        if seq == sent + 1:
            await self._send({"op": "event", "event": event})
            self._sent[team_id] = seq
        elif seq > sent:
            await self._catch_up(team_id, seq)
        # After the catch-up, which may have sent this very event from history.
        if (ended := self._ended.get(event["data"].get("node_id"))) is not None and ended <= seq:
            del self._ended[event["data"]["node_id"]]

    async def _send_text(self, frame: dict[str, Any]) -> None:
        """Send text of an unfinished reply; none of a reply whose end the client knows already."""
        if frame.get("node_id") not in self._ended:
            await self._send(frame)

    async def _send(self, frame: dict[str, Any], *, most_s: float = 3600.0) -> None:
        async with asyncio.timeout(min(self._api.timeouts.send_s, most_s)):
            await self._socket.send_text(orjson.dumps(frame).decode())

    async def _wait_for_close(self) -> None:
        """Return when the client closes the connection. Further frames of it are ignored."""
        try:
            while True:
                await self._socket.receive_text()
        except (WebSocketDisconnect, RuntimeError, KeyError):
            return

    async def _keep_alive(self) -> None:
        """Ping a quiet connection, and close it when its token is revoked."""
        quiet = 0.0
        while True:
            await asyncio.sleep(self._api.timeouts.token_check_s)
            quiet += self._api.timeouts.token_check_s
            with contextlib.suppress(StoreUnavailable):  # check again when the store is back
                if await self._api.access.caller(self._socket.state.secret) is None:
                    return await self._close(UNAUTHORIZED, "Your token is no longer valid.")
            if quiet >= self._api.timeouts.ping_s:
                quiet = 0.0
                # Through the queue, so that frames are sent by one task, and a client that reads
                # nothing fails there.
                self._subscriber.put({"op": "ping"})

    async def _close(self, code: int, reason: str) -> None:
        try:
            async with asyncio.timeout(1):
                await self._socket.close(code, reason)
        except TimeoutError:
            # The client reads nothing: a closing handshake would wait for it and keep its socket
            # and memory. Abort the transport instead.
            self._socket.scope["state"].get(ABORT, lambda: None)()
        except (RuntimeError, OSError):
            return
