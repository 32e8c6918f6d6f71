"""Reviews: runs the judgement of a result."""

from collections.abc import Mapping, Sequence

from agiraph.core.prompts import prompt
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.executor import Executor, Loaded
from agiraph.core.runtime.kinds.tasks import Task
from agiraph.core.runtime.prompts.prompt import ShownFiles, Told, join_sections, today
from agiraph.core.tools.base import Tool
from agiraph.core.tools.commands import shell
from agiraph.core.tools.files import files
from agiraph.core.tools.toolsets import Toolset, all_shown
from agiraph.features.reviews import tools as reviewing

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        shell.bash,
        reviewing.give_verdict,
        files.list_files,
        files.read_file,
        files.read_ref,
    )
}
"""The tools of a review, whatever the reviewer may call otherwise: it reads, runs and judges."""


class _Review(Task):
    def tools(self, executor: Executor, loaded: Loaded, extra: tuple[Tool, ...]) -> Toolset:
        return all_shown(TOOLS)

    def system_text(
        self,
        executor: Executor,
        ctx: RunContext,
        loaded: Loaded,
        tools: Toolset,
        shown: ShownFiles,
        told: Sequence[Told],
    ) -> str:
        # Goal, notes and rules of work are left out.
        identity = shown.note(f"agents/{loaded.agent.name}/IDENTITY.md")
        name = f"You are {loaded.agent.name}."
        return join_sections([name, identity, prompt("review"), today(executor.clock.now())])


REVIEW = _Review()
