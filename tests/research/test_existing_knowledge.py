"""Existing knowledge: planning is shown what the team has found out, and a report adds to it."""

from pathlib import Path

import pytest

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.domain.work import NodeStatus
from agiraph.core.store.teams import TEAMS
from agiraph.features.knowledge.verbs import items
from agiraph.testing import says
from tests.research.kit import (
    FACTS,
    QUESTION,
    SECRET,
    SURVEY,
    SURVEYED,
    TALL,
    Cast,
    brief_of,
    reads,
    scene,
)

READER = reads(FACTS, ("It is 330 metres tall.", TALL))
AGAIN = "How tall is the Grand Tower today?"
SURVEYS = reads(SURVEYED, ("It measured 330 metres.", SURVEY))
KNOWN = "# What is known from earlier research"


async def test_a_second_research_on_a_subject_is_planned_with_what_the_first_found(
    tmp_path: Path, database_url: str
) -> None:
    cast = Cast(readers={QUESTION: READER})
    async with scene(tmp_path, cast, database_url=database_url) as it:
        first = await it.start()
        assert KNOWN not in cast.asked("brief")[0][0]
        cast.brief = [says(brief_of(AGAIN, builds_on=first.id))]
        cast.readers = {AGAIN: SURVEYS}
        cast.writing = [says("## Answer\n\nBoth say 330 metres [e1, e2].\n")]
        second = await it.start(AGAIN)
        system, _ = cast.asked("brief")[-1]
        assert (KNOWN in system, TALL in system, first.id in system) == (True, True, True)
        # Words of pages and of the team do not meet: the readers are public.
        assert SECRET not in system
        assert second.status is NodeStatus.COMPLETED
        assert [quote for _, _, quote in await it.ledger(second)] == [TALL, SURVEY]
        assert (await it.report()).startswith("## Answer\n\nBoth say 330 metres [1][2].")
        [item] = [m for m in await it.world.inbox() if m.node_id == second.id]
        assert set(of_page(FACTS).sources) <= set(item.label.sources)


@pytest.mark.parametrize(
    ("again", "is_known"),
    [
        ("What is the height of the Grand Tower?", True),
        ("Wie hoch ist der Grand Tower, und seit wann?", True),
        ("Grand Tower: height, year of opening, visitors a day", True),
        ("How tall is the lighthouse of Genoa?", False),
        ("Which soup tastes best with carrots?", False),
    ],
)
async def test_a_subject_is_known_in_other_words(
    tmp_path: Path, again: str, is_known: bool
) -> None:
    cast = Cast(readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:
        first = await it.start()
        await it.start(again)
        system, _ = cast.asked("brief")[-1]
        assert (first.id in system) is is_known


async def test_research_on_another_subject_is_planned_with_the_goal_alone(tmp_path: Path) -> None:
    other = "Which paint resists salt water and frost?"
    cast = Cast(readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:
        first = await it.start()
        cast.brief = [says(brief_of(other, builds_on=first.id))]
        second = await it.start(other)
        system, _ = cast.asked("brief")[-1]
        assert (KNOWN in system, TALL in system, SECRET in system) == (False, False, True)
        # It was not shown, so it cannot be built on.
        assert await it.ledger(second) == []


async def test_planning_is_shown_insights_about_the_question(tmp_path: Path) -> None:
    cast = Cast(readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:
        lead = it.team.coordinator
        for said in ("The Grand Tower has an antenna.", "Soup is best when hot."):
            await it.world.store.write(items.learn, lead, "fact", said, author=OWNER)
        await it.start()
        system, _ = cast.asked("brief")[0]
        assert "# What the team knows" in system
        assert "The Grand Tower has an antenna." in system
        assert "Soup" not in system


async def test_a_report_leaves_unverified_facts_with_the_labels_of_their_pages(
    tmp_path: Path, database_url: str
) -> None:
    cast = Cast(readers={QUESTION: READER})
    async with scene(tmp_path, cast, database_url=database_url) as it:
        await it.world.store.write(TEAMS.update, it.team.team.id, learns=True)
        await it.start()
        found = await it.world.store.read(items.unverified, it.team.team.id)
        facts = [(f.text.partition(" (")[0], f.label) for f in found]
        assert facts == [("It is 330 metres tall.", of_page(FACTS))]
