"""Landing: ends a node without a tool call: out of budget, or stopped by the breaker.

Whatever the node has written is published with its end.
"""

import asyncio
import contextlib
from dataclasses import replace

from agiraph.core.domain.errors import ModelError, Refused
from agiraph.core.domain.outcomes import Failed, Finished, Outcome, Parked
from agiraph.core.domain.work import StopReason
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.calls import keep_result, shown_result
from agiraph.core.runtime.steps import Steps
from agiraph.core.services.board import texts
from agiraph.core.services.lifecycle.journal import SystemNote
from agiraph.core.store.nodes import NODES
from agiraph.core.tools import acceptance

LOOKED_AT = 30
"""Replies in which the last words of a node are sought."""
FILES_SHOWN = 20
"""Files that a result without the words of its model names."""

NO_SUMMARY = "It gave no summary. What it did stands in its thread."
LAST_WORD = (
    "[Budget] The budget of this work is spent ({reason}) and your tools are gone. Write the final "
    "answer now: what you achieved, where it is, and what whoever goes on should do next."
)


async def land(steps: Steps, ctx: RunContext, reason: StopReason) -> Outcome:
    """End a node whose budget is used up: ask for a last answer without tools, and publish.

    The `landing` note is committed before the model is asked, so a crash does not ask twice.
    """
    if not ctx.transcript.has("landing") and steps.budget.may_land(ctx, reason):
        # Without mail, which would stand between the note and its answer.
        note = SystemNote("landing", LAST_WORD.format(reason=reason))
        await steps.catch_up(ctx, note, deliver_mail=False)
    if ctx.transcript.last_spoken.key == "landing":
        with contextlib.suppress(ModelError):  # the node ends without a last answer
            await steps.think(ctx, may_call=False, timeout_s=steps.budget.landing_seconds(ctx))
    detail = f"It stopped at a limit before it was done: {reason.words}."
    return await publish_outcome(steps, ctx, Failed(reason, detail, under=ctx.node.budget))


async def _so_far(steps: Steps, ctx: RunContext) -> tuple[str, bool]:
    """Return what stands for the result of a node that was cut off, and whether it is its model's
    own account: its last reply or its checkpoint. Else it is the newest words of an earlier reply.
    What its tools were called with and answered is no result: that stands in the thread."""
    last = ctx.transcript.last_reply
    # Also a reply from before the landing: a partial result is better than none.
    if last is not None and last.text.strip() and not steps.breaker.silence.written_call(last):
        return last.text, True
    node = await ctx.store.look(NODES.get, ctx.node.id)
    if node.checkpoint:
        return node.checkpoint, True
    said = (turn.text for turn in ctx.transcript.steps(LOOKED_AT) if turn.calls)
    return next((text for text in said if text.strip()), NO_SUMMARY), False


async def publish_outcome(steps: Steps, ctx: RunContext, outcome: Outcome) -> Outcome:
    """Publish the node's files, and return the outcome with the manifest; not for a parked node."""
    if isinstance(outcome, Parked):
        return outcome
    await steps.caller.write_deferred(ctx)
    is_account = True
    if isinstance(outcome, Failed) and outcome.reason.is_cut_off and not outcome.result:
        result, is_account = await _so_far(steps, ctx)
        outcome = replace(outcome, result=result if ctx.transcript.last_reply else None)
    folder = ctx.home.team(ctx.team.id).node(ctx.node.id)
    partial = isinstance(outcome, Failed)
    text = outcome.result or ""
    name = await keep_result(ctx, text)
    summary = texts.fit_message(text or (outcome.detail if isinstance(outcome, Failed) else ""))
    manifest: dict[str, str] = {}
    unpublished = ""
    try:
        manifest = await asyncio.to_thread(folder.publish, summary, partial=partial)
    except Refused as error:
        # The files stay where they are; an end must not fail because of them.
        unpublished = f" Its files could not be published: {error}"
    text = shown_result(ctx, text, name, manifest)
    if manifest and not is_account:
        text = f"{text}\n\nIts files: {', '.join(sorted(manifest)[:FILES_SHOWN])}"
    if isinstance(outcome, Failed):
        detail = outcome.detail + unpublished
        result = text or outcome.result
        return replace(outcome, detail=detail, result=result, manifest=manifest)
    # An answer in words meets the same acceptance lines: it is their evidence, files are checked.
    evidence = [text] * len(ctx.node.lines_to_prove)
    files = dict.fromkeys(manifest, "")
    missing = acceptance.missing_evidence(ctx, ctx.node, files, evidence)
    return Finished(text + unpublished, outcome.reason, manifest, tuple(missing))
