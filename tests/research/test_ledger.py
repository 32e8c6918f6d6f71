"""The ledger: an entry needs words that stand on a page which this job has read."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import ThreadId
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.board import planning
from agiraph.core.services.members.roster import Hirer
from agiraph.core.store import teams
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx
from agiraph.features.research.model import kinds as research_kinds
from agiraph.features.research.model.jobs import EvidenceRow, Reading
from agiraph.features.research.rows import evidence
from agiraph.features.research.rows import jobs as research
from agiraph.features.research.rows.jobs import JOBS
from agiraph.features.research.verbs import ledger, starting
from agiraph.features.research.verbs.ledger import NotOnPage, NotRead
from agiraph.testing import World
from tests.research.kit import FACTS, OPENED, SURVEY, SURVEYED, TALL
from tests.wording import Wording, refusals_of

PAGE = f"# The tower\n\n{TALL}\n{OPENED}\n"


class Desk(NamedTuple):
    """A job with a reader that has read two pages."""

    world: World
    job: WorkNode
    reader: WorkNode

    async def note(
        self, call_id: str, quote: str, url: str = FACTS, claim: str = "A claim."
    ) -> EvidenceRow | NotRead | NotOnPage:
        ledger.check_lengths(claim, quote)
        pages = await self.world.store.read(ledger.pages_at, self.reader, url)
        found = pages if isinstance(pages, NotRead) else ledger.look_up(pages, quote)
        if isinstance(found, (NotRead, NotOnPage)):
            return found
        given = {"claim": claim, "url": url, "stance": "supports"}
        return await self.world.store.write(ledger.note, self.reader, call_id, found, **given)

    async def rows(self) -> list[tuple[str, str]]:
        found = await self.world.store.read(evidence.of_job, self.job.id)
        return [(row.id, row.quote) for row in found]


def _job(tx: Tx, lead: Agent, earlier: WorkNode | None = None) -> tuple[WorkNode, WorkNode]:
    TEAMS.update(tx, lead.team_id, status="paused")  # so that nobody runs the job
    hirer = Hirer(lead, ThreadId("t_none"), {}, lambda name: None)
    job = starting.start(tx, hirer, "How tall is it?", earlier=earlier)
    reader = planning.create(
        tx,
        team_id=job.team_id,
        task="How tall?",
        source="delegation",
        parent_id=job.id,
        kind=research_kinds.step("reader", is_labelled=False),
    )
    reading = Reading(number=1, question="How tall?", node_id=reader.id)
    JOBS.update(tx, job.id, readings=(reading,))
    return job, reader


@pytest.fixture
async def desk(tmp_path: Path, database_url: str) -> AsyncIterator[Desk]:
    async with World(tmp_path / "home", database_url=database_url) as world:
        world.script("ada")
        team = await world.found("Towers", start=False)
        job, reader = await world.store.write(_job, team.coordinator)
        for url, text in ((FACTS, PAGE), (SURVEYED, SURVEY)):
            await world.store.write(ledger.keep_page, reader, url=url, title="A page", text=text)
        yield Desk(world, job, reader)


async def test_words_of_the_page_are_noted_with_all_that_is_known_of_them(desk: Desk) -> None:
    noted = await desk.note("call_1", "the grand tower is 330 metres tall")
    assert isinstance(noted, EvidenceRow)
    assert (noted.number, noted.question, noted.stance) == (1, 1, "supports")
    assert PAGE[noted.place :].startswith("The Grand Tower is 330 metres")
    assert (noted.url, noted.title, noted.checked) == (FACTS, "A page", "exact")
    assert (noted.quote, noted.label) == ("The Grand Tower is 330 metres tall", of_page(FACTS))


@pytest.mark.parametrize(
    ("quote", "url"),
    [
        ("The tower was built by giants in a single night.", FACTS),  # invented
        (SURVEY, FACTS),  # from another page
        (TALL.replace("330", "331"), FACTS),  # a changed number
    ],
)
async def test_words_that_are_not_on_that_page_are_not_noted(
    desk: Desk, quote: str, url: str
) -> None:
    assert isinstance(await desk.note("call_1", quote, url), NotOnPage)
    assert await desk.rows() == []


async def test_the_nearest_words_of_the_page_are_named(desk: Desk) -> None:
    noted = await desk.note("call_1", TALL.replace("330", "331"))
    assert isinstance(noted, NotOnPage)
    assert "330 metres" in noted.nearest


async def test_a_page_that_this_job_has_not_read_gives_no_evidence(desk: Desk) -> None:
    """Also if another job of the team has read it."""
    elsewhere = "http://elsewhere.example/"
    _, other = await desk.world.store.write(_job, await _lead(desk))
    await desk.world.store.write(ledger.keep_page, other, url=elsewhere, title="", text=TALL)
    noted = await desk.note("call_1", TALL, elsewhere)
    assert isinstance(noted, NotRead)
    assert set(noted.read) == {FACTS, SURVEYED}
    assert await desk.rows() == []


async def _lead(desk: Desk) -> Agent:
    return await desk.world.store.read(teams.coordinator, desk.job.team_id)


@pytest.mark.parametrize("url", [FACTS + "/", FACTS.replace("http:", "https:"), FACTS + "#top"])
async def test_small_differences_of_an_address_do_not_matter(desk: Desk, url: str) -> None:
    assert isinstance(await desk.note("call_1", TALL, url), EvidenceRow)


async def test_a_call_that_is_made_again_after_a_crash_notes_nothing_twice(desk: Desk) -> None:
    first = await desk.note("call_1", TALL)
    assert await desk.note("call_1", TALL) == first
    assert await desk.rows() == [("e1", TALL)]


WRONG_LENGTHS = [
    ("x" * 301, TALL),
    ("A claim.", TALL * 20),
    ("A claim.", "tall"),
]


async def test_a_claim_or_quotation_of_a_wrong_length_is_refused(
    desk: Desk, wording: Wording
) -> None:
    wording(
        await refusals_of(
            WRONG_LENGTHS, lambda claim, quote: desk.note("call_1", quote, claim=claim)
        )
    )


async def test_a_page_whose_address_holds_the_words_proves_nothing(desk: Desk) -> None:
    """A search page repeats what it was asked for, and a model can ask it for anything."""
    url = "http://find.example/search?q=The%20tower+is+999%20metres%20tall"
    text = "No results for “The tower is 999 metres tall.”\n\nThe tower has many lifts.\n"
    await desk.world.store.write(ledger.keep_page, desk.reader, url=url, title="Find", text=text)
    for quote in (
        "The tower is 999 metres tall.",
        "“the tower is 999 metres tall”",
        "The tower is 999 metres tall … many lifts",
    ):
        with pytest.raises(Refused, match="the address of this page holds the quoted words"):
            await desk.note("call_1", quote, url)
    assert await desk.rows() == []
    assert isinstance(await desk.note("call_2", "The tower has many lifts.", url), EvidenceRow)


@pytest.mark.parametrize(
    ("url", "holds"),
    [
        ("http://a.example/find/The%20Grand%20Tower%20is%20tall/1", True),
        ("http://a.example/find?q=x&say=the-grand-tower-is-tall", True),
        ("http://a.example/find?q=the%2520grand%2520tower%2520is%2520tall", True),
        ("http://a.example/news/the-grand-tower-is-tall", False),  # the title of an article
        ("http://a.example/find?q=grand+tower", False),
    ],
)
def test_words_are_looked_for_in_the_path_and_the_query(url: str, holds: bool) -> None:
    assert ledger.is_in_address("The Grand Tower is tall.", url) is holds


async def test_a_quotation_that_covers_too_much_of_a_page_is_refused(desk: Desk) -> None:
    url = "http://long.example/"
    text = f"The tower {'*' * 1200} is tall by all accounts.\n"
    await desk.world.store.write(ledger.keep_page, desk.reader, url=url, title="", text=text)
    with pytest.raises(Refused, match="characters long on the page; at most 1200 are noted"):
        await desk.note("call_1", "The tower is tall by all accounts.", url)


async def test_a_page_that_changed_keeps_both_versions(desk: Desk) -> None:
    new = PAGE.replace("330", "333")
    await desk.world.store.write(ledger.keep_page, desk.reader, url=FACTS, title="A page", text=new)
    assert isinstance(await desk.note("call_1", TALL), EvidenceRow)
    assert isinstance(await desk.note("call_2", TALL.replace("330", "333")), EvidenceRow)
    assert await desk.world.store.read(research.count_pages, desk.job.id) == 2


async def test_a_later_job_has_the_ledger_of_the_one_that_it_continues(desk: Desk) -> None:
    await desk.note("call_1", TALL)
    job, reader = await desk.world.store.write(_job, await _lead(desk), desk.job)
    later = Desk(desk.world, job, reader)
    await desk.world.store.write(
        ledger.keep_page, reader, url=SURVEYED, title="A page", text=SURVEY
    )
    await later.note("call_1", SURVEY, SURVEYED)
    assert await later.rows() == [("e1", TALL), ("e2", SURVEY)]
    rows = await desk.world.store.read(evidence.of_job, job.id)
    assert [row.question for row in rows] == [0, 1]
    assert await desk.rows() == [("e1", TALL)]


async def test_only_a_reader_of_a_research_notes_evidence(desk: Desk) -> None:
    with pytest.raises(Refused, match="readers of a research only"):
        await desk._replace(reader=desk.job).note("call_1", TALL)


def test_addresses_are_compared_without_scheme_www_slash_and_fragment() -> None:
    assert ledger.address_of("HTTPS://www.Tower.example/Facts/#x") == "tower.example/Facts"
    assert ledger.address_of("tower.example/a?b=1") == "tower.example/a?b=1"


async def test_a_follow_up_has_the_label_of_the_job_that_it_continues(desk: Desk) -> None:
    label = of_page("http://evil.example/")
    await desk.world.store.write(NODES.update, desk.job.id, label=label)
    labelled = await desk.world.node(desk.job.id)
    job, _ = await desk.world.store.write(_job, await _lead(desk), labelled)
    assert (await desk.world.node(job.id)).label == label


async def test_a_circle_of_jobs_that_continue_each_other_is_followed_once(desk: Desk) -> None:
    await desk.world.store.write(JOBS.update, desk.job.id, continues=desk.job.id)
    assert await desk.world.store.read(research.chain, desk.job.id) == [desk.job.id]
