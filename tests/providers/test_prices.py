"""The price of a call: what was read from and written to a vendor's cache, thoughts, searches."""

from random import Random
from typing import Any

import pytest
from genai_prices import Usage as Listed
from genai_prices import calc_price

from agiraph.core.domain.work import Usage
from agiraph.models.facts.prices import Prices, Terms, listed_models
from agiraph.models.vendors import price_list_id
from agiraph.models.wires.gemini import GeminiReader
from agiraph.models.wires.responses import ResponsesReader

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


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "gemini"])
def test_the_rates_of_a_listed_model_give_the_price_of_its_list(vendor: str) -> None:
    rng, prices, parts = Random(5), Prices(), ("input_tokens", "output_tokens", "web_searches")
    known = [m for m in listed_models(vendor) if prices.usd(f"{vendor}/{m}", Usage()) is not None]
    assert len(known) > 10
    for model in known:
        for most in (0, 1_000, 200_000, 200_001, 272_001, 1_000_000):
            read = rng.randint(0, most)
            stored, thought = rng.randint(0, most - read), rng.randint(0, most)
            listed = calc_price(
                Listed(
                    **dict(zip(parts, (most, most, 3), strict=True)),
                    cache_read_tokens=read,
                    cache_write_tokens=stored or None,
                    output_reasoning_tokens=thought or None,
                ),
                model_ref=model,
                provider_id=price_list_id(vendor),
            )
            usage = Usage(
                input_tokens=most,
                output_tokens=most,
                cached_tokens=read,
                cache_write_tokens=stored,
                thinking_tokens=thought,
                searches=3,
            )
            found = prices.usd(f"{vendor}/{model}", usage)
            assert found == pytest.approx(float(listed.total_price), rel=1e-9), (model, usage)


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


@pytest.mark.parametrize(("search_usd", "usd"), [(None, 1.0), (10.0, 1.05)])
def test_the_settings_price_searches_by_the_thousand(search_usd: float | None, usd: float) -> None:
    terms = Terms(input_usd=1.0, output_usd=1.0, search_usd=search_usd)
    usage = Usage(input_tokens=MILLION, searches=5)
    assert Prices({"a/b": terms}).usd("a/b", usage) == pytest.approx(usd)


def test_images_are_paid_as_the_input_tokens_that_the_vendor_counts_for_them() -> None:
    """A request of 100 tokens of text and a picture of 1,500: the vendor reports 1,600."""
    assert Prices().usd("openai/gpt-4.1", Usage(input_tokens=1_600)) == pytest.approx(0.0032)


@pytest.mark.parametrize(
    ("model", "searches"), [("gemini-2.5-pro", 1), ("gemini-3.8-flash", 2), ("gemini-4-carbon", 2)]
)
def test_google_counts_searches_by_reply_or_by_query(model: str, searches: int) -> None:
    reader = GeminiReader()
    said: dict[str, Any] = {
        "content": {"parts": [{"text": "Sunny."}]},
        "groundingMetadata": {"webSearchQueries": ["", "weather Paris", "Paris", "Paris"]},
        "finishReason": "STOP",
    }
    reader.read({"candidates": [said], "modelVersion": model})
    reader.finish()
    assert reader.reply.usage.searches == searches


def test_openai_counts_searches_and_not_the_pages_that_it_opens() -> None:
    actions = [{"type": "search"}, {"type": "open_page"}, None, {"type": "find_in_page"}]
    output = [{"type": "web_search_call", "action": action} for action in actions]
    reader = ResponsesReader("openai")
    usage = {"input_tokens": 9, "output_tokens": 3}
    reader.read({"status": "completed", "output": output, "usage": usage})
    reader.finish()
    assert reader.reply.usage == Usage(input_tokens=9, output_tokens=3, searches=2)
