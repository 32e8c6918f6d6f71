"""Research: runs research jobs and their parts."""

from agiraph.domain.outcomes import Outcome
from agiraph.run_context import RunContext
from agiraph.runtime.prompt import Opening
from agiraph.runtime.research import job, openings, parts
from agiraph.runtime.steps import Steps


async def opening(ctx: RunContext) -> Opening:
    """Return the first entries of the thread of a job or of one of its parts."""
    match ctx.node.research:
        case "job":
            return await openings.of_job(ctx)
        case "reader":
            return await openings.of_reader(ctx)
        case "support":
            return await openings.of_support(ctx)
        case _:
            return await openings.of_part(ctx)


async def run(steps: Steps, ctx: RunContext, *, reader_model: str) -> Outcome:
    """Run a job until it waits or ends, or a part that asks its model one question."""
    match ctx.node.research:
        case "gaps":
            return await parts.run_gaps(steps, ctx)
        case "writing":
            return await parts.run_writing(steps, ctx)
        case "support":
            return await parts.run_support(steps, ctx)
        case _:
            return await job.run(steps, ctx, reader_model=reader_model)
