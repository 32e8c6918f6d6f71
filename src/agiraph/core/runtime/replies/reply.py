"""Reply: answers a person's message at once, while the agent's work goes on in its own lane."""

import asyncio
import contextlib
import itertools
from typing import Any, cast, get_args

from agiraph.core.domain.chat import ToolCall, Transcript, Turn
from agiraph.core.domain.errors import DailyLimitReached, ModelError, Refused
from agiraph.core.domain.outcomes import Finished, Outcome
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.text.visible import is_blank
from agiraph.core.domain.tools import ToolProperties, WorkDecision
from agiraph.core.domain.work import StopReason
from agiraph.core.run_context import RunContext
from agiraph.core.runtime import structured_question
from agiraph.core.runtime.calls import keep_result, shown_result
from agiraph.core.runtime.steps import Steps
from agiraph.core.runtime.structured_question import Question, Unaffordable, fields
from agiraph.core.services.board import texts
from agiraph.core.services.lifecycle import conversation, overspending, work_state
from agiraph.core.services.lifecycle.conversation import MessagePart
from agiraph.core.services.lifecycle.journal import SystemNote
from agiraph.core.store.tx import Tx
from agiraph.core.tools.replies.foreground import FOREGROUND

WITHOUT_A_MODEL = "I have your message. (I could not think of a proper answer just now: {reason})"
HOW_THINGS_STAND = "This is how things stand:\n{facts}"
OUT_OF_MONEY = (
    "I have your message, but today's limit for model calls is reached, so I cannot think about it "
    "now. I go on as soon as you allow more (the request is in your inbox), or by myself at 00:00 "
    "UTC."
)
NOTHING_SAID = "[Runtime] The human reads only what you write as text. Answer them now, briefly."

DECISION = "decision"
WHAT_IS_IT = (
    "[Runtime] Your reply is sent. Say what their message asks for, as JSON: "
    '{"parts": [{"what": …, "id": …, "words": …}]}, one part for each thing it asks. what: '
    "chat (nothing to do, or answered by your reply), about_work (for work under way: its id), "
    "new_work (something to be done), stop (work to be ended: its id), answer (to an open "
    "question: its id). words: that part of their message, word for word."
)
ONLY_THE_REST = " Your calls are about parts of it. Say it of the rest: {rest!r}"
CUT_OFF = "[Runtime] Your answer broke off before its end. Give it again, whole and much shorter."


async def answer(steps: Steps, ctx: RunContext, *, summarise_upto: str = "") -> Outcome:
    """Ask the model until it has an answer, and send it; without a model, send a plain notice.

    With `summarise_upto`, a summary of the messages up to that one is queued with the answer.
    """
    try:
        text = await _write_answer(steps, ctx)
        parts = await _ask_what_it_is(steps, ctx)
    except DailyLimitReached as error:
        await ctx.store.write(overspending.ask_about_day, ctx.lease, limit_usd=error.limit_usd)
        return await _send(ctx, OUT_OF_MONEY)
    except ModelError as error:
        # The person must get an answer whatever becomes of the model; their request becomes work.
        return await acknowledge(ctx, error)
    await steps.caller.write_deferred(ctx)
    text = text or await ctx.store.read(_without_model, ctx, "nothing was said.")
    return await _send(ctx, text, parts=parts, summarise_upto=summarise_upto)


async def acknowledge(ctx: RunContext, why: Exception) -> Outcome:
    """Tell the person that the model failed; their request is queued as work all the same."""
    return await _send(ctx, await ctx.store.read(_without_model, ctx, str(why)))


async def _ask_what_it_is(steps: Steps, ctx: RunContext) -> tuple[MessagePart, ...]:
    """Return what the message asks for, part by part, as far as the reply's calls have not said it;
    empty if there is no such part, or if the model gives no readable answer."""
    decided, acts = _decided(ctx.transcript), _acts(ctx.transcript)
    rest = await ctx.store.read(conversation.undecided_rest, ctx.agent, ctx.node.id, decided, acts)
    if decided and not rest:
        return ()
    text = WHAT_IS_IT + (ONLY_THE_REST.format(rest=rest) if rest else "")
    question = Question(name=DECISION, text=text, parse=_parts, is_asked_once=True)
    try:
        return await structured_question.ask(steps, ctx, question) or ()
    except (Unaffordable, ModelError):
        return ()  # the reply stands; what nobody decided becomes work


