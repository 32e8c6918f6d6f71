"""Reviews: runs the judgement of a result."""

from collections.abc import Mapping

from agiraph.prompts import prompt
from agiraph.run_context import RunContext
from agiraph.runtime.executor import Executor
from agiraph.runtime.kinds.tasks import Task
from agiraph.runtime.loading import Loaded
from agiraph.runtime.prompt import Known, join_sections, today
from agiraph.runtime.shown_files import ShownFiles
from agiraph.tools import files, reviewing, shell
from agiraph.tools.base import Tool
from agiraph.tools.toolsets import Toolset, all_shown

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
        known: Known,
    ) -> str:
        # Goal, notes and rules of work are left out.
        identity = shown.note(f"agents/{loaded.agent.name}/IDENTITY.md")
        name = f"You are {loaded.agent.name}."
        return join_sections([name, identity, prompt("review"), today(executor.clock.now())])


REVIEW = _Review()
