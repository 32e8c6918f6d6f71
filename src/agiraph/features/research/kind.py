"""Kind: runs research jobs and their parts.

`verbs/frame.py` decides from the rows what a job does next, so a run that starts again after a
crash or a wait continues where the last one stopped. A part stores its result in the job's row
before it ends. If its model gives no readable answer, the part stores what the rows show without a
model, so that the job always continues.
"""

import asyncio
import contextlib

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import (
    ContextExceeded,
    ModelDeclined,
    ModelError,
    ModelGarbled,
    ModelUnavailable,
    OutOfTime,
)
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.outcomes import Failed, Finished, Outcome, Parked
from agiraph.core.domain.text.fence import enclose_foreign, one_line
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.work import StopReason
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.calls import Halted
from agiraph.core.runtime.executor import Executor, Loaded
from agiraph.core.runtime.kinds.tasks import Task
from agiraph.core.runtime.landing import publish_outcome
from agiraph.core.runtime.prompts.prompt import Opening
from agiraph.core.runtime.steps import Steps
from agiraph.core.runtime.structured_question import Question, Unaffordable, ask, ask_text
from agiraph.core.services.lifecycle import journal
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import Tool
from agiraph.core.tools.toolsets import Toolset, all_shown
from agiraph.features.research import openings
from agiraph.features.research.model import report_check
from agiraph.features.research.model.jobs import EvidenceRow
from agiraph.features.research.model.kinds import part_of
from agiraph.features.research.model.report_check import Fault
from agiraph.features.research.model.report_words import english
from agiraph.features.research.model.sentences import Unit, units
from agiraph.features.research.openings import Material, material
from agiraph.features.research.rows.jobs import JOBS
from agiraph.features.research.tools import READER as READER_TOOLS
from agiraph.features.research.verbs import answers, delivery, frame, planning
from agiraph.features.research.verbs.delivery import Compared, Findings
from agiraph.features.research.verbs.frame import Delivers, Fails, NeedsBrief, NothingNew, Waits
from agiraph.web import links
from agiraph.web.access import why_no_search

UNREADABLE = (ModelGarbled, ModelDeclined, ContextExceeded, OutOfTime, Unaffordable)
"""Errors after which the job continues without the model's answer. Other errors stop the job."""
EARLY = "It stopped before everything was read: {reason}."
DONE = Finished("The report was delivered.", StopReason.PUBLISHED)


async def run(steps: Steps, ctx: RunContext, *, reader_model: str) -> Outcome:
    """Carry a research job on until it waits for a reader or writer, or has sent its report."""
    while True:
        await _hear(ctx)
        match await ctx.store.write(frame.advance, ctx.lease, reader_model=reader_model):
            case NeedsBrief():
                if why := await _cannot_search(ctx):
                    # A model without pages could only make the report up.
                    return Failed(StopReason.NO_RESULT, why)
                await _brief(steps, ctx)
            case Waits(on, reason):
                return Parked(on, reason)
            case Delivers():
                return await _deliver(steps, ctx)
            case Fails(reason, why):
                await ctx.store.write(_end_failed, ctx.lease, Failed(reason, why))
                return DONE
            case NothingNew(why):
                await ctx.store.write(_end_silently, ctx.lease, why)
                return Finished(why, StopReason.NOTHING_TO_DO)


async def _hear(ctx: RunContext) -> None:
    """Write new messages into the thread; raise `Halted` if the job was paused or cancelled.

    It reserves no money, because no model call follows.
    """
    caught_up = await ctx.store.write(journal.catch_up, ctx.lease)
    if caught_up.halt is not None:
        raise Halted(caught_up.halt)
    ctx.add_turns(*caught_up.turns)


async def _cannot_search(ctx: RunContext) -> str:
    """Return why the web cannot be searched; empty if it can, or if the task names web addresses.

    Runs before the job makes its first model call.
    """
    return "" if links.hosts_in(ctx.node.task) else await why_no_search(ctx.web)


async def _brief(steps: Steps, ctx: RunContext) -> None:
    """Ask the model for the plan. Without a readable answer the question itself is the plan."""
    job = await ctx.store.read(JOBS.get, ctx.node.id)
    question = Question(
        name="brief",
        text=answers.ASK_BRIEF,
        schema=answers.BRIEF,
        parse=lambda value: answers.read_brief(value, question=job.question),
    )
    brief = None
    with contextlib.suppress(*UNREADABLE):
        brief = await ask(steps, ctx, question)
    brief = brief or answers.plain_brief(job.question)
    engine = "" if ctx.web.engine is None else ctx.web.engine.name
    await ctx.store.write(planning.store_brief, ctx.lease, brief, label=ctx.label, engine=engine)


