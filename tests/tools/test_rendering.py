"""Rendering: a page that only scripts make is read with a browser, confined and behind the gate."""

from pathlib import Path

import pytest

from agiraph.core.domain.provenance.labels import of_host, of_page
from agiraph.sandbox import browser, levels
from agiraph.testing import World, call, says
from agiraph.testing.clock import ManualClock
from tests.local_web import Page, local_web

SCRIPT = b"""
fetch("/figure").then(answer => answer.text()).then(async figure => {
  const reached = await fetch("http://127.0.0.1:9/", {mode: "no-cors"}).then(
    answer => "a page", failure => "nothing");
  const files = await fetch("file:///etc/passwd").then(answer => "a file", failure => "nothing");
  document.body.innerHTML =
    `<p>The figure is ${figure}. Inside there is ${reached}, and on the disk ${files}.</p>`;
});
"""
SITES = {
    "app.example": {
        "/": Page("<script src='http://cdn.example/app.js'></script>", "App", is_html=True),
        "/figure": Page("4,210"),
    },
    "cdn.example": {"/app.js": Page("script", kind="text/javascript", body=SCRIPT)},
}
HAS_BROWSER = browser.can_show(levels.choose())


@pytest.mark.slow
@pytest.mark.skipif(not HAS_BROWSER, reason="no browser, or no sandbox with a gate for it")
async def test_scripts_make_the_page_and_reach_public_hosts_alone(tmp_path: Path) -> None:
    async with (
        local_web(ManualClock(), SITES) as served,
        World(tmp_path / "home", web=served.access, easy_endings=True) as world,
    ):
        ada = world.script(
            "ada",
            says(call("web_fetch", url="http://app.example/")),
            says(call("finish", summary="done")),
        )
        await world.found("Look")
        await world.settle()
        answer = next(turn for turn in ada.requests[-1].turns if turn.role == "tool")
    assert answer.text.splitlines()[1:-1] == [
        "Title: App",
        "Address: http://app.example/",
        "Read: 2026-01-05",
        "",
        "The figure is 4,210. Inside there is nothing, and on the disk nothing.",
    ]
    # The words may be of any host that the page's scripts reached.
    hosts = of_host("app.example") | of_host("cdn.example")
    assert answer.label == of_page("http://app.example/") | hosts
    assert served.visited("cdn.example") == ["/app.js"]
