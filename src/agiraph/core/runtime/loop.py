"""Loop: one agent works on one node in one thread until there is an outcome.

The algorithm: recover, catch up, check the budget, ask the model, make its calls, repeat. Every
step is committed before the next one starts (`steps`), so running the loop again after a crash or
a wait continues where the last run stopped. What a crash cut off is settled by `Steps.recover`.
"""

from agiraph.core.domain.chat import IN_WORDS, Turn
from agiraph.core.domain.errors import ContextExceeded, OutOfTime
from agiraph.core.domain.outcomes import Failed, Outcome, Parked
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import StopReason
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.compaction import Compaction
from agiraph.core.runtime.landing import land, publish_outcome
from agiraph.core.runtime.steps import Steps
from agiraph.core.services.lifecycle import spoken_questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Runs a `work` node: asks the model, makes its tool calls, and repeats until the node ends.

    Nodes for replies and reflections use the same steps in their own order.
    """

    steps: Steps
    compaction: Compaction

    async def run(self, ctx: RunContext) -> Outcome:
        """Work on the node until it is finished, parked or failed."""
        if outcome := await self.steps.recover(ctx):
            return outcome
        while True:
            if outcome := await self._stop(ctx):
                return await publish_outcome(self.steps, ctx, outcome)
            try:
                match await self._budget_or_catch_up(ctx):
                    case None:
                        pass
                    case StopReason() as reason:
                        return await land(self.steps, ctx, reason)
                    case Failed() as failed:
                        return await publish_outcome(self.steps, ctx, failed)
                    case outcome:
                        return outcome
                reply = await self._think(ctx)
            except OutOfTime:
                if await self.steps.reload_limits(ctx):
                    continue
                return await land(self.steps, ctx, StopReason.TIME_SPENT)
            if reply and (outcome := await self.steps.act(ctx, reply.calls)):
                return outcome

    async def _stop(self, ctx: RunContext) -> Outcome | None:
        """Return an outcome if the last reply ends or parks the node without a tool call."""
        parked = await park_plain_reply(self.steps, ctx)
        return parked or self.steps.breaker.verdict(ctx.transcript)

    async def _budget_or_catch_up(self, ctx: RunContext) -> StopReason | Outcome | None:
        """Return the limit that is reached, if any; else make room in the thread and catch up.

        Compaction may run tools, so it may end or park the node by itself.
        """
        return (
            await self.steps.reached_limit(ctx)
            or await self.compaction.compact_if_full(self.steps, ctx)
            or await self.steps.catch_up(ctx)
        )

    async def _think(self, ctx: RunContext) -> Turn | None:
        """Return the model's reply; None if the thread was too long and is compacted now."""
        try:
            return await self.steps.think(ctx)
        except ContextExceeded:
            if not await self.compaction.compact_now(ctx):
                raise
            return None


async def park_plain_reply(steps: Steps, ctx: RunContext) -> Outcome | None:
    """Park the node if its last reply has no tool call and there is something to wait for.

    That is delegated work, an open question, or the question that the reply ends with. Return None
    if the node goes on.
    """
    # With a stored wait, a crash came after `spoken_questions.park` and before the park.
    if IN_WORDS not in ctx.parked_calls:
        transcript, silence = ctx.transcript, steps.breaker.silence
        newest = transcript.newest_step
        if newest is None or newest.calls or not steps.tool_specs:
            return None
        if newest.seq != transcript.last_spoken.seq:
            return None  # the model was told what became of its words
        await steps.caller.write_deferred(ctx)
        turns = await ctx.store.write(
            spoken_questions.park,
            ctx.lease,
            reply=newest.seq,
            words=newest.text,
            question=silence.question(transcript) if ctx.node.kind.may_ask else None,
            remark=silence.remark(transcript),
        )
        if not turns:
            return None
        ctx.add_turns(*turns)
    return Parked(())
