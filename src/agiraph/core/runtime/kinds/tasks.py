"""Tasks: runs tasks and public tasks, with a model in the loop or with what else an agent has."""

from collections.abc import Sequence

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.features import worker_of
from agiraph.core.domain.outcomes import Outcome
from agiraph.core.domain.provenance.labels import join
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.compaction import Compaction
from agiraph.core.runtime.executor import Executor, begin
from agiraph.core.runtime.loading import Loaded
from agiraph.core.runtime.loop import Loop
from agiraph.core.runtime.prompts import prompt, refs
from agiraph.core.runtime.prompts.prompt import Opening, Told, find_tellers
from agiraph.core.runtime.prompts.shown_files import ShownFiles
from agiraph.core.services.mail.bus import report_once
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import Tool
from agiraph.core.tools.toolsets import PUBLIC, Toolset, all_shown


class Task:
    """Runs an ordinary task; other kinds of tasks replace its tools, its opening or its run."""

    async def run(self, executor: Executor, lease: Lease, loaded: Loaded) -> Outcome:
        await executor.prepare_folders(loaded)
        sees_team = loaded.node.kind.sees_team
        skills = await executor.offered.skills_of(loaded.team) if sees_team else ()
        extra = await executor.offered.of_team(loaded.team, skills)
        has_model = loaded.agent.has_model
        tools = self.tools(executor, loaded, extra) if has_model else Toolset({})
        ctx = executor.context(lease, loaded, extra)
        ctx.skills = skills
        if notices := executor.offered.take_notices():
            await ctx.store.write(report_once, ctx.node, notices)
        if not loaded.turns:
            await begin(ctx, await self.opening(executor, ctx, loaded, tools))
        if not has_model:
            return await worker_of(ctx.agent.kind)(executor, ctx)
        return await self.act(executor, ctx, tools)

    async def act(self, executor: Executor, ctx: RunContext, tools: Toolset) -> Outcome:
        """Let the model work."""
        compaction = Compaction(executor.models.window(ctx.agent.model))
        return await Loop(steps=executor.steps(ctx, tools), compaction=compaction).run(ctx)

    def tools(self, executor: Executor, loaded: Loaded, extra: tuple[Tool, ...]) -> Toolset:
        is_lean = executor.is_lean(loaded)
        return executor.offered.toolset(loaded.agent, extra, is_lean=is_lean)

    async def opening(
        self, executor: Executor, ctx: RunContext, loaded: Loaded, tools: Toolset
    ) -> Opening:
        """Return the first entries of a new thread. They are stored and never change, so that the
        vendor's cache holds for all of its calls."""
        is_lean = executor.is_lean(loaded)
        pairs = zip(find_tellers(), loaded.told, strict=True)
        told = [await teller.tell(ctx, rows) for teller, rows in pairs]
        label = loaded.label | join(each.label for each in told)

        def build(shown: ShownFiles) -> str:
            return self.system_text(executor, ctx, loaded, tools, shown, told)

        def opened(tx: Tx) -> None:
            for each in told:
                each.opened(tx, is_lean=is_lean)

        system, shown = await prompt.with_files(ctx, label, build)
        assignment = prompt.assignment(
            loaded.node,
            giver=loaded.giver,
            thread=ctx.lease.thread_id,
            refs=None if tools.tools or not ctx.agent.has_model else await refs.as_text(ctx),
            said=loaded.said,
        )
        return Opening(system, assignment, loaded.attachments, shown.label, is_lean, opened)

    def system_text(
        self,
        executor: Executor,
        ctx: RunContext,
        loaded: Loaded,
        tools: Toolset,
        shown: ShownFiles,
        told: Sequence[Told],
    ) -> str:
        """Return the system prompt."""
        is_lean, means = executor.is_lean(loaded), executor.means_of(loaded.agent)
        about = (loaded.agent, ctx.scope.team, tools, loaded.giver, means, loaded.team_state)
        room = prompt.LEAN_BEFORE_BYTES if is_lean else prompt.BEFORE_BYTES
        before = shown.lines(loaded.said_before, room)
        more = {"shown": shown, "skills": ctx.skills, "zone": loaded.zone, "before": before}
        reader = prompt.Reader(*about, is_lean=is_lean, **more)
        return prompt.system_prompt(loaded.team, reader, executor.clock.now(), told)


class _SingleAnswer(Task):
    def tools(self, executor: Executor, loaded: Loaded, extra: tuple[Tool, ...]) -> Toolset:
        return Toolset({})


class _PublicTask(Task):
    def tools(self, executor: Executor, loaded: Loaded, extra: tuple[Tool, ...]) -> Toolset:
        return all_shown(PUBLIC)

    async def opening(
        self, executor: Executor, ctx: RunContext, loaded: Loaded, tools: Toolset
    ) -> Opening:
        return prompt.public_opening(loaded.node, executor.clock.now())


TASK = Task()
SINGLE_ANSWER = _SingleAnswer()
PUBLIC_TASK = _PublicTask()
