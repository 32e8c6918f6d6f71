"""Flow: a person works with a team in the browser, from the first message to the report."""

import re
from dataclasses import dataclass, field, replace

import pytest
from playwright.async_api import Locator, Page, Route, expect

from agiraph.testing import Says, call, says
from agiraph.testing.model_server import Seen, Step
from tests.runtime.waiting import Gate
from tests.scenarios import test_chat_flow as talk
from tests.scenarios.thread_queries import reply_count
from tests.web_ui.browsing import EMPTY, Visit, VisitUp

pytestmark = pytest.mark.asyncio(loop_scope="session")

REPORT = """# AI chips

NVIDIA leads; an H100 costs **30,000 dollars**.

| Maker | Share |
|---|---|
| NVIDIA | 80 % |
"""
NOTED = "Noted, I go on."


def is_reply(seen: Seen) -> bool:
    return "no_work_needed" in seen.tools


def is_reflection(seen: Seen) -> bool:
    return not {"ask_human", "give_verdict"} & set(seen.tools)


@dataclass
class CastWithReplies(talk.Cast):
    """The cast of the chat flow, with a coordinator that also replies while it works."""

    alice_may_ask: Gate = field(default_factory=Gate)

    async def play(self, seen: Seen) -> Step:
        if is_reply(seen):
            return says(talk.GOT_IT if talk.QUALCOMM in seen.messages[-1].text else NOTED)
        if is_reflection(seen):
            return says("There is nothing to add.")
        if (
            talk.agent_name(seen) == "alice"
            and reply_count(seen) == 0
            and "NVIDIA" in seen.messages[0].text
        ):
            await self.alice_may_ask.wait()
        return await super().play(seen)

    def coordinator(self, seen: Seen) -> Step:
        said = super().coordinator(seen)
        if reply_count(seen) == 12:
            return says(call("write_file", path="report.md", content=REPORT))
        if reply_count(seen) == 2 and isinstance(said, Says):
            return replace(said, calls=said.calls[1:])  # its reply has already said so
        return said


def thread(page: Page) -> Locator:
    return page.get_by_role("log")


