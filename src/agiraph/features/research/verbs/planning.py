"""Planning: stores the brief of a research job and the gaps that a look at its ledger found, and
reads what persons say to it meanwhile."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.ids import MessageId, NodeId, ThreadId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import CLEAN, Label, join
from agiraph.core.domain.text import quotations
from agiraph.core.domain.text.passages import Passage, search_words, words
from agiraph.core.domain.work import StopReason
from agiraph.core.services.board.feature_verbs import find_verbs
from agiraph.core.services.mail import bus
from agiraph.core.store import threads
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.texts import passages
from agiraph.core.store.tx import Tx
from agiraph.features.research.model.jobs import (
    DEPTH_OF_KIND,
    DEPTHS,
    Brief,
    EvidenceRow,
    Reading,
    ResearchJob,
    SubQuestion,
)
from agiraph.features.research.model.report_words import english
from agiraph.features.research.rows import evidence
from agiraph.features.research.rows.jobs import JOBS
from agiraph.features.research.verbs import starting
from agiraph.features.research.verbs.answers import Gaps

SEARCHED, SHOWN = 12, 2
"""How many sections of reports are compared with a question, and how many earlier jobs are shown
to its planning."""
BEGUN = "I begin with this reading: {reading} Your answer changes what I look for next."


def not_used() -> str:
    """Return what stands in a job's `missing` if its report does not use the last message or
    finding."""
    return english().not_used


class Earlier(NamedTuple):
    """An earlier job of the team on the same subject, and its ledger."""

    job: ResearchJob
    rows: tuple[EvidenceRow, ...]


class Known(NamedTuple):
    """What the team knows about a job's question before anything is read."""

    research: list[Earlier]
    lines: list[str]
    """Those that share a word with the question and have no label."""


def known(tx: Tx, job_id: NodeId) -> Known:
    """Return what the team knows about a job's question: earlier research, newest first, and
    insights of the agent that was asked.

    Only research is returned whose own readers were public: its ledger holds nothing of the team.
    """
    job, node = JOBS.get(tx, job_id), NODES.get(tx, job_id)
    asked = search_words(job.question)
    found: dict[str, Earlier] = {}
    for passage in passages.find(
        tx, job.question, team_id=job.team_id, owner=(), kinds=("report",), limit=SEARCHED
    ):
        if _is_same_subject(asked, passage):
            found |= _earlier(tx, passage.ref)
    newest = sorted(found.values(), key=lambda each: each.job.id, reverse=True)
    lines = [
        line
        for verbs in find_verbs()
        if node.asked_of is not None
        for line in verbs.about(tx, node.asked_of, job.question)
    ]
    return Known(newest[:SHOWN], lines)


def _is_same_subject(asked: Sequence[str], report: Passage) -> bool:
    """Whether a section of a report holds most words of a question, or its title two of them: names
    stay the same in other words and languages."""
    title, text = set(words(report.title)), set(words(report.text))
    in_title = sum(word in title and not word.isdigit() for word in asked)
    return in_title >= 2 or 2 * sum(word in title | text for word in asked) > len(asked)


def _earlier(tx: Tx, ref: str) -> dict[str, Earlier]:
    job, node = JOBS.find(tx, ref), NODES.find(tx, ref)
    rows = () if job is None else tuple(evidence.of_job(tx, job.id))
    return {job.id: Earlier(job, rows)} if job and node and not node.label and rows else {}


def store_brief(
    tx: Tx, lease: Lease, brief: Brief, *, label: Label = CLEAN, engine: str = ""
) -> None:
    """Store the brief and begin to read. Sub-questions beyond the number of the depth are left out.

    If the brief has a question to the person and the job came from a conversation, the person is
    asked; the job does not wait for the answer. `label` is the label of the thread that made the
    brief, `engine` the name of the search engine at this time.
    """
    threads.check_lease(tx, lease)
    job = JOBS.get(tx, lease.node_id, lock=True)
    if job.brief is not None:
        return  # an earlier run stored it before a crash
    depth = job.depth or DEPTH_OF_KIND[brief.kind]
    limits = DEPTHS[depth]
    asked = brief.sub_questions[: limits.sub_questions]
    if len(brief.sub_questions) > len(asked) == 1:
        # A single reader answers the question as a whole.
        asked = (SubQuestion(question=brief.question, answer=asked[0].answer),)
    brief = replace(brief, sub_questions=asked)
    shown = [each.job.id for each in known(tx, job.id).research] if brief.builds_on else []
    is_shown = job.continues is None and brief.builds_on in shown
    continues = NodeId(brief.builds_on) if is_shown else job.continues
    node = NODES.get(tx, lease.node_id, lock=True)
    budget = starting.lowered(node.budget, limits)
    calls = starting.of_depth(limits, job.searches, job.pages).calls
    NODES.update(tx, node.id, budget=replace(budget, calls=calls))
    question_id = None
    if brief.ask and job.asks:
        reading = brief.assumptions[0] if brief.assumptions else brief.question
        text = f"{brief.ask}\n\n{BEGUN.format(reading=reading.rstrip('.') + '.')}"
        question_id = bus.ask(tx, lease, text=text, refusable=False).id
    JOBS.update(
        tx,
        job.id,
        brief=brief,
        depth=depth,
        phase="reading",
        rounds=limits.rounds,
        question_id=question_id,
        continues=continues,
        engine=engine,
        readings=tuple(
            Reading(number=number, question=each.question, answer=each.answer, label=label)
            for number, each in enumerate(asked, 1)
        ),
    )


