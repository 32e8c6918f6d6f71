"""Job: runs a research job: its brief, the waits for its parts, and its delivery.

`verbs/frame.py` decides from the rows what comes next, so a run that starts again after
a crash or a wait continues where the last one stopped.
"""

import asyncio
import contextlib

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import ContextExceeded, ModelDeclined, ModelGarbled, OutOfTime
from agiraph.core.domain.outcomes import Failed, Finished, Outcome, Parked
from agiraph.core.domain.work import StopReason
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.calls import Halted
from agiraph.core.runtime.landing import publish_outcome
from agiraph.core.runtime.steps import Steps
from agiraph.core.runtime.structured_question import Question, Unaffordable, ask
from agiraph.core.services.lifecycle import journal
from agiraph.core.store.tx import Tx
from agiraph.features.research.model.report_words import ENGLISH
from agiraph.features.research.rows.jobs import JOBS
from agiraph.features.research.run import schemas
from agiraph.features.research.verbs import answers, delivery, frame, planning
from agiraph.features.research.verbs.delivery import Findings
from agiraph.features.research.verbs.frame import Delivers, Fails, NeedsBrief, NothingNew, Waits
from agiraph.web import links
from agiraph.web.access import why_no_search

UNREADABLE = (ModelGarbled, ModelDeclined, ContextExceeded, OutOfTime, Unaffordable)
"""Errors after which the job continues without the model's answer. Other errors stop the job."""
EARLY = "It stopped before everything was read: {reason}."
DONE = Finished("The report was delivered.", StopReason.PUBLISHED)


async def run(steps: Steps, ctx: RunContext, *, reader_model: str) -> Outcome:
    """Take the steps of a job until it waits for a part, or until its report is delivered."""
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
        text=schemas.ASK_BRIEF,
        schema=schemas.BRIEF,
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
    outcome: Finished | Failed = Finished(report.markdown, StopReason.PUBLISHED)
    if found.stopped is not None:
        detail = EARLY.format(reason=ENGLISH.of_limit(found.stopped))
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
