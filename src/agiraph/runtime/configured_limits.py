"""Configured limits: the money that a home may spend a day, and the requests per minute of a
provider."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from agiraph.domain.errors import Misconfigured
from agiraph.providers.http.rate_limits import Rate

TABLE = "limits"
USD_PER_DAY = "usd_per_day"
VARIABLE = "AGIRAPH_USD_PER_DAY"
DEFAULT_USD = 50.0
NONE = "none"
"""Switches the limit off."""
RATES = "rate_limits"
_RATE_EXAMPLE = "[rate_limits.PROVIDER] with requests_per_minute, tokens_per_minute or both"
_RATE_KEYS = ("requests_per_minute", "tokens_per_minute")
_EXAMPLE = f'a number of dollars, such as {DEFAULT_USD:g}, or "{NONE}" for no limit'


def usd_per_day(path: Path, written: Any, environ: Mapping[str, str]) -> tuple[float | None, str]:
    """Return the daily limit in dollars, None for no limit, and where it was found.

    Raises `Misconfigured` with what is wrong.
    """
    if not isinstance(written, dict):
        raise Misconfigured(f"{path}: [{TABLE}] is a table with {USD_PER_DAY} = {_EXAMPLE}.")
    table = cast(dict[str, Any], written)
    if unknown := sorted(set(table) - {USD_PER_DAY}):
        raise Misconfigured(
            f"{path}: [{TABLE}] has unknown settings {unknown}; it knows: {USD_PER_DAY}."
        )
    if value := environ.get(VARIABLE):
        return _dollars(VARIABLE, value), "environment"
    if USD_PER_DAY in table:
        value = table[USD_PER_DAY]
        if isinstance(value, str) and value.strip().lower() != NONE:
            value = None  # a number in quotes is refused, as in the rest of the file
        return _dollars(f"{path}: {TABLE}.{USD_PER_DAY}", value), path.name
    return DEFAULT_USD, "default"


def rates(path: Path, written: Any) -> dict[str, Rate]:
    """Return the rate limits of the file by provider, or raise `Misconfigured`."""
    if not isinstance(written, dict):
        raise Misconfigured(f"{path}: {RATES} are tables, {_RATE_EXAMPLE}.")
    found: dict[str, Rate] = {}
    for name, table in cast(dict[str, Any], written).items():
        where = f"{path}: [{RATES}.{name}]"
        if not isinstance(table, dict) or set(cast(dict[str, Any], table)) - set(_RATE_KEYS):
            raise Misconfigured(f"{where} is not {_RATE_EXAMPLE}.")
        limits = cast(dict[str, Any], table)
        for key, most in limits.items():
            if isinstance(most, bool) or not isinstance(most, (int, float)) or not 1 <= most < 1e12:
                raise Misconfigured(f"{where} {key} must be a number of at least 1.")
        found[name] = Rate(**limits)
    return found


def rate_text(rate: Rate) -> str:
    """Return a rate limit as a person reads it."""
    limits = {"requests": rate.requests_per_minute, "tokens": rate.tokens_per_minute}
    return ", ".join(f"{most:g} {what} a minute" for what, most in limits.items() if most)


def shown(usd: float | None) -> str:
    """Return the limit as people write it."""
    return NONE if usd is None else f"{usd:g}"


def _dollars(where: str, value: Any) -> float | None:
    if isinstance(value, str) and value.strip().lower() == NONE:
        return None
    try:
        usd = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        usd = math.nan
    if not 0 <= usd < math.inf:
        raise Misconfigured(f"{where} must be {_EXAMPLE}.")
    return usd
