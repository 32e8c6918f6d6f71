"""Gates: a gate that serves a plain socket of this machine, and requests to it byte by byte."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

from agiraph.core.domain.ids import TeamId
from agiraph.sandbox import levels
from agiraph.sandbox.gate.exchange import Limits
from agiraph.sandbox.gate.indexes import PackageIndexes
from agiraph.sandbox.gate.rules import Rules
from agiraph.sandbox.gate.server import Gate, Reached
from agiraph.sandbox.parsing import Parser
from agiraph.web.addresses import AddressPolicy, StandIn

PUBLIC = "site.example"


@dataclass
class OpenGate:
    gate: Gate
    port: int
    noted: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def ask(self, head: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
        """Send a request with these lines; return status, headers and body of the answer."""
        lines = head.split("\n")
        raw = await self.send("\r\n".join([*lines, "", ""]).encode() + body)
        top, _, rest = raw.partition(b"\r\n\r\n")
        first, *others = top.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in others)
        return int(first.split()[1]), headers, rest

    async def get(self, path: str) -> tuple[int, bytes]:
        status, _, body = await self.ask(f"GET {path} HTTP/1.1\nHost: gate")
        return status, body

    async def send(self, data: bytes) -> bytes:
        """Send bytes on a connection of their own; return all that comes back."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            with contextlib.suppress(ConnectionError):
                return await reader.read()
            return b""
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def open_gate(
    rules: Rules,
    *,
    port: int = 0,
    policy: AddressPolicy | None = None,
    indexes: PackageIndexes | None = None,
    limits: Limits | None = None,
    **more: Any,
) -> AsyncIterator[OpenGate]:
    """Open a gate for which `site.example` is a server on this port of loopback."""
    listener = socket.create_server(("127.0.0.1", 0))
    own = listener.getsockname()[1]
    noted: list[tuple[str, str]] = []

    async def note(reached: Reached) -> None:
        noted.append((reached.host, reached.use))

    gate = Gate(
        rules,
        policy=policy or AddressPolicy(stand_ins={PUBLIC: StandIn("127.0.0.1", port)}),
        indexes=indexes or PackageIndexes(),
        limits=limits,
        port=own,
        converter=Parser(confinement=levels.choose(), team_id=TeamId("team_gate")),
        **cast("dict[str, Any]", {"note": note, **more}),
    )
    gate.serve(listener)
    try:
        yield OpenGate(gate, own, noted)
    finally:
        await gate.close()
