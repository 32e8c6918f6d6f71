"""Web access: the fetcher and the search engine that agents use, and which engine that is."""

from collections.abc import Callable
from dataclasses import field, replace

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.records.search import Engine, Results
from agiraph.core.domain.value import dataclass
from agiraph.sandbox.gate.indexes import PackageIndexes
from agiraph.web.fetch import Fetcher
from agiraph.web.open_sources import OpenEngine
from agiraph.web.reading_hosts import ReadingHosts
from agiraph.web.search import KEYS, NO_ENGINE

PREFIX = "own:"
"""The prefix of an own engine's name in `[search] provider`, and of an own channel's in its
`type`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    fetcher: Fetcher = field(default_factory=Fetcher)
    engine: Engine | None = None
    """None if a person has set `search = "none"`."""
    follows_keys: bool = False
    """Whether nobody has chosen the engine, so that the keys of the model vendors decide."""
    reading_hosts: ReadingHosts = ReadingHosts()
    """Where a thread with untrusted text in it may open addresses that it made up."""
    indexes: PackageIndexes = field(default_factory=PackageIndexes)
    """Where commands get packages from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultEngine:
    """The search of a model vendor with a key, else the open sources. Which one it is follows the
    keys that are in use now: a person may enter or remove one at any time."""

    vendor_engine: Callable[[], Engine | None]
    """Returns the search engine of the first model vendor with an API key; None without a key."""
    open_sources: OpenEngine = field(default_factory=OpenEngine)

    @property
    def present(self) -> Engine:
        return self.vendor_engine() or self.open_sources

    @property
    def name(self) -> str:
        return self.present.name

    @property
    def usd_per_1000(self) -> float | None:
        return self.present.usd_per_1000

    async def search(self, query: str, *, limit: int) -> Results:
        return await self.present.search(query, limit=limit)


def present(web: Web) -> Web:
    """Return the web access with the engine that searches now."""
    engine = web.engine
    return replace(web, engine=engine.present) if isinstance(engine, DefaultEngine) else web


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedEngine:
    """An engine that the settings name and no enabled file has declared yet."""

    own_name: str

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.own_name}"

    @property
    def usd_per_1000(self) -> float | None:
        return None

    async def search(self, query: str, *, limit: int) -> Results:
        raise Refused(
            f"The search engine {self.name} is not enabled. Only the human can fix that: "
            "`agiraph tools` lists the files. Go on without searching, and say so."
        )


async def why_no_search(web: Web) -> str:
    """Return why the web cannot be searched, and which settings help; "" if it can.

    The open sources are the default, which nobody has tried, so they are asked whether they can be
    reached. An engine that a person has chosen is not tried.
    """
    engine = present(web).engine
    if engine is None:
        return NO_ENGINE
    if not isinstance(engine, OpenEngine) or not (why := await engine.why_unreachable()):
        return ""
    return (
        f"The web cannot be searched: no search engine is set up, and the open sources cannot be "
        f"reached ({why}). A person can set {KEYS}."
    )
