"""Runner: runs research jobs and their steps."""

from agiraph.core.domain.outcomes import Outcome
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.executor import Executor
from agiraph.core.runtime.kinds.tasks import Task
from agiraph.core.runtime.loading import Loaded
from agiraph.core.runtime.prompts.prompt import Opening
from agiraph.core.tools.base import Tool
from agiraph.core.tools.toolsets import Toolset, all_shown
from agiraph.features.research.model.kinds import part_of
from agiraph.features.research.run import job, openings, parts
from agiraph.features.research.tools import READER as READER_TOOLS


class _Job(Task):
    """A job: runs until it waits or ends."""

    def tools(self, executor: Executor, loaded: Loaded, extra: tuple[Tool, ...]) -> Toolset:
        return all_shown({})

    async def opening(
        self, executor: Executor, ctx: RunContext, loaded: Loaded, tools: Toolset
    ) -> Opening:
        return await openings.of_job(ctx)

    async def act(self, executor: Executor, ctx: RunContext, tools: Toolset) -> Outcome:
        steps = executor.steps(ctx, tools)
        return await job.run(steps, ctx, reader_model=executor.reader_model)


class _Reader(Task):
    """A reader: works in the loop, with the tools of a reader."""

    def tools(self, executor: Executor, loaded: Loaded, extra: tuple[Tool, ...]) -> Toolset:
        return all_shown(READER_TOOLS)

    async def opening(
        self, executor: Executor, ctx: RunContext, loaded: Loaded, tools: Toolset
    ) -> Opening:
        return await openings.of_reader(ctx)


class _Step(_Job):
    """Another step: asks its model one question."""

    async def opening(
        self, executor: Executor, ctx: RunContext, loaded: Loaded, tools: Toolset
    ) -> Opening:
        is_support = part_of(ctx.node) == "support"
        return await (openings.of_support if is_support else openings.of_part)(ctx)

    async def act(self, executor: Executor, ctx: RunContext, tools: Toolset) -> Outcome:
        steps = executor.steps(ctx, tools)
        match part_of(ctx.node):
            case "gaps":
                return await parts.run_gaps(steps, ctx)
            case "writing":
                return await parts.run_writing(steps, ctx)
            case _:
                return await parts.run_support(steps, ctx)


JOB = _Job()
READER = _Reader()
STEP = _Step()
