"""MCP transport: carries JSON-RPC messages to a server, with a limit for what comes back.

This module imports the MCP SDK, which takes a second; it is imported when a server is first used.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from dataclasses import field

import anyio
import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import Home
from agiraph.features.mcp.settings import McpServer
from agiraph.sandbox.dialogue import Dialogue
from agiraph.sandbox.piped_commands import Launch, running
from agiraph.web.addresses import AddressPolicy
from mcp import types

MESSAGE_BYTES = 4 * 2**20
"""The most bytes of one message of a server."""
MOST_BYTES = 32 * 2**20
"""Bytes that a server may send between one call and the next."""
CHUNK_BYTES = 64 * 1024
END_S = 2.0
"""Seconds that a program may go on running after it has closed its output."""
CONNECT_S = 15.0
LOG_CHARACTERS = 2_000

for _name in ("mcp", "httpx2", "httpcore2"):
    # These packages log what a server sends, which is untrusted text.
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class Flooded(Exception):
    """The server sent more bytes than one call or one message may have."""


@dataclass(slots=True)
class Link:
    """The state of a connected server: the bytes that it has sent, and its program."""

    bytes: int = 0
    """Bytes that the server has sent since the last call began."""
    is_over: bool = False
    """Whether the server exceeded a limit on bytes."""
    dialogue: Dialogue | None = None
    wants_sign_in: bool = False
    """Whether the server refused a request for lack of a valid sign-in."""
    led_inside: bool = False
    """Whether the server led to an address that is not opened."""

    def begin_call(self) -> None:
        self.bytes, self.wants_sign_in, self.led_inside = 0, False, False

    def add(self, count: int) -> None:
        """Count bytes that the server sent; raise `Flooded` above the limit."""
        self.bytes += count
        if self.bytes > MOST_BYTES:
            self.flood()

    def flood(self) -> None:
        self.is_over = True
        raise Flooded

    async def dead(self) -> None:
        """Wait until the server's program has ended. Never returns for a server that agiraph did
        not start."""
        if self.dialogue is None:
            await asyncio.get_running_loop().create_future()
        else:
            await asyncio.wait({self.dialogue.ended})

    def said(self) -> str:
        """Return how its program ended, and the end of what it logged; empty while it runs."""
        ended = None if self.dialogue is None else self.dialogue.ended
        if ended is None or not ended.done() or ended.cancelled():
            return ""
        if (error := ended.exception()) is not None:
            return str(error)
        result = ended.result()
        how = f"exit code {result.exit_code}" if result.exit_code is not None else result.ended
        logged = result.output.strip()[-LOG_CHARACTERS:]
        return f"It ended ({how}{f': {result.limit}' if result.limit else ''}). {logged}".strip()


@contextlib.asynccontextmanager
async def piped(home: Home, launch: Launch, link: Link) -> AsyncGenerator[TransportStreams]:
    """Start the server's program and talk to it over its standard input and output."""
    heard, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, said = anyio.create_memory_object_stream[SessionMessage](0)
    async with running(home, launch) as dialogue, anyio.create_task_group() as tasks:
        link.dialogue = dialogue

        async def read() -> None:
            async with heard:
                with contextlib.suppress(anyio.BrokenResourceError, Flooded):
                    async for line in _lines(dialogue, link):
                        await heard.send(_parsed(line))
                    # Close the stream only then: its reader asks how the program ended.
                    await asyncio.wait({dialogue.ended}, timeout=END_S)

        async def write() -> None:
            async with said:
                with contextlib.suppress(ConnectionError):
                    async for message in said:
                        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                        dialogue.stdin.write(f"{text}\n".encode(errors="replace"))
                        await dialogue.stdin.drain()
            # The program reads no more requests, so the session must not wait for answers.
            heard.close()

        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield read_stream, write_stream
        finally:
            tasks.cancel_scope.cancel()
            for stream in (heard, read_stream, write_stream, said):
                stream.close()


