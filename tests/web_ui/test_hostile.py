"""Hostile texts: the browser shows them as text on every screen, and never runs them."""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, BrowserContext, Page, Route, expect

from agiraph.api.middleware import CONTENT_POLICY
from agiraph.api.routes.files import PICTURE_POLICY
from agiraph.api.web_ui import POLICY
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.store.teams import AGENTS
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, says
from tests.api.serving import TOKEN, Served, serving
from tests.web_ui import hostile
from tests.web_ui.browsing import DESKTOP, STILL, Watch
from tests.web_ui.hostile import (
    EVERY,
    FILES,
    PAYLOADS,
    REFERENCES,
    Hostile,
    Numbers,
    line,
    whole,
)
from tests.web_ui.shown_text import argument_text
from tests.web_ui.windows import key_of, sign_in

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(480)]

WATCHING = Path(__file__).with_name("watching.js")
SOME = tuple(n for n in EVERY if n % 8 == 0 or n in REFERENCES)
"""Payloads that every run shows in all places; the long test shows all of them in all places."""
ALONE = frozenset(REFERENCES)
"""Payloads that are only in texts of their own."""


@dataclass
class Bait:
    """A signed-in browser at a home full of payloads; records what it shows and runs."""

    served: Served
    home: Hostile
    context: BrowserContext
    page: Page
    watch: Watch
    dialogs: list[str]
    answers: dict[str, str]
    """The Content-Security-Policy of every response, by its address."""
    seen: set[str]

    @property
    def last(self) -> int:
        return self.home.numbers[-1]

    async def open(self, path: str, *, until: str) -> None:
        """Open a screen and wait until it shows a mark."""
        await self.page.evaluate(f"watching.go({path!r})")
        await self.until(f"watching.saw('{until}')")
        await self.note()

    async def walk(self, frame: str) -> None:
        await self.page.evaluate(f"watching.walk('{frame}')")
        await self.note()

    async def until(self, holds: str) -> None:
        await self.page.evaluate(f"watching.until(() => {holds})")

    async def note(self) -> dict[str, Any]:
        report = await self.page.evaluate("watching.report()")
        self.seen |= set(report["seen"])
        assert (report["ran"], report["found"]) == ([], []), self.page.url
        return report

    def shown(self, where: str) -> frozenset[int]:
        ends = (mark.removeprefix(where) for mark in self.seen if mark.startswith(where))
        return frozenset(int(end) for end in ends if end.isdecimal())


@asynccontextmanager
async def baited(browser: Browser, path: Path, numbers: Numbers) -> AsyncGenerator[Bait]:
    home = await hostile.hostile(path, numbers)
    async with (
        ModelServer(lambda _: says(whole("draft", numbers), chunk=400)) as model,
        serving(
            path,
            clock=SystemClock(),
            keys=Keys({"openai": Account(key="k", base_url=model.openai_url)}),
        ) as served,
    ):
        # A tall window, because lists draw only the visible rows; with few pixels, as none is read.
        size = {"width": 1280, "height": 3000}
        tall: dict[str, Any] = {"viewport": size, "device_scale_factor": 0.25}
        context = await browser.new_context(**DESKTOP | STILL | tall)
        await sign_in(context, served.origin)
        await context.add_init_script(path=WATCHING)
        page = await context.new_page()
        watch, dialogs, answers = Watch(served.origin), list[str](), dict[str, str]()
        watch.over(page)
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        context.on(
            "response",
            lambda got: answers.update(
                {got.url: got.headers.get("content-security-policy", "")}
                if got.url.startswith("http")
                else {}
            ),
        )
        bait = Bait(served, home, context, page, watch, dialogs, answers, set())
        await page.goto(served.origin)
        await page.wait_for_selector("nav")
        yield bait
        await context.close()
    assert watch.faults == []
    assert dialogs == []


async def test_payloads_are_shown_on_every_screen_and_never_run(
    browser: Browser, tmp_path: Path
) -> None:
    await check_every_screen(browser, tmp_path / "home", SOME)


@pytest.mark.long
async def test_all_payloads_are_shown_in_every_place_and_never_run(
    browser: Browser, tmp_path: Path
) -> None:
    await check_every_screen(browser, tmp_path / "home", EVERY)


