"""Search: sends a query to the configured search engine and returns its hits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

import orjson

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.records.search import Hit, Results, distinct, one_line
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage

if TYPE_CHECKING:  # it takes long to import, and few processes use it
    import aiohttp

TIMEOUT_S = 20.0
MAX_RESPONSE_BYTES = 2 * 2**20
KEYS = (
    "BRAVE_API_KEY, SERPER_API_KEY, TAVILY_API_KEY or SEARXNG_URL, or the key of a vendor that "
    "searches itself (OPENROUTER_API_KEY, ANTHROPIC_API_KEY, OPENAI_API_KEY)"
)
SETTINGS = (
    f'{KEYS}, or search = "open" in agiraph.toml for Wikipedia, Crossref and arXiv without a key'
)
"""What a person can set to have a search engine."""
NO_ENGINE = (
    f"No search engine is set up. A person can set {SETTINGS}. Until then, use web_fetch on "
    "addresses you know, or say that you could not search."
)


SEARXNG_LINES = ("search:", "  formats: [html, json]")
"""What must stand in the settings.yml of a SearXNG server: JSON is off in it by default."""
SEARXNG_FORBIDS = (
    "The search engine (searxng) forbids JSON (HTTP 403). Only the human can fix that, in the "
    f"settings.yml of their SearXNG: {SEARXNG_LINES[0]} {SEARXNG_LINES[1].strip()}. Go on without "
    "searching, and say so."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _EngineApi:
    """The HTTP API of one search engine."""

    url: str
    headers: Callable[[str], dict[str, str]]
    """Makes the headers from the key."""
    query: Callable[[str, int], dict[str, Any]]
    """Makes the parameters of a request from the query and the number of hits."""
    results: tuple[str, ...]
    """The path of keys to the list of hits in a response."""
    fields: tuple[str, str, str]
    """The names of title, URL and snippet in a hit."""
    method: str = "GET"
    usd_per_1000: float = 0.0
    """The list price of a thousand searches without a subscription, in 2026."""


ENGINE_APIS: Mapping[str, _EngineApi] = {
    "brave": _EngineApi(
        url="https://api.search.brave.com/res/v1/web/search",
        headers=lambda key: {"X-Subscription-Token": key},
        query=lambda query, limit: {"q": query, "count": limit},
        results=("web", "results"),
        fields=("title", "url", "description"),
        usd_per_1000=5.0,
    ),
    "serper": _EngineApi(
        method="POST",
        url="https://google.serper.dev/search",
        headers=lambda key: {"X-API-KEY": key},
        query=lambda query, limit: {"q": query, "num": limit},
        results=("organic",),
        fields=("title", "link", "snippet"),
        usd_per_1000=1.0,
    ),
    "tavily": _EngineApi(
        method="POST",
        url="https://api.tavily.com/search",
        headers=lambda key: {"Authorization": f"Bearer {key}"},
        query=lambda query, limit: {"query": query, "max_results": limit},
        results=("results",),
        fields=("title", "url", "content"),
        usd_per_1000=8.0,
    ),
    "searxng": _EngineApi(
        url="",
        headers=lambda key: {"Authorization": f"Bearer {key}"} if key else {},
        # SearXNG has no parameter for the number of hits.
        query=lambda query, limit: {"q": query, "format": "json"},
        results=("results",),
        fields=("title", "url", "content"),
    ),
}
"""The engines that can be configured, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteEngine:
    """A search engine on the web, at the address that a person configured."""

    name: str
    key: str = field(default="", repr=False)
    base_url: str = ""
    """Replaces the vendor's own address."""
    own_usd_per_1000: float | None = None
    """What the settings say of the price; None: the list price."""

    @property
    def usd_per_1000(self) -> float | None:
        own = self.own_usd_per_1000
        return ENGINE_APIS[self.name].usd_per_1000 if own is None else own

    async def search(self, query: str, *, limit: int) -> Results:
        import aiohttp

        from agiraph.web.pinned import reason_of

        api = ENGINE_APIS[self.name]
        try:
            raw = await self._request(api, api.query(query, limit))
        except TimeoutError:
            raise Refused(
                f"The search engine ({self.name}) did not answer in time. Try once more, or go on "
                "with what you have."
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            message = f"The search engine ({self.name}) cannot be reached: {reason_of(error)}."
            raise Refused(message) from error
        hits = distinct(_hits(self.name, raw, api), limit)
        return Results(hits=hits, usage=Usage(usd=(self.usd_per_1000 or 0.0) / 1000, searches=1))

    async def _request(self, api: _EngineApi, query: dict[str, Any]) -> bytes:
        """Return the body of the response, cut off just above the largest size."""
        import aiohttp

        payload: dict[str, Any] = {"json" if api.method == "POST" else "params": query}
        headers = {"Accept": "application/json"} | api.headers(self.key)
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        # Redirects are not followed: aiohttp would send the key along to wherever they point.
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(
                api.method, self._url(api), headers=headers, allow_redirects=False, **payload
            ) as response,
        ):
            self._check(response)
            raw = b""
            while not response.content.at_eof() and len(raw) <= MAX_RESPONSE_BYTES:
                raw += await response.content.read(MAX_RESPONSE_BYTES + 1 - len(raw))
            return raw

    def _url(self, api: _EngineApi) -> str:
        base = self.base_url.rstrip("/")
        if self.name == "searxng":  # people give the server's address, with or without the path
            return base if base.endswith("/search") else f"{base}/search"
        return base or api.url

    def _check(self, response: "aiohttp.ClientResponse") -> None:
        """Raise `Refused` for an error status, without the key that the request contained."""
        status = response.status
        if status == 429:
            after = response.headers.get("Retry-After", "")
            wait = f" in {after[:20]} seconds" if after.isdigit() else " later"
            raise Refused(
                f"The search engine ({self.name}) accepts no more requests now. Search again{wait},"
                " or go on with what you have."
            )
        if status == 403 and self.name == "searxng":
            raise Refused(SEARXNG_FORBIDS)
        if status in (401, 402, 403):
            raise Refused(
                f"The search engine ({self.name}) does not accept our key (HTTP {status}). Only "
                "the human can fix that. Go on without searching, and say so."
            )
        if 300 <= status < 400:
            raise Refused(
                f"The search engine ({self.name}) redirects to another address (HTTP {status}), "
                "which is not followed. Only the human can fix that: its base URL in agiraph.toml "
                "must be the final one. Go on without searching, and say so."
            )
        if status >= 400:
            raise Refused(
                f"The search engine ({self.name}) returned an error (HTTP {status}). Try other "
                "words, or go on with what you have."
            )


