"""Landing: ends and waits that no tool brought about, with what there is published and kept."""

import asyncio
import contextlib

from agiraph.domain.chat import IN_WORDS
from agiraph.domain.errors import ModelError, Refused
from agiraph.domain.outcomes import Failed, Finished, Outcome, Parked
from agiraph.domain.work import StopReason
from agiraph.run_context import RunContext
from agiraph.runtime.spill import keep_result, shown_result
from agiraph.runtime.steps import Steps
from agiraph.services.board import notices, unfinished
from agiraph.services.lifecycle.journal import Notice

LAST_WORD = (
    "[Budget] The budget of this work is spent ({reason}) and your tools are gone. Write the final "
    "answer now: what you achieved, where it is, and what whoever goes on should do next."
)


async def land(steps: Steps, ctx: RunContext, reason: StopReason) -> Outcome:
    """The budget is spent: ask for a last word without tools, and keep what there is."""
    if not ctx.transcript.has("landing") and steps.budget.may_land(ctx, reason):
        await steps.catch_up(ctx, Notice("landing", LAST_WORD.format(reason=reason)))
    if ctx.transcript.last_spoken.ref == "landing":
        with contextlib.suppress(ModelError):  # without a last word, then
            await steps.think(ctx, may_call=False, timeout_s=steps.budget.landing_seconds(ctx))
    last = ctx.transcript.last_reply
    said = last.text if last is not None else ""
    detail = f"The budget was spent before the goal was reached ({reason})."
    return await publish_outcome(steps, ctx, Failed(reason, detail, said or None))


async def publish_outcome(steps: Steps, ctx: RunContext, outcome: Outcome) -> Outcome:
    """Publish what there is with this end; a node that only waits publishes nothing."""
    if isinstance(outcome, Parked):
        return outcome
    await steps.caller.write_deferred(ctx)
    folder = ctx.home.team(ctx.team.id).node(ctx.node.id)
    partial = isinstance(outcome, Failed)
    said = outcome.result or ""
    name = await keep_result(ctx, said)
    summary = notices.fitted(said or (outcome.detail if isinstance(outcome, Failed) else ""))
    manifest: dict[str, str] = {}
    unpublished = ""
    try:
        manifest = await asyncio.to_thread(folder.publish, summary, partial=partial)
    except Refused as error:
        unpublished = f" Its files could not be published: {error}"
    said = shown_result(ctx, said, name, manifest)
    if isinstance(outcome, Failed):
        detail = outcome.detail + unpublished
        return Failed(outcome.reason, detail, said or outcome.result, manifest)
    return Finished(said + unpublished, outcome.reason, manifest)


async def park_if_waiting(steps: Steps, ctx: RunContext) -> Outcome | None:
    """Park a node that replied in words while work it gave away, or a question, is still open.

    Such words are no end: to end the node would cancel its workers.
    """
    said = ctx.transcript.last_spoken
    if IN_WORDS not in ctx.parked_calls:  # else a crash came between the waits and the parking
        if said.role != "assistant" or said.calls or not steps.tool_specs:
            return None
        await steps.caller.write_deferred(ctx)
        notice = await ctx.store.write(unfinished.wait, ctx.lease, reply=said.seq)
        if not notice:
            return None
        ctx.add_turns(*notice)
    return Parked(())
