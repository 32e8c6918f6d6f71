"""Reading for research: PDF and long pages, what a search costs, and what a budget counts."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agiraph.api.routes import board
from agiraph.core.domain.chat import ToolCall, Turn
from agiraph.core.domain.costs import CostSum
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import NodeId, ThreadId
from agiraph.core.domain.records.search import Hit, Results, SearchFailed
from agiraph.core.domain.work import Usage
from agiraph.core.run_context import Consumption
from agiraph.core.store import nodes, spend
from agiraph.core.store.spend import Total
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from agiraph.testing.clock import ManualClock
from agiraph.web.access import Web
from tests.known_web import SITES
from tests.local_web import LocalWeb, local_web

CENSUS = "http://statistics.example/reports/census-2026.pdf"
PLACE: dict[str, Any] = {
    "thread_id": ThreadId("thr_1"),
    "seq": 1,
    "node_id": NodeId("node_1"),
    "at": datetime(2026, 1, 5, tzinfo=UTC),
}
MINUTES = "http://council.example/minutes"


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[tuple[World, LocalWeb]]:
    async with (
        local_web(ManualClock(), SITES) as served,
        World(path / "home", web=served.access, easy_endings=True) as world,
    ):
        yield world, served


async def answers_to(world: World, *calls: tuple[str, Mapping[str, object]]) -> list[str]:
    """Let a model make these calls; return their answers."""
    made = [says(call(name, **given)) for name, given in calls]
    ada = world.script("ada", *made, says(call("finish", summary="done")))
    await world.found("Look")
    await world.settle()
    return [turn.text for turn in ada.requests[-1].turns if turn.role == "tool"]


@pytest.mark.slow
async def test_a_reader_reads_a_pdf_and_a_part_of_it_and_finds_words_in_both(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as (world, served):
        whole, part, found, wrong = await answers_to(
            world,
            ("web_fetch", {"url": CENSUS}),
            ("web_fetch", {"url": CENSUS, "pages": "12"}),
            (
                "call_tool",
                {"name": "find_in_page", "arguments": _words(CENSUS, "islands together")},
            ),
            ("web_fetch", {"url": CENSUS, "pages": "x"}),
        )
    assert "Title: Census of the archipelago 2026\n" in whole
    assert "## Page 2\n\nMarrow\nResidents: 4,210\n" in whole
    total = "All ten islands together had 13,560 residents on 1 January 2026."
    assert f"## Page 12\n\nSummary\n{total}" in part
    assert part.endswith("1 of 12 pages were read (12 to 12).")
    assert found.splitlines()[1:-1] == [
        "[at character 705, under 'Page 12']",
        f"Summary\n{total}".splitlines()[0],
        total,
        "",
        "[at character 12, under 'Page 12']",
        "Summary",
        total,
    ]
    assert 'pages takes a page or a range, such as "7" or "40-80"' in wrong
    assert served.visited("statistics.example") == ["/reports/census-2026.pdf"] * 2


def _words(url: str, words: str) -> dict[str, str]:
    return {"url": url, "words": words}


async def test_words_deep_in_a_long_page_are_found_without_opening_it_again(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as (world, served):
        early, read, found, none, second, last, behind = await answers_to(
            world,
            ("find_in_page", _words(MINUTES, "mooring fee")),
            ("web_fetch", {"url": MINUTES}),
            ("find_in_page", _words(f"{MINUTES}#top", "mooring fee")),
            ("find_in_page", _words(MINUTES, "submarine")),
            ("web_fetch", {"url": MINUTES, "pages": "2"}),
            ("web_fetch", {"url": MINUTES, "pages": "5"}),
            ("web_fetch", {"url": MINUTES, "pages": "9"}),
        )
    assert "call web_fetch with it first" in early
    fact = "The mooring fee rises to 9.40 crowns a metre from April."
    assert fact not in read
    assert fact in found
    assert "under 'Item 187'" in found
    assert found.startswith("<<< ")
    assert none == "None of these words stand on the page: submarine. Try other ones."
    # The parts come from the page as this thread has read it.
    assert served.visited("council.example") == ["/minutes"]
    texts = [answer.partition("\n\n")[2].rpartition("\n>>>")[0] for answer in (read, second, last)]
    whole = SITES["council.example"]["/minutes"].on(0).strip()
    assert [whole.index(text) for text in texts] == [0, 12_000, 48_000]
    assert 'read_file shows them, or web_fetch with pages="3".' in second
    assert whole.endswith(texts[-1])
    assert "has 5 parts of 12,000 characters" in behind


class PricedEngine:
    """A search engine that costs a cent, and fails at the word `fail`, which costs a tenth."""

    name = "priced"
    usd_per_1000 = 10.0

    async def search(self, query: str, *, limit: int) -> Results:
        if query == "fail":
            raise SearchFailed("The search engine (priced) did not search: no.", Usage(usd=0.001))
        if query == "gone":
            raise Refused("The search engine (priced) cannot be reached.")
        hit = Hit(title="Bread", url="https://example.com/", snippet="")
        return Results(hits=(hit,), usage=Usage(usd=0.01, input_tokens=5, searches=1))


async def test_each_search_is_a_row_of_the_costs_and_no_model_call(tmp_path: Path) -> None:
    web = Web(engine=PricedEngine())
    async with World(tmp_path / "home", web=web, easy_endings=True) as world:
        queries = ("bread", "fail", "gone", "butter")
        await answers_to(world, *(("web_search", {"query": query}) for query in queries))

        def read(tx: Tx) -> tuple[list[tuple[str, int, int, float]], CostSum, Total]:
            [team_id] = [row[0] for row in tx.all("select id from teams")]
            [root] = [node for node in nodes.everything(tx, team_id) if node.lane == "work"]
            [bill] = [run for run in board.costs_of_team(tx, team_id).runs if run.lane == "work"]
            found = [
                (line.model, line.sum.calls, line.sum.searches, line.sum.usd)
                for line in bill.lines
                if line.purpose == spend.SEARCH
            ]
            return found, bill.total, spend.total(tx, root.id)

        lines, shown, total = await world.store.read(read)
    assert lines == [("search:priced", 0, 3, 0.021)]
    assert total.calls == 5  # of the model: four searches and the end
    assert total.usd == pytest.approx(0.021)
    assert (shown.calls, shown.searches, shown.usd) == (5, 3, 0.021)


def test_failed_searches_and_dead_links_use_up_nothing() -> None:
    calls = [ToolCall(id=f"c{n}", name="web_fetch", arguments={}) for n in range(3)]
    asked = Turn(role="assistant", calls=tuple(calls), text="", **PLACE)
    consumed = Consumption()
    consumed.add(asked)
    assert consumed.calls == {"web_fetch": 3}
    dead = Turn(role="tool", ref="c1", failed=True, text="There is no page.", **PLACE)
    for turn in (
        Turn(role="tool", ref="c0", text="A page.", **PLACE),
        dead,
        dead,  # an answer counts once
        Turn(role="tool", ref="of another node", failed=True, text="No.", **PLACE),
    ):
        consumed.add(turn)
    assert consumed.calls == {"web_fetch": 2}
