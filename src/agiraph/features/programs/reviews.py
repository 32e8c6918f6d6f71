"""Program reviews: have the result of a program judged before others build on it.

A program is never started again unasked, so a result that a reviewer sends back is not reworked: it
counts, with the reviewer's findings as its doubts, and the giver of the task decides.
"""

from collections.abc import Sequence

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Answer, InTransaction, Outcome, Parked, Pending
from agiraph.core.run_context import RunContext
from agiraph.core.services.lifecycle import journal
from agiraph.core.tools import work
from agiraph.core.tools.work import Publish


async def submit(
    ctx: RunContext,
    run: ToolCall,
    result: str,
    evidence: Sequence[str],
    doubts: str | None,
    publish: Publish,
) -> Outcome:
    """Return the end of a node whose program wrote this result, or the wait for its review.

    When the review has ended, the node is claimed again and submits the same result.
    """
    call = ToolCall(id=f"review-{run.id}", name="command")
    if (waiting_on := ctx.parked_calls.get(call.id)) is not None:
        return Parked((waiting_on,))
    ctx.current_call_id = call.id
    answer = await work.judged(
        ctx, result, evidence, doubts, publish, ending="publish", can_rework=False
    )
    if isinstance(answer, InTransaction):
        answer = await _begin(ctx, call, answer)
    match answer:
        case Pending(waiting_on, reason):
            return Parked((waiting_on,), reason)
        case _ if answer.outcome is not None:
            return answer.outcome
        case _:  # the review ended while it was looked for
            return await submit(ctx, run, result, evidence, doubts, publish)


async def _begin(ctx: RunContext, call: ToolCall, begin: InTransaction) -> Answer:
    """Begin the review. The wait for it commits with its node."""
    try:
        answer, turns = await ctx.store.write(journal.begin_wait, ctx.lease, call, begin.act)
    except Refused as refusal:
        return await begin.if_refused(refusal)
    ctx.add_turns(*turns)
    return answer
