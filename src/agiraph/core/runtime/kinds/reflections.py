"""Reflections: runs the search for insights in ended threads, and the summary of a conversation."""

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.outcomes import Outcome
from agiraph.core.runtime import reflection
from agiraph.core.runtime.executor import Executor, begin
from agiraph.core.runtime.loading import Loaded
from agiraph.core.runtime.replies import conversation_summary
from agiraph.core.tools.toolsets import Toolset


class _Reflection:
    async def run(self, executor: Executor, lease: Lease, loaded: Loaded) -> Outcome:
        ctx = executor.context(lease, loaded)
        if not loaded.turns:
            await begin(ctx, await reflection.opening(ctx))
        window = executor.models.window(ctx.agent.model)
        return await reflection.reflect(executor.steps(ctx, Toolset({})), ctx, window)


class _Summary:
    async def run(self, executor: Executor, lease: Lease, loaded: Loaded) -> Outcome:
        ctx = executor.context(lease, loaded)
        if not loaded.turns:
            await begin(ctx, await conversation_summary.opening(ctx))
        return await conversation_summary.write(executor.steps(ctx, Toolset({})), ctx)


REFLECTION = _Reflection()
SUMMARY = _Summary()
