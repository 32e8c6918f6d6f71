"""Open sources: a search engine without a key, over Wikipedia, Crossref and arXiv.

Each of them may be searched by anybody who says who they are and asks slowly. It finds facts and
papers, and no news.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from html import unescape
from itertools import chain, zip_longest
from typing import Any, cast
from urllib.parse import quote

import orjson

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.records.search import Hit, Results, distinct, one_line
from agiraph.core.domain.text import language
from agiraph.core.domain.value import dataclass
from agiraph.web.search import KEYS, MAX_RESPONSE_BYTES

log: logging.Logger = logging.getLogger("agiraph.web")
TIMEOUT_S = 15.0
READY_S = 6.0
"""Seconds within which a source must answer to count as reachable."""
NAME = "open"
LONGEST_WAIT_S = 12.0
"""The most seconds that a search waits for its turn at a source; after that it leaves the source
out."""
SNIPPET_CHARACTERS = 400
_ATOM = "{http://www.w3.org/2005/Atom}"
_TAG = re.compile(r"<[^<>]{0,2000}>")
_EDITIONS = {
    "German": "de", "French": "fr", "Spanish": "es", "Italian": "it", "Portuguese": "pt",
    "Dutch": "nl", "Polish": "pl", "Swedish": "sv", "Turkish": "tr", "Russian": "ru",
    "Ukrainian": "uk", "Japanese": "ja", "Korean": "ko", "Chinese": "zh", "Greek": "el",
    "Hebrew": "he", "Arabic": "ar", "Hindi": "hi", "Thai": "th",
}  # fmt: skip
"""The editions of Wikipedia by the language of a query; English for any other."""


class SourceFailed(Exception):
    """One source gave no hits that can be read; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One open source: its address, how it is queried, and how its response is parsed."""

    name: str
    url: str
    """May hold `{edition}`, the language of Wikipedia."""
    pause_s: float
    """The shortest time between two requests, in seconds."""
    query: Callable[[str, int, str], dict[str, str]]
    """Makes the parameters from the query, the number of hits and the contact."""
    read: Callable[[bytes, str], list[Hit]]
    """Reads the hits of a response. The second argument is the source's `site`."""
    site: str
    """Where the pages of its hits are, with `{edition}` as in `url`."""


