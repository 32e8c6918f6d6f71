"""Connections: limits on the number of open sockets and on slow clients.

Whether a client has a token is known only after its headers. So a connection counts as half-read
until its request is complete, and again while it is idle without having signed in. Half-read
connections may use at most half of all places; when that half is full, the oldest of them is
closed. The rest is for clients that have signed in.
"""

import asyncio
import logging
import resource
import time
from dataclasses import field
from typing import Literal

from agiraph.core.domain.value import dataclass

log: logging.Logger = logging.getLogger("agiraph.api")

LOG_EVERY_S = 60.0
"""Closed connections are logged at once, then counted and logged once in this time."""

State = Literal["headers", "body", "answering", "draining", "idle", "websocket"]
"""`draining`: the response was sent before the body had arrived, as when a body is too large."""
Reason = Literal["slow request", "too many half-read", "stalled", "no place", "no file descriptor"]

_WHY: dict[Reason, str] = {
    "slow request": "Closed {count} connection(s) that did not send a whole request in time, "
    "last from {address}.",
    "too many half-read": "Closed the oldest {count} half-read connection(s) to make room, last "
    "from {address}. If that is your proxy, raise `connections_per_address` under [server].",
    "stalled": "Aborted {count} connection(s) whose client read nothing in time, last from "
    "{address}.",
    "no place": "Refused {count} connection(s), last from {address}: all places are taken by "
    "signed-in clients. Raise `connections` under [server], and the limit of open files.",
    "no file descriptor": "Could not accept connections {count} time(s): no file descriptor is "
    "free. Raise the limit of open files of this process.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many connections clients may have, and how long and how much each may take."""

    connections: int = 4096
    """Open connections; fewer if the limit of open files is lower."""
    per_address: int = 256
    """Half-read connections from one address; 0: no limit."""
    headers_s: float = 10.0
    """For the headers of a request, and for a TLS handshake."""
    headers_bytes: int = 64 * 1024
    body_s: float = 20.0
    """For a body, in addition to its size divided by `body_bytes_per_s`."""
    body_bytes_per_s: int = 8192
    stalled_s: float = 30.0
    """For a client to read some of what was sent to it."""
    closing_s: float = 5.0
    """For a client to read the rest after the server closed the connection."""
    sweep_s: float = 1.0


@dataclass(slots=True, eq=False)
class Connection:
    """One accepted socket."""

    address: str
    since: float
    """When it entered its state, by the monotonic clock."""
    state: State = "headers"
    is_signed_in: bool = False
    """A request on it had a valid token."""
    transport: asyncio.Transport | None = None
    """None during a TLS handshake."""
    opening: asyncio.Task[None] | None = None
    received: int = 0
    """Bytes received in the current state."""
    is_reading_paused: bool = False
    stalled_since: float | None = None
    """Since when the send buffer is full because the client does not read."""
    closing_since: float | None = None

    def is_late(self, now: float, limits: Limits) -> bool:
        """Whether the client takes too long to send its request."""
        if self.state == "headers":
            is_endless = self.received > limits.headers_bytes
            return is_endless or now - self.since > limits.headers_s
        if self.state == "body" and not self.is_reading_paused:
            # Time for bytes that arrived, not for bytes announced: one byte a minute earns nothing.
            allowed = limits.body_s + self.received / limits.body_bytes_per_s
            return now - self.since > allowed
        return self.state == "draining" and now - self.since > limits.body_s

    def is_stalled(self, now: float, limits: Limits) -> bool:
        """Whether the client has read nothing for too long."""
        if self.transport is None:
            return False
        if self.closing_since is None and self.transport.is_closing():
            self.closing_since = now
        closing, stalled = self.closing_since, self.stalled_since
        return (closing is not None and now - closing > limits.closing_s) or (
            stalled is not None and now - stalled > limits.stalled_s
        )

    def abort(self) -> None:
        """Close the socket now. A regular close would wait until the client has read everything."""
        if self.transport is not None:
            self.transport.abort()
        elif self.opening is not None:
            self.opening.cancel()


@dataclass(slots=True)
class Connections:
    """All open connections of a server."""

    limits: Limits
    max_open: int
    open: set[Connection] = field(default_factory=set[Connection])
    half_read: dict[Connection, None] = field(default_factory=dict[Connection, None])
    """Oldest first."""
    by_address: dict[str, dict[Connection, None]] = field(
        default_factory=dict[str, dict[Connection, None]]
    )
    """The half-read connections of each address, oldest first."""
    closed: dict[Reason, int] = field(default_factory=dict[Reason, int])
    """Closed connections by reason, since the start."""
    _unlogged: dict[Reason, int] = field(default_factory=dict[Reason, int])
    _logged_at: dict[Reason, float] = field(default_factory=dict[Reason, float])

    def admit(self, address: str) -> Connection | None:
        """Add a connection, closing a half-read one if the limit is reached; or None."""
        of_address = self.by_address.get(address, {})
        # The oldest goes, not the new one: an honest client sends its request within a second, so
        # the oldest half-read connection is most likely held open on purpose.
        if 0 < self.limits.per_address <= len(of_address):
            self.drop(next(iter(of_address)), "too many half-read")
        if self.half_read and (
            len(self.half_read) >= self.max_open // 2 or len(self.open) >= self.max_open
        ):
            self.drop(next(iter(self.half_read)), "too many half-read")
        if len(self.open) >= self.max_open:
            self.note("no place", address)
            return None
        connection = Connection(address, time.monotonic())
        self.open.add(connection)
        self._add_half_read(connection)
        return connection

    def enter(self, connection: Connection, state: State) -> None:
        """Put a connection into a state and update whether it counts as half-read."""
        connection.state, connection.since = state, time.monotonic()
        connection.received = 0
        is_whole = state in ("answering", "websocket")
        if is_whole or connection.is_signed_in or connection not in self.open:
            self._remove_half_read(connection)
        else:
            self._add_half_read(connection)

    def leave(self, connection: Connection) -> None:
        self.open.discard(connection)
        self._remove_half_read(connection)

    def drop(self, connection: Connection, reason: Reason) -> None:
        self.leave(connection)
        connection.abort()
        self.note(reason, connection.address)

    def drop_oldest(self) -> None:
        if self.half_read:
            self.drop(next(iter(self.half_read)), "too many half-read")

    def sweep(self) -> None:
        """Close the connections of clients that are too slow."""
        now = time.monotonic()
        for connection in [*self.open]:
            if connection.is_stalled(now, self.limits):
                self.drop(connection, "stalled")
            elif connection.is_late(now, self.limits):
                self.drop(connection, "slow request")
        for reason, logged_at in [*self._logged_at.items()]:
            if self._unlogged.get(reason) and now - logged_at >= LOG_EVERY_S:
                self._log(reason, "several addresses")

    def note(self, reason: Reason, address: str) -> None:
        """Count a connection that the server closed for this reason.

        The first of a reason is logged at once; those after it in one line per `LOG_EVERY_S`.
        """
        self.closed[reason] = self.closed.get(reason, 0) + 1
        self._unlogged[reason] = self._unlogged.get(reason, 0) + 1
        logged_at = self._logged_at.get(reason)
        if logged_at is None or time.monotonic() - logged_at >= LOG_EVERY_S:
            self._log(reason, address)

    def _log(self, reason: Reason, address: str) -> None:
        self._logged_at[reason] = time.monotonic()
        log.warning(_WHY[reason].format(count=self._unlogged.pop(reason), address=address))

    def _add_half_read(self, connection: Connection) -> None:
        # `setdefault` keeps the place of a connection that is there already: a client cannot become
        # young again by starting another request without a token.
        self.half_read.setdefault(connection)
        self.by_address.setdefault(connection.address, {}).setdefault(connection)

    def _remove_half_read(self, connection: Connection) -> None:
        self.half_read.pop(connection, None)
        of_address = self.by_address.get(connection.address)
        if of_address is not None:
            of_address.pop(connection, None)
            if not of_address:
                del self.by_address[connection.address]


def raise_file_limit() -> int:
    """Raise the soft limit of open files to the hard limit; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 2**20


def places(limits: Limits) -> int:
    """Return how many client connections may be open at a time.

    Of the files that the process may open, a quarter is left to the database, commands and
    connections to models.
    """
    return min(limits.connections, raise_file_limit() * 3 // 4)
