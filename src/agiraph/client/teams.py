"""Teams: operations on teams and their agents, work, messages, inbox and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from agiraph.client.connection import PAGE, Connection, LateModule, operation, path_of
from agiraph.core.domain.agents import Mode, Review, Trust
from agiraph.core.domain.costs import CostHistory, CostsBy, DayCosts, TeamCosts, joined
from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.messages import Box, Decision, Filing, MessageKind, Rating
from agiraph.core.domain.provenance.grants import GrantKind
from agiraph.core.domain.records.digest import EntryDecision
from agiraph.core.domain.window_use import WindowUse
from agiraph.core.domain.work import Effort, Extension, LineKind

if TYPE_CHECKING:
    from agiraph.api import decision_views, views
else:
    decision_views = LateModule("agiraph.api.decision_views")
    views = LateModule("agiraph.api.views")

Acceptance = Sequence[str | tuple[str, LineKind | None]]
"""What must be true when a goal is reached, one statement each, or a statement and the kind of
evidence that proves it."""


class _Settings(TypedDict, total=False):
    name: str
    mode: Mode
    model: str
    soul: str
    permissions: Sequence[Mapping[str, str]]
    """Its permission rules, all of them; each has `tool`, `action` and `pattern`."""
    interval: float
    review: Review
    trust: Trust
    folders: Sequence[str]
    """Folders of the server's machine that its agents see, as PATH[:ro|rw]; all of them."""


class NewTeam(_Settings, total=False):
    """What a new team can be given besides its goal."""

    budget: Mapping[str, Any] | None
    tools: Sequence[str]
    workers: int | None
    learns: bool
    start: bool
    """Whether it starts working on the goal at once, as without this."""
    effort: Effort | None
    acceptance: Acceptance
    attachments: Sequence[Mapping[str, str]]
    """What belongs to the goal: `{"name": …, "media_type": …, "data": BASE64}`."""


class TeamSettings(_Settings, total=False):
    """The settings of a team that can be changed."""

    effort: Effort | Literal["default"]
    quiet_hours: str
    """Hours in which no briefing is sent to channels, such as `22:00-07:00`; empty: none."""
    quiet_zone: str
    muted_until: datetime | None
    """Until when it sends nothing unasked; None: it is not muted."""
    channel: str
    """The channel for its questions; empty: each that sends questions."""
    answer_within: float
    """Seconds that its agents wait for a person's answer; 0: for ever."""
    limits: Mapping[str, int]
    budget: Mapping[str, float]
    """New limits of its goal (turns, tokens, usd, seconds), in total; each above the old one."""


