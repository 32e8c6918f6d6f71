"""Hostile pages: whatever a page is made of, other teams are served while it is read."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph.testing import call, says
from agiraph.web.access import Web
from agiraph.web.page import LONGEST_LINE
from tests.api.serving import Served, serving
from tests.web.sites import Site, fetcher, html, response, site

BRIEF_S = 1.5
"""How long a request may take in any case; a busy machine is slow by itself."""
SHARE = 3
"""A request may take this part of the time in which the page is read."""
PAGES = {
    "spaces in a heading": html("<h1>a" + "&#160; " * 20_000 + "b</h1>"),
    "spaces in a Markdown heading": response(b"# " + b" " * 20_000 + b"x", kind="text/markdown"),
    "one line": response(b"word " * 2**20, kind="text/plain"),
    "one word": response(b"w" * 5 * 2**20, kind="text/plain"),
    "links": html("<a href=/x>y</a>" * 200_000),
    "deep nesting": html("<p>" + "shallow " * 100 + "</p>" + "<div><p>" * 100_000 + "deep"),
    "headings": response(b"# a\nb\n" * 100_000, kind="text/markdown"),
    "signs": response("萬雨😀".encode() * 40_000, kind="text/plain; charset=utf-8"),
    "wrong bytes": response(b"text " + b"\xff" * 3_000_000, kind="text/plain; charset=iso-8859-7"),
    "host name": response(b"a-" * 200_000, kind="text/plain; charset=punycode"),
}


@pytest.fixture
async def web_site() -> AsyncIterator[Site]:
    async with site() as opened:
        yield opened


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "home", web=Web(fetcher=fetcher())) as opened:
        yield opened


async def slowest_request(served: Served, path: str) -> tuple[float, float]:
    """Send requests until all work has ended; return the seconds of the slowest, and of all."""
    settled = asyncio.create_task(served.world.settle())
    begun, slowest = time.monotonic(), 0.0
    while not settled.done():
        asked = time.monotonic()
        status, _ = await served.ask("GET", path)
        assert status in (200, 429)  # so many requests may meet the limit; that is an answer, too
        slowest = max(slowest, time.monotonic() - asked)
    await settled
    return slowest, time.monotonic() - begun


@pytest.mark.parametrize("page", PAGES)
async def test_other_teams_are_served_while_a_hostile_page_is_read(
    served: Served, web_site: Site, page: str
) -> None:
    web_site.pages["/page"] = PAGES[page]
    url = web_site.url("/page")
    other = await served.world.found("Be asked about", start=False)
    ada = served.world.script(
        "ada",
        says(call("web_fetch", url=url)),
        says(call("find_in_page", url=url, words="word")),
        says(call("finish", summary="done")),
    )
    founded = await served.world.found("Read it")
    slowest, whole = await slowest_request(served, f"/teams/{other.team.id}")

    assert slowest < max(BRIEF_S, whole / SHARE), f"{slowest:.1f} of {whole:.1f} seconds"
    [goal] = await served.world.board(founded.team.id)
    read = next(turn for turn in ada.requests[1].turns if turn.role == "tool")
    assert (goal.result, read.failed) == ("done", False), read.text[:500]
    assert max(map(len, read.text.splitlines())) <= LONGEST_LINE
