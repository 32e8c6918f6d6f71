"""Replies: runs the answer to messages of a person, and the summary of a conversation."""

from dataclasses import replace

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.outcomes import Outcome
from agiraph.core.runtime.executor import Executor, begin
from agiraph.core.runtime.loading import Loaded
from agiraph.core.runtime.replies import conversation_summary, reply, reply_prompt
from agiraph.core.tools.replies.foreground import BASIC, FOREGROUND, UNSHOWN
from agiraph.core.tools.toolsets import Toolset, all_shown


class _Reply:
    async def run(self, executor: Executor, lease: Lease, loaded: Loaded) -> Outcome:
        loaded = loaded._replace(agent=replace(loaded.agent, model=executor.model_for(loaded)))
        ctx, is_lean, upto = executor.context(lease, loaded), executor.is_lean(loaded), ""
        tools = all_shown(BASIC if is_lean else FOREGROUND, besides=UNSHOWN)
        if not loaded.turns:
            opening = await reply_prompt.opening(ctx, tools.shown, is_lean=is_lean)
            upto = opening.summarise_upto
            await begin(ctx, opening)
        try:
            steps = executor.steps(ctx, tools, patient=False)
        except Misconfigured as error:
            return await reply.acknowledge(ctx, error)
        return await reply.answer(steps, ctx, summarise_upto=upto)


class _Summary:
    async def run(self, executor: Executor, lease: Lease, loaded: Loaded) -> Outcome:
        ctx = executor.context(lease, loaded)
        if not loaded.turns:
            await begin(ctx, await conversation_summary.opening(ctx))
        return await conversation_summary.write(executor.steps(ctx, Toolset({})), ctx)


REPLY = _Reply()
SUMMARY = _Summary()