def sidebar(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Teams")


def tabs(page: Page) -> Locator:
    """The screens of the team, in the header of its pages or at the lower edge of a phone."""
    return page.get_by_role("navigation", name="Screens of the team")


def members(page: Page) -> Locator:
    """The other members of the team, in the header of a member's page."""
    return page.get_by_role("navigation", name="Members")


async def show_work(page: Page) -> None:
    """Switch the page of an agent from its conversation to every step of its work."""
    await page.get_by_role("button", name="Work", exact=True).click()


async def say(page: Page, words: str) -> None:
    box = page.get_by_role("textbox", name=re.compile("^Message "))
    await box.fill(words)
    await box.press("Enter")


async def test_the_sign_in_link_opens_the_home_page(visit_up: VisitUp) -> None:
    desk = await visit_up([says("Nobody asked.")])

    await desk.page.get_by_text("What should a team do?").wait_for()
    await desk.page.get_by_text("Live", exact=True).wait_for()


async def test_a_person_and_a_team_talk_from_the_goal_to_the_report(visit: Visit) -> None:
    cast = CastWithReplies()
    desk = await visit(cast.play)
    page = desk.page

    await page.get_by_label("What should a team do?").fill(talk.GOAL)
    await page.get_by_role("button", name="Get to work").click()
    await expect(thread(page).get_by_text(talk.ON_IT)).to_have_count(1)
    for name in ("Alice", "Bob"):
        await members(page).get_by_role("link", name=name).wait_for()

    await cast.alice_may_ask.reached()
    await say(page, talk.QUALCOMM)
    await expect(thread(page).get_by_text(talk.GOT_IT)).to_have_count(1)
    await expect(thread(page).get_by_text(talk.QUALCOMM, exact=True)).to_have_count(1)

    # Alice's question is answered in her own conversation.
    cast.alice_may_ask.set()
    await members(page).get_by_role("link", name="Alice").click()
    # A toast may ask the same until she is on screen.
    card = thread(page).get_by_role("group", name="Alice asks")
    await card.get_by_text(talk.WHICH).wait_for()
    await card.get_by_role("textbox").fill(talk.DATA_CENTER)
    await card.get_by_role("button", name="Answer").click()
    await thread(page).get_by_text(f"You answered: {talk.DATA_CENTER}").wait_for()

    # Bob tells the coordinator, who asks the person and forwards the answer.
    await members(page).get_by_role("link", name="Coordinator").click()
    cast.qualcomm_is_in.set()
    card = thread(page).get_by_role("group", name="Coordinator asks")
    await card.get_by_text(talk.MAY_WE).wait_for()
    await cast.bob_is_told.reached()
    await card.get_by_role("textbox").fill(talk.MLPERF)
    await card.get_by_role("textbox").press("Enter")
    await show_work(page)
    await expect(thread(page).get_by_text(f"Human says: {talk.MLPERF}")).not_to_have_count(0)
    cast.bob_is_told.set()
    await expect(thread(page).get_by_text(f"{talk.STAGE_1} Starting synthesis.")).to_have_count(1)

    # A message to everyone is sent while the second stage is running.
    await cast.all_are_told.reached(2)
    await page.get_by_role("textbox", name="Message Coordinator").fill(talk.PRICES)
    await page.get_by_role("button", name="Tell everyone").dblclick()
    await page.get_by_text("The message was sent to everyone on the team.").wait_for()
    cast.all_are_told.set()

    await expect(thread(page).get_by_text("The report is written, with prices")).not_to_have_count(
        0
    )
    await tabs(page).get_by_role("link", name="Board").click()
    await page.get_by_role("main").get_by_role("treeitem", name=talk.GOAL).first.click()
    await page.get_by_role("link", name="report.md").first.click()
    await page.get_by_role("cell", name="80 %").wait_for()
    assert desk.model.refused == []


def asks_with_options(seen: Seen) -> Step:
    if is_reply(seen) or is_reflection(seen):
        return says(NOTED)
    answers = [message.text for message in seen.messages if message.role == "tool"]
    if not answers:
        return says(call("ask_human", question="Red or blue?", options=["red", "blue"]))
    return says(call("finish", summary=f"Painted it {answers[0]}."))


async def test_a_question_is_answered_from_the_toast(visit: Visit) -> None:
    desk = await visit(asks_with_options, path="/settings")
    page = desk.page
    await page.get_by_text("Live", exact=True).wait_for()

    await desk.found("Paint it", name="paint")

    toast = page.get_by_role("group", name="coordinator asks")
    await toast.get_by_text("Red or blue?").wait_for()
    await expect(page).to_have_title("(1) Settings · agiraph")
    await toast.get_by_role("button", name="blue").click()
    await expect(toast).to_have_count(0)
    await sidebar(page).get_by_role("link", name="paint").click()
    await expect(thread(page).get_by_text("You answered: blue")).to_have_count(1)
    await expect(thread(page).get_by_text("Painted it blue.")).not_to_have_count(0)


async def test_the_conversation_shows_what_its_agent_is_doing(visit: Visit) -> None:
    gate = Gate()

    async def play(seen: Seen) -> Step:
        if is_reply(seen) or is_reflection(seen):
            return says(NOTED)
        if reply_count(seen) == 0:
            return says(call("bash", command="until test -e go; do sleep 0.05; done"))
        await gate.wait()
        return says(call("finish", summary="It is counted."))

    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("Count the devices", name="count")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")

    doing = page.locator("#thread [data-live]")
    await expect(doing).to_contain_text("Coordinator runs until test -e go; do sleep 0.05; done")
    [scratch] = desk.home.glob("teams/*/nodes/*/scratch")
    (scratch / "go").write_text("")
    await gate.reached()
    await expect(doing).to_contain_text("Coordinator is thinking")
    gate.set()
    await thread(page).get_by_text("It is counted.").first.wait_for()
    await expect(doing).to_have_count(0)


def chats_meanwhile(seen: Seen) -> Step:
    if is_reply(seen):
        return says(NOTED, call("no_work_needed"))
    return asks_with_options(seen)


async def test_what_is_typed_below_an_open_question_answers_it(visit: Visit) -> None:
    desk = await visit(chats_meanwhile, path=EMPTY)
    page = desk.page
    team = await desk.found("Paint it", name="paint")
    await desk.up.wait_for_event(team["id"], "question.asked")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    chip = page.locator("[data-composer]").get_by_role("status")
    await expect(chip).to_have_text("Answering: Red or blue?")
    # As a message, it leaves the question open.
    await chip.get_by_role("button", name="Write a message instead").click()
    await expect(chip).to_contain_text("Not an answer")
    await page.locator("#composer").fill("How long does blue last?")
    await page.keyboard.press("Enter")
    await thread(page).get_by_text(NOTED).wait_for()
    await expect(thread(page).get_by_role("button", name="Answer")).to_be_visible()

    await chip.get_by_role("button", name="Answer it").click()
    await page.locator("#composer").fill("Blue, please")
    await page.keyboard.press("Enter")

    await thread(page).get_by_text("You answered: Blue, please").wait_for()
    await expect(chip).to_have_count(0)
    await expect(page.locator("#composer")).to_have_value("")
    await thread(page).get_by_text("Painted it Blue, please.").first.wait_for()
    await expect(page).to_have_title(re.compile(r"^(?!\()"))


async def test_words_begun_before_a_question_came_do_not_answer_it(visit: Visit) -> None:
    gate = Gate()

    async def play(seen: Seen) -> Step:
        if not (is_reply(seen) or is_reflection(seen)):
            await gate.wait()
        return chats_meanwhile(seen)

    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("Paint it", name="paint")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    await page.locator("#composer").fill("Take your time")
    gate.set()
    await thread(page).get_by_role("button", name="Answer").wait_for()
    await page.locator("#composer").press("Enter")

    await thread(page).get_by_text(NOTED).wait_for()
    [asked] = [one for one in (await desk.up.ask("GET", "/inbox"))["items"] if one["needs_answer"]]
    assert asked["message"]["text"] == "Red or blue?"


async def test_a_call_approved_in_the_inbox_is_made_once(visit: Visit) -> None:
    def play(seen: Seen) -> Step:
        if is_reply(seen) or is_reflection(seen):
            return says(NOTED)
        if reply_count(seen) == 0:
            return says(call("bash", command="echo once >> made.txt"))
        return says(call("finish", summary="It is made."))

    desk = await visit(play, path="/inbox")
    page = desk.page
    await page.get_by_text("Nobody is waiting for your answer.").wait_for()
    team = await desk.found("Make it", permissions=[{"tool": "bash", "action": "ask"}])

    await page.get_by_role("region", name="Items").get_by_role("link").first.click()
    card = page.get_by_role("main").get_by_role("group", name="Coordinator asks")
    await card.get_by_text("echo once").wait_for()
    await card.get_by_role("button", name="Approve").click()
    await page.get_by_text("You approved").wait_for()
    await desk.up.wait_for_event(team["id"], "team.completed")

    made = desk.home.glob("teams/*/nodes/*/*/made.txt")
    assert {file.parent.name: file.read_text() for file in made} == {
        "scratch": "once\n",
        "published": "once\n",
    }


async def test_a_person_can_message_a_worker_directly(visit: Visit) -> None:
    gate = Gate()

    async def play(seen: Seen) -> Step:
        name = talk.agent_name(seen)
        if is_reply(seen):
            return says(f"{name} here: {seen.messages[-1].text.splitlines()[-1][:80]}")
        if is_reflection(seen):
            return says("There is nothing to add.")
        if name == "alice":
            if reply_count(seen) == 0:
                await gate.wait()
                return says(call("checkpoint", summary="Looked."))
            heard = "pricing" if "Only the prices." in talk.new_text(seen) else "nothing"
            return says(call("publish", summary=f"Alice heard of {heard}."))
        if reply_count(seen) == 0:
            return says(
                call("spawn_worker", name="alice"),
                call("create_work_node", task="NVIDIA", assigned_to="alice"),
            )
        if reply_count(seen) == 1:
            return says(call("start_stage", name="research", nodes=talk.seen_created_nodes(seen)))
        return says(call("finish", summary="Done."))

    desk = await visit(play)
    page = desk.page
    team = await desk.found("Research it")
    await gate.reached()

    await desk.open(f"/t/{team['id']}")
    await members(page).get_by_role("link", name="Alice").click()
    await say(page, "Only the prices.")
    reply = thread(page).get_by_role("article").filter(has_text="alice here:")
    await expect(reply).to_have_count(1)
    await expect(reply).to_contain_text("Told its own work “NVIDIA”: “Only the prices.”")
    await expect(thread(page).get_by_text("Only the prices.", exact=True)).to_have_count(1)
    gate.set()
    await show_work(page)
    await expect(thread(page).get_by_text("Alice heard of pricing.")).not_to_have_count(0)
    await desk.up.wait_for_event(team["id"], "team.completed")


async def test_a_message_is_shown_before_the_server_has_it(visit: Visit) -> None:
    def play(seen: Seen) -> Step:
        return says(NOTED, call("no_work_needed")) if is_reply(seen) else says("Nothing.")

    desk = await visit(play, path=EMPTY)
    page = desk.page
    held: list[Route] = []
    arrived = Gate()

    async def delay_request(route: Route) -> None:
        held.append(route)
        await arrived.wait()
        await route.continue_()

    team = await desk.found("Wait for me", start=False)
    await desk.open(f"/t/{team['id']}")
    await page.get_by_role("textbox", name="Message Coordinator").wait_for()
    await page.route("**/api/agents/*/send", delay_request)

    await say(page, "Hello there")
    await thread(page).get_by_text("Sending…").wait_for()
    await expect(thread(page).get_by_text("Hello there", exact=True)).to_have_count(1)
    await expect(page.get_by_role("textbox", name="Message Coordinator")).to_have_value("")
    await arrived.reached()
    arrived.set()

    await expect(thread(page).get_by_text(NOTED)).to_have_count(1)
    await expect(thread(page).get_by_text("Sending…")).to_have_count(0)
    await expect(thread(page).get_by_text("Hello there", exact=True)).to_have_count(1)
    assert len(held) == 1
