"""The price lists are those of the genai-prices package; run as a program, this writes them.

.venv/bin/python -m tests.providers.test_price_lists
"""

from collections.abc import Iterator
from dataclasses import astuple
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
import pytest
from genai_prices import data_snapshot
from genai_prices.types import (
    ClauseAnd,
    ClauseContains,
    ClauseEndsWith,
    ClauseEquals,
    ClauseOr,
    ClauseRegex,
    ClauseStartsWith,
    ModelInfo,
    ModelPrice,
    StartDateConstraint,
    TimeOfDateConstraint,
)

from agiraph.models.facts import prices
from agiraph.models.vendors import VENDORS, price_list_id

LISTS = Path(prices.__file__).parent / "price_lists.jsonl"
PROVIDERS = {p.id: p for p in data_snapshot.get_snapshot().providers}
OURS = sorted({price_list_id(one.name) for one in VENDORS if not one.is_local} & PROVIDERS.keys())


def clause_of(match: Any) -> dict[str, Any]:
    match match:
        case ClauseOr(or_=parts):
            return {"or": [clause_of(part) for part in parts]}
        case ClauseAnd(and_=parts):
            return {"and": [clause_of(part) for part in parts]}
        case ClauseEquals(equals=text):
            return {"equals": text.lower()}
        case ClauseStartsWith(starts_with=text):
            return {"starts_with": text.lower()}
        case ClauseEndsWith(ends_with=text):
            return {"ends_with": text.lower()}
        case ClauseContains(contains=text):
            return {"contains": text.lower()}
        case ClauseRegex(regex=text):
            return {"regex": text}
        case _:
            raise ValueError(f"{match} is new: {prices.__file__} must read it")


def price_of(price: ModelPrice, constraint: Any) -> dict[str, Any]:
    tiers = [[start, astuple(rates)] for start, rates in prices._tiers_of(price)]
    match constraint:
        case None:
            return {"tiers": tiers}
        case StartDateConstraint(start_date=day):
            return {"from_day": day.isoformat(), "tiers": tiers}
        case TimeOfDateConstraint(start_time=start, end_time=end):
            whole = [datetime.combine(date(1970, 1, 1), each) for each in (start, end)]
            in_utc = [each.astimezone(UTC) if each.tzinfo else each for each in whole]
            hours = [f"{each:%H:%M:%S}" for each in in_utc]
            return {"hours": hours, "tiers": tiers}
        case _:
            raise ValueError(f"{constraint} is new: {prices.__file__} must read it")


def model_of(model: ModelInfo) -> dict[str, Any]:
    listed = model.prices
    plain = (
        [(listed, None)]
        if isinstance(listed, ModelPrice)
        else [(one.prices, one.constraint) for one in listed]
    )
    return {
        "match": clause_of(model.match),
        "window": model.context_window,
        "prices": [price_of(price, constraint) for price, constraint in plain],
    }


def models_of(provider: str) -> list[ModelInfo]:
    """Return the models that are looked for under a provider: its own and those of others."""
    others = PROVIDERS[provider].fallback_model_providers or ()
    return [model for each in (provider, *others) for model in PROVIDERS[each].models]


def lists() -> bytes:
    whole: list[dict[str, Any]] = [{"version": version("genai-prices")}]
    whole += [{"provider": one, "models": [*map(model_of, models_of(one))]} for one in OURS]
    return b"".join(orjson.dumps(line) + b"\n" for line in whole)


def names_in(clause: dict[str, Any]) -> Iterator[str]:
    """Yield names that fit a clause or nearly do."""
    [(kind, what)] = clause.items()
    if kind in ("or", "and"):
        for part in what:
            yield from names_in(part)
    else:
        yield from (what, what.upper(), f"{what}-20251211", f"x-{what}", what[:-1])


MOMENTS = [
    datetime(2024, 1, 1, 0, 30, tzinfo=UTC),
    datetime(2025, 9, 5, 16, 15, tzinfo=UTC),
    datetime(2026, 11, 19, 16, 30, tzinfo=UTC),
    datetime(2031, 1, 1, 23, 59, tzinfo=UTC),
]


def said_by_package(provider: str, name: str) -> tuple[Any, ...]:
    """Return the window of a model and its tiers at each moment, as the package has them."""
    try:
        model = data_snapshot.get_snapshot().find_provider_model(name, None, provider, None)[1]
    except LookupError:
        return ()
    return (model.context_window, *(prices._tiers_of(model.get_prices(m)) for m in MOMENTS))


def said_by_lists(provider: str, name: str) -> tuple[Any, ...]:
    models = prices._read_beforehand(provider)
    assert models is not None
    if (found := prices._model_in(models, name)) is None:
        return ()
    return (found["window"], *(prices._tiers_at(found, moment) for moment in MOMENTS))


@pytest.mark.parametrize("provider", OURS)
def test_a_name_finds_the_same_model_in_the_lists_as_in_the_package(provider: str) -> None:
    clauses = [clause_of(model.match) for model in models_of(provider)]
    names = [name for clause in clauses for name in names_in(clause) if name]
    chosen = [*names[:: max(1, len(names) // 400)], "", "stub", "gpt-5.2-20251399"]
    found = {name: said_by_lists(provider, name) for name in chosen}
    assert found == {name: said_by_package(provider, name) for name in chosen}
    assert len([name for name in chosen if found[name]]) > 10


def test_the_lists_are_those_of_the_package() -> None:
    """With a new version of the package, run this module as a program: it writes them anew."""
    assert LISTS.read_bytes() == lists()


if __name__ == "__main__":
    LISTS.write_bytes(lists())
