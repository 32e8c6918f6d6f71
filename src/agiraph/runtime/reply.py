"""Reply: answers a person's message at once, while the agent's work goes on in its own lane."""

import asyncio
import contextlib

from agiraph.domain.chat import Transcript, Turn
from agiraph.domain.errors import DailyLimitReached, ModelError, Refused
from agiraph.domain.outcomes import Finished, Outcome
from agiraph.domain.promising import promises_work
from agiraph.domain.status_questions import is_status_question
from agiraph.domain.tools import WorkDecision
from agiraph.domain.work import StopReason
from agiraph.run_context import RunContext
from agiraph.runtime import reply_checks
from agiraph.runtime.spill import keep_result, shown_result
from agiraph.runtime.steps import Steps
from agiraph.services.board import texts
from agiraph.services.lifecycle import conversation, daily_limit, work_state
from agiraph.services.lifecycle.journal import SystemNote
from agiraph.store import messages
from agiraph.store.tx import Tx

WITHOUT_A_MODEL = (
    "I have your message and will get to work on it. (I could not think of a proper answer just "
    "now: {reason})"
)
ONLY_FACTS = (
    "I could not think of a proper answer just now: {reason} This is how things stand:\n{facts}"
)
OUT_OF_MONEY = (
    "I have your message, but today's limit for model calls is reached, so I cannot think about it "
    "now. I go on as soon as you allow more (the request is in your inbox), or by myself at 00:00 "
    "UTC."
)
NOTHING_SAID = "[Runtime] The human reads only what you write as text. Answer them now, briefly."

CUT_OFF = "[Runtime] Your answer broke off before its end. Give it again, whole and much shorter."


async def answer(steps: Steps, ctx: RunContext, *, summarise_upto: str = "") -> Outcome:
    """Ask the model until it has an answer, and send it; without a model, send a plain notice.

    With `summarise_upto`, a summary of the messages up to that one is queued with the answer.
    """
    try:
        text = await _write_answer(steps, ctx)
    except DailyLimitReached as error:
        await ctx.store.write(daily_limit.ask_once, ctx.lease, limit_usd=error.limit_usd)
        return await _send(ctx, OUT_OF_MONEY, is_answer=False)
    except ModelError as error:
        # The person must get an answer whatever becomes of the model; their request becomes work.
        return await acknowledge(ctx, error)
    await steps.caller.write_deferred(ctx)
    if not text:
        text = await ctx.store.read(_without_model, ctx, "nothing was said.")
    if reply_checks.is_false_stop(ctx.transcript, text):
        text = f"{text}\n\n{reply_checks.RUNS_ON}"
    return await _send(ctx, text, summarise_upto=summarise_upto)


async def acknowledge(ctx: RunContext, why: Exception) -> Outcome:
    """Tell the person that the model failed; their request is queued as work all the same."""
    return await _send(ctx, await ctx.store.read(_without_model, ctx, str(why)))


def _without_model(tx: Tx, ctx: RunContext, reason: str) -> str:
    """Return an answer that needs no model: how things stand, if that is what the person asked."""
    asked = messages.to_answer(tx, ctx.node.id)
    if not asked or not all(is_status_question(message.text) for message in asked):
        return WITHOUT_A_MODEL.format(reason=reason)
    facts = work_state.for_person(tx, ctx.agent) or "Nothing is under way."
    return ONLY_FACTS.format(reason=reason, facts=facts)


async def _send(
    ctx: RunContext, text: str, *, summarise_upto: str = "", is_answer: bool = True
) -> Outcome:
    """Send the answer, make the work if it is wanted, and end the node: one transaction."""
    text, manifest = await _publish_if_long(ctx, text)
    outcome = Finished(text, StopReason.FINISHED, manifest)
    decision = _work_decision(ctx.transcript)
    is_false = reply_checks.is_false_stop(ctx.transcript, text)
    if decision == "not_needed" and (promises_work(text) or is_false):
        decision = None  # the person was promised something, so there is work
    await ctx.store.write(
        conversation.end_reply,
        ctx.lease,
        outcome,
        text=text,
        work=decision,
        consulted=reply_checks.consulted(ctx.transcript),
        summarise_upto=summarise_upto,
        is_answer=is_answer,
    )
    return outcome


async def _publish_if_long(ctx: RunContext, text: str) -> tuple[str, dict[str, str]]:
    """Return the text that a message can hold; a longer answer is published as a file."""
    if len(text) <= texts.MESSAGE:
        return text, {}
    folder = ctx.home.team(ctx.team.id).node(ctx.node.id)
    manifest: dict[str, str] = {}
    await asyncio.to_thread(folder.prepare, ctx.node, ctx.node.refs)
    name = await keep_result(ctx, text)
    # Unpublished, the file stays in scratch/, and the shortened answer says so.
    with contextlib.suppress(Refused):
        manifest = await asyncio.to_thread(folder.publish, texts.fit_message(text))
    return shown_result(ctx, text, name, manifest), manifest


async def _write_answer(steps: Steps, ctx: RunContext) -> str:
    """Return the last text of the model, after it has looked up what it wants to know; empty if it
    has said nothing."""
    # After a crash: calls of the last reply that have no answer.
    await steps.recover(ctx)
    last = ctx.transcript.last_reply
    while (
        last is None or not _is_answer(ctx.transcript, last) or reply_checks.objections(ctx, last)
    ):
        nudge = _nudges(ctx, last)
        if ctx.consumed.turns >= ctx.node.budget.turns or await steps.catch_up(
            ctx, *nudge, deliver_mail=False
        ):
            break
        last = await steps.think(ctx, "reply")
        await steps.act(ctx, last.calls)
    texts = [t.text for t in ctx.transcript.turns if t.role == "assistant" and t.text.strip()]
    return texts[-1] if texts else ""


def _nudges(ctx: RunContext, last: Turn | None) -> list[SystemNote]:
    """Return what the model is told before it is asked again."""
    if last is None:
        return []
    if not last.calls and (last.is_cut or not last.text.strip()):
        return [SystemNote(f"nudge:{last.seq}", CUT_OFF if last.is_cut else NOTHING_SAID)]
    return reply_checks.objections(ctx, last)


def _is_answer(transcript: Transcript, reply: Turn) -> bool:
    """Whether the reply has text, and no call in it failed or looked up something to tell."""
    failed = reply_checks.failed_calls(transcript)
    return (
        bool(reply.text.strip())
        and not reply.is_cut
        and not any(call.id in failed or reply_checks.reads(call) for call in reply.calls)
    )


def _work_decision(transcript: Transcript) -> WorkDecision | None:
    """Return the model's decision about new work. "started" takes precedence, then "routed" (the
    message was given to other work); otherwise the last call decides."""
    failed = reply_checks.failed_calls(transcript)
    decisions: list[WorkDecision] = [
        decision
        for turn in transcript.turns
        for call in turn.calls
        if call.id not in failed
        if (decision := reply_checks.properties(call).decides_work) is not None
    ]
    for weighty in ("started", "routed"):
        if weighty in decisions:
            return weighty
    return decisions[-1] if decisions else None
