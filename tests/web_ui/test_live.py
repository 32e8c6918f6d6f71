"""Live updates: the page follows events, also through a kill of the server."""

import asyncio
import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Locator, expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.runtime.waiting import Gate
from tests.scenarios.thread_queries import agent_name, reply_count, seen_created_nodes
from tests.services.stages import accepts
from tests.web_ui.browsing import EMPTY, Visit, VisitUp
from tests.web_ui.test_flow import is_reflection, is_reply, say, sidebar, tabs, thread
from tests.web_ui.test_large_data_rendering import wait_for_frames

pytestmark = pytest.mark.asyncio(loop_scope="session")


SCREENS = [
    "Board",
    "Results",
    "Files",
    "Memory",
    "Triggers",
    "Cost",
    "Timeline",
    "Threads",
    "Settings",
]
PLACE = "(one) => one.style.transform"
NOT_FITTED = re.compile(r"translate\(0px,? ?0?(px)?\) scale\(1\)")
"""The place of a board that is drawn and not yet fitted: on a busy machine, for many frames."""

OUTBOX = """async () => {
  const open = indexedDB.open("agiraph", 1);
  await new Promise((done) => (open.onsuccess = done));
  const all = open.result.transaction("outbox").objectStore("outbox").getAll();
  await new Promise((done) => (all.onsuccess = done));
  return all.result;
}"""


async def place_at_rest(picture: Locator) -> str:
    """Wait until the board is drawn and fitted to its window; return its place and size."""
    await expect(picture).not_to_have_attribute("style", NOT_FITTED)
    before, place = "", await picture.evaluate(PLACE)
    while place != before:
        await wait_for_frames(picture.page)
        before, place = place, await picture.evaluate(PLACE)
    return place


async def test_the_board_shows_new_nodes_without_moving(visit: Visit) -> None:
    first, second, third = Gate(), Gate(), Gate()

    async def play(seen: Seen) -> Step:
        if is_reply(seen) or is_reflection(seen):
            return says("There is nothing to add.")
        if agent_name(seen) != "coordinator":
            await third.wait()
            return says(call("publish", summary=f"{agent_name(seen)} is done."))
        match reply_count(seen):
            case 0:
                await first.wait()
                tasks: list[tuple[str, str, list[str]]] = [
                    ("NVIDIA", "nvidia", []),
                    ("AMD", "amd", []),
                ]
            case 1:
                await second.wait()
                tasks = [("Intel", "intel", seen_created_nodes(seen)[:1])]
            case 2:
                return says(call("start_stage", name="research", nodes=seen_created_nodes(seen)))
            case 3:
                return says(accepts("All are there.", seen_created_nodes(seen)))
            case _:
                return says(call("finish", summary="Done."))
        return says(
            *(
                call("create_work_node", task=t, assigned_to=f"new:openai/{who}", depends_on=needs)
                for t, who, needs in tasks
            )
        )

    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("Research chips", name="chips")
    await first.reached()
    await desk.open(f"/t/{team['id']}/board")
    cards = page.locator("[data-card]")
    await expect(cards).to_have_count(1)
    await expect(cards.first).to_contain_text("Running")
    picture = page.locator(".react-flow__viewport")
    before = await place_at_rest(picture)

    first.set()
    await expect(cards).to_have_count(3)
    second.set()
    await expect(cards).to_have_count(4)
    await third.reached(2)
    await expect(page.get_by_text("Research", exact=True)).to_have_count(1)
    await expect(cards.filter(has_text="Running")).to_have_count(2)
    assert await picture.evaluate(PLACE) == before

    # A press opens a card also if its status changes before the button is released.
    sign = await cards.filter(has_text="NVIDIA").locator("svg").first.bounding_box()
    assert sign is not None
    await page.mouse.move(sign["x"] + sign["width"] / 2, sign["y"] + sign["height"] / 2)
    await page.mouse.down()
    third.set()
    await expect(cards.filter(has_text="Done")).to_have_count(4)
    await page.mouse.up()
    about = page.get_by_role("complementary", name="Task")
    await expect(about).to_contain_text("NVIDIA")

    # The details take the place where the card was: it stays in view, and so does the next one.
    nvidia, intel = cards.filter(has_text="NVIDIA"), cards.filter(has_text="Intel")
    await expect(nvidia).to_be_in_viewport(ratio=0.99)
    await expect(page.locator("[data-need=met]")).to_have_count(1)
    await nvidia.press("End")
    await expect(intel).to_be_focused()
    await expect(intel).to_be_in_viewport(ratio=0.99)
    await intel.press("Enter")
    await expect(about).to_contain_text("Intel")


