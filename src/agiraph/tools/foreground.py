"""Foreground tools: the tools of a reply to a person."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from agiraph.domain.outcomes import Answer, Done
from agiraph.run_context import RunContext
from agiraph.services.lifecycle import conversation
from agiraph.store.tx import Tx
from agiraph.tools import remembering, research, scheduling, team
from agiraph.tools.base import Tool, tool


@tool(
    effect="transaction",
    decides_work="started",
)
def start_work(
    tx: Tx,
    ctx: RunContext,
    task: Annotated[str, Field(max_length=100_000)] = "",
) -> Answer:
    """Put what the human wants into your work queue, in your own words. What they ask becomes work
    by itself after your answer; call this to say it better. Put in all they want of it: the one who
    does the work sees this text and no memories. Without a task their message is the task. After
    you have read strangers' words their message always comes first, and your task behind it.
    """
    node = conversation.start_work(tx, ctx.agent, ctx.node.id, task, label=ctx.label)
    return Done(f"Queued as {node.id}.")


@tool(
    effect="transaction",
    decides_work="not_needed",
)
def no_work_needed(
    tx: Tx,
    ctx: RunContext,
    reason: Annotated[str, Field(max_length=2000)] = "",
) -> Answer:
    """Say that what the human wrote asks for no work: thanks, small talk, or a question that your
    answer settles.
    """
    return Done("Then nothing is queued.")


FOREGROUND: Mapping[str, Tool] = {
    made.name: made
    for made in (
        start_work,
        no_work_needed,
        *remembering.FOREGROUND,
        scheduling.promise,
        research.research_start,
        research.job_status,
        team.check_board,
    )
}
