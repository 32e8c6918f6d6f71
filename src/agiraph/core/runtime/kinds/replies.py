"""Replies: runs the answer to messages of a person, and the summary of a conversation."""

from dataclasses import replace

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import Misconfigured, ModelError, ModelUnavailable
from agiraph.core.domain.messages import Message
from agiraph.core.domain.outcomes import Failed, Finished, Outcome
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import join
from agiraph.core.domain.text import quotations
from agiraph.core.domain.text.fence import Line, newest
from agiraph.core.domain.work import StopReason
from agiraph.core.prompts import prompt
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.executor import Executor, Loaded, begin
from agiraph.core.runtime.prompts.prompt import Opening, titled
from agiraph.core.runtime.replies import reply, reply_prompt
from agiraph.core.runtime.replies.reply_prompt import in_zone, own_words
from agiraph.core.runtime.steps import Steps
from agiraph.core.services.board import texts
from agiraph.core.services.lifecycle import work_state
from agiraph.core.services.lifecycle.journal import SystemNote
from agiraph.core.store import teams
from agiraph.core.tools.replies.foreground import BASIC, FOREGROUND, UNSHOWN
from agiraph.core.tools.toolsets import Toolset, all_shown

MESSAGE_CHARACTERS = 1500
LEAST_BYTES = 16_000
"""Bytes of messages that are shown to a model whose window nobody knows."""
AGAIN = "[Runtime] Write the summary as text, whole, in at most 200 words."
WRITTEN = Finished("Summarised.", StopReason.FINISHED)


async def _summary_opening(ctx: RunContext) -> Opening:
    """Return the prompt: the summary so far, and the messages to add to it."""
    found = await ctx.store.read(work_state.to_summarise, ctx.node.id)
    if found is None:
        return Opening(f"You are {ctx.agent.name}.", ctx.node.task)
    row, said = found
    said = in_zone(said, await ctx.store.read(teams.zone_of, row.person_id))
    thread = ctx.lease.thread_id
    before = row.text and own_words(row.text, row.label, thread)
    # A quarter of the window, at four bytes a token: an answer and a second try fit, too.
    shown = newest([_line(m, ctx.agent.name, thread) for m in said], room=ctx.window or LEAST_BYTES)
    system = [
        f"You are {ctx.agent.name}.",
        prompt("conversation_summary"),
        titled("The summary so far", before),
        titled("What was said since", "\n\n".join(line.text for line in shown)),
    ]
    label = row.label | join(line.label for line in shown)
    return Opening("\n\n".join(filter(None, system)), ctx.node.task, label=label)


def _line(message: Message, name: str, thread: str) -> Line:
    at = f"[{message.created_at:%d %b %H:%M}]"
    if is_person(message.sender):
        words = quotations.enclose_quoted(message.text, thread=thread, longest=MESSAGE_CHARACTERS)
        return Line(f"{at} Human: {words}", message.label)
    text = "\n    ".join(texts.truncate(message.full_text, MESSAGE_CHARACTERS).splitlines())
    if message.label:
        text = "\n" + own_words(text, message.label, thread)
    return Line(f"{at} {name}: {text}", message.label)


async def _write_summary(steps: Steps, ctx: RunContext) -> Outcome:
    """Ask the model for the summary and store it with the end of the node.

    Nobody waits for it: it sleeps while the model cannot be reached, and any other error ends it.
    Then the messages stand in the prompts as single lines, until a later reply asks again.
    """
    try:
        last = ctx.transcript.last_reply
        while last is None or not last.text.strip() or last.is_cut:
            if ctx.consumed.turns >= ctx.node.budget.turns:
                return Failed(StopReason.NO_RESULT, "The model wrote no summary.")
            again = [] if last is None else [SystemNote(f"nudge:{last.seq}", AGAIN)]
            if reason := await steps.catch_up(ctx, *again, deliver_mail=False):
                return Failed(reason, "There was no money left for a summary.")
            last = await steps.think(ctx, "summary", may_call=False)
    except ModelUnavailable:
        raise
    except ModelError as error:
        return Failed(StopReason.NO_RESULT, f"There is no summary: {error}")
    await ctx.store.write(work_state.store_summary, ctx.lease, last.text, label=ctx.label)
    return WRITTEN


class _Reply:
    async def run(self, executor: Executor, lease: Lease, loaded: Loaded) -> Outcome:
        loaded = loaded._replace(agent=replace(loaded.agent, model=executor.model_for(loaded)))
        ctx, is_lean, upto = executor.context(lease, loaded), executor.is_lean(loaded), ""
        tools = all_shown(BASIC if is_lean else FOREGROUND, besides=UNSHOWN)
        if not loaded.turns:
            opening = await reply_prompt.opening(ctx, tools.shown, is_lean=is_lean)
            upto = opening.summarise_upto
            await begin(ctx, opening)
        try:
            steps = executor.steps(ctx, tools, patient=False)
        except Misconfigured as error:
            return await reply.acknowledge(ctx, error)
        return await reply.answer(steps, ctx, summarise_upto=upto)


class _Summary:
    async def run(self, executor: Executor, lease: Lease, loaded: Loaded) -> Outcome:
        ctx = executor.context(lease, loaded)
        if not loaded.turns:
            await begin(ctx, await _summary_opening(ctx))
        return await _write_summary(executor.steps(ctx, Toolset({})), ctx)


REPLY = _Reply()
SUMMARY = _Summary()
