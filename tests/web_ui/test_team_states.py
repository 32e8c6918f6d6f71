"""Team states: one word says how a team stands, and what was paused or stopped goes on."""

import pytest
from playwright.async_api import Page, expect

from agiraph.core.domain.ids import NodeId, StageId, TeamId, new_id
from agiraph.core.domain.stages import Stage, StageStatus
from agiraph.core.store.stages import STAGES
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from agiraph.testing.model_server import Seen, Step
from tests.scenarios.thread_queries import agent_name, reply_count
from tests.web_ui.browsing import EMPTY, Desk, Visit
from tests.web_ui.test_flow import is_reflection, is_reply, sidebar, thread

pytestmark = pytest.mark.asyncio(loop_scope="session")

SCREENS = ("board", "results", "files", "memory", "triggers", "cost", "timeline", "threads")


async def play(seen: Seen) -> Step:
    """Give a task away and ask a question; robin asks, too, and ends with the answer."""
    if is_reflection(seen):
        return says("There is nothing to add.")
    if is_reply(seen):
        return says("All right.", call("no_work_needed"))
    answered = any("Yes." in message.text for message in seen.messages)
    if agent_name(seen) != "coordinator":
        if answered:
            return says(call("publish", summary="Two pumps."))
        return says(call("ask_human", question="Which pumps?"))
    if reply_count(seen) == 0:
        return says(call("spawn_worker", name="robin"),
                    call("create_work_node", task="List the pumps.", title="List",
                         assigned_to="robin"))  # fmt: skip
    if answered:
        return says(call("finish", summary="All are listed."))
    return says(call("ask_human", question="Which country?"))


async def asking_team(visit: Visit) -> tuple[Desk, World, TeamId, str]:
    """Open a team whose two members wait for the person; return it with its address."""
    desk = await visit(play, path=EMPTY)
    team = await desk.found("Compare the pumps")
    here = f"/t/{team['id']}"
    await desk.go(f"{here}/a/{team['coordinator_id']}")
    assert desk.world is not None
    await desk.world.settle()
    return desk, desk.world, TeamId(team["id"]), here


async def answer_all(world: World, team: TeamId) -> None:
    await world.settle()
    for question in await world.questions(team):
        await world.answer(question, "Yes.")


async def expect_state(page: Page, word: str) -> None:
    """Check that the header and the sidebar have the icon of the same word."""
    header = page.locator("[data-team-header]")
    await expect(header.get_by_role("img", name=word, exact=True)).to_be_visible()
    link = sidebar(page).get_by_role("link", name="Compare the pumps", exact=True)
    await expect(link).to_have_accessible_description(word)


async def test_a_paused_team_says_so_on_every_screen_and_resumes_there(visit: Visit) -> None:
    desk, _, _, here = await asking_team(visit)
    page = desk.page
    await expect_state(page, "Needs you")
    await expect(page.locator("[data-team-bar]")).to_have_count(0)
    await page.get_by_role("button", name="Team actions").click()
    await page.get_by_role("menuitem", name="Pause the team").click()
    await expect_state(page, "Paused")
    for screen in SCREENS:
        await desk.go(f"{here}/{screen}")
        await expect_state(page, "Paused")
        await expect(page.locator("[data-team-bar]")).to_contain_text("The team is paused.")
    await page.locator("[data-team-bar]").get_by_role("button", name="Resume").click()
    await expect(page.locator("[data-team-bar]")).to_have_count(0)
    await expect_state(page, "Needs you")


async def test_a_stopped_team_starts_again_and_ends(visit: Visit) -> None:
    desk, world, team, _ = await asking_team(visit)
    page = desk.page
    await page.get_by_role("button", name="Team actions").click()
    await page.get_by_role("menuitem", name="Stop the team").click()
    question = page.get_by_role("dialog", name="Stop Compare the pumps?")
    await expect(question).to_contain_text("2 pieces of work stop at their next step")
    await expect(question).to_contain_text("List")
    await question.get_by_role("button", name="Stop", exact=True).click()
    await expect_state(page, "Stopped")
    # It says once, and plainly, who has stopped it.
    await thread(page).get_by_text("was cancelled by you").first.wait_for()
    await expect(thread(page).get_by_text("It was cancelled before")).to_have_count(0)
    await expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)

    await page.locator("[data-team-bar]").get_by_role("button", name="Start again").click()
    await expect_state(page, "Needs you")
    await answer_all(world, team)
    await expect_state(page, "Done")


async def test_a_stopped_task_starts_again_from_its_details(visit: Visit) -> None:
    desk, world, team, here = await asking_team(visit)
    page = desk.page
    board = await desk.up.ask("GET", f"/teams/{team}/board")
    [task] = [node["id"] for node in board if node["title"] == "List"]
    await desk.go(f"{here}/board?node={task}")
    details = page.get_by_role("region", name="About this task")
    stop = page.get_by_role("button", name="Stop", exact=True)
    await expect(stop).to_have_count(1)
    await stop.click()
    question = page.get_by_role("dialog", name="Stop this task?")
    await expect(question).to_contain_text("List stops at the next step.")
    await question.get_by_role("button", name="Stop", exact=True).click()
    await expect(details).to_contain_text("Stopped by you, ")
    await details.get_by_role("button", name="Start again", exact=True).click()
    await expect(details).not_to_contain_text("Stopped by you, ")
    await world.settle()
    assert (await world.node(task)).status == "waiting"


async def test_work_of_a_paused_team_does_not_start_soon(visit: Visit) -> None:
    desk, world, team, _ = await asking_team(visit)
    page = desk.page
    await desk.up.ask("POST", f"/teams/{team}/pause")
    await answer_all(world, team)
    cards = page.get_by_role("region", name="Work in progress")
    await expect(cards).to_contain_text("waits: the team is paused")
    await expect(cards).not_to_contain_text("starts soon")


async def test_the_plan_says_in_words_how_a_stage_ended(visit: Visit) -> None:
    desk = await visit([says("I wait.")], path=EMPTY)
    team = await desk.found("Compare the pumps", start=False)
    assert desk.world is not None
    ends: dict[StageStatus, str] = {"met": "Done", "broken": "Not completed"}

    def end(tx: Tx) -> None:
        for status in ends:
            stage = Stage(
                id=StageId(new_id("stage")), team_id=TeamId(team["id"]), name=f"the {status}",
                node_id=NodeId("node_of_the_goal"), created_at=tx.now, status=status,
                ended_at=tx.now,
            )  # fmt: skip
            STAGES.insert(tx, stage)

    await desk.world.store.write(end)
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    plan = desk.page.locator("section", has=desk.page.get_by_role("heading", name="Plan"))
    await expect(plan.get_by_role("listitem")).to_have_text(
        [f"The {status}{words}" for status, words in ends.items()]
    )