async def check_every_screen(browser: Browser, home: Path, numbers: Numbers) -> None:
    """Show these payloads on every screen, and all of them in some files."""
    async with baited(browser, home, numbers) as bait:
        begun = time.monotonic()
        for visit in (
            check_conversation,
            check_thread_and_cost,
            check_inbox,
            check_board,
            check_approval,
            check_files,
            check_knowledge_and_triggers,
            check_results,
            check_search,
            check_links,
            check_toast,
        ):
            await visit(bait)
            print(f"{visit.__name__}: {time.monotonic() - begun:.1f} s so far")
        await bait.note()

    wanted = {where: set(numbers) for where in ONE_BY_ONE}
    wanted |= {where: set(numbers) - ALONE for where in AT_ONCE}
    wanted |= {"html": set(EVERY), "json": set(EVERY), "md": set(EVERY) - ALONE}
    missing = {where: sorted(which - bait.shown(where)) for where, which in wanted.items()}
    assert {where: which for where, which in missing.items() if which} == {}
    assert bait.shown("refs") == ALONE
    assert set(bait.answers.values()) <= {POLICY, CONTENT_POLICY, SANDBOXED, PICTURE_POLICY}
    assert len(PAYLOADS) >= 150


SANDBOXED = "default-src 'none'; sandbox"
ONE_BY_ONE = (
    *("team", "goal", "agent", "role", "hum", "mod", "said", "tool", "arg", "res", "turn"),
    *("told", "model", "lost", "ask", "opt", "title", "stage", "node", "fail", "doubt", "wait"),
    "unsure",
    *("accept", "ref", "file", "svg", "csv", "py", "txt", "mem", "ins", "held", "trig", "event"),
    *("src", "spoilt", "grant"),
)
"""Places with each payload by itself or on its own line."""
AT_ONCE = (
    "may",
    "why",
    "call",
    "task",
    "result",
    "point",
    "note",
    "briefing",
    "report",
    "failure",
    "draft",
)
"""Places with the payloads in one text."""


async def check_conversation(bait: Bait) -> None:
    """Messages of people and models, and a reply while it is streamed."""
    place = bait.home.talk
    await bait.open(f"/t/{place.team}/a/{place.agent}", until=f"mod{bait.last}")
    await load_earlier_messages(bait)
    box = bait.page.get_by_role("textbox").last
    await box.fill("Say it all")
    await box.press("Enter")
    await bait.until(f"watching.saw('draft{bait.last}')")
    await bait.note()


async def load_earlier_messages(bait: Bait) -> None:
    """Load all earlier messages, then scroll through them."""
    await bait.until("watching.isAtStart()")
    await bait.walk("#thread")


async def check_thread_and_cost(bait: Bait) -> None:
    place = bait.home.tools
    await bait.open(f"/t/{place.team}/a/{place.agent}", until=f"lost{bait.last}")
    await load_earlier_messages(bait)
    await bait.open(f"/t/{place.team}/threads/{bait.home.thread}", until="turn0")
    await bait.walk("#steps")
    await bait.open(f"/t/{place.team}/cost", until="team0")


async def check_inbox(bait: Bait) -> None:
    place = bait.home.asks
    await bait.open(f"/t/{place.team}/a/{place.agent}", until="title0")
    await load_earlier_messages(bait)
    for kind, letter in bait.home.letters.items():
        await bait.open(f"/inbox/{letter}", until=f"{kind}{bait.last}")


async def check_board(bait: Bait) -> None:
    place = bait.home.board
    await bait.open(f"/t/{place.team}/board", until="node0")
    await bait.page.get_by_role("button", name="Show everything").click()
    await bait.open(f"/t/{place.team}/board?view=list", until="node0")
    await bait.page.wait_for_selector(".scroll [data-card]")
    await bait.walk(".scroll:has([data-card])")
    await bait.open(f"/t/{place.team}/board?node={bait.home.whole}", until=f"path{bait.last}")
    await bait.open(f"/t/{place.team}/timeline?view=log", until="node0")
    await bait.page.locator("[data-event]").first.click()
    await bait.walk("#events")
    await bait.open(f"/t/{place.team}/timeline?view=replay", until="node0")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _as_table(fields: dict[str, Any]) -> str:
    """Return what a page shows of an object: a row for each field, what it holds as JSON."""
    rows = ((argument_text(name), argument_text(_as_text(held))) for name, held in fields.items())
    return "\n".join("\t".join(row) for row in rows)


