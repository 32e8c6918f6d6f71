"""Search: what a web search finds, what it costs, and how it fails."""

from typing import Protocol

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.value import value
from agiraph.core.domain.work import Usage

FREE = Usage(usd=0.0)


@value
class Hit:
    """One page that a search found."""

    title: str
    url: str
    snippet: str


@value
class Results:
    """The hits of one search, the best first, and what the search used."""

    hits: tuple[Hit, ...] = ()
    usage: Usage = FREE


class SearchFailed(Refused):
    """A search gave no results although the engine was asked; `usage` is what it cost."""

    def __init__(self, message: str, usage: Usage = FREE) -> None:
        super().__init__(message)
        self.usage = usage


class Engine(Protocol):
    """A search engine. `agiraph.toml` or a key in the environment chooses it."""

    @property
    def name(self) -> str: ...

    @property
    def usd_per_1000(self) -> float | None:
        """Dollars for a thousand searches, as the list price says; None if it is not known."""
        ...

    async def search(self, query: str, *, limit: int) -> Results:
        """Return at most `limit` hits, or raise `Refused` with a reason for the model."""
        ...


def one_line(text: object) -> str:
    """Return a field of a search engine's response on one line; "" if it is not text."""
    return " ".join(text.split()) if isinstance(text, str) else ""


def distinct(hits: list[Hit], limit: int) -> tuple[Hit, ...]:
    """Return the first hits with an address of the web, each address once."""
    found: dict[str, Hit] = {}
    for hit in hits:
        if hit.url.startswith(("https://", "http://")):
            found.setdefault(hit.url, hit)
    return tuple(found.values())[:limit]
