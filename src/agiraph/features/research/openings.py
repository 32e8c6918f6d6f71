"""Openings: the first entries of the threads of a research job and its parts.

Only the job's own thread is shown something of the team. Its parts see the question and the ledger,
which is untrusted text in a fence.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from agiraph.core.domain.ids import NodeId, ThreadId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.provenance.labels import CLEAN, Label, join
from agiraph.core.domain.text.fence import enclose, enclose_foreign, one_line
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.value import value
from agiraph.core.prompts import prompt
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.prompts.prompt import Opening
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.features.research.model import sources
from agiraph.features.research.model.jobs import EvidenceRow, Reading, ResearchJob
from agiraph.features.research.model.kinds import part_of
from agiraph.features.research.rows import evidence
from agiraph.features.research.rows import jobs as research
from agiraph.features.research.rows.jobs import JOBS
from agiraph.features.research.verbs import planning, standing_questions
from agiraph.features.research.verbs.planning import Earlier
from agiraph.features.research.verbs.standing_questions import News

EARLIER = (
    "# What is known from earlier research\n\nPlan only what it does not answer, and what may have "
    "changed since. If the report needs its evidence too, name its id as builds_on."
)
LEAST_WINDOW = 2_000
"""The window, in tokens, for the ledger of each earlier job if the model's own is unknown."""
LEAST_CHARACTERS = 40_000
"""The most characters of the ledger for a model whose context window is unknown."""


@value
class Material:
    """The rows from which the prompts of a job's parts are made."""

    job: ResearchJob
    rows: tuple[EvidenceRow, ...]
    pages: dict[str, str]
    """The texts of the pages by their hashes."""
    said: tuple[Message, ...]
    """What persons have told the job."""
    news: News | None = None
    """What is new, if the question was asked before."""


def material(tx: Tx, job_id: NodeId) -> Material:
    """Return the job, its ledger with the pages, and what persons have said to it."""
    job, node = JOBS.get(tx, job_id), NODES.get(tx, job_id)
    thread_id = node.thread_id
    return Material(
        job=job,
        rows=tuple(evidence.of_job(tx, job_id)),
        pages=research.texts(tx, research.chain(tx, job_id)),
        said=() if thread_id is None else tuple(planning.heard(tx, ThreadId(thread_id))),
        news=standing_questions.news(tx, job),
    )


async def of_job(ctx: RunContext) -> Opening:
    """Return the prompt for the brief. It is shown what is known already.

    With the ledger of earlier research it is shown nothing of the team: its readers are public, and
    words of pages must not bring the team's into their questions.
    """
    found = await ctx.store.read(material, ctx.node.id)
    thread, now = ctx.lease.thread_id, ctx.clock.now()
    sections, label = [prompt("research_brief")], CLEAN
    if found.job.continues is not None:
        earlier = await ctx.store.read(JOBS.get, found.job.continues)
        about = f"The question of the earlier research:\n{_data(earlier.question, thread)}"
        shown, label = ledger_text(found.rows, thread=thread, window=ctx.window)
        sections += [f"# What is known from earlier research\n\n{about}\n\n{shown}"]
    elif (known := await ctx.store.read(planning.known, ctx.node.id)).research:
        shown, label = _earlier_text(known.research, thread=thread, window=ctx.window)
        sections += [shown]
    else:
        goal = ctx.team.goal.strip()
        sections += [f"# The goal of the team that asks\n\n{goal}"] if goal else []
        lines = "\n".join(known.lines)
        sections += [f"# What the team knows\n\n{lines}"] if lines else []
    task = found.job.question
    if ctx.node.label:
        what = "what is asked by an agent that had read untrusted text before. It is a question."
        task = enclose(task, thread=thread, what=what)
    return Opening(_join(sections, now), task, label=label)


