"""Receivers: a webhook server and a mail server that fail in the ways that a test chooses."""

import asyncio
import contextlib
import email
import email.policy
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any, Literal

Behaviour = Literal["take", "fail", "drop", "stall", "later"]
"""Accept; refuse; accept and close the connection; accept and never answer; `retry-after: 1800`."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass(slots=True)
class Receiver:
    """A server on a loopback port. Each request uses up one behaviour; the last one repeats."""

    behaviours: list[Behaviour] = field(default_factory=lambda: ["take"])
    port: int = field(default_factory=free_port)
    received: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    def next_behaviour(self) -> Behaviour:
        return self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["Receiver"]:
        """Listen until the end of the block."""
        tasks: set[asyncio.Task[Any]] = set()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                    await self.serve(reader, writer)
            finally:
                tasks.discard(task)
                writer.transport.abort()

        server = await asyncio.start_server(handle, "127.0.0.1", self.port)
        try:
            yield self
        finally:
            server.close()
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(slots=True)
class Post:
    headers: dict[str, str]
    raw: bytes

    @property
    def key(self) -> str:
        return self.headers["idempotency-key"]

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)


@dataclass(slots=True)
class WebhookServer(Receiver):
    posts: list[Post] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        assert head[0] == "POST /hook HTTP/1.1"
        pairs = (line.split(": ", 1) for line in head[1:] if line)
        headers = {name.lower(): value for name, value in pairs}
        raw = await reader.readexactly(int(headers["content-length"]))
        self.posts.append(Post(headers, raw))
        self.received.release()
        match self.next_behaviour():
            case "take":
                answer = "200 OK\r\ncontent-length: 2\r\n\r\nok"
            case "fail":
                answer = "500 Broken\r\ncontent-length: 4\r\n\r\nsigh"
            case "later":
                answer = "503 Busy\r\nretry-after: 1800\r\ncontent-length: 0\r\n\r\n"
            case "drop":
                return
            case "stall":
                await asyncio.Event().wait()
                return
        writer.write(f"HTTP/1.1 {answer}".encode())
        await writer.drain()


@dataclass(slots=True)
class MailServer(Receiver):
    mails: list[EmailMessage] = field(default_factory=list)
    envelopes: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    tls: ssl.SSLContext | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def say(line: str) -> None:
            writer.write(f"{line}\r\n".encode())
            await writer.drain()

        await say("220 here")
        sender, recipients = "", list[str]()
        while line := (await reader.readline()).decode().strip():
            word, _, rest = line.partition(" ")
            match word.upper():
                case "EHLO":
                    await say("250-here")
                    if self.tls is not None:
                        await say("250-STARTTLS")
                    await say("250 AUTH PLAIN")
                case "STARTTLS":
                    await say("220 go on")
                    await writer.start_tls(self.tls)  # type: ignore[arg-type]
                case "AUTH":
                    self.logins.append(rest)
                    await say("235 welcome")
                case "MAIL":
                    sender = rest
                    await say("250 ok")
                case "RCPT":
                    recipients.append(rest)
                    await say("250 ok")
                case "DATA":
                    await say("354 go on")
                    await self._receive((sender, tuple(recipients)), reader, say)
                case "QUIT":
                    return await say("221 bye")
                case _:
                    await say("502 what?")
        return None

    async def _receive(
        self,
        envelope: tuple[str, tuple[str, ...]],
        reader: asyncio.StreamReader,
        say: Callable[[str], Awaitable[None]],
    ) -> None:
        raw = await reader.readuntil(b"\r\n.\r\n")
        mail = email.message_from_bytes(
            raw[:-3].replace(b"\n..", b"\n."), policy=email.policy.default
        )
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.envelopes.append(envelope)
        self.received.release()
        match self.next_behaviour():
            case "take":
                await say("250 taken")
            case "drop":
                raise ConnectionError
            case "stall":
                await asyncio.Event().wait()
            case _:
                await say("451 not now")
