"""Parts: the steps of a research job that ask a model: gaps, writing and the check of quotations.

A part stores its result in the job's row before it ends. If its model gives no readable answer, the
part stores what the rows show without a model, so that the job always continues.
"""

import asyncio

from agiraph.core.domain.errors import (
    ContextExceeded,
    ModelDeclined,
    ModelError,
    ModelGarbled,
    ModelUnavailable,
    OutOfTime,
)
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.outcomes import Finished, Outcome
from agiraph.core.domain.text.fence import enclose_foreign, one_line
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.work import StopReason
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.steps import Steps
from agiraph.core.runtime.structured_question import Question, Unaffordable, ask, ask_text
from agiraph.features.research.model import report_check
from agiraph.features.research.model.evidence import EvidenceRow
from agiraph.features.research.model.report_check import Fault
from agiraph.features.research.model.sentences import Unit, units
from agiraph.features.research.rows.jobs import JOBS
from agiraph.features.research.run import schemas
from agiraph.features.research.run.openings import Material, material
from agiraph.features.research.verbs import answers, planning, support
from agiraph.features.research.verbs.support import Compared

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
        text=schemas.ASK_GAPS % job.limits.readers,
        schema=schemas.GAPS,
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
        found = await ctx.store.read(planning.unanswered, ctx.lease)
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
    reply = await ask_text(steps, ctx, "writing", schemas.ASK_REPORT)
    if len(reply.text.split()) < 3 or reply.is_cut:
        again = await ask_text(steps, ctx, "writing:again", schemas.AGAIN)
        return again.text if again.text.strip() else reply.text
    return reply.text


async def _repaired(
    steps: Steps, ctx: RunContext, text: str, faults: list[Fault], found: Material
) -> str:
    """Return the report after one repair; the old one if the new text is not a report or has more
    faults."""
    told = schemas.FAULTS.format(faults=report_check.describe(faults))
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
    cited = support.to_compare(found.job, found.rows)
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
    faults = [
        Fault(kind="not_in_quotes", sentence=unit.text, what="", start=unit.start, end=unit.end)
        for unit in refuted
    ]
    kept, struck = report_check.strike(found.job.draft, faults)
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
        text=schemas.ASK_VERDICTS.format(pairs=shown),
        schema=schemas.VERDICTS,
        parse=lambda value: answers.read_verdicts(value, pairs=len(pairs)),
    )
    return await ask(steps, ctx, question)


def _job_id(ctx: RunContext) -> NodeId:
    assert ctx.node.parent_id is not None
    return NodeId(ctx.node.parent_id)
