"""Prompt preview: the prompt that a specialist's model would get for a task. The model is not
called."""

import asyncio
import tempfile
from pathlib import Path

from agiraph.core.domain.agents import Agent, Specialist, Team
from agiraph.core.domain.ids import AgentId, NodeId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.text.previews import PromptText
from agiraph.core.domain.work import WorkNode
from agiraph.core.home.layout import Home
from agiraph.core.runtime.executor import Executor
from agiraph.core.runtime.prompts import prompt
from agiraph.core.services.board import texts
from agiraph.core.store import teams
from agiraph.core.tools.toolsets import Toolset

GIVER = "coordinator"


async def of_specialist(
    executor: Executor, team: Team, specialist: Specialist, task: str
) -> PromptText:
    """Return what a new agent of this kind would be shown, if the coordinator gave it this task.

    What agents have learned, and their notes, are left out: a new agent has none.
    """
    coordinator = await executor.store.read(teams.coordinator, team.id)
    agent = Agent(
        id=AgentId("agent_preview"),
        team_id=team.id,
        name=specialist.name,
        role=specialist.name,
        model=specialist.model or coordinator.model,
        created_at=executor.clock.now(),
        tools=specialist.tools,
        effort=specialist.effort,
        identity=specialist.prompt,
    )
    skills = await executor.offered.skills_of(team)
    offered = await executor.offered.of_team(team, skills)
    tools = executor.offered.toolset(agent, offered, is_lean=False)
    soul = await asyncio.to_thread(executor.home.soul, team.id)

    def build() -> str:
        return _system(executor, team, agent, tools, soul)

    node = WorkNode(
        id=NodeId("node_preview"),
        team_id=team.id,
        task=task,
        title="",
        source="delegation",
        creator_id=OWNER,
        created_at=agent.created_at,
    )
    return PromptText(
        system=await asyncio.to_thread(build),
        task=texts.assignment(node, giver=GIVER, thread="t_preview"),
        tools=tuple(spec.name for spec in tools.shown),
    )


def _system(executor: Executor, team: Team, agent: Agent, tools: Toolset, soul: str) -> str:
    """Build the system prompt from a temporary folder, in which only soul and identity stand."""
    with tempfile.TemporaryDirectory(prefix="agiraph-preview-") as path:
        home = Home.open(Path(path))
        try:
            folder = home.team(team.id)
            folder.write_soul(soul)
            folder.agent(agent.name, identity=agent.identity).close()
            about = (agent, folder, tools, GIVER, executor.means_of(agent))
            return prompt.system_prompt(team, prompt.Reader(*about), executor.clock.now())
        finally:
            home.folder.close()
