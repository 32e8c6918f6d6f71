"""Cards and live rows: what needs a person is said in words, and what agents do has a line."""

import re

import pytest
from playwright.async_api import Locator, expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Stall, Step
from tests.runtime.waiting import Gate
from tests.scenarios.thread_queries import agent_name, reply_count
from tests.web_ui.browsing import EMPTY, Visit
from tests.web_ui.test_flow import is_reflection, is_reply, thread

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOTED = "There is nothing to add."
QUESTION = "## Which **shirt**?\n\n- the `red` one\n- the *blue* one"
OPTIONS = ["**Red**", "`Blue`"]
RAW = re.compile(r"\*\*|##|`")


async def test_a_question_is_read_as_markdown_wherever_it_stands(visit: Visit) -> None:
    def play(seen: Seen) -> Step:
        if is_reply(seen) or is_reflection(seen):
            return says(NOTED)
        if reply_count(seen) == 0:
            return says(call("ask_human", question=QUESTION, options=OPTIONS))
        return says(call("finish", summary="# Packed\n\nThe **red** one."))

    desk = await visit(play, path="/settings")
    page = desk.page
    await page.get_by_text("Live", exact=True).wait_for()
    team = await desk.found("Pack", name="pack", review="never")

    async def read(card: Locator) -> None:
        await expect(card.get_by_role("heading", name="Which shirt?")).to_be_visible()
        await expect(card.locator("strong")).to_have_text("shirt")
        await expect(card.get_by_role("listitem")).to_have_text(["the red one", "the blue one"])
        await expect(card.locator("[data-choice]")).to_have_text(["Red", "Blue"])
        await expect(card).not_to_contain_text(RAW)

    await read(page.get_by_role("group", name="coordinator asks"))
    await desk.go("/inbox")
    row = page.get_by_role("region", name="Items").get_by_role("listitem").filter(has_text="shirt")
    await expect(row).not_to_contain_text(RAW)
    await row.get_by_role("link").click()
    await read(page.locator("[data-question]"))
    await desk.go(f"/t/{team['id']}/files")
    await expect(page.locator("[data-waiting]")).to_contain_text("Which shirt?")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    await read(thread(page).locator("[data-question]"))
    await expect(page.locator("[data-composer]").get_by_role("status")).not_to_contain_text(RAW)
    # Its card is on screen: neither the bar nor a card of the work says it again.
    await expect(page.locator("[data-waiting]")).to_have_count(0)
    await expect(page.get_by_role("region", name="Work in progress")).to_have_count(0)

    # The answer has the words of the option, and the result is no preview of its title.
    await thread(page).get_by_text("Which shirt?").wait_for()
    await thread(page).get_by_role("button", name="Red").press("Enter")
    await thread(page).get_by_text("You answered: Red").wait_for()
    await desk.go("/inbox")
    result = page.get_by_role("listitem").filter(has_text="The red one.")
    await expect(result).not_to_contain_text(RAW)


LETTER = "Dear all, " * 200
POST = {"to": "all", "tags": ["new\u200b", "list"]}


async def test_an_approval_says_why_and_what_can_go_wrong_and_shows_every_argument(
    visit: Visit,
) -> None:
    def play(seen: Seen) -> Step:
        if is_reply(seen) or is_reflection(seen):
            return says(NOTED)
        if reply_count(seen) == 0:
            wait = {"type": "delayed", "config": POST | {"delay_seconds": 60}, "action": LETTER}
            return says(
                "The build folder is **stale**, so I clean it.",
                call("bash", command="rm -r build"),
                call("schedule", **wait),
            )
        return says(call("finish", summary="Cleaned."))

    asked = [{"tool": tool, "action": "ask"} for tool in ("bash", "schedule")]
    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("Build", permissions=asked, review="never")
    await desk.up.wait_for_event(team["id"], "node.waiting")
    await desk.go("/inbox")
    items = page.get_by_role("region", name="Items")
    await items.get_by_role("listitem").filter(has_text="rm -r build").get_by_role("link").click()
    card = page.locator("[data-question]")
    await expect(card.locator("[data-reason]")).to_contain_text("The build folder is stale, so")
    await expect(card.locator("[data-risks]")).to_have_text(
        "What can go wrong: it runs a command, and it cannot be undone."
    )
    await expect(card.locator("[data-argument=command]")).to_have_text("rm -r build")
    await expect(card).not_to_contain_text(re.compile("null|Not given"))

    # Enter sends the note and never approves with it; Shift+Enter begins a line.
    note = card.get_by_role("textbox", name="A note")
    await note.fill("No, keep it.")
    await note.press("Shift+Enter")
    await note.press_sequentially("Why now?")
    await expect(card).to_contain_text("Enter denies with it")
    await note.press("Enter")
    await page.get_by_text("You denied").first.wait_for()
    decided = await desk.up.ask("GET", f"/teams/{team['id']}/events?limit=500")
    [answer] = [e["data"] for e in decided if e["type"] == "question.answered"]
    assert (answer["decision"], answer["text"]) == ("deny", "No, keep it.\nWhy now?")


