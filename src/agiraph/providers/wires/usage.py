"""Usage: reads the token counts and prices of a response, and replaces impossible ones."""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from agiraph.domain.work import MOST_TOKENS, MOST_USD, Usage
from agiraph.providers.base import Reply

log: logging.Logger = logging.getLogger("agiraph.providers")

BYTES_PER_TOKEN = 4
"""The ratio of an estimate; English text has about this many bytes per token."""
_warned: set[str] = set()
"""The models with impossible counts: each is warned about once per process."""


class UsageReader:
    """Reads the usage object of a response and collects the values that cannot be counts."""

    def __init__(self, usage: Any, doubts: list[str] | None = None) -> None:
        self.doubts: list[str] = [] if doubts is None else doubts
        self._fields: dict[str, Any] = {}
        if isinstance(usage, dict):
            self._fields = cast(dict[str, Any], usage)
        elif usage is not None:
            self.doubts.append(f"usage is {usage!r:.60}")

    def part(self, name: str) -> "UsageReader":
        """Return a reader of the nested object `name`. Its doubts are added to this reader's."""
        return UsageReader(self._fields.get(name), self.doubts)

    def tokens(self, name: str) -> int:
        """Return the token count in a field; 0 if it is missing or cannot be true."""
        value = self._fields.get(name)
        if value is None:
            return 0
        # JSON's `true` is an int to Python. Counts end up in budgets: a negative or huge one would
        # make a team free, or stop it.
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
            return value
        self.doubts.append(f"{name} is {value!r:.60}")
        return 0

    def usd(self, name: str) -> float | None:
        """Return the price in a field; None if it is missing or cannot be true."""
        value = self._fields.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return None
        return float(value) if 0 <= value <= MOST_USD and math.isfinite(value) else None


def checked(reply: Reply, doubts: Sequence[str], *, model: str, sent_bytes: int) -> Reply:
    """Return the reply. If its counts are in doubt, replace its usage by an estimate from bytes."""
    if not doubts:
        return reply
    if model not in _warned:
        _warned.add(model)
        log.warning(
            "%s reports token counts that cannot be true (%s). Tokens and prices of such replies "
            "are estimated from their length. Check this server or its proxy.",
            model,
            "; ".join(doubts),
        )
    texts = [reply.text, reply.provider_data.thinking]
    texts += [f"{call.name} {call.malformed or call.arguments}" for call in reply.calls]
    received_bytes = len("".join(texts).encode(errors="replace"))
    usage = Usage(
        input_tokens=sent_bytes // BYTES_PER_TOKEN + 1,
        output_tokens=received_bytes // BYTES_PER_TOKEN + 1,
        is_estimated=True,
    )
    return replace(reply, usage=usage.bounded())
