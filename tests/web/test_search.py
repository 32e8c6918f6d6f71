"""Search engines: their different APIs, and one form of hits."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from aiohttp import web

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.records.search import Hit, Results
from agiraph.core.domain.work import Usage
from agiraph.web.search import ENGINE_APIS, LocalEngine, RemoteEngine
from tests.web.sites import unused_port
from tests.wording import Wording, refusals_of

KEY = "key-for-the-engine"
FOUND = tuple(
    Hit(title=f"Title {n}", url=f"https://example.com/{n}", snippet="Words.") for n in (1, 2)
)
PRICES = {"brave": 0.005, "serper": 0.001, "tavily": 0.008, "searxng": 0.0}


def _entries(title: str, url: str, snippet: str) -> list[dict[str, Any]]:
    return [{title: h.title, url: h.url, snippet: f"  {h.snippet} \n"} for h in FOUND]


ANSWERS: dict[str, Any] = {
    "brave": {"web": {"results": _entries("title", "url", "description")}},
    "serper": {"organic": _entries("title", "link", "snippet")},
    "tavily": {"results": _entries("title", "url", "content")},
    "searxng": {"results": _entries("title", "url", "content")},
}


@asynccontextmanager
async def engine(
    name: str, answer: Callable[[web.Request, Any], web.Response]
) -> AsyncIterator[RemoteEngine]:
    async def handle(request: web.Request) -> web.Response:
        return answer(request, await request.json() if request.can_read_body else request.query)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield RemoteEngine(name=name, key=KEY, base_url=f"http://127.0.0.1:{port}")
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("name", ENGINE_APIS)
async def test_every_search_engine_gets_its_own_request_and_returns_the_same_hits(
    name: str,
) -> None:
    asked: list[tuple[str, str, dict[str, Any]]] = []

    def answer(request: web.Request, given: Any) -> web.Response:
        held = [v for k, v in request.headers.items() if KEY in v]
        asked.append((request.method, held[0] if held else "", dict(given)))
        return web.json_response(ANSWERS[name])

    async with engine(name, answer) as made:
        assert await made.search("bread & butter", limit=5) == Results(
            hits=FOUND, usage=Usage(usd=PRICES[name], searches=1)
        )
    [(method, key, given)] = asked
    assert method == ENGINE_APIS[name].method
    assert key.endswith(KEY)
    assert "bread & butter" in given.values()


STATUSES = [
    (429, {"Retry-After": "7"}),
    (429, {}),
    (401, {}),
    (403, {}),
    (500, {}),
]


async def test_an_error_status_of_a_search_engine_is_reported(wording: Wording) -> None:
    async def search(status: int, headers: dict[str, str]) -> None:
        response = partial(web.Response, status=status, headers=headers)
        async with engine("brave", lambda r, g: response()) as made:
            await made.search("bread", limit=5)

    told = await refusals_of(STATUSES, search)
    assert KEY not in str(told)
    wording(told)


async def test_a_searxng_that_forbids_json_is_told_what_to_write() -> None:
    async with engine("searxng", lambda r, g: web.Response(status=403)) as made:
        with pytest.raises(Refused, match=r"settings.yml .*search: formats: \[html, json\]"):
            await made.search("bread", limit=5)


async def test_a_redirect_is_not_followed_with_the_key() -> None:
    received: list[str] = []

    def elsewhere(request: web.Request, given: Any) -> web.Response:
        received.append(str(request.headers))
        return web.json_response(ANSWERS["brave"])

    async with engine("brave", elsewhere) as other:
        moved = web.Response(status=307, headers={"Location": f"{other.base_url}/search"})
        async with engine("brave", lambda r, g: moved) as made:
            with pytest.raises(Refused, match="redirects to another address"):
                await made.search("bread", limit=5)
    assert received == []


@pytest.mark.parametrize("body", ["", "no json", '{"web": {"results": {}}}', "[" * 100_000])
async def test_an_unreadable_response_is_reported(body: str) -> None:
    async with engine("brave", lambda r, g: web.Response(text=body)) as made:
        with pytest.raises(Refused, match="cannot be read"):
            await made.search("bread", limit=5)


@pytest.mark.parametrize("body", ["[]", "{}", '{"web": 5}', '{"web": {"results": null}}'])
async def test_a_response_without_results_gives_no_hits(body: str) -> None:
    async with engine("brave", lambda r, g: web.Response(text=body)) as made:
        assert (await made.search("bread", limit=5)).hits == ()


async def test_invalid_results_are_left_out() -> None:
    entries = [
        None,
        5,
        {},
        {"url": "javascript:alert(1)"},
        {"url": "https://example.com/", "title": 1},
    ]
    text = json.dumps({"web": {"results": entries}})
    async with engine("brave", lambda r, g: web.Response(text=text)) as made:
        found = await made.search("bread", limit=5)
    only = Hit(title="https://example.com/", url="https://example.com/", snippet="")
    assert found.hits == (only,)


async def test_an_unreachable_search_engine_is_reported() -> None:
    made = RemoteEngine(name="searxng", base_url=f"http://127.0.0.1:{unused_port()}")
    with pytest.raises(Refused, match=r"\(searxng\) cannot be reached"):
        await made.search("bread", limit=5)


async def test_the_local_engine_ranks_by_shared_words() -> None:
    one = Hit(title="Bread", url="https://example.com/1", snippet="how to bake it")
    two = Hit(title="Butter", url="https://example.com/2", snippet="how bread gets better")
    local = LocalEngine([one, two])
    assert await local.search("bake bread", limit=5) == Results(hits=(one, two))
    assert await local.search("bake bread", limit=1) == Results(hits=(one,))
    assert await local.search("cheese", limit=5) == Results()
