"""Teams: founding, steering and looking at them, their agents, their board and their bill."""

from collections.abc import Mapping, Sequence
from typing import Any

from agiraph.api.views import AgentView, NodeDetail, NodeView, StageView, Stopped, TeamView
from agiraph.client.connection import Connection, path_of
from agiraph.domain.agents import Mode
from agiraph.domain.costs import Costs
from agiraph.domain.errors import NotFound


class TeamCalls(Connection):
    async def create_team(
        self,
        goal: str,
        *,
        name: str = "",
        mode: Mode = "finite",
        model: str = "",
        soul: str = "",
        budget: Mapping[str, Any] | None = None,
        tools: Sequence[str] = (),
        workers: int | None = None,
        permissions: Sequence[Mapping[str, str]] = (),
        learns: bool = True,
        start: bool = True,
    ) -> TeamView:
        """A new team that gets to work on the goal, unless it should not start yet."""
        body = {
            "goal": goal,
            "name": name,
            "mode": mode,
            "model": model,
            "soul": soul,
            "budget": budget,
            "tools": list(tools),
            "workers": workers,
            "permissions": list(permissions),
            "learns": learns,
            "start": start,
        }
        return await self.make(TeamView, "/teams", body)

    async def teams(self) -> list[TeamView]:
        """Every team, oldest first."""
        return await self.pages(TeamView, "/teams")

    async def team(self, team: str) -> TeamView:
        """A team by its id or name."""
        if "/" not in team:
            return await self.get(TeamView, path_of("teams", team))
        # A path cannot hold such a name, however it is quoted.
        named = [found for found in await self.teams() if found.name == team]
        if not named:
            raise NotFound("team", team, known="`agiraph teams` lists them.")
        return named[-1]

    async def archive(self, team: str) -> None:
        """Stop a team and put it away."""
        await self.ask("DELETE", path_of("teams", team))

    async def pause(self, team: str) -> TeamView:
        return await self.post(TeamView, path_of("teams", team, "pause"))

    async def resume(self, team: str) -> TeamView:
        return await self.post(TeamView, path_of("teams", team, "resume"))

    async def stop(self, team: str) -> TeamView:
        return await self.post(TeamView, path_of("teams", team, "stop"))

    async def stop_everything(self) -> Stopped:
        """The emergency stop: whatever any team does ends now."""
        return await self.post(Stopped, "/stop")

    async def set_goal(
        self, team: str, goal: str, *, budget: Mapping[str, Any] | None = None
    ) -> TeamView:
        """A new goal for the same team."""
        body = {"goal": goal, "budget": budget}
        return await self.make(TeamView, path_of("teams", team, "goal"), body)

    async def agents(self, team: str, *, all: bool = False) -> list[AgentView]:
        """Everyone on a team, coordinator first; with those who have left, if all are wanted."""
        return await self.get(list[AgentView], path_of("teams", team, "agents"), all=all)

    async def agent(self, agent: str) -> AgentView:
        return await self.get(AgentView, path_of("agents", agent))

    async def board(self, team: str) -> list[NodeView]:
        """Every piece of work of a team, in the order it was made."""
        return await self.pages(NodeView, path_of("teams", team, "board"))

    async def stages(self, team: str) -> list[StageView]:
        return await self.get(list[StageView], path_of("teams", team, "stages"))

    async def node(self, node: str) -> NodeDetail:
        return await self.get(NodeDetail, path_of("nodes", node))

    async def cancel_node(self, node: str) -> None:
        """End a piece of work and everything below it."""
        await self.ask("POST", path_of("nodes", node, "cancel"))

    async def retry_node(self, node: str) -> NodeView:
        """Give a failed piece of work another try."""
        return await self.post(NodeView, path_of("nodes", node, "retry"))

    async def cost(self, team: str) -> Costs:
        return await self.get(Costs, path_of("teams", team, "cost"))