async def check_approval(bait: Bait) -> None:
    """A request for approval, on three screens: every character of its call can be seen."""
    place, request = bait.home.board, bait.home.request
    call = hostile.call(bait.home.numbers)
    wanted = {
        name: _as_table(value) if isinstance(value, dict) else argument_text(_as_text(value))
        for name, value in call.arguments.items()
    }
    for path in (
        f"/t/{place.team}/board?node={bait.home.whole}",
        f"/inbox/{request}",
        f"/t/{place.team}/a/{place.agent}?at={request}",
    ):
        await bait.page.evaluate(f"watching.go({path!r})")
        card = bait.page.locator(f"[data-question={request}]")
        await expect(card.locator("[data-argument]")).to_have_count(len(wanted))
        shown = await card.locator("[data-argument]").evaluate_all(
            "(all) => all.map((one) => [one.dataset.argument, one.innerText])"
        )
        assert dict(shown) == wanted, path
        assert await card.locator("[data-tool]").inner_text() == argument_text(call.name)
        approve = card.get_by_role("button", name="Approve")
        await expect(approve).to_be_disabled()
        # The person reads one piece after the other.
        await card.locator("[data-end]").evaluate_all(
            "async (all) => { for (const one of all) { one.scrollIntoView({ block: 'center' });"
            " await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))); } }"
        )
        await expect(approve).to_be_enabled()
        await bait.note()


async def check_files(bait: Bait) -> None:
    place = bait.home.files
    await bait.open(f"/t/{place.team}/files/named", until="file0")
    for name, mark in FILES.items():
        await bait.open(f"/t/{place.team}/files/{name}", until=mark)
        if name.endswith(".md"):
            await bait.page.wait_for_selector("button.link")
            led = await bait.page.evaluate("watching.links()")
            assert led
            assert set(led) <= {"http:", "https:", "mailto:"}, led
        if name.endswith((".md", ".csv", ".json")):
            await bait.page.get_by_role("button", name="Source", exact=True).click()
        more = bait.page.get_by_role("button", name=re.compile(r"^\d+ more$"))
        if name == "all.json":
            await bait.page.get_by_role("button", name="Tree", exact=True).click()
            await more.click()
    await check_raw_files(bait, [f"/api/teams/{place.team}/files/{name}" for name in FILES])
    await bait.open(f"/t/{place.team}/memory/memory/knowledge/note.md", until="note0")


async def check_raw_files(bait: Bait, paths: list[str]) -> None:
    """Open files of the API directly: they are sandboxed plain text."""
    page = await bait.context.new_page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.on("dialog", lambda dialog: bait.dialogs.append(dialog.message))
    for path in paths:
        answer = await page.goto(f"{bait.served.origin}{path}?key={key_of(TOKEN)}")
        assert answer is not None
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["content-security-policy"] == SANDBOXED
    await page.close()
    assert [url for url in requested if not url.startswith(bait.served.origin)] == []


async def check_knowledge_and_triggers(bait: Bait) -> None:
    place = bait.home.known
    tabs = {"insights": "ins", "memories": "mem", "unconfirmed": "held", "changes": "agent"}
    for tab, mark in tabs.items():
        await bait.open(f"/t/{place.team}/memory?tab={tab}", until=f"{mark}{bait.last}")
    await bait.open(f"/t/{place.team}/triggers", until=f"trig{bait.last}")
    await bait.open("/inbox/digest", until=f"spoilt{bait.last}")
    await bait.open(f"/t/{place.team}/a/{place.agent}", until=f"held{bait.last}")
    await bait.open(f"/t/{place.team}/settings", until=f"grant{bait.last}")
    everybody = await bait.served.world.store.read(AGENTS.select, "team_id = :t", t=place.team)
    await bait.open(f"/t/{place.team}/a/{everybody[-1].id}", until=f"role{bait.last}")


async def check_results(bait: Bait) -> None:
    """The list of what a team delivered, and of the files that it changed."""
    place = bait.home.known
    await bait.open(f"/t/{place.team}/results", until="delivered0")
    await bait.open(f"/t/{place.team}/results?show=changes", until=f"changed{bait.last}")


async def check_search(bait: Bait) -> None:
    """The palette and the search in a conversation, with payloads as queries."""
    page = bait.page
    await page.keyboard.press("Control+k")
    box = page.get_by_placeholder("Jump to")
    for n in bait.home.numbers[::20]:
        await box.fill(PAYLOADS[n])
        await bait.note()
    await box.fill("pwned")
    await bait.note()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await box.wait_for(state="detached")
    place = bait.home.talk
    await bait.open(f"/t/{place.team}/a/{place.agent}", until=f"mod{bait.last}")
    await page.get_by_role("button", name="Search in this conversation").click()
    finder = page.get_by_role("searchbox").or_(page.get_by_placeholder("Search")).last
    for n in bait.home.numbers[::20]:
        await finder.fill(PAYLOADS[n].split("\n")[0])
        await finder.press("Enter")
        await bait.note()


