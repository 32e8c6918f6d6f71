"""Limit tools: give a task that was delegated more room."""

from typing import Annotated

from pydantic import Field

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.tools import ON_DEMAND
from agiraph.core.domain.work import Extension, WorkNode
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import budgets, texts
from agiraph.core.services.lifecycle import continuations
from agiraph.core.store import dependencies, nodes, spend
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import tool

MOST_TURNS = 200
"""Turns that a task can be given at once: its tokens and dollars are bounded by the envelope of
the node that extends it, turns are not."""


@tool(
    effect="transaction",
    roles=frozenset({"coordinator"}),
    in_sight=ON_DEMAND,
)
def extend_task(
    tx: Tx,
    ctx: RunContext,
    id: Annotated[str, Field(description="The task's id, as assign_task or check_board gave it")],
    turns: Annotated[int, Field(ge=0, le=MOST_TURNS)] = 0,
    tokens: Annotated[int, Field(ge=0, le=10**12)] = 0,
    usd: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] = 0.0,
    seconds: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] = 0.0,
) -> Answer:
    """Raise the limits of a task that you gave away, by these amounts. For a task that a limit
    ended as partial or failed although it was on the right way, or that is about to reach one.
    It goes on with all it knows and reports its end again. Give more of the limit that its
    status names. A task that got nowhere needs another worker or other instructions, not more
    room.
    """
    node = nodes.find(tx, ctx.team.id, id)
    if node.id == ctx.node.id or dependencies.is_above(tx, node, ctx.node):
        raise Refused("Only the giver of your work can raise your own limits.")
    if node.creator_id != ctx.agent.id and not dependencies.is_above(tx, ctx.node, node):
        raise Refused(f"{node.id} is not part of your work; you may extend what you gave away.")
    more = Extension(turns=turns, tokens=tokens, usd=usd, seconds=seconds)
    _check_own_envelope(tx, ctx, more)
    before = node.status
    node = continuations.extend(tx, node.id, more, by=ctx.agent.id)
    goes_on = "It is back in its queue" if before.is_final else f"It stays {before}"
    return Done(f"Extended {texts.title_of(node)} ({node.id}). {goes_on}. {_limits(node)}")


def _check_own_envelope(tx: Tx, ctx: RunContext, more: Extension) -> None:
    """Refuse more than the budget of the node that extends has left."""
    for envelope in budgets.envelopes(tx, ctx.node):
        used = spend.total(tx, envelope.node_id)
        if envelope.tokens is not None and more.tokens > envelope.tokens - used.tokens:
            left = max(envelope.tokens - used.tokens, 0)
            raise Refused(f"You have {left:,} tokens left yourself; give less than that.")
        if envelope.usd is not None and more.usd > envelope.usd - used.usd:
            left = max(envelope.usd - used.usd, 0.0)
            raise Refused(f"You have ${left:.2f} left yourself; give less than that.")
    if (left_s := ctx.seconds_left) is not None and more.seconds > left_s:
        raise Refused(f"You have {left_s:.0f} seconds left yourself; give less than that.")


def _limits(node: WorkNode) -> str:
    budget = node.budget
    limits = [
        counted(budget.turns, "turn"),
        "" if budget.tokens is None else f"{budget.tokens:,} tokens",
        "" if budget.usd is None else f"${budget.usd:.2f}",
        "" if budget.seconds is None else f"{budget.seconds:,.0f} seconds",
    ]
    return f"Its limits are now {', '.join(limit for limit in limits if limit)} in all."