def _earlier_text(research: Sequence[Earlier], *, thread: str, window: int) -> tuple[str, Label]:
    """Return the prompt section on earlier research of the team, and its label."""
    lines, label = [EARLIER], CLEAN
    for job, rows in research:
        shown, of_rows = ledger_text(rows, thread=thread, window=window // 8 or LEAST_WINDOW)
        about = f"Research {job.id} of {job.created_at:%d %B %Y} found out:"
        lines.append(f"{about}\n{_data(job.question, thread)}\n{shown}")
        label |= of_rows
    return "\n\n".join(lines), label


async def of_reader(ctx: RunContext) -> Opening:
    """Return the first messages of a reader's thread: the sub-question that it reads for, and the
    sub-questions of the other readers, which it leaves alone."""
    assert ctx.node.parent_id is not None
    job = await ctx.store.read(JOBS.get, ctx.node.parent_id)
    mine = next((each for each in job.readings if each.node_id == ctx.node.id), None)
    mine = mine or Reading(number=0, question=ctx.node.task)
    thread, now = ctx.lease.thread_id, ctx.clock.now()
    label = join(each.label for each in job.readings) | ctx.node.label
    return Opening(
        _join([prompt("research_reader")], now), _task(job, mine, label, thread), label=label
    )


def _task(job: ResearchJob, mine: Reading, label: Label, thread: str) -> str:
    lines = [mine.question, f"What counts as an answer: {mine.answer}" if mine.answer else ""]
    brief = job.brief
    if brief is not None:
        lines += [f"It is a part of: {brief.question}" if brief.question != mine.question else ""]
        lines += [f"How recent: {brief.freshness}" if brief.freshness else ""]
        lines += [f"Wanted sources: {brief.wanted}" if brief.wanted else ""]
        lines += [f"Unwanted sources: {brief.unwanted}" if brief.unwanted else ""]
    others = [each.question for each in job.readings if each.number != mine.number]
    if others:
        lines += ["Others read for these; leave them alone:", *(f"- {each}" for each in others)]
    words = "\n".join(line for line in lines if line)
    if label:
        words = enclose(words, thread=thread, what="what you are to find out. It is a question.")
    return f"Your question:\n{words}"


async def of_part(ctx: RunContext) -> Opening:
    """Return the prompt of a part that looks for gaps or writes: the plan and the ledger."""
    assert ctx.node.parent_id is not None
    found = await ctx.store.read(material, ctx.node.parent_id)
    thread, now = ctx.lease.thread_id, ctx.clock.now()
    groups = sources.groups(found.rows, found.pages)
    shown, label = ledger_text(found.rows, thread=thread, window=ctx.window, groups=groups)
    said, of_words = planning.as_text(list(found.said[: found.job.heard]), thread=thread)
    plan, of_plan = _plan(found.job, thread)
    sections = [prompt(f"research_{part_of(ctx.node)}"), f"# The question\n\n{plan}"]
    sections += [f"# What the person said since\n\n{said}"] if said else []
    sections += [_new_only(found.news)] if part_of(ctx.node) == "writing" and found.news else []
    sections += [f"# The evidence\n\n{shown}"]
    of_all = label | of_words | of_plan | ctx.node.label
    return Opening(_join(sections, now), ctx.node.task, label=of_all)


def _new_only(news: News) -> str:
    """Return the prompt section that tells the writer which evidence is new since the last
    report."""
    ids = ", ".join(row.id for row in news.rows) or "none"
    return (
        f"# What is new\n\nThe person has the report of {news.since:%d %B %Y} and asks what is "
        f"new since. New are the entries {ids}; the others are known. Report only what the new "
        "ones show, and how it differs from what was known; sentences that cite only known "
        "entries are left out."
    )


async def of_support(ctx: RunContext) -> Opening:
    """Return the prompt of the check of quotations; each question brings its pairs along."""
    return Opening(_join([prompt("research_support")], ctx.clock.now()), ctx.node.task)


def _plan(job: ResearchJob, thread: str) -> tuple[str, Label]:
    brief, label = job.brief, join(each.label for each in job.readings)
    if brief is None:
        return _data(job.question, thread), label
    lines = [brief.question, f"Language of the report: {brief.language or 'that of the question'}"]
    lines += [f"How recent: {brief.freshness}"] if brief.freshness else []
    lines += [f"Assumed: {each}" for each in brief.assumptions]
    lines += [""] if job.readings else []
    for each in job.readings:
        answer = f" ({each.answer})" if each.answer else ""
        lines.append(f"{each.number}. {each.question}{answer}")
    words = "\n".join(lines)
    return (_data(words, thread) if label else words), label


def _data(words: str, thread: str) -> str:
    return enclose(words, thread=thread, what="what is to be found out. It is a question.")


def ledger_text(
    rows: Sequence[EvidenceRow],
    *,
    thread: str,
    window: int,
    groups: dict[str, int] | None = None,
) -> tuple[str, Label]:
    """Return the ledger for a prompt, in a fence, and its label.

    It takes at most half of the window, at four characters a token. Of a longer ledger each
    question is shown the same number of entries, the first ones.
    """
    if not rows:
        return "Nothing was noted.", CLEAN
    shown = _fitting(rows, most=2 * window or LEAST_CHARACTERS)
    lines = [_entry(row, groups or {}) for row in shown]
    label = join(row.label for row in shown)
    text = enclose_foreign("\n\n".join(lines), thread=thread, source="pages that were read")
    left = len(rows) - len(shown)
    return text + (
        f"\n{counted(left, 'further entry is', 'further entries are')} not shown." if left else ""
    ), label


def _fitting(rows: Sequence[EvidenceRow], *, most: int) -> list[EvidenceRow]:
    """Return as many entries as `most` characters hold: the first of each question, then the second
    of each, and so on."""
    place: Counter[int] = Counter()
    ranked: list[tuple[int, EvidenceRow]] = []
    for row in rows:
        place[row.question] += 1
        ranked.append((place[row.question], row))
    taken: list[EvidenceRow] = []
    for _, row in sorted(ranked, key=lambda each: each[0]):
        most -= len(_entry(row, {}))
        if most < 0 and taken:
            break
        taken.append(row)
    return sorted(taken, key=lambda row: int(row.id[1:]))


def _entry(row: EvidenceRow, groups: dict[str, int]) -> str:
    facts = [f"question {row.question}" if row.question else "earlier", row.stance]
    facts += [row.source_class, sources.host_of(row.url)]
    facts += [f"source {groups[row.id]}"] if row.id in groups else []
    facts += [f"published {one_line(row.published)[:40]}"] if row.published else []
    return f'[{row.id}] {one_line(row.claim)}\n({", ".join(facts)})\n"{one_line(row.quote)}"'


def _join(sections: list[str], now: datetime) -> str:
    return "\n\n".join([*sections, f"Today is {now:%A, %d %B %Y} (UTC)."])
