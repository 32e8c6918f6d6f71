"""The loop: one agent, one node, one thread, until there is an outcome.

What varies sits behind a named slot. What happens is written to the thread before the next
thing starts, so calling `run` again after a crash or a park picks up where it was.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agiraph.domain.chat import ToolCall, ToolSpec, Turn
from agiraph.domain.errors import ContextExceeded, ModelError, OutOfTime
from agiraph.domain.outcomes import Answer, Done, Finished, Outcome, Parked, Pending
from agiraph.domain.work import StopReason
from agiraph.policies.breaker import Breaker
from agiraph.policies.budget import BudgetPolicy
from agiraph.providers.base import Model, Request
from agiraph.run_context import RunContext
from agiraph.runtime.calls import Caller, Halted
from agiraph.runtime.compaction import Compaction
from agiraph.runtime.landing import hand_in, land, wait_in_words
from agiraph.runtime.time_limit import within
from agiraph.services.lifecycle import journal
from agiraph.services.lifecycle.journal import Notice

MOST_CALLS = 32
"""Calls of one reply that are made; more than that is a model out of control."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    model: Model
    budget: BudgetPolicy
    breaker: Breaker
    compaction: Compaction
    caller: Caller
    specs: tuple[ToolSpec, ...]
    on_delta: Callable[[RunContext, str], None] | None = field(default=None)

    async def run(self, ctx: RunContext) -> Outcome:
        if outcome := await self.recover(ctx):
            return outcome
        while True:
            if outcome := await wait_in_words(self, ctx) or self.breaker.verdict(ctx.transcript):
                return await hand_in(self, ctx, outcome)
            try:
                if stop := self.budget.spent(ctx) or await self.ready(ctx):
                    return await land(self, ctx, stop) if isinstance(stop, StopReason) else stop
                reply = await self.think_or_shorten(ctx)
            except OutOfTime:
                return await land(self, ctx, StopReason.TIME_SPENT)
            if reply and (outcome := await self.act(ctx, reply.calls)):
                return outcome

    async def ready(self, ctx: RunContext) -> StopReason | Outcome | None:
        """Make room if there is little left, then catch up; why not, if money is missing."""
        return await self.compaction.fit(self, ctx) or await self.catch_up(ctx)

    async def think_or_shorten(self, ctx: RunContext) -> Turn | None:
        """A reply; or nothing, if the thread had to be shortened first."""
        try:
            return await self.think(ctx)
        except ContextExceeded:
            if not await self.compaction.force(ctx):
                raise
            return None

    async def recover(self, ctx: RunContext) -> Outcome | None:
        """Calls that a crash or a park left open: wait on, run again, or own up to."""
        return await self.act(ctx, ctx.transcript.open_calls())

    async def catch_up(
        self, ctx: RunContext, *extra: Notice, hear: bool = True
    ) -> StopReason | None:
        """The yield point: hear what was said meanwhile, and hold money for the next call."""
        notices = [*extra]
        if not extra:
            notices += [*self.budget.notices(ctx), *self.breaker.notices(ctx.transcript)]
        heard = await ctx.store.write(
            journal.catch_up,
            ctx.lease,
            answers=ctx.take_deferred_answers(),
            notices=notices,
            hear=hear,
            reservation=self.budget.reservation(ctx),
            paid_from=ctx.envelopes,
        )
        if heard.halt is not None:
            raise Halted(heard.halt)
        ctx.add_turns(*heard.turns)
        return heard.spent

    async def think(
        self,
        ctx: RunContext,
        purpose: str = "work",
        *,
        may_call: bool = True,
        schema: dict[str, Any] | None = None,
        seconds: float | None = None,
    ) -> Turn:
        """Ask the model, for so long or as the time limit allows; write down all of it or none."""
        on_delta = None if self.on_delta is None else partial(self.on_delta, ctx)
        shown, allowed = ctx.transcript, ctx.seconds_left if seconds is None else seconds
        asked = Request(transcript=shown, tools=self.specs, may_call=may_call, schema=schema)
        try:
            reply = await within(allowed, lambda: self.model.reply(asked, on_delta))
        except ModelError as error:
            reason, unused = str(error), error.unused
            await ctx.store.write(journal.lose_call, ctx.lease, reason=reason, unused=unused)
            raise
        turn = await ctx.store.write(
            journal.reply,
            ctx.lease,
            text=reply.text,
            calls=ctx.transcript.named_apart(reply.calls) if may_call else (),
            model=reply.model or self.model.name,
            usage=reply.usage,
            purpose=purpose,
            extra=reply.extra,
        )
        ctx.add_turns(turn)
        return turn

    async def act(self, ctx: RunContext, calls: Sequence[ToolCall]) -> Outcome | None:
        """Answer the calls in order. One of them may end the node; some may park it."""
        waiting: list[Pending] = []
        reply = ctx.transcript.last_reply
        made = [] if reply is None else [call.id for call in reply.calls[:MOST_CALLS]]
        for call in calls:
            match await self.answer(ctx, call, may_be_made=call.id in made):
                case Pending() as pending:
                    waiting.append(pending)
                case Done(outcome=Finished() as outcome):
                    return outcome
                case Done():
                    pass
        if not waiting:
            return None
        await self.caller.settle(ctx)
        reason = "; ".join(p.reason for p in waiting if p.reason)
        return Parked(tuple(p.waiting_on for p in waiting), reason)

    async def answer(self, ctx: RunContext, call: ToolCall, *, may_be_made: bool) -> Answer:
        if may_be_made:
            return await self.caller.answer(ctx, call)
        refusal = Done(f"Not made: at most {MOST_CALLS} calls a turn. Make it again.", failed=True)
        ctx.defer_answer(call, refusal)
        return refusal
