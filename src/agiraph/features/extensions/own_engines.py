"""Own engines: makes a search engine of the runtime from a person's function."""

import re
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from agiraph.core.domain.errors import Misconfigured, Refused
from agiraph.core.domain.records.search import Hit, Results, distinct, one_line
from agiraph.core.domain.work import Usage
from agiraph.core.tools.own_code import EngineDeclaration, Secrets
from agiraph.features.extensions.own_threads import OwnThreads, Raised, TookTooLong
from agiraph.features.extensions.own_tools import check_timeout
from agiraph.features.extensions.results import error_text
from agiraph.features.extensions.signatures import bound

NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
MOST_CHARACTERS = 2000
"""Of each part of a hit."""


def check_engine(declared: EngineDeclaration) -> None:
    """Raise `Refused` if something in an engine's declaration is wrong."""
    check_name("engine", declared.name)
    check_timeout(f"the engine {declared.name!r}", declared.timeout_s)


def check_name(kind: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise Refused(f"the {kind}'s name {name!r} is not made of small letters, digits, - and _ .")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEngine:
    """A search engine that a person's file declares."""

    declared: EngineDeclaration
    secrets: Secrets = field(repr=False)
    threads: OwnThreads = field(repr=False)

    @property
    def name(self) -> str:
        return f"own:{self.declared.name}"

    @property
    def usd_per_1000(self) -> float | None:
        return self.declared.usd_per_1000

    async def search(self, query: str, *, limit: int) -> Results:
        """Return the hits of the person's function, checked and cut to `limit`."""
        declared = self.declared
        act = bound(declared, self.secrets)
        try:
            hits = await self.threads.call(
                f"engine {declared.name}",
                partial(act, query, limit),
                timeout_s=declared.timeout_s,
                finish=lambda value: self._hits(value, limit),
            )
            return Results(hits=hits, usage=Usage(usd=declared.usd_per_1000 / 1000, searches=1))
        except TookTooLong:
            raise Refused(
                f"The search engine ({self.name}) did not answer in time. Try once more, or go on "
                "with what you have."
            ) from None
        except Raised as raised:
            error = raised.error
            if isinstance(error, Refused | Misconfigured):
                raise Refused(str(error)) from error
            failed = Refused(
                f"The search engine ({self.name}) failed. Go on with what you have, and say so."
            )
            # It may repeat what a server sent.
            failed.quoted = error_text(error)
            raise failed from error

    def _hits(self, value: Any, limit: int) -> tuple[Hit, ...]:
        if not isinstance(value, (list, tuple)):
            raise Refused(f"The search engine ({self.name}) returned no list of hits.")
        hits: list[Hit] = []
        for one in cast(list[Any], value)[:limit]:
            if not isinstance(one, Hit) or not one_line(one.url).startswith(
                ("https://", "http://")
            ):
                raise Refused(
                    f"The search engine ({self.name}) returned something that is not a Hit with a "
                    "complete address."
                )
            url, title, snippet = (
                one_line(text)[:MOST_CHARACTERS] for text in (one.url, one.title, one.snippet)
            )
            hits.append(Hit(title=title or url, url=url, snippet=snippet))
        return distinct(hits, limit)
