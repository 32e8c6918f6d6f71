"""Budget: a node's limits, the warning before one is reached, and the reservation for a call."""

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Budget, StopReason
from agiraph.core.run_context import RunContext
from agiraph.core.services.lifecycle.journal import Reservation, SystemNote

WARN_AT = 0.8
LANDING_S = 120.0
SHORTEST_LANDING_S = 2.0
LANDING_SHARE = 0.25
"""The share of the node's time limit that the last answer may take on top of it."""
REPLY_TOKENS = 4096
"""Tokens that are reserved for a reply before its length is known."""


_text_of = attrgetter("text")


class _Meter(NamedTuple):
    """One limit of a node and how much of it is used."""

    unit: str
    used: float
    limit: float
    reason: StopReason


@dataclass(frozen=True, slots=True)
class BudgetPolicy:
    """The limits of a node. The last turn is reserved for the landing."""

    price: Callable[[str, int], float] = lambda model, tokens: 0.0
    """Returns the price in dollars of so many input tokens of a model."""

    def exhausted(self, ctx: RunContext) -> StopReason | None:
        """Return the limit that leaves no room for another ordinary turn, if any."""
        for meter in _meters(ctx):
            if meter.used >= meter.limit:
                return meter.reason
        return StopReason.TIME_SPENT if ctx.seconds_left == 0 else None

    def landing_seconds(self, ctx: RunContext) -> float:
        """Return how long the last answer may take on top of the time limit."""
        limit = ctx.node.budget.seconds
        if limit is None and ctx.deadline is None:
            return LANDING_S
        share = LANDING_SHARE * (limit or 0.0)
        return min(max(share, SHORTEST_LANDING_S), LANDING_S)

    def may_land(self, ctx: RunContext, reason: StopReason) -> bool:
        """Whether the budget covers a last model call; an empty envelope allows none."""
        budget, reserved = ctx.node.budget, self.reservation(ctx)
        if reason in (StopReason.TOKENS_SPENT, StopReason.MONEY_SPENT):
            return False
        tokens_left = (
            budget.tokens is None or ctx.consumed.usage.tokens + reserved.tokens <= budget.tokens
        )
        return tokens_left and ctx.consumed.turns < budget.turns

    def notes(self, ctx: RunContext) -> list[SystemNote]:
        """Return a warning for each limit that is nearly used up, once per limit."""
        near = [m for m in _meters(ctx) if m.limit > 1 and m.used >= WARN_AT * m.limit]
        return [
            SystemNote(
                _warning_ref(m),
                f"[Budget] {_plain(m.used)} of {_plain(m.limit)} {m.unit} are used. "
                "Bring the most important part to an end now, and submit before the rest is gone.",
            )
            for m in near
            if not ctx.transcript.has(_warning_ref(m))
        ]

    def refusal(self, ctx: RunContext, tool: str) -> str | None:
        """Return why this tool may not be called any more; None if it may."""
        limit = ctx.node.budget.calls.get(tool)
        reply = ctx.transcript.last_reply
        if limit is None or reply is None:
            return None
        # All calls of the reply are counted already; those after the current call are not made yet.
        same = [call.id for call in reply.calls if call.name == tool]
        later = len(same) - same.index(ctx.current_call_id) - 1
        if ctx.consumed.calls[tool] - later > limit:
            return ctx.node.kind.calls_used_up.format(limit=limit, tool=tool)
        return None

    def reservation(self, ctx: RunContext) -> Reservation:
        """Return the estimated cost of the next call: the last request, the text since, a reply."""
        last = ctx.transcript.last_reply
        known = last.usage.tokens if last else 0
        # The last request's count covers older turns. Counting a few turns twice only reserves too
        # much until the real cost is known; too little could overdraw an envelope that several
        # agents share.
        fresh = ctx.transcript.turns[-8:] if last else ctx.transcript.turns
        tokens = known + sum(map(len, map(_text_of, fresh))) // 4 + REPLY_TOKENS
        usd = self.price(ctx.agent.model, tokens)
        return Reservation(model=ctx.agent.model, tokens=tokens, usd=usd)


def _warning_ref(meter: _Meter) -> str:
    # With the limit: one that was raised gets a warning of its own.
    return f"budget:{meter.reason}:{meter.limit:g}"


def _plain(amount: float) -> str:
    return f"{amount:,.0f}" if amount == int(amount) else f"{amount:,.2f}"


def _meters(ctx: RunContext) -> list[_Meter]:
    budget: Budget = ctx.node.budget
    consumed = ctx.consumed
    # One turn is reserved for the landing, unless the node has a single turn.
    turns = max(1, budget.turns - 1)
    meters = [_Meter("turns", consumed.turns, turns, StopReason.TURNS_SPENT)]
    if budget.tokens is not None:
        used = consumed.usage.tokens
        meters.append(_Meter("tokens", used, budget.tokens, StopReason.TOKENS_SPENT))
    if budget.usd is not None:
        used = consumed.usage.usd or 0.0
        meters.append(_Meter("dollars", used, budget.usd, StopReason.MONEY_SPENT))
    if budget.seconds is not None and ctx.node.claimed_at is not None:
        used = ctx.node.worked_seconds + (ctx.clock.now() - ctx.node.claimed_at).total_seconds()
        meters.append(_Meter("seconds", used, budget.seconds, StopReason.TIME_SPENT))
    return meters
