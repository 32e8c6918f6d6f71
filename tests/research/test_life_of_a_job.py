"""The life of a research job: limits, steering, more budget, follow-ups, no search engine."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.agents import Agent, Limits
from agiraph.core.domain.ids import AgentId, ThreadId, new_id
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import of_client
from agiraph.core.domain.work import Extension, NodeStatus, StopReason, WorkNode
from agiraph.core.home.specialists import specialists
from agiraph.core.services.lifecycle import (
    answers,
    continuations,
    conversation,
    endings,
    routing,
    work_state,
)
from agiraph.core.services.members.roster import Hirer
from agiraph.core.store import messages, spend
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.tx import Tx
from agiraph.features.research.model.jobs import DEPTHS
from agiraph.features.research.model.kinds import part_of
from agiraph.features.research.rows.jobs import JOBS
from agiraph.features.research.verbs import starting
from agiraph.testing import call, says
from agiraph.web.access import Web
from agiraph.web.search import NO_ENGINE
from tests.research.kit import (
    FACTS,
    OPENED,
    QUESTION,
    REPORT,
    SURVEY,
    SURVEYED,
    TALL,
    Cast,
    Scene,
    brief_of,
    once,
    reads,
    scene,
)

READER = reads(FACTS, ("It is 330 metres tall.", TALL))
SECOND = "What did the survey find?"


async def test_when_the_money_is_gone_the_report_has_what_there_is(tmp_path: Path) -> None:
    """The first reader notes something and then spends all that it has; nothing is left to look
    for gaps or to write."""
    dear = replace(says(call("web_search", query="tower")), input_tokens=80_000)
    cast = Cast(
        brief=[says(brief_of(QUESTION, SECOND, kind="survey"))],
        readers={QUESTION: [*READER[:2], *[dear] * 20], SECOND: [dear] * 20},
        writing=[replace(says(REPORT), input_tokens=80_000)],
    )
    async with scene(tmp_path, cast) as it:
        job = await it.start(depth="quick")
        assert (job.status, job.stop_reason) == (NodeStatus.PARTIAL, StopReason.TOKENS_SPENT)
        assert await it.ledger(job) == [("e1", "It is 330 metres tall.", TALL)]
        report = await it.report()
        assert "It is 330 metres tall [1]" in report
        assert "The research stopped early: its tokens are used up." in report
        used = await it.world.store.read(spend.total, job.id)
        assert used.tokens < 2 * DEPTHS["quick"].tokens


async def test_a_job_without_a_search_engine_is_refused_with_the_settings(tmp_path: Path) -> None:
    cast = Cast()
    async with scene(tmp_path, cast, web=Web()) as it:
        ada = it.world.script(
            "ada",
            says("I look into it.", call("research_start", goal=QUESTION)),
            says("I cannot search.", call("no_work_needed")),
        )
        await it.world.store.write(
            conversation.say, it.team.coordinator.id, QUESTION, person_id=OWNER
        )
        await it.world.settle()
        assert await it.world.board(it.team.team.id) == []
        answers = [t.text for t in ada.requests[-1].turns if t.role == "tool"]
        assert NO_ENGINE in answers[-1]
        assert cast.requests == []


async def test_a_job_that_is_started_elsewhere_without_an_engine_asks_no_model(
    tmp_path: Path,
) -> None:
    cast = Cast()
    async with scene(tmp_path, cast, web=Web()) as it:
        job = await _start_by_api(it)
        assert (job.status, job.stop_reason) == (NodeStatus.FAILED, StopReason.NO_RESULT)
        [item] = await it.world.inbox()
        assert (item.kind, item.text) == ("failure", f"There is no report. {NO_ENGINE}")
        assert cast.requests == []


async def _start_by_api(it: Scene, question: str = QUESTION, **more: Any) -> Any:
    known = specialists(it.world.runtime.home)
    hirer = Hirer(it.team.coordinator, ThreadId(""), known, lambda name: None)
    node = await it.world.store.write(starting.start, hirer, question, person_id=OWNER, **more)
    await it.world.settle()
    return await it.world.node(node.id)


async def test_a_question_that_names_a_page_needs_no_engine(tmp_path: Path) -> None:
    question = f"How tall is the tower of {FACTS}?"
    cast = Cast(brief=[says(brief_of(question))], readers={"How tall": READER})
    async with scene(tmp_path, cast) as it:
        without = replace(it.web.access, engine=None)
    async with scene(tmp_path / "again", cast, web=without) as it:
        job = await it.start(question)
        # It was read for, and nothing was noted; without the page it would not have begun.
        assert (job.stop_reason, len(cast.asked("brief"))) == (StopReason.NOT_REACHED, 1)


async def test_words_of_a_person_reach_the_next_look_for_gaps(tmp_path: Path) -> None:
    """Also of a quick job, which looks for gaps only because of them; the ledger is kept."""
    said = "Take only the survey of 2022."

    def tells(_: Any) -> Any:
        return READER[1]

    cast = Cast(
        readers={QUESTION: [READER[0], tells, READER[2]], SECOND: reads(SURVEYED, ("330", SURVEY))},
        gaps=[says(json.dumps({"missing": [], "next": [SECOND]}))],
        writing=[says("## Answer\n\nThe tower is 330 metres tall [e2].\n")],
    )
    async with scene(tmp_path, cast) as it:
        cast.before_reading = once(lambda: it.tell(said))
        job = await it.start()
        assert [part_of(n) for n in await it.parts(job)] == ["reader", "gaps", "reader", "writing"]
        assert said in cast.asked("gaps")[0][0]
        assert said in cast.asked("writing")[0][0]
        assert [quote for _, _, quote in await it.ledger(job)] == [TALL, SURVEY]
        assert job.status is NodeStatus.COMPLETED


async def closed_questions(it: Any) -> list[Message]:
    """Return the questions that closed with the research that asked."""
    return await it.world.store.read(
        MESSAGES.select, "kind = 'question' and closed_at is not null order by id"
    )


async def test_the_person_is_asked_once_and_nobody_waits_for_the_answer(tmp_path: Path) -> None:
    brief = brief_of(QUESTION, ask="With or without the antenna?", assumptions=["With the antenna"])
    cast = Cast(brief=[says(brief)], readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:
        job = await it.start()
        [question] = await closed_questions(it)
        assert question.text.startswith("With or without the antenna?\n\nI begin with this reading")
        assert job.status is NodeStatus.COMPLETED
        assert "With the antenna" in await it.report()


async def test_a_job_of_other_work_asks_nobody(tmp_path: Path) -> None:
    brief = brief_of(QUESTION, ask="With or without the antenna?")
    cast = Cast(brief=[says(brief)], readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:
        job = await _start_by_api(it)
        assert job.status is NodeStatus.COMPLETED
        assert await it.world.questions(it.team.team.id) == []


async def test_a_cancelled_job_takes_its_readers_along_and_reports_nothing(tmp_path: Path) -> None:
    cast = Cast(readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:

        async def cancel() -> None:
            await it.world.store.write(endings.cancel, (await it.job()).id)

        cast.before_reading = once(cancel)
        job = await it.start()
        assert [n.status for n in (job, *await it.parts(job))] == [NodeStatus.CANCELLED] * 2
        assert await it.world.inbox() == []


@pytest.mark.slow
async def test_a_job_that_ran_out_goes_on_with_more_budget(tmp_path: Path) -> None:
    first = brief_of(QUESTION, SECOND, "When was it opened?", kind="comparison")
    cast = Cast(
        brief=[says(first)],
        readers={
            QUESTION: READER,
            SECOND: reads(SURVEYED, ("It measured 330 metres.", SURVEY)),
            "When was it opened?": reads(FACTS, ("Opened in 1889.", OPENED)),
        },
        writing=[says(REPORT)],
    )
    async with scene(tmp_path, cast) as it:
        job = await it.start(max_searches=0, max_pages=1)
        assert (job.status, job.stop_reason) == (NodeStatus.PARTIAL, StopReason.CALLS_SPENT)
        title = [m.title for m in await it.world.inbox()][-1]
        assert title == f"Research: {QUESTION} (incomplete)"
        assert "When was it opened?" in await it.report()
        await it.world.store.write(continuations.extend, job.id, Extension(usd=1.0), by=OWNER)
        await it.world.settle()
        assert len(await it.ledger(job)) == 2
        assert len([m for m in await it.world.inbox() if m.kind == "report"]) == 2


@pytest.mark.slow
async def test_a_follow_up_has_the_whole_ledger_and_may_cite_it(tmp_path: Path) -> None:
    cast = Cast(readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:
        first = await it.start()
        cast.brief = [says(brief_of(SECOND))]
        cast.readers = {SECOND: reads(SURVEYED, ("It measured 330 metres.", SURVEY))}
        cast.writing = [says("## Answer\n\nBoth say 330 metres [e1, e2].\n")]
        second = await it.start("Compare it with the survey.", continues=first.id)
        assert second.id != first.id
        assert [quote for _, _, quote in await it.ledger(second)] == [TALL, SURVEY]
        assert (await it.report()).startswith("## Answer\n\nBoth say 330 metres [1][2].")
        system, _ = cast.asked("brief")[-1]
        assert TALL in system
        assert "The goal of the team" not in system


@pytest.mark.slow
async def test_a_full_team_reads_one_question_after_the_other(tmp_path: Path) -> None:
    cast = Cast(
        brief=[says(brief_of(QUESTION, SECOND, kind="comparison"))],
        readers={QUESTION: READER, SECOND: reads(SURVEYED, ("It measured 330.", SURVEY))},
    )
    async with scene(tmp_path, cast) as it:
        await it.world.store.write(TEAMS.update, it.team.team.id, limits=Limits(agents=2))
        job = await it.start()
        parts = await it.parts(job)
        assert {n.assignee_id for n in parts} == {job.assignee_id}
        assert len(await it.ledger(job)) == 2


@pytest.mark.slow
async def test_a_team_that_had_ten_thousand_readers_gets_another(
    tmp_path: Path, database_url: str
) -> None:
    """The names of agents that have left stay taken."""
    cast = Cast(readers={QUESTION: READER})
    async with scene(tmp_path, cast, database_url=database_url) as it:

        def hire_many(tx: Tx) -> None:
            long_ago = tx.now - timedelta(days=30)
            former = replace(
                it.team.coordinator, role="reader", created_at=long_ago, retired_at=tx.now
            )
            for number in range(1, 10_001):
                name = "reader" if number == 1 else f"reader-{number}"
                AGENTS.insert(tx, replace(former, id=AgentId(new_id("agent")), name=name))

        await it.world.store.write(hire_many)
        job = await it.start()
        assert job.status is NodeStatus.COMPLETED
        [reading, _] = await it.parts(job)
        reader = await it.world.agent(reading.assignee_id)
        assert reader.name == "reader-10001"
        second = await it.start("How tall is it today?")
        [reading, _] = await it.parts(second)
        reader = await it.world.agent(reading.assignee_id)
        assert (second.status, reader.name) == (NodeStatus.COMPLETED, "reader-2-2")


async def test_a_job_ends_with_one_report_whatever_is_said_about_it_later(tmp_path: Path) -> None:
    cast = Cast(readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:
        await it.start()
        await it.world.restart()
        await it.world.settle()
        said = await it.world.store.read(
            messages.conversation, it.team.team.id, it.team.coordinator.id, OWNER
        )
        assert len([m for m in said if "The research is done" in m.text]) == 1
        assert len([m for m in await it.world.inbox() if m.kind == "report"]) == 1


@pytest.mark.slow
async def test_a_reply_is_shown_what_a_running_job_has_found(tmp_path: Path) -> None:
    """A second reader waits; meanwhile the person asks what was found."""
    cast = Cast(
        brief=[says(brief_of(QUESTION, SECOND, kind="comparison"))],
        readers={QUESTION: READER, SECOND: reads(SURVEYED, ("It measured 330.", SURVEY))},
    )
    async with scene(tmp_path, cast) as it:
        told: list[str] = []

        async def ask() -> None:
            job = await it.job()
            if told or len(await it.ledger(job)) == 0:
                return
            told.append("")
            shown = await it.world.store.read(work_state.of_team, it.team.coordinator)
            told[0] = "\n".join(line.text for line in shown.now)

        cast.before_reading = ask
        await it.start()
        assert ": 1 finding" in told[0]
        assert "[e1] It " in told[0]
        assert any(quote in told[0] for quote in (TALL, SURVEY))


async def test_an_ended_research_is_one_line_of_a_reply(tmp_path: Path) -> None:
    cast = Cast(
        brief=[says(brief_of(QUESTION, SECOND, kind="comparison"))],
        readers={QUESTION: READER, SECOND: reads(SURVEYED, ("It measured 330.", SURVEY))},
    )
    async with scene(tmp_path, cast) as it:
        await it.start()
        job = await it.job()
        parts = await it.parts(job)
        of_agent, of_reader = [
            await it.world.store.read(work_state.of_team, agent)
            for agent in (it.team.coordinator, await it.world.store.read(agent_of, parts[0]))
        ]
        assert len(parts) > 2
        assert [job.id in line.text for line in (*of_agent.own, *of_agent.lately)] == [True]
        [own] = of_reader.own
        assert any(part.id in own.text for part in parts)
        assert [job.id in line.text for line in of_reader.lately] == [True]


def agent_of(tx: Tx, node: WorkNode) -> Agent:
    assert node.assignee_id is not None
    return AGENTS.get(tx, node.assignee_id)


async def test_what_is_told_to_a_reader_is_heard_by_its_job(tmp_path: Path) -> None:
    said = "Take only the survey of 2022."
    cast = Cast(readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:

        async def tell() -> None:
            [reader] = await it.parts(await it.job())
            it.world.script("ada", says("They know.", call("no_work_needed")))
            lead = it.team.coordinator
            message = await it.world.chat(lead.id, said)
            told = await it.world.store.write(routing.tell, lead, message.reply_id, reader.id)
            assert told.text.startswith("Sent to researcher, word for word")

        cast.before_reading = once(tell)
        job = await _start_by_api(it)
        assert said in cast.asked("writing")[-1][0]
        assert "gaps" in [part_of(n) for n in await it.parts(job)]


async def test_when_the_time_is_over_the_report_has_what_there_is(tmp_path: Path) -> None:
    cast = Cast(readers={QUESTION: [*READER[:2], says(call("web_search", query="tower"))]})
    async with scene(tmp_path, cast) as it:

        async def pass_time() -> None:
            if await it.ledger(await it.job()):
                it.world.clock.advance(seconds=1000)

        cast.before_reading = pass_time
        job = await it.start()
        assert (job.status, job.stop_reason) == (NodeStatus.PARTIAL, StopReason.TIME_SPENT)
        report = await it.report()
        assert "330 metres tall [1]" in report
        assert "The research stopped early: its time is used up." in report


@pytest.mark.slow
async def test_a_question_whose_reader_was_cut_off_is_read_again_with_more_budget(
    tmp_path: Path,
) -> None:
    dear = replace(says(call("web_search", query="tower")), input_tokens=80_000)
    cast = Cast(readers={QUESTION: [*READER[:2], *[dear] * 20]})
    async with scene(tmp_path, cast) as it:
        job = await it.start(depth="quick")
        assert job.stop_reason is StopReason.TOKENS_SPENT
        cast.readers = {QUESTION: reads(FACTS, ("Opened in 1889.", OPENED))}
        more = Extension(tokens=2_000_000)
        await it.world.store.write(continuations.extend, job.id, more, by=OWNER)
        await it.world.settle()
        assert [quote for _, _, quote in await it.ledger(job)] == [TALL, OPENED]
        assert (await it.job()).status is NodeStatus.COMPLETED


async def test_a_late_answer_continues_the_research_that_asked(
    tmp_path: Path, database_url: str
) -> None:
    brief = brief_of(QUESTION, ask="With or without the antenna?", assumptions=["With the antenna"])
    again = brief_of("And without the antenna?")
    cast = Cast(brief=[says(brief)], readers={QUESTION: READER})
    async with scene(tmp_path, cast, database_url=database_url) as it:
        first = await it.start()
        [question] = await closed_questions(it)
        cast.brief = [says(again)]
        await it.world.answer(question, "Without it.")
        assert (await it.job()).id == first.id
        [offer] = await it.world.questions(it.team.team.id)
        await it.world.answer(offer, offer.options[0])
        await it.world.settle()

        second = await it.job()
        assert second.id != first.id
        assert second.status is NodeStatus.COMPLETED
        assert (await it.world.store.read(JOBS.get, second.id)).continues == first.id
        asked = f"{QUESTION}\n\n(Asked 'With or without the antenna?', the person says:)"
        assert second.task == f"{asked} Without it."
        assert await it.world.questions(it.team.team.id) == []
        reports = [m.node_id for m in await it.world.inbox() if m.kind == "report"]
        assert reports == [first.id, second.id]
        begun = [part_of(n) for n in await it.world.board(it.team.team.id) if not n.parent_id]
        assert begun == ["job", "job"]  # nothing else is made of the answer


async def test_a_late_answer_by_a_program_labels_the_research_that_goes_on(tmp_path: Path) -> None:
    brief = brief_of(QUESTION, ask="With or without the antenna?", assumptions=["With the antenna"])
    cast = Cast(brief=[says(brief)], readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:
        await it.start()
        [question] = await closed_questions(it)
        cast.brief = [says(brief_of("And without the antenna?"))]
        by = {"person_id": OWNER, "label": of_client("editor")}
        await it.world.store.write(answers.answer_question, question.id, "Without it.", **by)
        [offer] = await it.world.questions(it.team.team.id)
        await it.world.answer(offer, offer.options[0])
        await it.world.settle()
        assert (await it.job()).label == of_client("editor")