class _Turn:
    """Lets one request at a time through, with a pause after each."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._free_at = 0.0

    async def take(self, pause_s: float, longest_wait_s: float) -> None:
        """Wait until this caller may send its request; the caller calls `end` afterwards."""
        loop = asyncio.get_running_loop()
        late = SourceFailed("its turn comes too late")
        ends_at = loop.time() + longest_wait_s
        try:
            async with asyncio.timeout_at(ends_at):
                await self._lock.acquire()
        except TimeoutError:
            raise late from None
        try:
            if self._free_at > ends_at:
                raise late
            await asyncio.sleep(max(0.0, self._free_at - loop.time()))
        except BaseException:
            self._lock.release()
            raise
        self._free_at = loop.time() + pause_s

    def end(self) -> None:
        self._lock.release()


def _wikipedia_query(query: str, limit: int, contact: str) -> dict[str, str]:
    return {
        "action": "query", "list": "search", "srsearch": query, "srlimit": str(limit),
        "srprop": "snippet", "format": "json", "formatversion": "2", "maxlag": "5",
    }  # fmt: skip


def _read_wikipedia(raw: bytes, site: str) -> list[Hit]:
    answer = _json(raw)
    if "error" in answer:
        error = answer["error"]
        code = cast(dict[str, Any], error).get("code") if isinstance(error, dict) else error
        # For the person: a sentence for a model repeats nothing remote.
        log.warning("wikipedia did not search: %s", one_line(code)[:80])
        raise SourceFailed("it says that there is an error")
    return [
        Hit(
            title=one_line(entry.get("title")),
            url=f"{site}/{quote(one_line(entry.get('title')).replace(' ', '_'))}",
            snippet=_plain(entry.get("snippet")),
        )
        for entry in _entries(answer, "query", "search")
        if one_line(entry.get("title"))
    ]


def _crossref_query(query: str, limit: int, contact: str) -> dict[str, str]:
    asked = {"query.bibliographic": query, "rows": str(limit), "select": "DOI,title,abstract,URL"}
    # Crossref serves clients with a contact address from a separate pool, and writes to them if
    # there is a problem.
    return asked | ({"mailto": contact} if "@" in contact else {})


def _read_crossref(raw: bytes, site: str) -> list[Hit]:
    return [
        Hit(
            title=one_line(next(iter(entry.get("title") or ()), "")) or one_line(entry.get("DOI")),
            url=f"{site}/{quote(one_line(entry.get('DOI')), safe='/()')}",
            snippet=_plain(entry.get("abstract")),
        )
        for entry in _entries(_json(raw), "message", "items")
        if one_line(entry.get("DOI"))
    ]


def _arxiv_query(query: str, limit: int, contact: str) -> dict[str, str]:
    words = re.findall(r"[^\W_]+", query)[:12]
    search = " AND ".join(f"all:{word}" for word in words) or "all:none"
    return {"search_query": search, "start": "0", "max_results": str(limit)}


def _read_arxiv(raw: bytes, site: str) -> list[Hit]:
    from xml.etree import ElementTree

    if b"<!DOCTYPE" in raw[:2000] or b"<!ENTITY" in raw:
        raise SourceFailed("its response declares entities")
    try:
        feed = ElementTree.fromstring(raw)
    except ElementTree.ParseError as error:
        raise SourceFailed("its response cannot be read") from error
    # An error comes as an entry, too, without the address of a paper.
    papers = [
        each
        for each in feed.findall(f"{_ATOM}entry")
        if "/abs/" in (each.findtext(f"{_ATOM}id") or "")
    ]
    return [
        Hit(
            title=one_line(entry.findtext(f"{_ATOM}title")),
            url=f"{site}/abs/{one_line(entry.findtext(f'{_ATOM}id')).rpartition('/abs/')[2]}",
            snippet=one_line(entry.findtext(f"{_ATOM}summary"))[:SNIPPET_CHARACTERS],
        )
        for entry in papers
    ]


SOURCES: tuple[Source, ...] = (
    Source(
        name="Wikipedia",
        url="https://{edition}.wikipedia.org/w/api.php",
        site="https://{edition}.wikipedia.org/wiki",
        pause_s=0.0,
        query=_wikipedia_query,
        read=_read_wikipedia,
    ),
    Source(
        name="Crossref",
        url="https://api.crossref.org/works",
        site="https://doi.org",
        pause_s=0.2,
        query=_crossref_query,
        read=_read_crossref,
    ),
    Source(
        name="arXiv",
        url="https://export.arxiv.org/api/query",
        site="https://arxiv.org",
        pause_s=3.0,
        query=_arxiv_query,
        read=_read_arxiv,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEngine:
    """Searches the open sources, one request to each at a time, and mixes their hits."""

    contact: str = ""
    """An e-mail or web address under which the sources reach the person who runs this."""
    sources: tuple[Source, ...] = SOURCES
    name: str = NAME
    usd_per_1000: float | None = 0.0
    _turns: Mapping[str, _Turn] = field(default_factory=dict[str, _Turn], repr=False, compare=False)

    async def search(self, query: str, *, limit: int) -> Results:
        edition = _EDITIONS.get(language.guess(query) or "", "en")
        asked = [self._ask(source, query, limit, edition) for source in self.sources]
        answers = await asyncio.gather(*asked)
        found = [answer for answer in answers if isinstance(answer, list)]
        if not found:
            named = zip(self.sources, answers, strict=True)
            why = "; ".join(f"{source.name}: {answer}" for source, answer in named)
            raise Refused(
                f"None of the open sources can be searched ({why}). A person can set {KEYS}. "
                "Go on without searching, and say so."
            )
        mixed = [hit for hit in chain.from_iterable(zip_longest(*found)) if hit is not None]
        return Results(hits=distinct(mixed, limit))

    async def why_unreachable(self) -> str:
        """Return why no source answers; "" as soon as one does."""
        reasons: list[str] = []
        for source in self.sources:
            try:
                async with asyncio.timeout(READY_S):
                    answer = await self._ask(source, "test", 1, "en")
            except TimeoutError:
                answer = SourceFailed(f"no answer within {READY_S:g} seconds")
            if isinstance(answer, list):
                return ""
            reasons.append(f"{source.name}: {answer}")
        return "; ".join(reasons)

    async def _ask(
        self, source: Source, query: str, limit: int, edition: str
    ) -> list[Hit] | SourceFailed:
        """Return a source's hits, or why there are none: another source may still have some."""
        import aiohttp

        from agiraph.web.pinned import reason_of

        turn = cast(dict[str, _Turn], self._turns).setdefault(source.name, _Turn())
        url = source.url.format(edition=edition)
        try:
            await turn.take(source.pause_s, LONGEST_WAIT_S)
            try:
                raw = await self._get(url, source.query(query, limit, self.contact))
            finally:
                turn.end()
            return source.read(raw, source.site.format(edition=edition))
        except SourceFailed as failure:
            return failure
        except TimeoutError:
            return SourceFailed("no answer in time")
        except (aiohttp.ClientError, OSError) as error:
            return SourceFailed(reason_of(error))

    async def _get(self, url: str, parameters: Mapping[str, str]) -> bytes:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=self._headers()) as session,
            session.get(url, params=parameters, allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise SourceFailed(f"HTTP {response.status}")
            raw = await response.content.read(MAX_RESPONSE_BYTES + 1)
            while not response.content.at_eof() and len(raw) <= MAX_RESPONSE_BYTES:
                raw += await response.content.read(MAX_RESPONSE_BYTES + 1 - len(raw))
            return raw

    def _headers(self) -> dict[str, str]:
        contact = self.contact or "no contact set"
        return {"User-Agent": f"agiraph/0.1 (a person's own assistant; {contact}) aiohttp"}


def _json(raw: bytes) -> dict[str, Any]:
    try:
        answer = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise SourceFailed("its response cannot be read") from error
    return cast(dict[str, Any], answer) if isinstance(answer, dict) else {}


def _entries(answer: dict[str, Any], *path: str) -> list[dict[str, Any]]:
    part: Any = answer
    for key in path:
        part = cast(dict[str, Any], part).get(key) if isinstance(part, dict) else None
    listed = cast(list[Any], part) if isinstance(part, list) else []
    return [cast(dict[str, Any], entry) for entry in listed if isinstance(entry, dict)]


def _plain(markup: object) -> str:
    """Return the text of a snippet with tags, as Wikipedia and Crossref send them."""
    text = _TAG.sub(" ", markup) if isinstance(markup, str) else ""
    return one_line(unescape(text))[:SNIPPET_CHARACTERS]