def _parts(value: Any) -> tuple[MessagePart, ...] | None:
    """Read the answer to the question what a message asks for; None if it has another form."""
    listed = fields(value).get("parts")
    if not isinstance(listed, list) or not listed:
        return None
    parts = [fields(part) for part in cast(list[Any], listed)]
    if any(part.get("what") not in get_args(WorkDecision) for part in parts):
        return None
    return tuple(
        MessagePart(part["what"], str(part.get("id") or ""), str(part.get("words") or ""))
        for part in parts
    )


def _without_model(tx: Tx, ctx: RunContext, reason: str) -> str:
    """Return an answer that needs no model: that there is none, and what is under way. What becomes
    of the message stands under it."""
    facts = work_state.for_person(tx, ctx.agent)
    said = WITHOUT_A_MODEL.format(reason=reason)
    return f"{said}\n\n{HOW_THINGS_STAND.format(facts=facts)}" if facts else said


async def _send(
    ctx: RunContext,
    text: str,
    *,
    parts: tuple[MessagePart, ...] = (),
    summarise_upto: str = "",
) -> Outcome:
    """Send the answer, make the work if it is wanted, and end the node: one transaction."""
    text, manifest = await _publish_if_long(ctx, text)
    outcome = Finished(text, StopReason.FINISHED, manifest)
    await ctx.store.write(
        conversation.end_reply,
        ctx.lease,
        outcome,
        text=text,
        did=conversation.ReplyCalls(
            decided=_decided(ctx.transcript),
            parts=parts,
            acts=_acts(ctx.transcript),
            consulted=_consulted(ctx.transcript),
        ),
        summarise_upto=summarise_upto,
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
    if ctx.transcript.has(DECISION):
        return _last_words(ctx.transcript)
    last = ctx.transcript.last_reply
    while last is None or not _is_answer(ctx.transcript, last):
        nudge = _nudges(last)
        if ctx.consumed.turns >= ctx.node.budget.turns or await steps.catch_up(
            ctx, *nudge, deliver_mail=False
        ):
            break
        last = await steps.think(ctx, "reply")
        await steps.act(ctx, last.calls)
    return _last_words(ctx.transcript)


def _last_words(transcript: Transcript) -> str:
    """Return the last text that the model wrote to the person; empty if there is none."""
    turns = itertools.takewhile(lambda turn: turn.ref != DECISION, transcript.turns)
    return next(
        (t.text for t in reversed([*turns]) if t.role == "assistant" and not is_blank(t.text)), ""
    )


def _nudges(last: Turn | None) -> list[SystemNote]:
    """Return what the model is told before it is asked again."""
    if last is None or last.calls or not (last.is_cut or is_blank(last.text)):
        return []
    return [SystemNote(f"nudge:{last.seq}", CUT_OFF if last.is_cut else NOTHING_SAID)]


def _is_answer(transcript: Transcript, reply: Turn) -> bool:
    """Whether the reply has text, and no call in it failed or looked up something to tell."""
    failed = _failed_calls(transcript)
    return (
        not is_blank(reply.text)
        and not reply.is_cut
        and not any(call.id in failed or _reads(call) for call in reply.calls)
    )


def _decided(transcript: Transcript) -> frozenset[WorkDecision]:
    """Return what the calls of the reply have decided about the message; all of them count."""
    failed = _failed_calls(transcript)
    return frozenset(
        decision
        for turn in transcript.turns
        for call in turn.calls
        if call.id not in failed
        if (decision := _properties(call).decides_work) is not None
    )


def _acts(transcript: Transcript) -> list[Act]:
    return [turn.did for turn in transcript.turns if turn.did is not None]


def _consulted(transcript: Transcript) -> tuple[str, ...]:
    """Return what the reply has read, as calls with their first argument."""
    failed = _failed_calls(transcript)
    calls = [call for turn in transcript.turns for call in turn.calls if call.id not in failed]
    named = [
        f"{call.name}({str(next(iter(call.arguments.values()), ''))[:80]})"
        for call in calls
        if _reads(call)
    ]
    return tuple(dict.fromkeys(named))


def _reads(call: ToolCall) -> bool:
    """Whether the model has to read the answer of a call before it writes to the person."""
    found = _properties(call)
    return found.looks_up or found.reads_file


def _properties(call: ToolCall) -> ToolProperties:
    tool = FOREGROUND.get(call.name)
    return ToolProperties() if tool is None else tool.properties


def _failed_calls(transcript: Transcript) -> set[str | None]:
    return {t.ref for t in transcript.turns if t.role == "tool" and t.failed}