async def _lines(dialogue: Dialogue, link: Link) -> AsyncGenerator[bytes]:
    """Yield the lines of the server; raise `Flooded` if one is too long or there are too many."""
    rest = b""
    while piece := await dialogue.stdout.read(CHUNK_BYTES):
        link.add(len(piece))
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > MESSAGE_BYTES:
            link.flood()
        for line in lines:
            if line.strip():
                yield line


def _parsed(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        # Many servers print a greeting on their standard output. The session skips it.
        return ValueError("a line that is not a JSON-RPC message")


@contextlib.asynccontextmanager
async def over_http(
    server: McpServer, link: Link, policy: AddressPolicy, auth: httpx2.Auth | None = None
) -> AsyncGenerator[TransportStreams]:
    """Talk to a server over streamable HTTP, or over the older SSE. `policy` decides on every
    address that is not the server's own."""
    own = httpx2.URL(server.url).host
    timeout = httpx2.Timeout(CONNECT_S, read=max(server.timeout_s, CONNECT_S) * 2)
    if server.kind == "sse":

        def client(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            transport = _Metered(link=link, own=own, policy=policy)
            return httpx2.AsyncClient(
                headers=headers, timeout=timeout, auth=auth, transport=transport
            )

        headers = dict(server.headers)
        async with sse_client(
            server.url, headers=headers, auth=auth, httpx_client_factory=client
        ) as streams:
            yield streams
        return
    async with (
        httpx2.AsyncClient(
            headers=dict(server.headers),
            timeout=timeout,
            auth=auth,
            transport=_Metered(link=link, own=own, policy=policy),
        ) as http,
        streamable_http_client(
            server.url, http_client=http, max_sse_event_size=MESSAGE_BYTES
        ) as streams,
    ):
        yield streams


@dataclass(slots=True)
class _Metered(httpx2.AsyncBaseTransport):
    """An HTTP transport that limits the bytes of each response. It refuses compressed ones, whose
    size in memory cannot be told from their bytes.

    A server tells where its sign-in is, and may redirect. So only its own host, which a person has
    named, may be inside of the network; any other must be public.
    """

    link: Link
    own: str
    policy: AddressPolicy
    inner: httpx2.AsyncHTTPTransport = field(default_factory=httpx2.AsyncHTTPTransport)
    others: dict[str, httpx2.AsyncHTTPTransport] = field(
        default_factory=dict[str, httpx2.AsyncHTTPTransport]
    )
    """The transport of each other host: no two hosts share a connection."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        # The limit counts bytes on the wire; a compressed answer could be any size in memory.
        request.headers["Accept-Encoding"] = "identity"
        if request.url.host == self.own:
            response = await self.inner.handle_async_request(request)
        else:
            response = await self._elsewhere(request)
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.ReadError("the server sent a compressed answer, which was not asked for")
        if response.status_code == 401:
            self.link.wants_sign_in = True
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        response.stream = _MeteredStream(stream, self.link)
        return response

    async def _elsewhere(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to a public host, at the addresses that were checked."""
        try:
            target = await self.policy.check(str(request.url))
        except Refused as error:
            self.link.led_inside = True
            raise httpx2.ConnectError(str(error), request=request) from error
        place = f"{target.url.scheme}://{target.host}:{target.port}"
        inner = self.others.setdefault(place, httpx2.AsyncHTTPTransport())
        request.extensions = {**request.extensions, "sni_hostname": target.host}
        url = request.url
        for address in target.addresses:
            request.url = url.copy_with(host=address, port=target.connect_port)
            try:
                return await inner.handle_async_request(request)
            except httpx2.ConnectError:
                if address == target.addresses[-1]:
                    raise
            finally:
                request.url = url
        raise httpx2.ConnectError("the host has no address", request=request)

    async def aclose(self) -> None:
        for inner in (self.inner, *self.others.values()):
            await inner.aclose()


@dataclass(slots=True)
class _MeteredStream(httpx2.AsyncByteStream):
    inner: httpx2.AsyncByteStream
    link: Link

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        async for piece in self.inner:
            try:
                self.link.add(len(piece))
            except Flooded as error:
                raise httpx2.ReadError("the server sent too much") from error
            yield piece

    async def aclose(self) -> None:
        await self.inner.aclose()