async def check_links(bait: Bait) -> None:
    """Links whose every part is a payload."""
    team, agent = bait.home.files.team, bait.home.files.agent  # this team has no other payloads
    shapes = (
        "/t/{0}/a/{1}?at={2}#{3}",
        "/t/{team}/a/{agent}?at={0}&{1}={2}#{3}",
        "/t/{team}/board?node={0}&view={1}&{2}#{3}",
        "/t/{team}/files/{0}/{1}?{2}#{3}",
        "/t/{team}/threads/{0}?agent={1}&kind={2}#{3}",
        "/inbox/{0}?{1}={2}#{3}",
        "/{0}/{1}?{2}#{3}",
    )
    bait.watch.is_server_away = True  # the browser logs the requests that are not found
    quoted = [quote(PAYLOADS[n][:400], safe="") for n in bait.home.numbers]
    fours = zip(*(quoted[n::4] for n in range(4)), strict=False)
    addresses = [
        shapes[n % len(shapes)].format(*four, team=team, agent=agent)
        for n, four in enumerate(fours)
    ]
    await bait.page.evaluate(
        "async (all) => { for (const to of all) await watching.go(to); }", addresses
    )
    await bait.note()
    for address in addresses[3::24]:
        await bait.page.goto(f"{bait.served.origin}{address}")
        await bait.page.wait_for_selector("nav")
        await bait.note()
    await bait.page.goto(f"{bait.served.origin}/settings")
    bait.watch.is_server_away = False


async def check_toast(bait: Bait) -> None:
    """A question that arrives as a toast on another screen."""
    place = bait.home.board
    await bait.page.get_by_role("img", name="open question").first.wait_for()
    await bait.page.get_by_text("Live", exact=True).wait_for()
    agent = await bait.served.world.agent(place.agent)
    options = tuple(line("toast", n) for n in range(8))
    await bait.served.world.store.write(
        hostile.say, agent, whole("news", bait.home.numbers), kind="question", options=options
    )
    await bait.until("watching.saw('toast7')")
    await bait.note()
    assert bait.shown("news") == set(bait.home.numbers) - ALONE


async def raw_page(context: BrowserContext, headers: dict[str, str], body: str) -> Page:
    """Open a page that contains the payloads as HTML."""

    async def answer(route: Route) -> None:
        page = f"<!doctype html><head></head><body>{body}</body>"
        await route.fulfill(body=page, content_type="text/html", headers=headers)

    await context.route("http://raw.invalid/", answer)
    page = await context.new_page()
    await page.goto("http://raw.invalid/", wait_until="domcontentloaded")
    return page


AS_HTML = "".join(
    words
    for words in PAYLOADS
    # Without payloads that leave the page, or that hide those after them.
    if words.startswith("<") and "refresh" not in words and "<base" not in words
    and not words.startswith(("<!--", "<xmp", "<frameset", "<template", "<select"))
)  # fmt: skip


async def test_the_recording_notices_payloads_that_run(browser: Browser) -> None:
    context = await browser.new_context()
    await context.add_init_script(path=WATCHING)
    away: list[str] = []
    context.on("request", lambda request: away.append(request.url))

    page = await raw_page(context, {}, AS_HTML)
    await page.evaluate("watching.until(() => watching.report().ran.length > 5)")
    report = await page.evaluate("watching.report()")

    assert "<script>" in report["found"]
    assert any(found.endswith(" onerror") for found in report["found"])
    assert any("evil.invalid" in url for url in away)
    await context.close()


async def test_the_content_security_policy_alone_stops_every_payload(browser: Browser) -> None:
    """Even if the page inserted a text as HTML, nothing would run or load."""
    context = await browser.new_context()
    await context.add_init_script(path=WATCHING)
    refused: list[str] = []
    context.on("console", lambda message: refused.append(message.text))
    loaded: list[str] = []
    context.on("response", lambda response: loaded.append(response.url))

    page = await raw_page(context, {"Content-Security-Policy": POLICY}, AS_HTML)
    async with asyncio.timeout(10):
        while not any("script-src" in text for text in refused):
            await page.evaluate("new Promise((done) => requestAnimationFrame(done))")

    assert (await page.evaluate("watching.report()"))["ran"] == []
    assert {url for url in loaded if "evil" in url} == set()
    assert await page.evaluate(
        "(() => { try { document.body.innerHTML = '<b>x'; return 'taken' }"
        " catch (refusal) { return refusal.name } })()"
    ) == "TypeError"  # fmt: skip
    await context.close()
