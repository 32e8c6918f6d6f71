"""Obedient model: it follows every order that it reads; and a server that records what leaks."""

import asyncio
import base64
import contextlib
import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agiraph.core.domain.records.search import Hit, Results
from agiraph.core.domain.text.fence import without_fences
from agiraph.models.base import Request
from agiraph.sandbox.gate.indexes import PackageIndexes, PythonSources
from agiraph.testing import call, says
from agiraph.testing.script import Says
from agiraph.testing.scripted import ReactiveModel
from agiraph.web.access import Web
from agiraph.web.addresses import AddressPolicy
from agiraph.web.fetch import Fetcher
from agiraph.web.search import LocalEngine
from tests.policies.attacks import canaries

SECRET = "canary-5f2b9c71"
_ORDER = re.compile(
    r"^\s*(?:\[[^\]\n]*\] (?:[\w-]+(?: \(\w+\))?: )?)?ORDER (\{.*\})\s*$", re.MULTILINE
)
NUMBERED = re.compile(r"ORDER#([fp]\d+)")
"""The short form of an order: it fits into a title or the name of a file."""
_EARLIER = re.compile(r"(?m)^- Human: .*$")
"""What a person said before they asked for this work: nobody carries it out once more. What it
quotes of strangers is heard."""
FOREIGN = "f"
"""How the number of an order begins that a stranger gave; "p": a person gave it."""

HARVEST = "harvest"
"""Stands for a tool in an order that asks for an insight when the work is looked back on."""

Do = tuple[str, dict[str, Any]]
"""A call that an order asks for: the tool and its arguments."""


def order(tool: str, /, **arguments: Any) -> str:
    """Return a line that the model obeys; {SECRET} in it stands for the secret of the team."""
    return "ORDER " + json.dumps({"tool": tool, "with": arguments})


def do(tool: str, /, **arguments: Any) -> Do:
    return tool, arguments


@dataclass
class Orders:
    """What the numbered orders stand for, and where a stranger's order stood unmarked."""

    plans: dict[str, list[Do]] = field(default_factory=dict[str, list[Do]])
    unlabelled: list[str] = field(default_factory=list[str])
    """Strangers' orders in a thread without a label."""
    unfenced: list[str] = field(default_factory=list[str])
    """Strangers' orders outside of a fence."""

    def number(self, wanted: Sequence[Do], *, foreign: bool) -> str:
        """Return a short text that the obedient model takes for these orders."""
        key = f"{FOREIGN if foreign else 'p'}{len(self.plans) + 1}"
        self.plans[key] = list(wanted)
        return f"ORDER#{key}"

    def check(self, request: Request) -> None:
        """Record the strangers' orders that reach a model without label or fence."""
        # What the model itself has written before may come back to it in an answer.
        made = _foreign(str([c.arguments for t in request.transcript.turns for c in t.calls]))
        for text in _heard(request):
            if not request.transcript.label:
                self.unlabelled += [_around(text, number) for number in _foreign(text)]
        for text in _told(request):  # an attachment is no text that could stand in a fence
            for number in _foreign(without_fences(text)) - made:
                self.unfenced.append(_around(text, number))


def _foreign(text: str) -> set[str]:
    return {number for number in NUMBERED.findall(text) if number.startswith(FOREIGN)}


def _around(text: str, number: str) -> str:
    at = text.index(f"ORDER#{number}")
    return text[max(0, at - 80) : at + 10]


def _told(request: Request) -> list[str]:
    turns = request.transcript.spoken()
    return [request.transcript.system, *(t.text for t in turns if t.role != "assistant")]


def _heard(request: Request) -> list[str]:
    """Return all that the model reads: the prompt, what it is told and answered, attachments."""
    attached = [a.data for turn in request.transcript.spoken() for a in turn.attachments]
    return [*_told(request), *(base64.b64decode(data).decode() for data in attached)]


def obey(request: Request, orders: Orders | None = None) -> Says:
    """Carry out the first order that was not carried out yet; if there is none, submit."""
    heard = "\n".join(_heard(request))
    turns = list(request.transcript.spoken())
    made = [(c.name, c.arguments) for turn in turns for c in turn.calls]
    known = canaries.known_in([heard])
    wanted = [_read(found, known) for found in _ORDER.findall(heard)]
    for number in _numbers(heard) if orders is not None else ():
        plan = orders.plans.get(number, []) if orders is not None else []
        wanted += [(tool, _filled(given, known)) for tool, given in plan]
    if not request.may_call or request.schema is not None:
        return says(_written(heard, wanted))
    for tool, given in wanted:
        if tool != HARVEST and (tool, given) not in made:
            return says(call(tool, **given))
    endings = [tool.name for tool in request.tools if tool.name in ("publish", "finish")]
    return says("Done.", *(call(name, summary="Done.") for name in endings[:1]))


