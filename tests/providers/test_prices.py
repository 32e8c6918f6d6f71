"""The price of a call: what was read from and written to a vendor's cache, thoughts, searches."""

import pytest

from agiraph.domain.work import Usage
from agiraph.providers.facts.prices import Prices, Terms

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        (Usage(input_tokens=100_000), 0.3),
        (Usage(input_tokens=100_000, cached_tokens=100_000), 0.03),
        (Usage(input_tokens=100_000, cache_write_tokens=100_000), 0.375),
        (Usage(output_tokens=100_000, thinking_tokens=90_000), 1.5),
        (Usage(searches=100), 1.0),
        (Usage(input_tokens=100_000, cached_tokens=60_000, cache_write_tokens=30_000), 0.1605),
    ],
)
def test_a_listed_model_has_prices_for_each_part_of_a_call(usage: Usage, usd: float) -> None:
    assert Prices().usd("anthropic/claude-sonnet-4-5", usage) == pytest.approx(usd)


def test_a_model_without_a_price_for_cache_writes_pays_them_as_input() -> None:
    written = Usage(input_tokens=MILLION, cache_write_tokens=MILLION)
    assert Prices().usd("openai/gpt-4.1", written) == pytest.approx(2.0)


@pytest.mark.parametrize(("cache_write_usd", "usd"), [(None, 7.0), (10.0, 9.0)])
def test_the_settings_price_cache_writes_as_input_unless_they_say_otherwise(
    cache_write_usd: float | None, usd: float
) -> None:
    terms = Terms(input_usd=6.0, output_usd=1.0, cached_usd=0.0, cache_write_usd=cache_write_usd)
    usage = Usage(
        input_tokens=2 * MILLION,
        cached_tokens=MILLION,
        cache_write_tokens=MILLION // 2,
        output_tokens=MILLION,
    )
    assert Prices({"a/b": terms}).usd("a/b", usage) == pytest.approx(usd)