class TeamOperations(Connection):
    async def create_team(self, goal: str, **settings: Unpack[NewTeam]) -> views.TeamView:
        """Create a team, which starts working on the goal unless `start` is false."""
        return await self.make(views.TeamView, "/teams", {"goal": goal, **_with_lines(settings)})

    async def set_goal(
        self,
        team: str,
        goal: str,
        *,
        budget: Mapping[str, Any] | None = None,
        acceptance: Acceptance = (),
        attachments: Sequence[Mapping[str, str]] = (),
    ) -> views.TeamView:
        """Give a team a new goal. Limits that `budget` does not name are those of the last goal;
        attachments are as those of a new team."""
        body = {"goal": goal, "budget": budget, "attachments": list(attachments)}
        body |= _with_lines({"acceptance": acceptance})
        return await self.make(views.TeamView, path_of("teams", team, "goal"), body)

    @operation("PATCH", "/teams/{team}")
    async def change_team(self, team: str, **settings: Unpack[TeamSettings]) -> views.TeamView:
        """Change settings of a team; what is left out stays as it is."""
        ...

    async def teams(self) -> list[views.TeamView]:
        """List all teams, oldest first."""
        return await self.pages(views.TeamView, "/teams")

    async def team(self, team: str) -> views.TeamView:
        """Return a team by its id or name."""
        if "/" not in team:
            return await self.get(views.TeamView, path_of("teams", team))
        # Servers decode %2F before routing, so no path can contain such a name.
        named = [found for found in await self.teams() if found.name == team]
        if not named:
            raise NotFound("team", team, known="`agiraph teams` lists them.")
        return named[-1]

    @operation("GET", "/teams/{team}/settings")
    async def team_settings(self, team: str) -> views.TeamSettingsView: ...
    @operation("POST", "/teams/{team}/permissions/preview")
    async def preview_permissions(
        self, team: str, rules: Sequence[Mapping[str, str]]
    ) -> decision_views.RulesPreview:
        """Tell which of the team's newest tool calls these rules would have decided on."""
        ...

    @operation("GET", "/teams/{team}/export")
    async def export_team(self, team: str) -> bytes:
        """Return all data and files of a team as a ZIP file."""
        ...

    @operation("POST", "/teams/{team}/delete")
    async def delete_team(self, team: str, *, name: str, stop: bool = False) -> views.DeletionView:
        """Delete a team for good; `name` is its name, to make sure. With `stop` its work ends."""
        ...

    @operation("DELETE", "/teams/{team}")
    async def archive(self, team: str) -> None: ...
    @operation("POST", "/teams/{team}/restore")
    async def restore(self, team: str) -> views.TeamView: ...
    @operation("GET", "/overview")
    async def overview(self, *, archived: bool = False) -> list[views.TeamOverview]:
        """List all teams with their members, or the archived ones; newest activity first."""
        ...

    @operation("POST", "/teams/{team}/pause")
    async def pause(self, team: str) -> views.TeamView: ...
    @operation("POST", "/teams/{team}/resume")
    async def resume(self, team: str) -> views.TeamView: ...
    @operation("POST", "/teams/{team}/stop")
    async def stop(self, team: str) -> views.TeamView: ...
    @operation("GET", "/teams/{team}/agents")
    async def agents(self, team: str, *, all: bool = False) -> list[views.AgentView]:
        """List a team's members, coordinator first; `all` includes those who have left."""
        ...

    @operation("GET", "/agents/{agent}")
    async def agent(self, agent: str) -> views.AgentView: ...
    async def board(self, team: str) -> list[views.NodeView]:
        """List a team's nodes in the order of creation."""
        return await self.pages(views.NodeView, path_of("teams", team, "board"))

    @operation("GET", "/teams/{team}/jobs")
    async def jobs(self, team: str) -> list[views.JobView]:
        """List a team's work with its progress: open work first, then what ended last."""
        ...

    @operation("GET", "/teams/{team}/stages")
    async def stages(self, team: str) -> list[views.StageView]: ...
    @operation("GET", "/nodes/{node}")
    async def node(self, node: str) -> views.NodeDetail: ...
    async def set_effort(self, effort: Effort | None, *, agent: str = "", node: str = "") -> None:
        """Set how much the model of an agent or a node thinks; None: as is set for the team."""
        path = path_of("agents", agent) if agent else path_of("nodes", node)
        await self.ask("PATCH", path, body={"effort": effort or "default"})

    @operation("PATCH", "/agents/{agent}")
    async def set_model(self, agent: str, model: str) -> None:
        """Give an agent another model, from its next step on."""
        ...

    @operation("POST", "/nodes/{node}/cancel")
    async def cancel_node(self, node: str) -> None:
        """Cancel a node and all nodes below it."""
        ...

    @operation("POST", "/nodes/{node}/retry")
    async def retry_node(self, node: str) -> views.NodeView: ...
    async def extend_node(self, node: str, more: Extension) -> views.NodeView:
        """Raise a node's limits by these amounts; a node that a limit ended goes on."""
        body = {name: amount for name, amount in asdict(more).items() if amount}
        return await self.make(views.NodeView, path_of("nodes", node, "extend"), body)

    @operation("GET", "/cost")
    async def day_cost(self) -> DayCosts:
        """Return what all teams have spent today, and the daily limit."""
        ...

    @operation("GET", "/cost/history")
    async def cost_history(
        self, *, by: CostsBy = "model", team: str = "", days: int = 30
    ) -> CostHistory:
        """Return what was spent on each of the last days, of all teams or of one."""
        ...

    async def cost(self, team: str) -> TeamCosts:
        """Return what a team has cost, with the nodes of all pages."""
        path = path_of("teams", team, "cost")
        pages = [await self.get(TeamCosts, path, limit=PAGE)]
        while after := pages[-1].next:
            pages.append(await self.get(TeamCosts, path, after=after, limit=PAGE))
        return joined(pages)

    @operation("POST", "/agents/{agent}/send", once=True)
    async def send(
        self,
        agent: str,
        message: str,
        *,
        mode: Literal["send", "nudge"] = "send",
        client_id: str | None = None,
        attachments: Sequence[Mapping[str, str]] = (),
        mentions: Sequence[str] = (),
        edits: str | None = None,
        stop_work: bool = False,
    ) -> views.MessageView:
        """Send a message. It is stored when this returns; the reply comes as an event.

        With `mentions`, ids of agents, it goes to these instead of the agent of the conversation.
        With `edits` it takes the place of your last message in this conversation; `stop_work` then
        stops the work that was begun for that one.
        """
        ...

    @operation("GET", "/messages/{message}/work")
    async def work_of_message(self, message: str) -> list[views.NodeView]:
        """Return the open work that was begun for a message of yours."""
        ...

    @operation("PUT", "/agents/{agent}/read")
    async def read_up_to(self, agent: str, seq: int) -> None: ...
    @operation("POST", "/teams/{team}/broadcast", once=True)
    async def broadcast(self, team: str, message: str) -> list[views.MessageView]: ...
    @operation("GET", "/agents/{agent}/conversation")
    async def conversation(
        self, agent: str, *, before: str = "", limit: int = 100
    ) -> list[views.MessageView]:
        """Return the messages with this agent: the newest page, or the page before an id."""
        ...

    @operation("POST", "/messages/{message}/acts/{place}/undo")
    async def undo_act(self, message: str, place: int) -> views.MessageView:
        """Undo one thing that a reply did, by its place from 0; return the reply."""
        ...

    async def threads(self, agent: str) -> list[views.ThreadView]:
        return await self.pages(views.ThreadView, path_of("agents", agent, "threads"))

    async def thread(self, thread: str) -> list[views.TurnView]:
        """Return all turns of a thread."""
        found: list[views.TurnView] = []
        path = path_of("threads", thread)
        while page := await self.get(
            list[views.TurnView], path, after=found[-1].seq if found else 0, limit=PAGE
        ):
            found += page
        return found

    @operation("GET", "/threads/{thread}/window")
    async def window(self, thread: str) -> WindowUse:
        """Return what fills the model's context window in a thread."""
        ...

    @operation("GET", "/inbox")
    async def inbox(
        self,
        *,
        box: Box = "inbox",
        team: str = "",
        kind: MessageKind | None = None,
        after: str = "",
        limit: int = 100,
    ) -> views.InboxPage:
        """Return a page of the inbox; items that need an answer come first."""
        ...

    @operation("GET", "/inbox/rows")
    async def inbox_rows(
        self,
        *,
        box: Box = "inbox",
        team: str = "",
        kind: MessageKind | None = None,
        after: str = "",
        limit: int = 50,
        open: bool = False,
        newer_than: str = "",
        item: Sequence[str] = (),
    ) -> decision_views.InboxRows:
        """Return short rows of the inbox, or of some items, with the counts of all of it."""
        ...

    @operation("GET", "/inbox/counts")
    async def inbox_counts(self) -> decision_views.InboxCounts:
        """Return what badges say of the inbox."""
        ...

    @operation("POST", "/inbox/bulk", once=True)
    async def act_in_bulk(
        self,
        action: Filing | EntryDecision,
        ids: Sequence[str],
        *,
        until: datetime | None = None,
    ) -> decision_views.BulkView:
        """Apply one action to many items of the inbox or entries of the digest, and return the
        outcome of each. `until` is when snoozed items return."""
        ...

    @operation("GET", "/inbox/{item}")
    async def item(self, item: str) -> views.InboxItem: ...
    @operation("POST", "/inbox/{item}/read")
    async def mark_read(self, item: str) -> views.InboxItem: ...
    @operation("POST", "/inbox/{item}/answer", once=True)
    async def answer(
        self,
        item: str,
        text: str = "",
        *,
        decision: Decision | None = None,
        note: str = "",
        always: bool = False,
    ) -> views.InboxItem:
        """Answer a question, or decide on an approval. The first answer counts. `always` approves
        all later calls of the same kind as well."""
        ...

    @operation("POST", "/inbox/{item}/rate")
    async def rate(self, item: str, thumb: Rating) -> views.InboxItem: ...
    @operation("GET", "/teams/{team}/grants")
    async def grants(self, team: str) -> list[decision_views.GrantView]:
        """List the grants of a team and of the whole home, newest first."""
        ...

    @operation("POST", "/teams/{team}/grants", once=True)
    async def grant(
        self,
        team: str,
        kind: GrantKind,
        pattern: str,
        *,
        until: datetime | None = None,
        home: bool = False,
    ) -> decision_views.GrantView:
        """Allow something from now on, in a team or (`home`) in all teams."""
        ...

    @operation("DELETE", "/teams/{team}/grants/{grant}")
    async def revoke_grant(self, team: str, grant: str) -> decision_views.GrantView:
        """Revoke a grant: the next such call asks again."""
        ...

    @operation("GET", "/inbox/digest")
    async def digest(
        self, team: str = "", *, words: bool = False
    ) -> list[decision_views.DigestView]:
        """List what the person may decide on; with `words`, in the exact words."""
        ...

    @operation("POST", "/inbox/digest", once=True)
    async def decide(
        self,
        *,
        team: str | None = None,
        confirm: Literal["all"] | Sequence[str] = (),
        reject: Sequence[str] = (),
        always: Sequence[str] = (),
        stop: Sequence[str] = (),
        as_of: datetime | None = None,
    ) -> decision_views.DecidedView:
        """Decide on many entries of the digest at once: all of it, or nothing."""
        ...


def _with_lines(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as a request holds them, with a kind named beside its acceptance line."""
    given: Acceptance = settings.get("acceptance", ())
    lines = [one if isinstance(one, str) else {"line": one[0], "kind": one[1]} for one in given]
    return {**settings, "acceptance": lines}
