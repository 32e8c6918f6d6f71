"""Steps: what one run does with its thread: catch up, ask the model, and make the calls.

`loop`, `compaction`, `landing`, `reply` and `structured_question` are built from these steps. Each
step commits what happened before it returns, so a run that starts again after a crash or a wait
continues after the last committed step.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeVar

from agiraph.core.domain.chat import THINKING, ToolCall, ToolSpec, Turn
from agiraph.core.domain.errors import (
    BurnRateReached,
    ContextExceeded,
    DailyLimitReached,
    ModelError,
    OutOfTime,
)
from agiraph.core.domain.outcomes import Answer, Done, Finished, Outcome, Parked, Pending
from agiraph.core.domain.text.json_text import clean, without_surrogates
from agiraph.core.domain.text.plurals import times
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Effort, StopReason
from agiraph.core.policies.breaker import Breaker
from agiraph.core.policies.budget import BudgetPolicy
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.calls import IN_DOUBT, Halted, ToolCaller
from agiraph.core.runtime.daily_spend import DailySpend
from agiraph.core.services.board import budgets
from agiraph.core.services.lifecycle import claims, journal
from agiraph.core.services.lifecycle.journal import Reservation, SystemNote
from agiraph.core.tools.calls.call_reading import read_calls
from agiraph.models.base import Model, Reply, Request

T = TypeVar("T")

SPENT = "The time limit of this work was reached before the model had answered."


async def within(seconds: float | None, ask: Callable[[], Awaitable[T]]) -> T:
    """Return what `ask` returns, or raise `OutOfTime` after so many seconds.

    None means no limit. With no seconds left, `ask` is not called, and `OutOfTime.unused` says
    that the model was not called and costs nothing.
    """
    if seconds is not None and seconds <= 0:
        raise OutOfTime(SPENT, unused=True)
    if seconds is None:
        return await ask()
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await ask()
    except TimeoutError as error:
        if not limit.expired():  # a timeout within `ask`, such as the connection's
            raise
        raise OutOfTime(SPENT) from error


MAX_CALLS_PER_REPLY = 32
"""Further calls of a reply are refused: a model that asks for more is out of control."""
NOT_ALONE = (
    "[Not ended] {name} counts only as the single call of a reply. The other calls of this reply "
    "are made; read their answers, then call {name} alone."
)
CUT_OFF_AGAIN = (
    f"This call was cut off {times(claims.MAX_CRASHES)} by a crash of the server. It is not made "
    "again. Go on without it."
)
ENDED_TWICE = "Not made: another call of this reply ends the work, and one is enough."
SHOWN = frozenset({"work", "reply"})
"""The purposes of calls whose words people may watch while they come. What answers a question of
the runtime is for nobody else."""
HELD_BACK = "Not made: a message came first; it follows. Repeat what still holds."


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The steps of a run, with the model, tools and policies of the run's agent."""

    model: Model
    budget: BudgetPolicy
    breaker: Breaker
    caller: ToolCaller
    tool_specs: tuple[ToolSpec, ...]
    """The tools that the model is shown; empty for a single answer without tools."""
    daily: DailySpend | None = None
    """What may be spent today; None: no limit."""
    on_delta: Callable[[RunContext, str], None] | None = field(default=None)
    """Receives each piece of a reply while the model streams it."""
    longest_wait_s: float | None = None
    """How long a call may wait for a rate limit; None: as long as it takes."""
    effort: Effort | None = None
    """How much the model thinks; None: as the settings say of the model."""
    window: int | None = None
    """Tokens that a request to the model may have; None: nobody knows."""

    async def recover(self, ctx: RunContext) -> Outcome | None:
        """Settle the calls that a crash or a park left without an answer.

        A parked call goes on waiting, a repeatable one is made again, and one that may have
        happened already is resolved or reported to the model as in doubt. A call that crashes cut
        off too often is reported, too: made again, it could crash the process for ever.
        """
        calls = ctx.transcript.open_calls()
        begun = next((call for call in calls if call.id not in ctx.parked_calls), None)
        if begun is None or ctx.node.crashes < claims.MAX_CRASHES:
            return await self.act(ctx, calls, is_recovery=True)
        is_in_doubt = ctx.transcript.intent(begun.id) is not None
        ctx.defer_answer(begun, Done(IN_DOUBT if is_in_doubt else CUT_OFF_AGAIN, failed=True))
        # At once: should the next call crash, too, then this one must not be counted for it.
        await self.caller.commit_deferred(ctx)
        return await self.act(ctx, [call for call in calls if call is not begun])

    async def catch_up(
        self, ctx: RunContext, *notes: SystemNote, deliver_mail: bool = True
    ) -> StopReason | None:
        """Commit deferred answers, add new mail and notes, and reserve the next call's cost.

        Without given notes, those of the budget and the breaker are added. Returns the reason if
        no envelope has enough left, and raises `Halted` if the node was paused or cancelled.
        """
        if notes:
            return await self._yield(ctx, notes, deliver_mail=deliver_mail)
        if warnings := self.budget.notes(ctx):
            await self.reload_limits(ctx)  # they may have been raised, and the warning be wrong
            warnings = self.budget.notes(ctx)
        added = [*warnings, *self.breaker.notes(ctx.transcript), *_date_notes(ctx)]
        return await self._yield(ctx, added, deliver_mail=deliver_mail)

    async def reached_limit(self, ctx: RunContext) -> StopReason | None:
        """Return the limit that the run has reached, if any. A limit that was raised during the run
        applies with its new value."""
        if self.budget.exhausted(ctx) is None:
            return None
        await self.reload_limits(ctx)
        return self.budget.exhausted(ctx)

    async def reload_limits(self, ctx: RunContext) -> bool:
        """Read the limits of the run again; return whether somebody raised them."""
        limits = await ctx.store.read(budgets.current_limits, ctx.node.id)
        return ctx.take_limits(limits)

    async def reserve(self, ctx: RunContext) -> StopReason | None:
        """Reserve the next call's cost without notes or mail; return the reason if it cannot.

        For a question that the thread holds already, but whose reservation a crash used up.
        """
        return await self._yield(ctx, [], deliver_mail=False)

    async def _yield(
        self, ctx: RunContext, notes: Sequence[SystemNote], *, deliver_mail: bool
    ) -> StopReason | None:
        reservation = self.budget.reservation(ctx)
        await self._reserve_today(ctx, reservation)
        # One transaction: the reservation is durable before the model is called, so that a call
        # which a crash cuts off is charged (`leases.charge_lost_call`).
        caught_up = await ctx.store.write(
            journal.catch_up,
            ctx.lease,
            answers=ctx.take_deferred_answers(),
            notes=notes,
            deliver_mail=deliver_mail and ctx.node.kind.hears_mail,
            reservation=reservation,
            paid_from=ctx.envelopes,
            outermost=ctx.outermost_budget,
        )
        if caught_up.halt or caught_up.spent or caught_up.limits:
            self._release_today(ctx)
        if caught_up.halt is not None:
            raise Halted(caught_up.halt)
        if caught_up.limits is not None:
            ctx.take_limits(caught_up.limits)
            return await self._yield(ctx, notes, deliver_mail=deliver_mail)
        ctx.add_turns(*caught_up.turns)
        ctx.has_word = False
        return caught_up.spent

    async def _reserve_today(self, ctx: RunContext, reservation: Reservation) -> None:
        """Raise `DailyLimitReached` if the home may spend no more today, and `BurnRateReached` if
        the goal spends so fast that it must wait for a person."""
        if self.daily is None:
            return
        thread_id = ctx.lease.thread_id
        try:
            if ctx.node.is_work:
                await self.daily.check_pace(ctx.lease)
            await self.daily.reserve(thread_id, reservation.model, reservation.usd)
        except (BurnRateReached, DailyLimitReached):
            # The run ends here, and an answer that is still deferred would be lost with it.
            await self.caller.write_deferred(ctx)
            raise

    async def think(
        self,
        ctx: RunContext,
        purpose: str = "work",
        *,
        may_call: bool = True,
        schema: dict[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> Turn:
        """Ask the model, commit its whole reply with its cost, and return it.

        Without `timeout_s` the node's time limit applies; `OutOfTime` is raised when it is
        reached. A reply that breaks off is not kept.
        """
        seconds = ctx.seconds_left if timeout_s is None else timeout_s
        last = ctx.transcript.turns[-1]
        if (last.role, last.ref) != ("intent", THINKING):  # a crash has used up the reservation
            await self._reserve_today(ctx, self.budget.reservation(ctx))
        request = Request(
            transcript=ctx.transcript,
            tools=self.tool_specs,
            may_call=may_call,
            schema=schema,
            effort=self.effort,
            team=ctx.team.id,
            longest_wait_s=self.longest_wait_s,
        )
        try:
            reply = await self._reply(ctx, request, seconds, is_shown=purpose in SHOWN)
            turn = await self._record(ctx, reply, purpose, may_call=may_call)
            if self.daily is not None:
                self.daily.book(ctx.team.id, ctx.agent.model, turn.usage)
        finally:
            self._release_today(ctx)
        ctx.add_turns(turn)
        return turn

    async def _reply(
        self, ctx: RunContext, request: Request, seconds: float | None, *, is_shown: bool
    ) -> Reply:
        """Ask the model. The reservation of a call without a reply is charged or released."""
        shows = self.on_delta if is_shown else None
        on_delta = None if shows is None else partial(shows, ctx)
        try:
            self._check_window(ctx)
            # A cancellation here leaves the reservation as the thread's last
            # turn; the next claim charges it.
            return await within(seconds, lambda: self.model.reply(request, on_delta))
        except ModelError as error:
            # The reservation is charged as lost, unless the request certainly cost nothing.
            reason, unused = str(error), error.unused
            await ctx.store.write(journal.record_lost_call, ctx.lease, reason=reason, unused=unused)
            raise

    def _check_window(self, ctx: RunContext) -> None:
        """Raise `ContextExceeded` for a request that is larger than the window: some servers cut it
        without a word."""
        tokens = ctx.transcript.next_tokens
        if self.window is not None and tokens > self.window:
            text = (
                f"The request would have about {tokens:,} tokens, and the window {self.window:,}."
            )
            raise ContextExceeded(text, unused=True)

    async def _record(self, ctx: RunContext, reply: Reply, purpose: str, *, may_call: bool) -> Turn:
        """Commit a reply with its cost."""
        # A model may call tools although it was told not to. The calls are dropped: nothing would
        # answer them.
        made: list[ToolCall] = []
        for call in reply.calls if may_call else ():
            given = clean(call.arguments)
            made.append(call if given is call.arguments else replace(call, arguments=given))
        read = read_calls(made, self.caller.tools, is_cut=reply.is_cut)
        # Some vendors repeat call ids, by which answers are found.
        calls = ctx.transcript.with_unique_ids([one.call for one in read])
        text = without_surrogates(reply.text)
        if (text, calls) != (reply.text, reply.calls) or not reply.model:
            model = reply.model or self.model.name
            reply = replace(reply, text=text, calls=calls, model=model)
        turn, ctx.has_word = await ctx.store.write(
            journal.reply,
            ctx.lease,
            reply,
            purpose=purpose,
            readings={call.id: one.reading for call, one in zip(calls, read, strict=True)},
        )
        return turn

    def _release_today(self, ctx: RunContext) -> None:
        if self.daily is not None:
            self.daily.release(ctx.lease.thread_id)

    async def act(
        self,
        ctx: RunContext,
        calls: Sequence[ToolCall],
        *,
        is_recovery: bool = False,
        listens: bool = True,
    ) -> Outcome | None:
        """Make the calls in order. Return an outcome if one of them ends or parks the node.

        If `listens`, a person's message that has come meanwhile holds back the calls that are not
        begun: the next yield point brings it to the model. The first call that a crash left without
        an answer may be begun, so `is_recovery` has it made.
        """
        may_be_begun = is_recovery
        pending: list[Pending] = []
        reply = ctx.transcript.last_reply
        allowed = [] if reply is None else [call.id for call in reply.calls[:MAX_CALLS_PER_REPLY]]
        for call in calls:
            is_new = call.id not in ctx.parked_calls and not may_be_begun
            if listens and is_new and await self._holds_back(ctx, call):
                continue
            may_be_begun &= call.id in ctx.parked_calls
            match await self.answer(ctx, call, is_allowed=call.id in allowed):
                case Pending() as answer:
                    pending.append(answer)
                case Done(outcome=Finished() as outcome):
                    return outcome
                case Done():
                    pass
        if not pending:
            return None
        # Parking ends this lease, and an answer that is still deferred would be lost with it.
        await self.caller.write_deferred(ctx)
        reason = "; ".join(answer.reason for answer in pending if answer.reason)
        return Parked(tuple(answer.waiting_on for answer in pending), reason)

    async def _holds_back(self, ctx: RunContext, call: ToolCall) -> bool:
        """Answer a call that is not begun as not made, if the agent must hear a person first."""
        if not ctx.node.is_work or not ctx.node.kind.hears_mail:
            return False
        if not ctx.has_word and ctx.deferred_answers:
            await self.caller.commit_deferred(ctx)
        if not ctx.has_word or ctx.transcript.intent(call.id) is not None:
            return False
        ctx.defer_answer(call, Done(HELD_BACK, failed=True, is_held_back=True))
        return True

    async def answer(self, ctx: RunContext, call: ToolCall, *, is_allowed: bool) -> Answer:
        """Make one tool call of a model's reply and return its answer.

        A call that is not allowed, because the reply held too many or because it would end the node
        beside others, is answered with a refusal.
        """
        if is_allowed and not self._ends_beside_others(ctx, call):
            return await self.caller.answer(ctx, call)
        text = f"Not made: at most {MAX_CALLS_PER_REPLY} calls a turn. Make it again."
        if is_allowed:
            text = NOT_ALONE.format(name=call.name) if self._has_others(ctx) else ENDED_TWICE
        refusal = Done(text, failed=True)
        ctx.defer_answer(call, refusal)
        return refusal

    def _ends_beside_others(self, ctx: RunContext, call: ToolCall) -> bool:
        """Whether a call would end the node while its reply holds other calls.

        Its model has not read their answers yet, so it cannot know that the work is done. Of
        several calls that end the node, and nothing else, the first counts.
        """
        reply = ctx.transcript.last_reply
        if reply is None or not self._ends(call):
            return False
        return self._has_others(ctx) or call.id != reply.calls[0].id

    def _ends(self, call: ToolCall) -> bool:
        tool = self.caller.tools.get(call.name)
        return tool is not None and tool.properties.ends_node

    def _has_others(self, ctx: RunContext) -> bool:
        """Whether the last reply holds a call that ends nothing."""
        reply = ctx.transcript.last_reply
        return reply is not None and not all(map(self._ends, reply.calls))


def _date_notes(ctx: RunContext) -> list[SystemNote]:
    """Return a note with today's date, if the thread was last told another one."""
    now, transcript = ctx.clock.now(), ctx.transcript
    if not transcript.turns or transcript.turns[0].at.date() == now.date():
        return []
    # A summary drops the notes before it, so that each cut needs its own.
    ref = f"date:{now:%Y-%m-%d}:{transcript.cuts}"
    text = f"[Runtime] Time has passed since you began. Today is {now:%A, %d %B %Y} (UTC)."
    return [] if transcript.has(ref) else [SystemNote(ref, text)]
