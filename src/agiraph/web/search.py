"""Search: one question to a search engine, and what it found, whoever the engine is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import aiohttp
import orjson

from agiraph.domain.errors import Refused

SECONDS = 20.0
LARGEST = 2 * 2**20
"""Bytes of an answer."""
NO_ENGINE = (
    "No search engine is set up. Set one of BRAVE_API_KEY, SERPER_API_KEY, TAVILY_API_KEY or "
    "SEARXNG_URL, or a [search] table in agiraph.toml. Until then, use web_fetch on addresses "
    "you know, or say that you could not search."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    title: str
    url: str
    snippet: str


class Engine(Protocol):
    @property
    def name(self) -> str: ...

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        """What was found, the best first; or `Refused` with what is the matter."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dialect:
    """How one vendor is asked, and where its answer has what."""

    url: str
    headers: Callable[[str], dict[str, str]]
    asked: Callable[[str, int], dict[str, Any]]
    results: tuple[str, ...]
    fields: tuple[str, str, str]
    method: str = "GET"


DIALECTS: Mapping[str, _Dialect] = {
    "brave": _Dialect(
        url="https://api.search.brave.com/res/v1/web/search",
        headers=lambda key: {"X-Subscription-Token": key},
        asked=lambda query, limit: {"q": query, "count": limit},
        results=("web", "results"),
        fields=("title", "url", "description"),
    ),
    "serper": _Dialect(
        method="POST",
        url="https://google.serper.dev/search",
        headers=lambda key: {"X-API-KEY": key},
        asked=lambda query, limit: {"q": query, "num": limit},
        results=("organic",),
        fields=("title", "link", "snippet"),
    ),
    "tavily": _Dialect(
        method="POST",
        url="https://api.tavily.com/search",
        headers=lambda key: {"Authorization": f"Bearer {key}"},
        asked=lambda query, limit: {"query": query, "max_results": limit},
        results=("results",),
        fields=("title", "url", "content"),
    ),
    "searxng": _Dialect(
        url="",
        headers=lambda key: {"Authorization": f"Bearer {key}"} if key else {},
        asked=lambda query, limit: {"q": query, "format": "json"},
        results=("results",),
        fields=("title", "url", "content"),
    ),
}
"""The engines that can be set up, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteEngine:
    """A search engine behind HTTP, at the address that a person configured."""

    name: str
    key: str = field(default="", repr=False)
    base_url: str = ""
    """Instead of the vendor's own address."""

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        dialect = DIALECTS[self.name]
        asked = dialect.asked(query, limit)
        how: dict[str, Any] = {"json": asked} if dialect.method == "POST" else {"params": asked}
        headers = {"Accept": "application/json"} | dialect.headers(self.key)
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SECONDS)) as session,
                session.request(dialect.method, self._url(dialect), headers=headers, **how) as got,
            ):
                self._check(got)
                raw = await got.content.read(LARGEST + 1)
                while not got.content.at_eof() and len(raw) <= LARGEST:
                    raw += await got.content.read(LARGEST + 1 - len(raw))
        except TimeoutError:
            raise Refused(
                f"The search engine ({self.name}) did not answer in time. Try once more, or go on "
                "with what you have."
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            said = str(error)[:200] or type(error).__name__
            raise Refused(f"The search engine ({self.name}) cannot be reached: {said}.") from error
        return _hits(self.name, raw, dialect)[:limit]

    def _url(self, dialect: _Dialect) -> str:
        base = self.base_url.rstrip("/")
        if self.name == "searxng":
            return base if base.endswith("/search") else f"{base}/search"
        return base or dialect.url

    def _check(self, got: aiohttp.ClientResponse) -> None:
        if got.status == 429:
            after = got.headers.get("Retry-After", "")
            wait = f" in {after[:20]} seconds" if after.isdigit() else " later"
            raise Refused(
                f"The search engine ({self.name}) takes no more questions now; ask again{wait}, or "
                "go on with what you have."
            )
        if got.status in (401, 402, 403):
            raise Refused(
                f"The search engine ({self.name}) does not accept our key (HTTP {got.status}); "
                "only the human can mend that. Go on without searching, and say so."
            )
        if got.status >= 400:
            raise Refused(
                f"The search engine ({self.name}) answered with an error (HTTP {got.status}). Try "
                "other words, or go on with what you have."
            )


def _hits(name: str, raw: bytes, dialect: _Dialect) -> list[Hit]:
    try:
        part: Any = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Refused(f"The answer of the search engine ({name}) cannot be read.") from error
    for step in dialect.results:
        part = cast(dict[str, Any], part).get(step) if isinstance(part, dict) else None
    if part is not None and not isinstance(part, list):
        raise Refused(f"The answer of the search engine ({name}) cannot be read.")
    found: list[Hit] = []
    for entry in cast(Sequence[Any], part or []):
        if isinstance(entry, dict):
            title, url, snippet = (_plain(entry.get(key)) for key in dialect.fields)  # pyright: ignore
            if url.startswith(("https://", "http://")):
                found.append(Hit(title=title or url, url=url, snippet=snippet))
    return found


def _plain(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Looks through pages that are given to it: for tests, and for a team without a key."""

    pages: Sequence[Hit]
    name: str = "local"

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        wanted = set(query.lower().split())

        def rank(hit: Hit) -> int:
            return len(wanted & set(f"{hit.title} {hit.snippet}".lower().split()))

        found = sorted((hit for hit in self.pages if rank(hit)), key=rank, reverse=True)
        return found[:limit]