async def _deliver(steps: Steps, ctx: RunContext) -> Outcome:
    """Render the report, publish its files and end the job.

    Publishing is idempotent, so a crash before the end only repeats this.
    """
    found = await ctx.store.read(delivery.gather, ctx.node.id)
    report = await asyncio.to_thread(delivery.compose, found)
    files = {
        "report.md": report.markdown,
        "evidence.jsonl": report.evidence_jsonl,
        "sources.json": report.sources_json,
    }
    await asyncio.to_thread(_write, ctx, files)
    # Without any evidence the report only says that nothing was found.
    reason = StopReason.PUBLISHED if found.rows else StopReason.NOT_REACHED
    outcome: Finished | Failed = Finished(report.markdown, reason)
    if found.stopped is not None:
        detail = EARLY.format(reason=english().of_limit(found.stopped))
        outcome = Failed(found.stopped, detail, report.markdown, under=ctx.node.budget)
    published = await publish_outcome(steps, ctx, outcome)
    assert not isinstance(published, Parked)
    await ctx.store.write(_end, ctx.lease, published, found)
    return DONE


def _end(tx: Tx, lease: Lease, outcome: Finished | Failed, found: Findings) -> None:
    """End the job with its report, which has the label of all that its parts have read, and store
    what was learned."""
    delivery.close(tx, lease, found.label)
    delivery.learn(tx, lease, found)
    journal.end(tx, lease, outcome)


def _end_failed(tx: Tx, lease: Lease, outcome: Failed) -> None:
    """End a job that nobody could read for. Another try reads its questions again."""
    label = delivery.gather(tx, lease.node_id).label
    delivery.close(tx, lease, label, said=f"No report could be made. {outcome.detail}")
    journal.end(tx, lease, outcome)


def _end_silently(tx: Tx, lease: Lease, why: str) -> None:
    """End a job that found nothing new. The end is recorded as an event of the team; no message is
    sent."""
    delivery.close(tx, lease, delivery.gather(tx, lease.node_id).label, said=why)
    journal.end(tx, lease, Finished(why, StopReason.NOTHING_TO_DO))


def _write(ctx: RunContext, files: dict[str, str]) -> None:
    for name, text in files.items():
        folder, rest = ctx.scope.resolve(f"scratch/{name}", "w")
        with folder:
            folder.write(rest, text.encode(errors="replace"))


PAIRS = 12
"""How many sentences one question of the check of quotations holds."""
MOST_PAIRS = 60


def _ended(text: str) -> Outcome:
    return Finished(text, StopReason.ANSWERED)


async def run_gaps(steps: Steps, ctx: RunContext) -> Outcome:
    """Store what the ledger lacks and what is to be read next."""
    job = await ctx.store.read(JOBS.get, _job_id(ctx))
    question = Question(
        name="gaps",
        text=answers.ASK_GAPS % job.limits.readers,
        schema=answers.GAPS,
        parse=answers.read_gaps,
    )
    found = None
    try:
        found = await ask(steps, ctx, question)
    except ModelUnavailable:
        raise
    except (ModelError, Unaffordable):
        pass
    if found is None:
        found = await ctx.store.read(planning.unanswered, job)
    await ctx.store.write(planning.store_gaps, ctx.lease, found, label=ctx.label)
    return _ended(f"{counted(len(found.questions), 'question')} to read for.")


async def run_writing(steps: Steps, ctx: RunContext) -> Outcome:
    """Store the report: written from the ledger alone, repaired once, without what does not hold.

    A text that cites nothing is not a report; then the job delivers its last report, or the ledger
    itself. If a limit is used up before the text is done, that is stored as the reason why the job
    ends early.
    """
    found = await ctx.store.read(material, _job_id(ctx))
    rows, question = found.rows, found.job.question
    text, stopped = "", None
    try:
        text = await _written(steps, ctx)
        faults = await asyncio.to_thread(report_check.check_report, text, rows, question=question)
        if faults and text:
            text = await _repaired(steps, ctx, text, faults, found)
    except OutOfTime:
        stopped = StopReason.TIME_SPENT
    except Unaffordable as error:
        stopped = error.reason
    except (ModelGarbled, ModelDeclined, ContextExceeded):
        pass  # any other error ends the part, and the report says why
    kept, struck = await asyncio.to_thread(report_check.enforce, text, rows, question=question)
    if not _cites(kept, rows):
        kept, struck = "", []
    await ctx.store.write(planning.store_draft, ctx.lease, kept, tuple(struck), stopped=stopped)
    return _ended(f"{len(kept)} characters, {counted(len(struck), 'sentence')} struck.")


async def _written(steps: Steps, ctx: RunContext) -> str:
    reply = await ask_text(steps, ctx, "writing", answers.ASK_REPORT)
    if len(reply.text.split()) < 3 or reply.is_cut:
        again = await ask_text(steps, ctx, "writing:again", answers.AGAIN)
        return again.text if again.text.strip() else reply.text
    return reply.text