def _hits(name: str, raw: bytes, api: _EngineApi) -> list[Hit]:
    try:
        part: Any = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Refused(f"The response of the search engine ({name}) cannot be read.") from error
    for key in api.results:
        part = cast(dict[str, Any], part).get(key) if isinstance(part, dict) else None
    if part is not None and not isinstance(part, list):
        raise Refused(f"The response of the search engine ({name}) cannot be read.")
    hits = (_hit(entry, api) for entry in cast(Sequence[Any], part or []))
    return [hit for hit in hits if hit is not None]


def _hit(entry: Any, api: _EngineApi) -> Hit | None:
    if not isinstance(entry, dict):
        return None
    entry = cast(dict[str, Any], entry)
    title, url, snippet = (one_line(entry.get(field)) for field in api.fields)
    return Hit(title=title or url, url=url, snippet=snippet)


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Searches a given list of pages by common words, for tests."""

    pages: Sequence[Hit]
    name: str = "local"
    usd_per_1000: float | None = 0.0

    async def search(self, query: str, *, limit: int) -> Results:
        wanted = set(query.lower().split())

        def rank(hit: Hit) -> int:
            return len(wanted & set(f"{hit.title} {hit.snippet}".lower().split()))

        found = sorted((hit for hit in self.pages if rank(hit)), key=rank, reverse=True)
        return Results(hits=tuple(found[:limit]))
