"""Own engine: the placeholder of a search engine that the settings name, until a file declares
it."""

from dataclasses import dataclass

from agiraph.domain.errors import Refused
from agiraph.domain.search import Results

PREFIX = "own:"
"""The prefix of an own engine's name in `[search] provider`, and of an own channel's in its
`type`."""


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