async def _repaired(
    steps: Steps, ctx: RunContext, text: str, faults: list[Fault], found: Material
) -> str:
    """Return the report after one repair; the old one if the new text is not a report or has more
    faults."""
    told = answers.FAULTS.format(faults=report_check.describe(faults))
    reply = await ask_text(steps, ctx, "writing:repair", told)
    if not _cites(reply.text, found.rows) or reply.is_cut:
        return text
    left = await asyncio.to_thread(
        report_check.check_report, reply.text, found.rows, question=found.job.question
    )
    return reply.text if len(left) <= len(faults) else text


def _cites(text: str, rows: tuple[EvidenceRow, ...]) -> bool:
    known = {row.id for row in rows}
    return any(id in known for unit in units(text) for id in unit.ids)


async def run_support(steps: Steps, ctx: RunContext) -> Outcome:
    """Ask whether the quotations support their sentences, and strike those that they do not."""
    found = await ctx.store.read(material, _job_id(ctx))
    cited = delivery.to_compare(found.job, found.rows)
    pairs, done = cited[:MOST_PAIRS], 0
    refuted: list[Unit] = []
    try:
        for first in range(0, len(pairs), PAIRS):
            these = pairs[first : first + PAIRS]
            verdicts = await _verdicts(steps, ctx, these, found, first)
            if verdicts is not None:
                done += len(these)
                refuted += [unit for n, unit in enumerate(these, 1) if verdicts.get(n) == "no"]
    except ModelUnavailable:
        raise
    except (ModelError, Unaffordable):
        pass  # the sentences hold as far as code can tell
    kept, struck = report_check.strike(found.job.draft, refuted)
    await ctx.store.write(planning.store_draft, ctx.lease, kept, tuple(struck), beside=True)
    return _ended(Compared(done, len(cited)).as_result(len(struck)))


async def _verdicts(
    steps: Steps, ctx: RunContext, pairs: list[Unit], found: Material, first: int
) -> dict[int, str] | None:
    """Return the model's verdicts by the number of the pair; None if it gave no readable ones."""
    ledger = {row.id: row for row in found.rows}
    lines: list[str] = []
    for number, unit in enumerate(pairs, 1):
        quotes = [f'"{one_line(ledger[id].quote)}"' for id in unit.ids if id in ledger]
        said = f"Sentence: {one_line(unit.text)}\nQuotations: {' '.join(quotes)}"
        lines.append(f"Pair {number}\n{said}")
    shown = enclose_foreign(
        "\n\n".join(lines), thread=ctx.lease.thread_id, source="a report and pages"
    )
    question = Question(
        name=f"support:{first}",
        text=answers.ASK_VERDICTS.format(pairs=shown),
        schema=answers.VERDICTS,
        parse=lambda value: answers.read_verdicts(value, pairs=len(pairs)),
    )
    return await ask(steps, ctx, question)


def _job_id(ctx: RunContext) -> NodeId:
    assert ctx.node.parent_id is not None
    return NodeId(ctx.node.parent_id)


class _Job(Task):
    """A job: runs until it waits or ends."""

    def tools(self, executor: Executor, loaded: Loaded, extra: tuple[Tool, ...]) -> Toolset:
        return all_shown({})

    async def opening(
        self, executor: Executor, ctx: RunContext, loaded: Loaded, tools: Toolset
    ) -> Opening:
        return await openings.of_job(ctx)

    async def act(self, executor: Executor, ctx: RunContext, tools: Toolset) -> Outcome:
        steps = executor.steps(ctx, tools)
        return await run(steps, ctx, reader_model=executor.reader_model)


class _Reader(Task):
    """A reader: works in the loop, with the tools of a reader."""

    def tools(self, executor: Executor, loaded: Loaded, extra: tuple[Tool, ...]) -> Toolset:
        return all_shown(READER_TOOLS)

    async def opening(
        self, executor: Executor, ctx: RunContext, loaded: Loaded, tools: Toolset
    ) -> Opening:
        return await openings.of_reader(ctx)


class _Step(_Job):
    """Another step: asks its model one question."""

    async def opening(
        self, executor: Executor, ctx: RunContext, loaded: Loaded, tools: Toolset
    ) -> Opening:
        is_support = part_of(ctx.node) == "support"
        return await (openings.of_support if is_support else openings.of_part)(ctx)

    async def act(self, executor: Executor, ctx: RunContext, tools: Toolset) -> Outcome:
        steps = executor.steps(ctx, tools)
        match part_of(ctx.node):
            case "gaps":
                return await run_gaps(steps, ctx)
            case "writing":
                return await run_writing(steps, ctx)
            case _:
                return await run_support(steps, ctx)


JOB = _Job()
READER = _Reader()
STEP = _Step()
