"""Research that work begins after it has read a page: its readers ask before they open an address
that nobody gave them."""

from pathlib import Path

import pytest

from agiraph.testing import call, says
from tests.research.kit import (
    OLD_GUIDE,
    QUESTION,
    SURVEY,
    SURVEYED,
    Cast,
    Scene,
    Step,
    reads,
    scene,
)

FETCHED, NOTED, ENDED = reads(SURVEYED, ("It measured 330 metres.", SURVEY))
WAITS = says(call("web_fetch", url=SURVEYED, wait=True))
NOTHING = "No evidence was found, so the report states nothing."


async def begin(it: Scene) -> None:
    """Have the coordinator read a page, and then start the research."""
    it.world.script(
        "ada",
        says("I read it.", call("start_work", task="Read the old guide, then find out more")),
        says(call("web_fetch", url=OLD_GUIDE)),
        says(call("research_start", goal=QUESTION, depth="quick")),
        *[says("It is under way.")] * 9,
    )
    await it.world.chat(it.team.coordinator.id, "Read the guide, then find out how tall it is.")
    await it.world.settle()


@pytest.mark.parametrize(
    "reader",
    [
        pytest.param([FETCHED, WAITS, NOTED, ENDED], id="it waits for the person"),
        pytest.param([WAITS, NOTED, ENDED], id="it waits at once"),
        pytest.param([FETCHED, FETCHED, NOTED, ENDED], id="it repeats the call"),
    ],
)
async def test_a_reader_opens_the_page_once_a_person_allows_it(
    tmp_path: Path, reader: list[Step]
) -> None:
    async with scene(tmp_path, Cast(readers={QUESTION: reader})) as it:
        await begin(it)
        assert it.web.visited("survey.example") == []
        [asked] = await it.world.questions(it.team.team.id)
        await it.world.answer(asked, decision="approve")
        await it.world.settle()
        assert it.web.visited("survey.example") == ["/2022"]
        assert [quote for _, _, quote in await it.ledger(await it.job())] == [SURVEY]
        assert NOTHING not in await it.report()


@pytest.mark.parametrize(
    "reader",
    [
        pytest.param([FETCHED, NOTED, ENDED], id="it goes on as if it had read the page"),
        pytest.param([FETCHED, ENDED], id="it ends at once"),
    ],
)
async def test_a_reader_that_does_not_wait_has_read_nothing(
    tmp_path: Path, reader: list[Step]
) -> None:
    async with scene(tmp_path, Cast(readers={QUESTION: reader})) as it:
        await begin(it)
        assert it.web.visited("survey.example") == []
        assert await it.ledger(await it.job()) == []
        assert (await it.report()).startswith(NOTHING)
