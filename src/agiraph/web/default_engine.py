"""Default engine: the search engine that is used where nobody has chosen one."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from agiraph.domain.search import Engine, Results
from agiraph.web.access import Web
from agiraph.web.open_sources import OpenEngine


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
