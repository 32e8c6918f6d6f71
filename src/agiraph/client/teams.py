"""Teams: create, control and read teams, their agents, board and costs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack

from agiraph.api.views import (
    AgentView,
    DeletionView,
    JobView,
    NodeDetail,
    NodeView,
    RulesPreview,
    StageView,
    TeamOverview,
    TeamSettingsView,
    TeamView,
)
from agiraph.client.connection import Connection, path_of
from agiraph.domain.agents import Mode, Review, Trust
from agiraph.domain.costs import DayCosts, TeamCosts
from agiraph.domain.effort import Effort
from agiraph.domain.errors import NotFound
from agiraph.domain.work import Extension, LineKind


def _lines(
    acceptance: Sequence[str | tuple[str, LineKind | None]],
) -> list[str | dict[str, str | None]]:
    """Return acceptance lines as a request holds them."""
    return [
        each if isinstance(each, str) else {"line": each[0], "kind": each[1]} for each in acceptance
    ]


class TeamSettings(TypedDict, total=False):
    """The settings of a team that can be changed."""

    name: str
    soul: str
    model: str
    mode: Mode
    interval: float
    review: Review
    trust: Trust
    folders: Sequence[str]
    """Folders of the server's machine that its agents see, as PATH[:ro|rw]; all of them."""
    effort: Effort | Literal["default"]
    quiet_hours: str
    """Hours in which no briefing is sent to channels, such as `22:00-07:00`; empty: none."""
    quiet_zone: str
    muted_until: datetime | None
    """Until when it sends nothing unasked; None: it is not muted."""
    permissions: Sequence[Mapping[str, str]]
    """Its permission rules, all of them; each has `tool`, `action` and `pattern`."""
    channel: str
    """The channel for its questions; empty: each that sends questions."""
    answer_within: float
    """Seconds that its agents wait for a person's answer; 0: for ever."""
    limits: Mapping[str, int]
    budget: Mapping[str, float]
    """New limits of its goal (turns, tokens, usd, seconds), in total; each above the old one."""


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
        interval: float = 3600.0,
        review: Review = "auto",
        trust: Trust = "standard",
        folders: Sequence[str] = (),
        effort: Effort | None = None,
        acceptance: Sequence[str | tuple[str, LineKind | None]] = (),
        attachments: Sequence[Mapping[str, str]] = (),
    ) -> TeamView:
        """Create a team, which starts working on the goal unless `start` is false.

        `acceptance` is what must be true when the goal is reached, one statement each, or a
        statement and the kind of evidence that proves it; `folders` are folders of the server's
        machine that the team sees, as PATH[:ro|rw]. An attachment that belongs to the goal is
        `{"name": …, "media_type": …, "data": BASE64}`.
        """
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
            "acceptance": _lines(acceptance),
            "attachments": list(attachments),
            "interval": interval,
            "review": review,
            "trust": trust,
            "folders": list(folders),
            "effort": effort,
        }
        return await self.make(TeamView, "/teams", body)

    async def change_team(self, team: str, **settings: Unpack[TeamSettings]) -> TeamView:
        """Change settings of a team; what is left out stays as it is."""
        body: dict[str, Any] = dict(settings)
        if isinstance(until := body.get("muted_until"), datetime):
            body["muted_until"] = until.isoformat()
        changed = await self.ask("PATCH", path_of("teams", team), body=body)
        return self.read(TeamView, changed)

    async def teams(self) -> list[TeamView]:
        """List all teams, oldest first."""
        return await self.pages(TeamView, "/teams")

    async def team(self, team: str) -> TeamView:
        """Return a team by its id or name."""
        if "/" not in team:
            return await self.get(TeamView, path_of("teams", team))
        # Servers decode %2F before routing, so no path can contain such a name.
        named = [found for found in await self.teams() if found.name == team]
        if not named:
            raise NotFound("team", team, known="`agiraph teams` lists them.")
        return named[-1]

    async def team_settings(self, team: str) -> TeamSettingsView:
        """Return all settings of a team, with its budget and what is spent of it."""
        return await self.get(TeamSettingsView, path_of("teams", team, "settings"))

    async def preview_permissions(
        self, team: str, rules: Sequence[Mapping[str, str]]
    ) -> RulesPreview:
        """Tell which of the team's newest tool calls these rules would have decided on."""
        path = path_of("teams", team, "permissions", "preview")
        return await self.post(RulesPreview, path, {"rules": list(rules)})

    async def export_team(self, team: str) -> bytes:
        """Return all data and files of a team as a ZIP file."""
        return await self.ask("GET", path_of("teams", team, "export"))

    async def delete_team(self, team: str, *, name: str, stop: bool = False) -> DeletionView:
        """Delete a team for good; `name` is its name, to make sure. With `stop` its work ends."""
        body = {"name": name, "stop": stop}
        return await self.post(DeletionView, path_of("teams", team, "delete"), body)

    async def archive(self, team: str) -> None:
        """Stop and archive a team."""
        await self.ask("DELETE", path_of("teams", team))

    async def restore(self, team: str) -> TeamView:
        """Take a team out of the archive."""
        return await self.post(TeamView, path_of("teams", team, "restore"))

    async def overview(self, *, archived: bool = False) -> list[TeamOverview]:
        """List all teams with their members, or the archived ones; newest activity first."""
        return await self.get(list[TeamOverview], "/overview", archived=archived)

    async def pause(self, team: str) -> TeamView:
        return await self.post(TeamView, path_of("teams", team, "pause"))

    async def resume(self, team: str) -> TeamView:
        return await self.post(TeamView, path_of("teams", team, "resume"))

    async def stop(self, team: str) -> TeamView:
        return await self.post(TeamView, path_of("teams", team, "stop"))

    async def set_goal(
        self,
        team: str,
        goal: str,
        *,
        budget: Mapping[str, Any] | None = None,
        acceptance: Sequence[str | tuple[str, LineKind | None]] = (),
        attachments: Sequence[Mapping[str, str]] = (),
    ) -> TeamView:
        """Give a team a new goal. Limits that `budget` does not name are those of the last goal;
        attachments are as those of a new team."""
        body = {
            "goal": goal,
            "budget": budget,
            "acceptance": _lines(acceptance),
            "attachments": list(attachments),
        }
        return await self.make(TeamView, path_of("teams", team, "goal"), body)

    async def agents(self, team: str, *, all: bool = False) -> list[AgentView]:
        """List a team's members, coordinator first; `all` includes those who have left."""
        return await self.get(list[AgentView], path_of("teams", team, "agents"), all=all)

    async def agent(self, agent: str) -> AgentView:
        return await self.get(AgentView, path_of("agents", agent))

    async def board(self, team: str) -> list[NodeView]:
        """List a team's nodes in the order of creation."""
        return await self.pages(NodeView, path_of("teams", team, "board"))

    async def jobs(self, team: str) -> list[JobView]:
        """List a team's work with its progress: open work first, then what ended last."""
        return await self.get(list[JobView], path_of("teams", team, "jobs"))

    async def stages(self, team: str) -> list[StageView]:
        return await self.get(list[StageView], path_of("teams", team, "stages"))

    async def node(self, node: str) -> NodeDetail:
        return await self.get(NodeDetail, path_of("nodes", node))

    async def set_effort(self, effort: Effort | None, *, agent: str = "", node: str = "") -> None:
        """Set how much the model of an agent or a node thinks; None: as is set for the team."""
        path = path_of("agents", agent) if agent else path_of("nodes", node)
        await self.ask("PATCH", path, body={"effort": effort or "default"})

    async def set_model(self, agent: str, model: str) -> None:
        """Give an agent another model, from its next step on."""
        await self.ask("PATCH", path_of("agents", agent), body={"model": model})

    async def cancel_node(self, node: str) -> None:
        """Cancel a node and all nodes below it."""
        await self.ask("POST", path_of("nodes", node, "cancel"))

    async def retry_node(self, node: str) -> NodeView:
        """Retry a failed or partial node."""
        return await self.post(NodeView, path_of("nodes", node, "retry"))

    async def extend_node(self, node: str, more: Extension) -> NodeView:
        """Raise a node's limits by these amounts; a node that a limit ended goes on."""
        body = {name: amount for name, amount in asdict(more).items() if amount}
        return await self.make(NodeView, path_of("nodes", node, "extend"), body)

    async def day_cost(self) -> DayCosts:
        """Return what all teams have spent today, and the daily limit."""
        return await self.get(DayCosts, "/cost")

    async def cost(self, team: str) -> TeamCosts:
        return await self.get(TeamCosts, path_of("teams", team, "cost"))
