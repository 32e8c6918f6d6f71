"""Local web: the hosts of a test, and that nothing but a test can make them."""

import re
from pathlib import Path

import pytest

import agiraph
from agiraph.config import load
from agiraph.core.domain.errors import Misconfigured, Refused
from agiraph.core.domain.records.search import Hit
from agiraph.core.domain.times.time import SystemClock
from agiraph.testing import ModelServer, call, says
from agiraph.testing.clock import ManualClock
from agiraph.testing.model_server import Seen, Step
from agiraph.web.access import Web
from tests.cli.shell import Shell
from tests.local_web import PROGRAM, LocalWeb, Page, environment, local_web
from tests.up_process import use_model_server
from tests.web import reading

SITES = {
    "docs.example": {
        "/": Page("<p>Pumps. <a href='/valves'>Valves</a></p>", "Pumps", is_html=True),
        "/old": Page("", moved_to="http://news.example/"),
        "/inside": Page("", moved_to="http://127.0.0.1:1/"),
        "/hidden/plan": Page("secret pumps"),
        "/robots.txt": Page("User-agent: *\nDisallow: /hidden\n"),
    },
    "news.example": {"/": Page(lambda day: f"Pumps of day {day}", "News")},
}


async def read(web: Web, url: str) -> str:
    return (await reading.read(await web.fetcher.fetch(url))).text


async def test_pages_have_hosts_links_redirects_and_change_by_the_day() -> None:
    clock = ManualClock()
    async with local_web(clock, SITES) as served:
        web = served.access
        assert await read(web, "http://docs.example/") == (
            "Pumps. [Valves](http://docs.example/valves)"
        )
        assert await read(web, "http://docs.example/old") == "Pumps of day 0"
        clock.advance(days=2)
        assert await read(web, "http://news.example:8080/") == "Pumps of day 2"
    assert served.visited("news.example") == ["/", "/"]


async def test_the_engine_finds_the_pages_of_today_except_those_that_robots_may_not_see() -> None:
    clock = ManualClock()
    async with local_web(clock, SITES) as served:
        assert served.access.engine is not None
        clock.advance(days=1)
        found = await served.access.engine.search("pumps of today", limit=8)
    assert found.hits == (
        Hit(title="News", url="http://news.example/", snippet="Pumps of day 1"),
        Hit(title="Pumps", url="http://docs.example/", snippet="Pumps. Valves"),
    )
    assert served.queries == ["pumps of today"]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://2130706433:{port}/",
        "http://evil.docs.example/",
        "http://docs.example/inside",
        "http://169.254.169.254/",
    ],
)
async def test_the_address_gate_refuses_everything_but_the_hosts_of_the_test(url: str) -> None:
    async with local_web(ManualClock(), SITES) as served:
        with pytest.raises(Refused):
            await served.access.fetcher.fetch(url.format(port=served.port))
        assert served.visited("127.0.0.1") == []


def plays_the_reader(seen: Seen) -> Step:
    match seen.index:
        case 0:
            return says(call("set_acceptance", lines=["answer"]), call("web_search", query="pumps"))
        case 1:
            return says(call("web_fetch", url="http://docs.example/"))
        case _:
            return says(call("finish", summary=_last_lines(seen.messages[-1].text)))


def _last_lines(text: str) -> str:
    found = re.findall(r"\[Valves\]\(\S+\)|There is no host", text)
    return found[0] if found else "nothing"


async def run_in_a_process(home: Path, served: LocalWeb, function: str | None = None) -> str:
    async with ModelServer(plays_the_reader) as server:
        shell = Shell(home) if function is None else Shell(home, function=function)
        use_model_server(shell, server).environment |= environment(served)
        return (await shell("run", "What is new about pumps?", "--review", "never")).out


@pytest.mark.slow
async def test_a_process_of_the_program_reads_the_local_web_only_through_the_test_program(
    tmp_path: Path,
) -> None:
    async with local_web(SystemClock(), SITES) as served:
        told = await run_in_a_process(tmp_path / "with", served, PROGRAM)
        assert "[Valves](http://docs.example/valves)" in told
        # The same variables, for the program as people have it: the name is looked up as ever.
        alone = await run_in_a_process(tmp_path / "without", served)
    assert "There is no host" in alone
    assert served.visited("docs.example") == ["/"]


def test_no_setting_names_a_stand_in(tmp_path: Path) -> None:
    home = {"AGIRAPH_HOME": str(tmp_path)}
    tricks = {"stand_ins": "a.example", "AGIRAPH_STAND_INS": "a.example"}
    assert load(home | tricks).web.fetcher.policy.stand_ins == {}
    (tmp_path / "agiraph.toml").write_text(
        '[search]\nprovider = "searxng"\nbase_url = "http://a.example"\nstand_ins = ["a.example"]\n'
    )
    with pytest.raises(Misconfigured):
        load(home)


def test_the_program_itself_makes_no_stand_in() -> None:
    source = Path(agiraph.__file__).parent
    naming = {
        str(path.relative_to(source)): text.count("StandIn(")
        for path in source.rglob("*.py")
        if "StandIn" in (text := path.read_text()) or "stand_ins" in text
    }
    # One of them compares: `StandIn(address, port) in self.stand_ins.values()`.
    assert naming == {"web/addresses.py": 1, "web/configured.py": 0}