async def test_after_a_server_kill_the_page_reconnects_without_lost_or_double_messages(
    visit_up: VisitUp,
) -> None:
    words = ["First of all", "In the middle", "While it was away", "That is all"]
    gate = Gate()
    prompts: list[str] = []

    async def play(seen: Seen) -> Step:
        prompts.extend(one.text for one in seen.messages)
        if not is_reply(seen):
            return says("There is nothing to add.")
        heard = next((line for line in words if line in seen.messages[-1].text), "something else")
        if heard == words[1]:
            await gate.wait()
        return says(f"Heard: {heard.lower()}.", call("no_work_needed"))

    desk = await visit_up(play)
    page = desk.page
    team = await desk.found("Listen", start=False, name="ears")
    # The link names no message: once the page has said so, it can show toasts without the server.
    await desk.open(f"/t/{team['id']}/a/{team['coordinator_id']}?at=nothing")
    await page.evaluate("window.neverReloaded = true")
    await say(page, words[0])
    await page.get_by_text("is not in this conversation").wait_for()
    await expect(thread(page).get_by_text("Heard: first of all.")).to_have_count(1)
    await say(page, words[1])
    await gate.reached()

    await desk.kill()
    await page.get_by_text("The server does not answer.").wait_for()
    await say(page, words[2])
    await page.get_by_text("Queued: sent when the connection is back").wait_for()
    # What is queued can be taken back: it is not sent.
    queued = thread(page).get_by_role("article").filter(has_text="Queued:")
    await say(page, "Never mind")
    unwanted = queued.filter(has_text="Never mind")
    await unwanted.get_by_role("button", name="Discard").click()
    await expect(unwanted).to_have_count(0)
    await page.get_by_role("button", name="Undo", exact=True).click()
    await unwanted.get_by_role("button", name="Discard").click()
    await expect(unwanted).to_have_count(0)
    await say(page, "Say it better")
    await expect(queued).to_have_count(2)
    box = page.get_by_role("textbox", name=re.compile("^Message "))
    await box.fill("And more")
    await queued.filter(has_text="Say it better").get_by_role("button", name="Edit").click()
    await expect(queued).to_have_count(1)
    await expect(box).to_have_value("Say it better\n\nAnd more")
    await box.fill("")
    gate.set()
    await desk.start_again()

    await sidebar(page).get_by_text("Live", exact=True).wait_for()
    await expect(thread(page).get_by_text("Heard: while it was away.")).to_have_count(1)
    desk.is_back()
    await expect(page.get_by_text("The server does not answer.")).to_have_count(0)
    # Messages are sent in their order: what was taken back would have come before this one.
    await say(page, words[3])
    await expect(thread(page).get_by_text("Heard: that is all.")).to_have_count(1)
    for taken_back in ["Never mind", "Say it better"]:
        await expect(thread(page).get_by_text(taken_back)).to_have_count(0)
        assert not [text for text in prompts if taken_back in text]
    for line in words:
        await expect(thread(page).get_by_text(line, exact=True)).to_have_count(1)
        await expect(thread(page).get_by_text(f"Heard: {line.lower()}.")).to_have_count(1)
    await expect(thread(page).get_by_text(re.compile("^(Sending|Queued)"))).to_have_count(0)
    shown = await thread(page).inner_text()
    assert await page.evaluate("window.neverReloaded")

    # The page shows the same as after a reload.
    await page.reload()
    await expect(thread(page).get_by_text("Heard: that is all.")).to_have_count(1)
    async with asyncio.timeout(30):
        fresh = ""
        while fresh.replace("\nNew\n", "\n") != shown.replace("\nNew\n", "\n"):
            await wait_for_frames(page)
            fresh = await thread(page).inner_text()

    # The server may have had a message that was taken back: only its response was lost.
    taken_back, _ = await page.evaluate(OUTBOX)
    arrived = {"message": "Something else", "client_id": taken_back["clientId"]}
    await desk.up.ask("POST", f"/agents/{team['coordinator_id']}/send", arrived)
    await page.get_by_text("The message that you took back had already arrived.").wait_for()
    await expect(thread(page).get_by_text("Heard: something else.")).to_have_count(1)
    assert len(await page.evaluate(OUTBOX)) == 1


