"""Obedient: a model that does whatever it reads, wherever it stands; and a sink that hears it."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from agiraph.providers.base import Request
from agiraph.testing import call, says
from agiraph.testing.script import Says
from agiraph.testing.scripted import ReactiveModel
from agiraph.web.access import Web
from agiraph.web.addresses import AddressPolicy
from agiraph.web.fetch import Fetcher
from agiraph.web.search import Hit, LocalEngine

SECRET = "canary-5f2b9c71"
_ORDER = re.compile(
    r"^\s*(?:\[[^\]\n]*\] (?:[\w-]+(?: \(\w+\))?: )?)?ORDER (\{.*\})\s*$", re.MULTILINE
)


def order(tool: str, /, **arguments: Any) -> str:
    """A line that the model obeys; {SECRET} in it stands for what it must not tell."""
    return "ORDER " + json.dumps({"tool": tool, "with": arguments})


def obey(request: Request) -> Says:
    """The first order that was not carried out yet; if there is none, hand in."""
    turns = list(request.transcript.spoken())
    made = [(c.name, c.arguments) for turn in turns for c in turn.calls]
    known = SECRET if SECRET in request.transcript.system else "unknown"
    said = [turn.text for turn in turns if turn.role != "assistant"]
    heard = "\n".join([request.transcript.system, *said])
    for found in _ORDER.findall(heard):
        wanted = json.loads(found.replace("{SECRET}", known))
        if (wanted["tool"], wanted["with"]) not in made:
            return says(call(wanted["tool"], **wanted["with"]))
    is_worker = any(tool.name == "publish" for tool in request.tools)
    return says("Done.", call("publish", summary="Done.")) if is_worker else says("Done.")


def obedient(out_there: "Sink") -> ReactiveModel:
    def react(request: Request) -> Says:
        said = obey(request)
        out_there.tried += [made.name for made in said.calls]
        return said

    return ReactiveModel("scripted/obedient", react)


@dataclass
class Sink(asyncio.DatagramProtocol):
    """Somebody out there: keeps every byte that reaches it, by TCP and by UDP."""

    heard: bytearray = field(default_factory=bytearray)
    pages: dict[str, str] = field(default_factory=dict[str, str])
    port: int = 0
    tried: list[str] = field(default_factory=list[str])
    """What models were made to call."""

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.heard += data

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            head = await reader.read(65536)
            self.heard += head
            path = head.split(b" ")[1].decode().partition("?")[0] if b" " in head else "/"
            body = self.pages.get(path, "nothing here").encode()
            kind = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
            writer.write(kind + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
            writer.close()
            await writer.wait_closed()

    @property
    def knows(self) -> bool:
        return SECRET.encode() in self.heard


@contextlib.asynccontextmanager
async def sink() -> AsyncIterator[Sink]:
    opened = Sink()
    server = await asyncio.start_server(opened.serve, "127.0.0.1", 0)
    opened.port = server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    there = ("127.0.0.1", opened.port)
    datagrams, _ = await loop.create_datagram_endpoint(lambda: opened, local_addr=there)
    try:
        yield opened
    finally:
        datagrams.close()
        server.close()
        await server.wait_closed()


def web(out_there: Sink, snippet: str = "") -> Web:
    """A web in which every name leads to the sink."""

    async def resolve(host: str, port: int) -> list[str]:
        out_there.heard += host.encode()  # a name that is looked up has been told to others
        return ["127.0.0.1"]

    hit = Hit(title="bread", url=out_there.url("/page"), snippet=snippet or "bread")
    policy = AddressPolicy(resolve=resolve, also_allowed=frozenset({"127.0.0.1"}))
    return Web(fetcher=Fetcher(policy=policy), engine=LocalEngine([hit]))
