"""Web access: the fetcher and the search engine that agents use."""

from dataclasses import dataclass, field

from agiraph.domain.search import Engine
from agiraph.web.fetch import Fetcher
from agiraph.web.gate.indexes import PackageIndexes
from agiraph.web.reading_hosts import ReadingHosts


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