async def test_an_argument_that_is_no_text_is_a_table_and_a_long_one_is_folded(
    visit: Visit,
) -> None:
    def play(seen: Seen) -> Step:
        if is_reply(seen) or is_reflection(seen):
            return says(NOTED)
        timing = {"type": "delayed", "config": {"delay_seconds": 86_400}}
        return says(call("schedule", **timing, action=LETTER))

    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("Tell all", permissions=[{"tool": "schedule", "action": "ask"}])
    await desk.up.wait_for_event(team["id"], "node.waiting")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    card = thread(page).locator("[data-question]")
    config = card.locator("[data-argument=config]")
    await expect(config.get_by_role("row")).to_have_text(re.compile("delay_seconds86400"))
    await expect(card.locator("[data-reason]")).to_have_text("It wrote no reason.")
    # All of it is there before the decision, and only who has read it may approve.
    letter = card.locator("[data-argument=action]")
    approve = card.get_by_role("button", name="Approve")
    await expect(approve).to_be_disabled()
    folded = await letter.bounding_box()
    await card.get_by_role("button", name="Unfold 2,000 characters").press("Enter")
    unfolded = await letter.bounding_box()
    assert folded is not None
    assert unfolded is not None
    assert folded["height"] < unfolded["height"]
    assert (await letter.inner_text()).startswith(LETTER.rstrip())
    # The button goes by itself once the end is in view, so it is not waited for.
    go_on = card.get_by_role("button", name="Go on reading")
    while not await approve.is_enabled():
        await go_on.evaluate_all("(found) => found[0]?.click()")
        await page.evaluate("new Promise((done) => requestAnimationFrame(done))")


async def test_each_working_agent_has_one_line_that_folds_when_it_is_done(visit: Visit) -> None:
    read, thought = Gate(), Gate()
    words = "The list names **two** pumps, and the second one is cheaper than the first."

    async def play(seen: Seen) -> Step:
        if is_reply(seen) or is_reflection(seen):
            return says(NOTED)
        if agent_name(seen) == "coordinator":
            steps = [
                says(call("spawn_worker", name="ana")),
                says(call("assign_task", agent="ana", description="Compare", task="Compare them.")),
                says(call("ask_human", question="Which pump?")),
            ]
            return steps[min(reply_count(seen), 2)]
        if reply_count(seen) == 0:
            return says(call("write_file", path="geraete.md", content="1\n2"))
        if reply_count(seen) == 1:
            await read.wait()
            return says(words, call("bash", command="until test -e go; do sleep 0.05; done"))
        await thought.wait()
        return says(call("publish", summary="The second one."))

    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("Pumps", review="never")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    line = thread(page).locator("[data-agent]").filter(has_text="Ana")
    await expect(line).to_have_count(1)
    await expect(line).to_contain_text("Ana is thinking")
    read.set()
    await expect(line).to_contain_text("Ana runs until test -e go")
    [scratch] = [p.parent for p in desk.home.glob("teams/*/nodes/*/scratch/geraete.md")]
    (scratch / "go").write_text("")
    await expect(line).to_contain_text("Ana is thinking")
    thought.set()
    # Once it is done, the same line says how many steps it took, and opens to them.
    await expect(line.and_(page.locator("[data-live]"))).to_have_count(0)
    await expect(line).to_have_count(1)
    await expect(line).to_contain_text(re.compile(r"^Ana · \d+ steps · "))
    await line.get_by_role("button", name="Show the steps of Ana").press("Enter")
    steps = thread(page).get_by_role("group", name="Steps")
    await expect(steps).to_contain_text("The list names two pumps")
    await steps.get_by_role("button", name="tool call").first.wait_for()

    # The page of a worker opens on what it does, that of the coordinator on its conversation.
    await line.get_by_role("link", name="Ana").press("Enter")
    work = page.get_by_role("button", name="Work", exact=True)
    await expect(work).to_have_attribute("aria-pressed", "true")
    await thread(page).get_by_text("The list names two pumps").wait_for()
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    await expect(work).to_have_attribute("aria-pressed", "false")


async def test_the_words_of_work_stream_in_the_line_of_their_agent(visit: Visit) -> None:
    def play(seen: Seen) -> Step:
        if is_reply(seen) or is_reflection(seen):
            return says(NOTED)
        words = "The data sheets say **600 W**, but what counts is the draw at the socket. " * 3
        return Stall(after_bytes=3_000, then=says(words))

    desk = await visit(play, path=EMPTY)
    team = await desk.found("Measure")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    line = thread(desk.page).locator("[data-live]")
    await expect(line).to_have_count(1)
    await expect(line.locator("strong").first).to_have_text("600 W")
    await expect(line).to_contain_text("Coordinator is thinking")


async def test_a_partial_result_shows_words_and_files_and_no_calls(visit: Visit) -> None:
    def play(seen: Seen) -> Step:
        if is_reply(seen) or is_reflection(seen):
            return says(NOTED)
        step = str(reply_count(seen))
        return says(call("write_file", path=f"list-{step}.md", content=f"# List {step}"))

    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("List the pumps", budget={"turns": 2}, review="never")
    await desk.up.wait_for_event(team["id"], "node.partial")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    result = thread(page).get_by_role("article").filter(has_text="Partial result")
    await expect(result).to_contain_text("It gave no summary.")
    await expect(result).not_to_contain_text(re.compile(r"write_file|\{|tool_call"))
    file = result.get_by_role("list", name="Files").get_by_role("link", name="list-0.md")
    await file.press("Enter")
    await page.get_by_role("heading", name="List 0").wait_for()
