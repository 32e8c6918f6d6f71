"""Plain replies: parks a node whose model replied without a tool call, if there is something to
wait for."""

from agiraph.core.domain.chat import IN_WORDS
from agiraph.core.domain.outcomes import Outcome, Parked
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.steps import Steps
from agiraph.core.services.lifecycle import spoken_questions


async def park_plain_reply(steps: Steps, ctx: RunContext) -> Outcome | None:
    """Park the node if its last reply has no tool call and there is something to wait for.

    That is delegated work, an open question, or the question that the reply ends with. Return None
    if the node goes on.
    """
    # With a stored wait, a crash came after `spoken_questions.park` and before the park.
    if IN_WORDS not in ctx.parked_calls:
        transcript, silence = ctx.transcript, steps.breaker.silence
        newest = transcript.steps(1)
        if not newest or newest[0].calls or not steps.tool_specs:
            return None
        if newest[0].seq != transcript.last_spoken.seq:
            return None  # the model was told what became of its words
        await steps.caller.write_deferred(ctx)
        turns = await ctx.store.write(
            spoken_questions.park,
            ctx.lease,
            reply=newest[0].seq,
            words=newest[0].text,
            question=silence.question(transcript) if ctx.node.kind.may_ask else None,
            remark=silence.remark(transcript),
        )
        if not turns:
            return None
        ctx.add_turns(*turns)
    return Parked(())
