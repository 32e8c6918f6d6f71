"""Local web: hosts with pages and a search engine over them on loopback, in place of the internet.

The tools, the fetcher with its address gate and the engine's client run unchanged. The gate knows
the hosts by `AddressPolicy.stand_ins`: each name leads to the one server of this module, and
nothing else on loopback may be opened. The engine speaks SearXNG's JSON. A page may be a function
of the day, so that it changes while a test advances its clock.
"""

import os
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from aiohttp import web

from agiraph.core.domain.times.time import Clock
from agiraph.web import configured
from agiraph.web.access import Web
from agiraph.web.addresses import AddressPolicy, StandIn
from agiraph.web.fetch import Fetcher
from agiraph.web.search import RemoteEngine
from tests import open_source_apis

ByDay = Callable[[int], str]
"""Returns the text of a page on a day; the first day is 0."""
ROBOTS = "/robots.txt"
LOOPBACK = "127.0.0.1"
VARIABLE = "LOCAL_WEB_OF_TEST"
"""Tells `main`, the program of a test, where the server is. The product does not read it."""
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[^>]+>")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of Markdown or, with `is_html`, of HTML. With `moved_to` it is a redirect.

    HTML takes a process to convert, as in the product, so only some pages of a long test have it.
    With `body` the page is a file of the media type `kind`, such as a PDF, whose words the search
    engine knows from `text`.
    """

    text: str | ByDay
    title: str = ""
    is_html: bool = False
    moved_to: str = ""
    kind: str = "text/markdown"
    body: bytes = b""
    head: str = ""
    """HTML that stands in the head of the page, behind its title."""

    def on(self, day: int) -> str:
        return self.text if isinstance(self.text, str) else self.text(day)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request that the server got."""

    host: str
    path: str
    day: int


@dataclass(slots=True)
class LocalWeb:
    """Pages by host and path, the visits to them, and the queries to the search engine."""

    clock: Clock
    sites: Mapping[str, Mapping[str, Page]]
    begun: datetime
    visits: list[Visit] = field(default_factory=list[Visit])
    queries: list[str] = field(default_factory=list[str])
    port: int = 0

    @property
    def day(self) -> int:
        return (self.clock.now() - self.begun) // timedelta(days=1)

    @property
    def stand_ins(self) -> dict[str, StandIn]:
        return {host: StandIn(LOOPBACK, self.port) for host in self.sites}

    @property
    def engine_url(self) -> str:
        """The address that a person gives as SEARXNG_URL; only the settings name it."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def access(self) -> Web:
        """The web access of a world: the product's own, with these hosts as the internet."""
        policy = AddressPolicy(resolve=_no_internet, stand_ins=self.stand_ins)
        return Web(
            fetcher=Fetcher(policy=policy),
            engine=RemoteEngine(name="searxng", base_url=self.engine_url),
        )

    @property
    def open_access(self) -> Web:
        """The web access of a world without any key: the open sources, as far as hosts of this web
        play them."""
        return replace(self.access, engine=open_source_apis.engine(self.engine_url))

    def visited(self, host: str) -> list[str]:
        """Return the paths of this host that were opened, in order."""
        return [visit.path for visit in self.visits if visit.host == host]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        host = request.url.host or ""
        if host == LOOPBACK:
            return self._search(request)
        self.visits.append(Visit(host=host, path=request.path_qs, day=self.day))
        page = self.sites.get(host, {}).get(request.path)
        if page is None:
            return web.Response(status=404, text="nothing here")
        if page.moved_to:
            return web.Response(status=302, headers={"Location": page.moved_to})
        if page.body:
            return web.Response(body=page.body, content_type=page.kind)
        text = page.on(self.day)
        if not page.is_html:
            return web.Response(text=text, content_type=page.kind)
        head = f"<head><title>{page.title}</title>{page.head}</head>"
        return web.Response(
            text=f"<html>{head}<body>{text}</body></html>", content_type="text/html"
        )

    def _search(self, request: web.Request) -> web.Response:
        """Answer as SearXNG does, with the pages that share words with the query, best first."""
        if (said := open_source_apis.answer(request, self._of_source)) is not None:
            return said
        if request.path != "/search" or request.query.get("format") != "json":
            return web.Response(status=403, text="only JSON")
        query = request.query["q"]
        self.queries.append(query)
        results = [
            {"title": page.title or url, "url": url, "content": snippet}
            for url, page, snippet in self._ranked(query, self.sites)
        ]
        return web.json_response({"query": query, "results": results})

    def _ranked(self, query: str, hosts: Iterable[str]) -> list[tuple[str, Page, str]]:
        """Return address, page and snippet of the pages that share words with the query."""
        wanted = _words(query)
        found = [
            (len(wanted & _words(f"{page.title} {text}")), f"http://{host}{path}", page, text)
            for host in hosts
            for path, page in self.sites.get(host, {}).items()
            if not page.moved_to and path != ROBOTS and not self._is_disallowed(host, path)
            for text in [_TAG.sub(" ", page.on(self.day))]
        ]
        hits = sorted((hit for hit in found if hit[0]), key=lambda hit: (-hit[0], hit[1]))
        return [(url, page, _snippet(text, wanted)) for _, url, page, text in hits]

    def _of_source(self, host: str, query: str) -> list[open_source_apis.Found]:
        """Return the pages of one of the open sources."""
        self.queries.append(query)
        return [
            open_source_apis.Found(url.removeprefix(f"http://{host}"), page.title, snippet)
            for url, page, snippet in self._ranked(query, [host])
        ]

    def _is_disallowed(self, host: str, path: str) -> bool:
        """Whether the host's robots.txt keeps this path out of the engine's index."""
        robots = self.sites[host].get(ROBOTS)
        rules = [] if robots is None else robots.on(self.day).splitlines()
        barred = [line.partition(":")[2].strip() for line in rules if line.startswith("Disallow:")]
        return any(prefix and path.startswith(prefix) for prefix in barred)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _snippet(text: str, wanted: set[str]) -> str:
    """Return the line of the text that shares the most words with the query."""
    return max(text.splitlines() or [""], key=lambda line: len(wanted & _words(line)))[:300]


async def _no_internet(host: str, port: int) -> list[str]:
    raise OSError("name not known")


@asynccontextmanager
async def local_web(
    clock: Clock, sites: Mapping[str, Mapping[str, Page]]
) -> AsyncGenerator[LocalWeb]:
    """Serve the hosts on a free loopback port during the block."""
    served = LocalWeb(clock, sites, clock.now())
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", served.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, LOOPBACK, 0).start()
    served.port = runner.addresses[0][1]
    try:
        yield served
    finally:
        await runner.cleanup()


def environment(served: LocalWeb) -> dict[str, str]:
    """Return the variables of a process whose function is `PROGRAM`: engine and stand-ins."""
    hosts = ",".join(served.sites)
    return {"SEARXNG_URL": served.engine_url, VARIABLE: f"{served.port}:{hosts}"}


PROGRAM = "tests.local_web:main"


def main() -> None:
    """Run `agiraph` with the hosts of a test in the internet's place."""
    from agiraph.__main__ import main as agiraph

    port, _, hosts = os.environ.pop(VARIABLE).partition(":")
    configured.stand_ins |= {host: StandIn(LOOPBACK, int(port)) for host in hosts.split(",")}
    agiraph()
