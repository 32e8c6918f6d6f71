"""Searching: the vendors' own web searches, over their wires, and one form of results."""

from dataclasses import replace
from typing import Any

import pytest

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.records.search import Results, SearchFailed
from agiraph.core.domain.work import Usage
from agiraph.models.facts.prices import Prices
from agiraph.models.registry import Account, Keys
from agiraph.models.searching import LONGEST_PAUSES, VendorEngine, vendor_engine
from tests.providers.vendor_searches import (
    ANSWERS,
    FOUND,
    KEY,
    PATHS,
    USAGES,
    failed,
    paused,
    vendor,
)
from tests.web.sites import unused_port
from tests.wording import Wording, refusals_of


@pytest.mark.parametrize("name", ANSWERS)
async def test_the_recorded_answer_of_every_vendor_gives_the_same_hits_and_its_price(
    name: str,
) -> None:
    async with vendor(name, lambda number: ANSWERS[name]) as served:
        found = await served.engine.search("sound bridge", limit=8)
    assert found.hits == FOUND
    assert found.usage == replace(USAGES[name], usd=found.usage.usd)
    assert found.usage.usd == pytest.approx(USAGES[name].usd)
    assert (served.paths, len(served.keys)) == ([PATHS[name]], 1)
    # The query and our own task are all that the vendor is told.
    assert str(served.requests[0]).count("sound bridge") == 1


async def test_a_paused_search_of_anthropic_goes_on_with_its_own_words_sent_back() -> None:
    answers = paused()
    async with vendor("anthropic", lambda number: answers[number]) as served:
        found = await served.engine.search("sound bridge", limit=8)
    assert found.hits == FOUND
    assert found.usage == Usage(
        input_tokens=9500, output_tokens=130, usd=found.usage.usd, searches=1
    )
    assert found.usage.usd == pytest.approx(0.00963 + 0.01)
    first, second = served.requests
    assert second["messages"] == [
        *first["messages"],
        {"role": "assistant", "content": answers[0]["content"]},
    ]


async def test_a_search_that_pauses_for_ever_ends_with_what_it_cost() -> None:
    async with vendor("anthropic", lambda number: paused()[0]) as served:
        with pytest.raises(SearchFailed, match="paused too often") as refused:
            await served.engine.search("sound bridge", limit=8)
    assert len(served.requests) == 1 + LONGEST_PAUSES
    assert refused.value.usage.tokens == 510 * len(served.requests)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("too_many_requests", "too many searches at a time"),
        ("unavailable", "does not work now"),
        ("query_too_long", "use fewer words"),
        ("something_new", "the log says why"),
    ],
)
async def test_a_failed_search_of_anthropic_is_a_clear_error_with_its_cost(
    code: str, says: str
) -> None:
    async with vendor("anthropic", lambda number: failed(code)) as served:
        with pytest.raises(
            SearchFailed, match=f"\\(anthropic\\) did not search: .*{says}"
        ) as refused:
            await served.engine.search("sound bridge", limit=8)
    assert refused.value.usage.usd == pytest.approx(USAGES["anthropic"].usd)


@pytest.mark.parametrize(
    ("name", "answer", "says"),
    [
        ("openrouter", {"error": {"code": 502, "message": "engine down"}}, "the log says why"),
        ("openai", {"error": {"message": "no search for this model"}}, "the log says why"),
        (
            "openai",
            {"output": [{"type": "web_search_call", "status": "failed"}]},
            "its search failed",
        ),
    ],
)
async def test_an_error_inside_an_answer_is_told(
    name: str, answer: dict[str, Any], says: str
) -> None:
    async with vendor(name, lambda number: answer) as served:
        with pytest.raises(SearchFailed, match=says):
            await served.engine.search("sound bridge", limit=8)


STATUSES = [
    401,
    403,
    400,
    429,
    529,
]


async def test_an_error_status_says_what_to_do_and_hides_the_key(wording: Wording) -> None:
    answer = {"error": {"type": "invalid_request_error", "message": "bad tool"}}

    async def search(status: int) -> None:
        async with vendor("anthropic", lambda number: answer, status=status) as served:
            await served.engine.search("sound bridge", limit=8)

    told = await refusals_of(STATUSES, search)
    assert KEY not in str(told)
    wording(told)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize(
    "answer", [{}, {"choices": 5, "content": "x", "output": [7], "candidates": [{}], "usage": []}]
)
async def test_a_strange_answer_gives_no_hits(name: str, answer: dict[str, Any]) -> None:
    async with vendor(name, lambda number: answer) as served:
        found = await served.engine.search("sound bridge", limit=8)
    assert isinstance(found, Results)
    assert found.hits == ()


async def test_an_unreachable_vendor_is_reported() -> None:
    engine = VendorEngine(name="openai", key=KEY, base_url=f"http://127.0.0.1:{unused_port()}")
    with pytest.raises(Refused, match=r"\(openai\) cannot be reached"):
        await engine.search("sound bridge", limit=8)


def chosen(*given: str, vendor: str = "", gateway: str = "") -> str | None:
    accounts = {
        name: Account(key=KEY, base_url="https://gateway.example" if name == gateway else "")
        for name in given
    }
    engine = vendor_engine(Keys(accounts), Prices(), vendor, "")
    return None if engine is None else f"{engine.name} {engine.base_url}".strip()


def test_the_first_vendor_with_a_key_of_its_own_searches_and_gemini_only_if_named() -> None:
    assert chosen("openai", "anthropic", "gemini", "openrouter") == "openrouter"
    assert chosen("openai", "anthropic", "gemini") == "anthropic"
    assert chosen("openai", "gemini") == "openai"
    assert chosen("gemini") is None
    assert chosen("gemini", vendor="gemini") == "gemini"
    # A gateway in a vendor's place may not search.
    assert chosen("anthropic", "openai", gateway="anthropic") == "openai"
    assert (
        chosen("anthropic", vendor="anthropic", gateway="anthropic")
        == "anthropic https://gateway.example"
    )
    assert chosen("mistral") is None
