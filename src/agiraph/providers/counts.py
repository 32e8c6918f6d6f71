"""Counts: tokens and prices as a server reports them, believed only where they can be true."""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from agiraph.domain.work import MOST_TOKENS, MOST_USD, Usage
from agiraph.providers.base import Reply

log = logging.getLogger("agiraph.providers")

BYTES_PER_TOKEN = 4
_doubted: set[str] = set()
"""Models whose counts were doubted before: one warning each is enough."""


class Counts:
    """Reads the usage part of an answer, and collects what in it cannot be a count."""

    def __init__(self, usage: Any, doubts: list[str] | None = None) -> None:
        self.doubts: list[str] = [] if doubts is None else doubts
        self._known: dict[str, Any] = {}
        if isinstance(usage, dict):
            self._known = cast(dict[str, Any], usage)
        elif usage is not None:
            self.doubts.append(f"usage is {usage!r:.60}")

    def part(self, name: str) -> "Counts":
        """The details under this name; what is wrong in them is a doubt about the whole."""
        return Counts(self._known.get(name), self.doubts)

    def tokens(self, name: str) -> int:
        value = self._known.get(name)
        if value is None:
            return 0
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
            return value
        self.doubts.append(f"{name} is {value!r:.60}")
        return 0

    def usd(self, name: str) -> float | None:
        """The price a server names; None if it names none that can be true."""
        value = self._known.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return None
        return float(value) if 0 <= value <= MOST_USD and math.isfinite(value) else None


def checked(reply: Reply, doubts: Sequence[str], *, model: str, sent_bytes: int) -> Reply:
    """Return the reply; with a usage estimated from its bytes if its own counts are in doubt."""
    if not doubts:
        return reply
    if model not in _doubted:
        _doubted.add(model)
        log.warning(
            "%s reports token counts that cannot be true (%s); tokens and prices of such replies "
            "are estimated from their length. Look at this server or its proxy.",
            model,
            "; ".join(doubts),
        )
    said = [reply.text, reply.provider_data.thinking]
    said += [f"{call.name} {call.malformed or call.arguments}" for call in reply.calls]
    written = len("".join(said).encode(errors="replace"))
    usage = Usage(
        input_tokens=sent_bytes // BYTES_PER_TOKEN + 1,
        output_tokens=written // BYTES_PER_TOKEN + 1,
    )
    return replace(reply, usage=usage.bounded())
