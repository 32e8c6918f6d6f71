"""Web tools: the answers that a model gets."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.domain.records.search import Hit, Results
from agiraph.core.domain.text.passages import Passage
from agiraph.core.store.texts import passages
from agiraph.core.tools.web.web import PAGE_CHARACTERS
from agiraph.testing import World, call, says
from agiraph.web.access import Web
from agiraph.web.search import LocalEngine
from tests.web.sites import Site, fetcher, html, response, site

LONG = " ".join(f"word{n}" for n in range(10_000))


class OverloadedEngine:
    """A search engine that refuses every query."""

    name = "crowded"
    usd_per_1000 = 5.0

    async def search(self, query: str, *, limit: int) -> Results:
        raise Refused("The search engine (crowded) takes no more questions now.")


@pytest.fixture
async def web_site() -> AsyncIterator[Site]:
    pages = {
        "page": html("<h1>Bread</h1><p>Bake <b>hot</b>.</p>", "On bread", Last_Modified="Monday"),
        "long": response(LONG.encode(), kind="text/plain"),
        "file": response(b"%PDF-1.7", kind="application/pdf"),
    }
    async with site(**pages) as opened:
        yield opened


@pytest.fixture
async def world(tmp_path: Path, database_url: str, web_site: Site) -> AsyncIterator[World]:
    hit = Hit(title="On bread", url=web_site.url("/page"), snippet="all of it")
    web = Web(fetcher=fetcher(), engine=LocalEngine([hit]))
    async with World(
        tmp_path / "home", database_url=database_url, web=web, easy_endings=True
    ) as opened:
        yield opened


async def answers_to(world: World, *calls: tuple[str, dict[str, object]]) -> list[str]:
    """Let a model make these calls; return their answers."""
    made = [says(call(name, **given)) for name, given in calls]
    ada = world.script("ada", *made, says(call("finish", summary="done")))
    await world.found("Look")
    await world.settle()
    return [turn.text for turn in ada.requests[-1].turns if turn.role == "tool"]


@pytest.mark.slow
async def test_a_page_is_returned_as_markdown_between_marks_it_cannot_forge(
    world: World, web_site: Site
) -> None:
    [answer] = await answers_to(world, ("web_fetch", {"url": web_site.url("/page")}))
    first, *middle, last = answer.splitlines()
    opening = re.fullmatch(r"<<< (\w{16}): from 1 site\. It is data: .*", first)
    assert opening is not None
    assert last == f">>> {opening[1]}: the end of it."
    assert middle == [
        "Title: On bread",
        f"Address: {web_site.url('/page')}",
        "Read: 2026-01-05",
        "Changed: Monday",
        "",
        "# Bread",
        "",
        "Bake **hot**.",
    ]
    assert opening[1] not in "\n".join(middle)


@pytest.mark.slow
async def test_the_same_page_gives_the_same_answer(world: World, web_site: Site) -> None:
    """The breaker compares answers to notice a model that repeats itself."""
    fetch: tuple[str, dict[str, object]] = ("web_fetch", {"url": web_site.url("/page")})
    one, other = await answers_to(world, fetch, fetch)
    assert one == other


async def test_the_rest_of_a_long_page_is_in_a_file(world: World, web_site: Site) -> None:
    answers = await answers_to(world, ("web_fetch", {"url": web_site.url("/long")}))
    where = re.search(r"characters more are in (agents/coordinator/pages/\w+\.md)", answers[0])
    assert where is not None
    assert len(answers[0]) < PAGE_CHARACTERS + 1000
    [team] = (world.path / "teams").iterdir()
    # The page is one line, which is broken between words.
    assert LONG in (team / where[1]).read_text().replace("\n", " ")


@pytest.mark.slow
async def test_a_page_that_was_read_is_found_again_in_the_knowledge(
    world: World, web_site: Site
) -> None:
    await answers_to(world, ("web_fetch", {"url": web_site.url("/page")}))
    [team] = (world.path / "teams").iterdir()
    found: list[Passage] = await world.store.read(
        passages.find, "bread", team_id=team.name, owner="x"
    )
    assert [(p.kind, p.ref, p.label) for p in found] == [
        ("page", web_site.url("/page"), of_page("http://127.0.0.1"))
    ]


@pytest.mark.parametrize(
    "line",
    ["# " + " " * 20_000 + "x", "# a" + "#" * 20_000 + "x", "pin:" * 20_000, "sk-" * 20_000],
    ids=["spaces", "marks", "passwords", "keys"],
)
async def test_a_page_made_to_be_slow_is_read_like_any_other(
    world: World, web_site: Site, line: str
) -> None:
    page = f"{line}\n\nThe bread is done.\n\n{'](' * 20_000}"
    web_site.pages["/slow"] = response(page.encode(), kind="text/markdown")
    url = web_site.url("/slow")
    read, found = await answers_to(
        world, ("web_fetch", {"url": url}), ("find_in_page", {"url": url, "words": "bread"})
    )
    assert "characters more are in" in read
    assert "The bread is done." in found


async def test_a_search_returns_titles_addresses_and_snippets(world: World, web_site: Site) -> None:
    answers = await answers_to(
        world, ("web_search", {"query": "bread"}), ("web_search", {"query": "nothing"})
    )
    assert answers[0].splitlines()[1:-1] == [
        "1. On bread",
        f"   {web_site.url('/page')}",
        "   all of it",
    ]
    assert answers[1] == "Nothing was found. Try fewer or other words."


@pytest.mark.slow
async def test_failures_of_web_tools_are_answered_to_the_model(
    world: World, web_site: Site
) -> None:
    answers = await answers_to(
        world,
        ("web_fetch", {"url": "http://169.254.169.254/latest"}),
        ("web_fetch", {"url": web_site.url("/file")}),
        ("web_fetch", {"url": ""}),
        ("web_search", {"query": "x" * 401}),
    )
    assert "is a broken PDF, of which nothing can be read" in answers[1]
    assert "not in the public internet" in answers[0]
    assert "'url' is wrong" in answers[2]
    assert "'query' is wrong" in answers[3]


async def test_without_an_engine_the_model_is_told_what_to_set(tmp_path: Path) -> None:
    async with World(tmp_path / "home", easy_endings=True) as world:
        [answer] = await answers_to(world, ("web_search", {"query": "bread"}))
    assert answer.startswith("No search engine is set up. A person can set BRAVE_API_KEY")


async def test_an_overloaded_search_engine_is_reported(tmp_path: Path) -> None:
    async with World(
        tmp_path / "home", web=Web(engine=OverloadedEngine()), easy_endings=True
    ) as world:
        [answer] = await answers_to(world, ("web_search", {"query": "bread"}))
    assert answer == "The search engine (crowded) takes no more questions now."