def store_gaps(tx: Tx, lease: Lease, gaps: Gaps, *, label: Label) -> None:
    """Add what a look for gaps wants to read next, at most one question for each reader.

    A question that is in the plan already is left out.
    """
    job = _job_of_part(tx, lease)
    if job.part_id != lease.node_id or job.phase != "gaps":
        return
    known = {each.question.casefold() for each in job.readings}
    new = [each for each in gaps.questions if each.question.casefold() not in known]
    first = len(job.readings) + 1
    added = tuple(
        Reading(
            number=first + place,
            question=each.question,
            answer=each.answer,
            round=job.round + 1,
            label=label,
        )
        for place, each in enumerate(new[: job.limits.readers])
    )
    is_stored = any(each.round == job.round + 1 for each in job.readings)
    readings = job.readings if is_stored else job.readings + added
    JOBS.update(tx, job.id, readings=readings, missing=gaps.missing)


def _job_of_part(tx: Tx, lease: Lease) -> ResearchJob:
    """Return the job of a part that writes its result. Locks the job's row."""
    threads.check_lease(tx, lease)
    part = NODES.get(tx, lease.node_id)
    assert part.parent_id is not None
    return JOBS.get(tx, part.parent_id, lock=True)


def unanswered(tx: Tx, job: ResearchJob) -> Gaps:
    """Return the gaps as the rows show them, for a job whose model named none: the sub-questions
    without any evidence, asked again."""
    found = {row.question for row in evidence.of_job(tx, job.id)}
    empty = [each for each in job.readings if each.number not in found and each.round == 0]
    return Gaps(
        questions=tuple(
            SubQuestion(question=f"{each.question} (look in other places)", answer=each.answer)
            for each in empty
        ),
        missing=tuple(each.question for each in empty),
    )


def store_draft(
    tx: Tx,
    lease: Lease,
    draft: str,
    struck: tuple[str, ...],
    *,
    beside: bool = False,
    stopped: StopReason | None = None,
) -> None:
    """Store the checked report. `beside`: add the struck sentences to those struck before.

    An empty new report does not replace an earlier one. `stopped` is the limit that was used up
    before the report was done.
    """
    job = _job_of_part(tx, lease)
    if job.part_id != lease.node_id:
        return
    if stopped is not None:
        JOBS.update(tx, job.id, stopped=stopped.value)
    if beside:
        all_struck = tuple(dict.fromkeys((*job.struck, *struck)))
        JOBS.update(tx, job.id, draft=draft, struck=all_struck)
    elif job.draft and not draft:
        JOBS.update(tx, job.id, missing=with_unused(job.missing))
    else:
        missing = tuple(line for line in job.missing if line != not_used())
        struck = tuple(dict.fromkeys(struck))
        JOBS.update(tx, job.id, draft=draft, struck=struck, missing=missing)


def with_unused(missing: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a job lacks, with the remark that its report does not use the last message."""
    return tuple(dict.fromkeys((*missing, not_used())))


def heard(tx: Tx, thread_id: ThreadId) -> list[Message]:
    """Return the messages of persons that a job's thread holds, oldest first."""
    refs = (turn.ref for turn in threads.turns(tx, thread_id) if turn.role == "user")
    found = (MESSAGES.find(tx, MessageId(ref)) for ref in refs if ref)
    return [message for message in found if message is not None and is_person(message.sender)]


def as_text(said: list[Message], *, thread: str) -> tuple[str, Label]:
    """Return these messages for the prompt of a thread, and their label; empty without any."""
    words = [quotations.enclose_quoted(message.text, thread=thread) for message in said]
    return "\n\n".join(words), join(message.label for message in said)
