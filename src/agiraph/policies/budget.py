"""Budget: how much a node may spend, the warning before the end, and the hold before a call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from agiraph.domain.work import Budget, StopReason
from agiraph.run_context import RunContext
from agiraph.services.lifecycle import research
from agiraph.services.lifecycle.journal import Notice, Reservation

WARN_AT = 0.8
LANDING_SECONDS = 120.0
SHORTEST_LANDING_SECONDS = 2.0
LANDING_SHARE = 0.25
"""Of the node's time limit, for the last word."""
REPLY_TOKENS = 4096
"""What a reply is assumed to take before it is known."""


class _Meter(NamedTuple):
    what: str
    used: float
    limit: float
    reason: StopReason


@dataclass(frozen=True, slots=True)
class BudgetPolicy:
    """Limits of a node: the last turn is kept for landing with what there is."""

    price: Callable[[str, int], float] = lambda model, tokens: 0.0
    """What showing a model so many tokens costs."""

    def exhausted(self, ctx: RunContext) -> StopReason | None:
        """The limit that the next ordinary turn would pass, if any."""
        for meter in _meters(ctx):
            if meter.used >= meter.limit:
                return meter.reason
        return StopReason.TIME_SPENT if ctx.seconds_left == 0 else None

    def landing_seconds(self, ctx: RunContext) -> float:
        """How long the last word may take, which comes after the time limit: short, and bounded."""
        limit = ctx.node.budget.seconds
        if limit is None and ctx.deadline is None:
            return LANDING_SECONDS
        share = LANDING_SHARE * (limit or 0.0)
        return min(max(share, SHORTEST_LANDING_SECONDS), LANDING_SECONDS)

    def may_land(self, ctx: RunContext, reason: StopReason) -> bool:
        """Whether a last call is still paid for; an empty envelope starts none."""
        budget, reserved = ctx.node.budget, self.reservation(ctx)
        if reason in (StopReason.TOKENS_SPENT, StopReason.MONEY_SPENT):
            return False
        tokens_left = (
            budget.tokens is None or ctx.consumed.usage.tokens + reserved.tokens <= budget.tokens
        )
        return tokens_left and ctx.consumed.turns < budget.turns

    def notices(self, ctx: RunContext) -> list[Notice]:
        """Once per limit: say that it comes near, so that the work can be brought to an end."""
        near = [m for m in _meters(ctx) if m.limit > 1 and m.used >= WARN_AT * m.limit]
        return [
            Notice(
                f"budget:{m.reason}",
                f"[Budget] {_plain(m.used)} of {_plain(m.limit)} {m.what} are used. "
                "Bring the most important part to an end now, and hand in before the rest is gone.",
            )
            for m in near
            if not ctx.transcript.has(f"budget:{m.reason}")
        ]

    def refusal(self, ctx: RunContext, tool: str) -> str | None:
        """Why this tool may not be called again, if it may not."""
        limit = ctx.node.budget.calls.get(tool)
        reply = ctx.transcript.last_reply
        if limit is None or reply is None:
            return None
        # The tally counts the whole reply; what comes after the call in question is not made yet.
        same = [call.id for call in reply.calls if call.name == tool]
        later = len(same) - same.index(ctx.current_call_id) - 1
        if ctx.consumed.calls[tool] - later > limit and ctx.node.asked_of is not None:
            return f"{research.EXHAUSTED} All {limit} calls of {tool} are used."
        if ctx.consumed.calls[tool] - later > limit:
            return f"all {limit} calls of {tool} that this work had are used; go on without it."
        return None

    def reservation(self, ctx: RunContext) -> Reservation:
        """What the next call may cost: the thread as it was, what came since, and a reply."""
        last = ctx.transcript.last_reply
        known = last.usage.tokens if last else 0
        fresh = ctx.transcript.turns[-8:] if last else ctx.transcript.turns
        tokens = known + sum(len(t.text) for t in fresh) // 4 + REPLY_TOKENS
        usd = self.price(ctx.agent.model, tokens)
        return Reservation(model=ctx.agent.model, tokens=tokens, usd=usd)


def _plain(amount: float) -> str:
    return f"{amount:,.0f}" if amount == int(amount) else f"{amount:,.2f}"


def _meters(ctx: RunContext) -> list[_Meter]:
    budget: Budget = ctx.node.budget
    tally = ctx.consumed
    # One turn is set aside to land with; a node of a single turn has nothing to set aside.
    turns = max(1, budget.turns - 1)
    meters = [_Meter("turns", tally.turns, turns, StopReason.TURNS_SPENT)]
    if budget.tokens is not None:
        used = tally.usage.tokens
        meters.append(_Meter("tokens", used, budget.tokens, StopReason.TOKENS_SPENT))
    if budget.usd is not None:
        used = tally.usage.usd or 0.0
        meters.append(_Meter("dollars", used, budget.usd, StopReason.MONEY_SPENT))
    if budget.seconds is not None and ctx.node.claimed_at is not None:
        used = ctx.node.worked_seconds + (ctx.clock.now() - ctx.node.claimed_at).total_seconds()
        meters.append(_Meter("seconds", used, budget.seconds, StopReason.TIME_SPENT))
    return meters
