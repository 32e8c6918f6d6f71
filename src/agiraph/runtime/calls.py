"""Calls: making one tool call so that a crash anywhere in it is resolved, told or repeated."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agiraph.domain.chat import ToolCall
from agiraph.domain.errors import Misconfigured, Refused
from agiraph.domain.outcomes import Answer, Done, Pending
from agiraph.domain.work import Halt
from agiraph.policies.budget import BudgetPolicy
from agiraph.policies.permission import PermissionPolicy
from agiraph.run_context import RunContext
from agiraph.runtime.spill import spill
from agiraph.services.lifecycle import journal
from agiraph.store.tx import Tx
from agiraph.tools.base import Tool

MAYBE = "It may or may not have happened. Find out before you make it again."
IN_DOUBT = f"The runtime was cut off while this call was under way. {MAYBE}"


TOO_LATE = "Stopped: the time limit of this work is reached."
ENDING_SECONDS = 5.0
"""What a tool that acts once gets to end in order by itself after the time limit, as a command."""


class Halted(Exception):
    """Somebody asked this work to stop: for good, or for now."""

    def __init__(self, halt: Halt) -> None:
        super().__init__(halt)
        self.halt = halt


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCaller:
    tools: Mapping[str, Tool]
    budget: BudgetPolicy
    permission: PermissionPolicy

    async def answer(self, ctx: RunContext, call: ToolCall) -> Answer:
        """Make one call and write down its answer: in one transaction, if the tool can."""
        if halt := await self.write_deferred(ctx):
            raise Halted(halt)
        if waiting_on := ctx.parked_calls.get(call.id):
            return Pending(waiting_on)
        tool = self.tools.get(call.name)
        if tool is None:
            known = ", ".join(self.tools) or "none"
            said = f"There is no tool called {call.name!r}. Your tools: {known}."
            return await self._record(ctx, call, Done(said, failed=True))
        try:
            return await self._call(ctx, tool, call)
        except (Refused, Misconfigured) as refusal:
            return await self._record(ctx, call, Done(str(refusal), failed=True))

    async def _call(self, ctx: RunContext, tool: Tool, call: ToolCall) -> Answer:
        arguments = tool.read(call)
        ctx.current_call_id = call.id
        if begun := ctx.transcript.intent(call.id):
            answer = await tool.resolve(ctx, call, begun.extra) if tool.resolve else None
            return await self._record(ctx, call, answer or Done(IN_DOUBT, failed=True))
        if reason := self.budget.refusal(ctx, call.name):
            raise Refused(f"Not allowed: {reason}")
        asked = ToolCall(id=call.id, name=call.name, arguments=arguments)
        if refused := self.permission.settled(ctx, asked):
            return await self._record(ctx, call, refused)
        ctx.is_vouched_for = self.permission.vouches(ctx, asked)
        if self.permission.needs_approval(ctx, asked):
            decision = await self._ask(ctx, asked)
            if decision != Done("approved"):
                return decision
            ctx.is_vouched_for = True
        if tool.effect == "transaction":

            def act(tx: Tx) -> Answer:
                return tool.act(tx, ctx, **arguments)

            answer, turns = await ctx.store.write(journal.perform, ctx.lease, call, act)
            ctx.add_turns(*turns)
            return answer
        if tool.effect == "once":
            known = tool.foresee(ctx, **arguments) if tool.foresee else {}
            # From here on a crash is told, not repeated.
            ctx.add_turns(await ctx.store.write(journal.intend, ctx.lease, call, known))
        return await self._record(ctx, call, await _in_time(ctx, tool, arguments))

    async def _ask(self, ctx: RunContext, call: ToolCall) -> Answer:
        """What the person says to this call: parked until they do, recorded if they refuse."""

        def ask(tx: Tx) -> Answer:
            return self.permission.approve(tx, ctx, call)

        answer, turns = await ctx.store.write(journal.weigh, ctx.lease, call, ask)
        ctx.add_turns(*turns)
        return answer

    async def write_deferred(self, ctx: RunContext) -> Halt | None:
        """Write down what was answered, before the next call is made; whether to make it at all."""
        if not ctx.deferred_answers:
            return None
        return await ctx.store.write(journal.answer, ctx.lease, ctx.take_deferred_answers())

    async def _record(self, ctx: RunContext, call: ToolCall, answer: Answer) -> Answer:
        if isinstance(answer, Done) and answer.outcome is None:
            # The yield point is next, or another call.
            ctx.defer_answer(call, await spill(ctx, call, answer))
        else:
            ctx.add_turns(*await ctx.store.write(journal.record, ctx.lease, call, answer))
        return answer


async def _in_time(ctx: RunContext, tool: Tool, arguments: dict[str, Any]) -> Answer:
    """Let a tool act for no longer than the time limit of the work allows."""
    once = tool.effect == "once"
    left = ctx.seconds_left
    limit = asyncio.timeout(None if left is None else left + ENDING_SECONDS * once)
    try:
        async with limit:
            return await tool.act(ctx, **arguments)
    except TimeoutError:
        if not limit.expired():
            raise
    return Done(f"{TOO_LATE} {MAYBE}" if once else TOO_LATE, failed=True)