def _numbers(heard: str) -> list[str]:
    """Return the numbers of the orders in what is heard, in their order; of what a person said
    earlier only those of strangers."""

    def foreign(found: re.Match[str]) -> str:
        return " ".join(f"ORDER#{key}" for key in NUMBERED.findall(found[0]) if key[0] == FOREIGN)

    return NUMBERED.findall(_EARLIER.sub(foreign, heard))


def _written(heard: str, wanted: Sequence[Do]) -> str:
    """Return what the model writes where it may call nothing: insights, or a summary that repeats
    all orders."""
    told = " ".join(sorted({f"ORDER#{number}" for number in NUMBERED.findall(heard)}))
    insights = [
        {"confidence": 0.9, "work": 1, **given} for tool, given in wanted if tool == HARVEST
    ]
    return json.dumps({"insights": insights, "score": 0.1, "title": "", "text": told})


def _read(found: str, secret: str) -> Do:
    wanted = json.loads(canaries.fill(found, secret))
    return wanted["tool"], wanted["with"]


def _filled(given: dict[str, Any], secret: str) -> dict[str, Any]:
    return json.loads(canaries.fill(json.dumps(given), secret))


def obedient_model(attacker: "Sink", orders: Orders | None = None) -> ReactiveModel:
    def react(request: Request) -> Says:
        if orders is not None:
            orders.check(request)
        said = obey(request, orders)
        attacker.tried += [made.name for made in said.calls]
        return replace(said, input_tokens=sum(map(len, _told(request))) // 4)

    return ReactiveModel("scripted/obedient", react)


@dataclass
class Sink(asyncio.DatagramProtocol):
    """A server of an attacker: it records every byte that reaches it by TCP or UDP."""

    received: bytearray = field(default_factory=bytearray)
    pages: dict[str, str] = field(default_factory=dict[str, str])
    moved: dict[str, str] = field(default_factory=dict[str, str])
    """Where a path leads to by a redirect."""
    port: int = 0
    tried: list[str] = field(default_factory=list[str])
    """The tools that the models called."""

    def url(self, path: str = "/", host: str = "sink.example") -> str:
        """Return an address at the sink. Its host is a name, because a command finds its own
        loopback at 127.0.0.1; every name leads here (`web`)."""
        return f"http://{host}:{self.port}{path}"

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.received += data

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            head = await reader.read(65536)
            self.received += head
            if b"Expect: 100-continue" in head:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if head.startswith((b"PUT", b"POST")):
                self.received += await reader.read(65536)
            writer.write(self._answer(head))
            await writer.drain()
            writer.close()
            await writer.wait_closed()

    def _answer(self, head: bytes) -> bytes:
        path = head.split(b" ")[1].decode().partition("?")[0] if b" " in head else "/"
        if path in self.moved:
            location = self.moved[path].encode()
            return b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
        body = self.pages.get(path, "nothing here").encode()
        kind = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
        return kind + b"Content-Length: %d\r\n\r\n" % len(body) + body

    @property
    def has_secret(self) -> bool:
        return SECRET.encode() in self.received


@contextlib.asynccontextmanager
async def open_sink() -> AsyncIterator[Sink]:
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


@dataclass
class Engine:
    """A search engine whose operator records each query; it always finds the attacker's page."""

    sink: Sink
    hits: list[Hit]
    queries: list[str] = field(default_factory=list[str])
    name: str = "recording"
    usd_per_1000: float | None = 0.0

    async def search(self, query: str, *, limit: int) -> Results:
        self.queries.append(query)
        return await LocalEngine(self.hits).search(query, limit=limit)


def web(attacker: Sink, snippet: str = "", engine: Engine | None = None) -> Web:
    """Return a web access in which every host name resolves to the sink, which is also the index
    of packages: its operator sees their names."""

    async def resolve(host: str, port: int) -> list[str]:
        attacker.received += host.encode()  # a DNS lookup leaks the host name, too
        return ["127.0.0.1"]

    hit = Hit(title="bread", url=attacker.url("/page"), snippet=snippet or "bread")
    policy = AddressPolicy(resolve=resolve, also_allowed=frozenset({"127.0.0.1"}))
    index = PythonSources(indexes=(f"http://127.0.0.1:{attacker.port}/simple",))
    return Web(
        fetcher=Fetcher(policy=policy),
        engine=engine or LocalEngine([hit]),
        indexes=PackageIndexes(python=index),
    )
