"""Search checks: what `agiraph doctor` says of the search engine."""

from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from agiraph.config import load
from agiraph.core.domain.records.findings import Finding
from agiraph.core.domain.records.search import Engine
from agiraph.doctor import surroundings
from agiraph.doctor.checkup import Checkup
from agiraph.models.searching import VendorEngine
from agiraph.web.open_sources import OpenEngine
from agiraph.web.search import RemoteEngine
from tests import open_source_apis
from tests.web.sites import unused_port
from tests.web.test_search import engine as serving


async def finding(tmp_path: Path, engine: Engine | None, *, online: bool = False) -> Finding:
    settings = load({"AGIRAPH_HOME": str(tmp_path)})
    checkup = Checkup(replace(settings, web=replace(settings.web, engine=engine)), online)
    await surroundings.check_search(checkup)
    [found] = checkup.findings
    return found


async def test_the_open_sources_cost_nothing_and_are_asked_only_online(tmp_path: Path) -> None:
    assert await finding(tmp_path, OpenEngine()) == Finding(
        name="search",
        verdict="fine",
        what="open: Wikipedia, Crossref, arXiv (contact: none). A thousand searches cost nothing. "
        "It finds facts and papers, and no news.",
    )
    unreachable = open_source_apis.engine(f"http://127.0.0.1:{unused_port()}")
    found = await finding(tmp_path, unreachable, online=True)
    assert found.verdict == "note"
    assert "the open sources cannot be reached" in found.what


async def test_the_price_of_an_engine_is_told(tmp_path: Path) -> None:
    found = await finding(tmp_path, RemoteEngine(name="brave", key="a-key-of-some-length"))
    assert (found.verdict, found.what) == (
        "fine",
        "brave (key: set). A thousand searches cost about $5.",
    )
    found = await finding(tmp_path, VendorEngine(name="anthropic", key="a-key-of-some-length"))
    assert found.what == (
        "anthropic (the vendor's own search). A thousand searches cost about $10 and the tokens of "
        "a small model."
    )


async def test_without_an_engine_the_settings_are_named(tmp_path: Path) -> None:
    found = await finding(tmp_path, None)
    assert found.verdict == "note"
    assert found.what.startswith("Agents cannot search the web. To let them, set BRAVE_API_KEY")


@pytest.mark.parametrize(
    ("status", "verdict", "details"),
    [(200, "fine", []), (403, "problem", ["search:", "  formats: [html, json]"])],
)
async def test_searxng_is_asked_for_json_and_the_lines_of_its_settings_are_printed(
    tmp_path: Path, status: int, verdict: str, details: list[str]
) -> None:
    text = '{"results": []}'
    async with serving("searxng", lambda r, g: web.Response(status=status, text=text)) as engine:
        found = await finding(tmp_path, engine)
    assert (found.verdict, found.details) == (verdict, details)