async def test_words_survive_a_lost_server_a_screen_that_cannot_load_and_a_crash_of_the_tab(
    visit_up: VisitUp,
) -> None:
    words = ["Before it left", "Written to nobody"]

    def play(seen: Seen) -> Step:
        if not is_reply(seen):
            return says("There is nothing to add.")
        heard = [line for line in words if line in seen.messages[-1].text]
        return says(f"Heard: {heard[-1].lower()}.", call("no_work_needed"))

    desk = await visit_up(play)
    page = desk.page
    # Without this list, no screen is put into the cache before it is opened.
    await desk.context.route("**/chunks.json", lambda route: route.fulfill(body="none"))
    team = await desk.found("Listen", start=False, name="ears")
    await desk.open(f"/t/{team['id']}")
    await say(page, words[0])
    await expect(thread(page).get_by_text("Heard: before it left.")).to_have_count(1)
    await page.evaluate("window.neverReloaded = true")
    await desk.kill()
    await page.get_by_text("The server does not answer.").wait_for()
    await say(page, words[1])
    await page.get_by_text("Queued: sent when the connection is back").wait_for()

    # A screen whose file was not loaded: the page stays, and says when the screen appears.
    await tabs(page).get_by_role("link", name="Triggers").click()
    await page.get_by_text("What you opened appears then, too.").wait_for()
    assert await page.evaluate("window.neverReloaded")
    await tabs(page).get_by_role("link", name="Conversation").click()
    await expect(thread(page).get_by_text(words[1], exact=True)).to_have_count(1)

    # The tab crashes; another one sends the words once the server is there.
    await page.close()
    await desk.start_again()
    page = await desk.context.new_page()
    desk.watch.over(page)
    await page.goto(f"{desk.origin}/t/{team['id']}")
    await expect(thread(page).get_by_text("Heard: written to nobody.")).to_have_count(1)
    await expect(thread(page).get_by_text(words[1], exact=True)).to_have_count(1)
    desk.is_back()
    await page.reload()
    await expect(thread(page).get_by_text("Heard: written to nobody.")).to_have_count(1)
    await expect(thread(page).get_by_text(words[1], exact=True)).to_have_count(1)
    assert await page.evaluate(OUTBOX) == []


async def test_after_the_page_was_idle_every_screen_opens_without_the_server(
    visit_up: VisitUp,
) -> None:
    desk = await visit_up([says("Nobody asked.")])
    page = desk.page
    team = await desk.found("Listen", start=False, name="ears")
    async with desk.up.http.get(f"{desk.origin}/chunks.json") as response:
        files = await response.json()
    missing = {f"{desk.origin}{file}" for file in files}
    page.on("requestfinished", lambda request: missing.discard(request.url))
    # The time stands until the first screen is there: the others are loaded after four seconds.
    await page.clock.install()
    await page.clock.pause_at(datetime.now(UTC) + timedelta(minutes=1))
    await desk.open(f"/t/{team['id']}")
    await expect(sidebar(page).get_by_text("Live", exact=True)).to_be_visible()
    assert any("/Triggers-" in file for file in missing)
    async with page.expect_request_finished(lambda _: not missing):
        await page.clock.fast_forward("01:00")
        await page.clock.resume()
    await page.evaluate("window.neverReloaded = true")
    await desk.kill()
    await expect(page.get_by_text("The server does not answer.")).to_be_visible()

    for screen in SCREENS:
        # By its address: the page has settings of its own, too.
        await tabs(page).locator(f"a[href='/t/{team['id']}/{screen.lower()}']").click()
        await expect(page.get_by_role("heading", name=screen, exact=True)).to_be_visible()
        await expect(page.get_by_text("What you opened appears then, too.")).to_have_count(0)
    assert await page.evaluate("window.neverReloaded")


async def test_a_reload_without_the_server_opens_from_the_cache_and_says_what_is_missing(
    visit_up: VisitUp,
) -> None:
    def play(seen: Seen) -> Step:
        if not is_reply(seen):
            return says("There is nothing to add.")
        return says("Heard.", call("no_work_needed"))

    desk = await visit_up(play)
    page = desk.page
    team = await desk.found("Listen", start=False, name="ears")
    await page.clock.install()
    await desk.open(f"/t/{team['id']}")
    await say(page, "Hello")
    await expect(thread(page).get_by_text("Heard.")).to_have_count(1)
    await page.clock.fast_forward("01:00")
    await page.evaluate("navigator.serviceWorker.ready.then(() => undefined)")
    await desk.kill()

    await page.reload()
    await page.get_by_text("The server does not answer. ").wait_for()
    await expect(thread(page).get_by_text("Heard.")).to_have_count(1)
    await expect(tabs(page).get_by_role("link", name="Conversation")).to_have_count(1)
    # An address that this browser has never opened is the same page; its data was never read.
    await desk.open(f"/t/{team['id']}/triggers")
    await expect(page.get_by_role("heading", name="Triggers", exact=True)).to_be_visible()
    await page.get_by_text("this is not cached in this browser").wait_for()

    await desk.start_again()
    await sidebar(page).get_by_text("Live", exact=True).wait_for()
    desk.is_back()
    await expect(page.get_by_text("this is not cached in this browser")).to_have_count(0)
