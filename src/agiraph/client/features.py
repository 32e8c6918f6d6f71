"""Features: operations on knowledge, research, triggers, files, history, models, extensions, access
and the server itself."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from agiraph.client.connection import Connection, LateModule, operation, path_of, read
from agiraph.core.domain.events import Event
from agiraph.core.domain.provenance.access import AuditEntry, Scope
from agiraph.core.domain.triggers import ActionType, Firing, TriggerType
from agiraph.core.domain.value import value

if TYPE_CHECKING:
    from agiraph.api import file_views, server_views, views
    from agiraph.api.feature_views import channels as channel_views
    from agiraph.api.feature_views import extensions as extension_views
    from agiraph.api.feature_views import history as history_views
    from agiraph.api.feature_views import knowledge as knowledge_views
    from agiraph.api.feature_views import known
    from agiraph.api.feature_views import mcp as mcp_views
    from agiraph.api.feature_views import research as research_views
    from agiraph.api.feature_views import sharing as sharing_views
    from agiraph.api.feature_views import specialists as specialist_views
else:
    file_views = LateModule("agiraph.api.file_views")
    server_views = LateModule("agiraph.api.server_views")
    views = LateModule("agiraph.api.views")
    channel_views = LateModule("agiraph.api.feature_views.channels")
    extension_views = LateModule("agiraph.api.feature_views.extensions")
    history_views = LateModule("agiraph.api.feature_views.history")
    knowledge_views = LateModule("agiraph.api.feature_views.knowledge")
    known = LateModule("agiraph.api.feature_views.known")
    mcp_views = LateModule("agiraph.api.feature_views.mcp")
    research_views = LateModule("agiraph.api.feature_views.research")
    sharing_views = LateModule("agiraph.api.feature_views.sharing")
    specialist_views = LateModule("agiraph.api.feature_views.specialists")


@value
class EventLogPage:
    """Events, newest first. `next` is the number to list older ones with; None: there are none."""

    events: list[Event]
    next: int | None
    head: int


class FeatureOperations(Connection):
    # Knowledge and research

    @operation("GET", "/agents/{agent}/memories")
    async def memories(self, agent: str, *, limit: int = 100) -> list[known.Memory]: ...
    @operation("POST", "/agents/{agent}/memories", once=True)
    async def add_memory(
        self, agent: str, content: str, *, valid_until: datetime | None = None
    ) -> known.Memory: ...
    @operation("DELETE", "/agents/{agent}/memories/{memory}")
    async def forget_memory(self, agent: str, memory: str) -> None: ...
    @operation("GET", "/agents/{agent}/insights")
    async def insights(
        self,
        agent: str,
        *,
        query: str = "",
        type: known.InsightType | None = None,
        limit: int = 100,
    ) -> list[known.Insight]:
        """List what an agent has learned for its work."""
        ...

    @operation("POST", "/agents/{agent}/insights", once=True)
    async def add_insight(
        self,
        agent: str,
        type: known.InsightType,
        content: str,
        *,
        confidence: float | None = None,
        valid_until: datetime | None = None,
    ) -> known.Insight: ...
    @operation("DELETE", "/agents/{agent}/insights/{insight}")
    async def remove_insight(self, agent: str, insight: str) -> None: ...
    @operation("GET", "/agents/{agent}/changes")
    async def changes(
        self, agent: str, *, after: str = "", before: str = "", limit: int = 100
    ) -> list[known.Change]:
        """List the changes to an agent's knowledge, oldest first: the newest page, or the page
        before or after an id."""
        ...

    @operation("POST", "/changes/{change}/undo")
    async def undo_change(self, change: str) -> known.Change: ...
    @operation("POST", "/agents/{agent}/research", once=True)
    async def start_research(
        self,
        agent: str,
        goal: str,
        *,
        depth: research_views.Depth | None = None,
        max_searches: int | None = None,
        max_pages: int | None = None,
        continues: str | None = None,
    ) -> views.NodeView:
        """Start research on a question; the report arrives in the inbox.

        `continues` is the node of an earlier research whose findings it goes on from.
        """
        ...

    @operation("GET", "/teams/{team}/research")
    async def research(
        self, team: str, *, limit: int = 50
    ) -> list[research_views.ResearchView]: ...
    @operation("GET", "/nodes/{node}/research")
    async def research_job(self, node: str) -> research_views.ResearchView: ...
    @operation("POST", "/teams/{team}/memory/search")
    async def search_memory(
        self, team: str, query: str, *, limit: int = 20
    ) -> list[knowledge_views.SearchHitView]: ...
    @operation("GET", "/teams/{team}/memory/page")
    async def page_text(self, team: str, url: str) -> knowledge_views.PageTextView: ...
    @operation("GET", "/search")
    async def search(
        self, query: str, *, team: str = "", limit: int = 8
    ) -> list[file_views.FoundView]:
        """Search all teams, or one, for teams, agents, work, files, messages, knowledge, steps."""
        ...

    @operation("GET", "/teams/{team}/unconfirmed")
    async def unconfirmed(self, team: str) -> list[knowledge_views.UnconfirmedView]: ...
    @operation("POST", "/knowledge/{item}/confirm")
    async def confirm_knowledge(self, item: str) -> known.Insight | known.Memory | known.Note:
        """Confirm the exact words of an unverified or pending item."""
        ...

    @operation("POST", "/knowledge/{item}/reject")
    async def reject_knowledge(self, item: str) -> known.Insight | known.Memory | known.Note: ...

    # Triggers

    @operation("GET", "/teams/{team}/triggers")
    async def triggers(self, team: str) -> list[views.TriggerView]: ...
    @operation("POST", "/teams/{team}/triggers", once=True)
    async def create_trigger(
        self,
        team: str,
        type: TriggerType,
        *,
        agent: str | None = None,
        config: Mapping[str, Any] | None = None,
        action: ActionType = "wake_agent",
        payload: Mapping[str, Any] | None = None,
    ) -> views.CreatedTriggerView:
        """Create a trigger that wakes an agent, by default the coordinator."""
        ...

    @operation("PATCH", "/teams/{team}/triggers/{trigger}")
    async def change_trigger(
        self,
        team: str,
        trigger: str,
        status: Literal["active", "paused"] | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        action: ActionType | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> views.TriggerView:
        """Pause or resume a trigger, or change when it fires and what it does."""
        ...

    @operation("DELETE", "/teams/{team}/triggers/{trigger}")
    async def cancel_trigger(self, team: str, trigger: str) -> None: ...
    @operation("POST", "/teams/{team}/triggers/{trigger}/run", once=True)
    async def run_trigger(self, team: str, trigger: str) -> Firing:
        """Fire a trigger once, now. Its schedule stays as it is."""
        ...

    @operation("GET", "/teams/{team}/triggers/{trigger}/firings")
    async def firings(self, team: str, trigger: str, *, limit: int = 100) -> list[Firing]: ...
    async def hit(
        self, trigger: str, secret: str, body: Any = None, *, delivery: str | None = None
    ) -> Firing:
        """Call a webhook as an outside system would. A repeated delivery id fires once."""
        headers = {"X-Agiraph-Secret": secret}
        headers |= {} if delivery is None else {"X-Delivery-Id": delivery}
        path = path_of("hooks", trigger)
        return read(Firing, await self.ask("POST", path, body=body, headers=headers))

    # Files

    async def list_files(self, team: str, path: str = "") -> list[views.FileView]:
        """List a folder of the team."""
        return (await self._folder(team, "files", path)).entries

    async def list_memory(self, team: str, path: str = "") -> list[views.FileView]:
        """List a folder of the team's notes."""
        return (await self._folder(team, "memory", path)).entries

    @operation("GET", "/teams/{team}/{kind}/{path:path}")
    async def _folder(self, team: str, kind: str, path: str) -> views.FolderView: ...
    @operation("GET", "/teams/{team}/files/{path:path}")
    async def read_file(self, team: str, path: str, *, offset: int = 0) -> bytes:
        """Return a file of the team: at most eight MiB from the offset on."""
        ...

    @operation("GET", "/teams/{team}/memory/{path:path}")
    async def read_memory(self, team: str, path: str) -> bytes: ...
    @operation("PUT", "/teams/{team}/files/{path:path}")
    async def save_file(
        self, team: str, path: str, text: str, *, expected: str
    ) -> file_views.SavedView:
        """Save a text of the team. `expected` is the SHA-256 of what it holds, `none` without a
        file; if it holds something else by now, nothing is saved."""
        ...

    @operation("GET", "/teams/{team}/versions")
    async def file_versions(self, team: str, path: str) -> list[file_views.FileVersionView]: ...
    @operation("GET", "/teams/{team}/versions/{version}")
    async def read_file_version(self, team: str, path: str, version: str) -> bytes: ...
    @operation("POST", "/teams/{team}/versions/{version}/restore")
    async def restore_file_version(
        self, team: str, path: str, version: str, *, expected: str
    ) -> file_views.SavedView:
        """Bring an earlier content of a text back. `expected` is the SHA-256 of what it holds."""
        ...

    async def upload_file(
        self,
        team: str,
        name: str,
        data: bytes,
        *,
        if_exists: Literal["refuse", "replace", "keep_both"] = "refuse",
    ) -> file_views.SavedView:
        """Upload a file for the team: all its agents may read it in `user_uploads/`."""
        body = {"name": name, "data": b64encode(data).decode(), "if_exists": if_exists}
        path = path_of("teams", team, "uploads")
        return read(file_views.SavedView, await self.ask("POST", path, body=body))

    @operation("GET", "/teams/{team}/changes")
    async def folder_changes(
        self, team: str, *, node: str | None = None, limit: int = 100
    ) -> list[file_views.FolderChangeView]:
        """List what was changed in the folders that the team was given, newest first."""
        ...

    @operation("GET", "/teams/{team}/results")
    async def results(
        self, team: str, *, parts: bool = True, before: str = "", limit: int = 30
    ) -> file_views.ResultPage:
        """List what the team has delivered, newest first."""
        ...

    @operation("GET", "/teams/{team}/paths", texts="text")
    async def find_paths(self, team: str, texts: Sequence[str]) -> list[file_views.FoundPathView]:
        """Find the files and folders of the team that a text names."""
        ...

    @operation("GET", "/teams/{team}/archive")
    async def download_archive(self, team: str, path: str = "", *, results: bool = False) -> bytes:
        """Return a folder of the team, or all its published files, as a zip file."""
        ...

    @operation("GET", "/teams/{team}/changes/{change}/{side}")
    async def read_copy(self, team: str, change: str, side: Literal["before", "after"]) -> bytes:
        """Return what a file held before or after a change."""
        ...

    @operation("POST", "/teams/{team}/undo")
    async def undo(
        self, team: str, *, node: str | None = None, paths: Sequence[str] = (), force: bool = False
    ) -> file_views.UndoneView:
        """Put files back as they were before agents changed them."""
        ...

    # History

    @operation("GET", "/teams/{team}/timeline")
    async def timeline(
        self, team: str, *, after: int = 0, limit: int = 2000
    ) -> history_views.TimelineView: ...
    @operation("GET", "/teams/{team}/board/at")
    async def board_at(
        self, team: str, *, seq: int | None = None, at: datetime | None = None
    ) -> history_views.BoardMomentView:
        """Return a team's board after an event or at a time; without either, as it is."""
        ...

    async def event_log(
        self,
        team: str,
        *,
        before: int = 0,
        limit: int = 200,
        types: Sequence[str] = (),
        agent: str = "",
        node: str = "",
        text: str = "",
    ) -> EventLogPage:
        """Return the newest events of a team that match all of this."""
        asked: dict[str, Any] = {"before": before, "limit": limit, "types": ",".join(types)}
        asked |= {"agent": agent, "node": node, "text": text}
        return await self.get(EventLogPage, path_of("teams", team, "event-log"), **asked)

    # Extensions and models

    @operation("GET", "/extensions")
    async def extensions(self) -> list[extension_views.ExtensionView]:
        """List the files and packages of the person, with the state of each one."""
        ...

    @operation("POST", "/extensions/enable")
    async def enable_extension(self, id: str, sha256: str) -> extension_views.ExtensionView:
        """Enable an extension with exactly this content: its code then runs in the runtime."""
        ...

    @operation("GET", "/extensions/content")
    async def extension_content(self, id: str) -> extension_views.ContentView:
        """Return the file of an extension in full, and what was enabled before."""
        ...

    @operation("POST", "/extensions/disable")
    async def disable_extension(self, id: str) -> None: ...
    @operation("GET", "/skills")
    async def skills(self) -> list[extension_views.SkillView]: ...
    @operation("GET", "/skills/content")
    async def skill_content(self, id: str) -> extension_views.ContentView:
        """Return the files of a skill in full, and those that were enabled before."""
        ...

    @operation("POST", "/skills/enable")
    async def enable_skill(self, id: str, sha256: str) -> extension_views.SkillView: ...
    @operation("POST", "/skills/disable")
    async def disable_skill(self, id: str) -> None: ...
    @operation("GET", "/skills/file")
    async def skill_file(self, id: str) -> extension_views.SkillFile: ...
    @operation("PUT", "/skills/file")
    async def write_skill_file(self, id: str, text: str) -> extension_views.SkillView:
        """Write the SKILL.md of a skill in the home; it is off until it is enabled again."""
        ...

    @operation("GET", "/mcp-servers")
    async def mcp_servers(self) -> list[mcp_views.McpServerView]: ...
    @operation("GET", "/mcp-servers/{name}")
    async def mcp_server(self, name: str) -> mcp_views.McpServerDetails:
        """Return all that a person confirms of an MCP server."""
        ...

    @operation("POST", "/mcp-servers/{name}/confirm")
    async def confirm_mcp_server(self, name: str, sha256: str) -> mcp_views.McpServerDetails:
        """Accept what was shown of an MCP server under this hash."""
        ...

    @operation("POST", "/mcp-servers/{name}/ask")
    async def ask_mcp_server(self, name: str) -> mcp_views.McpServerDetails:
        """Start an MCP server and ask for its tools."""
        ...

    @operation("GET", "/specialists")
    async def specialists(self) -> list[specialist_views.SpecialistView]: ...
    @operation("GET", "/specialists/{name}")
    async def specialist(self, name: str) -> specialist_views.SpecialistFile: ...
    @operation("PUT", "/specialists/{name}")
    async def write_specialist(self, name: str, text: str) -> specialist_views.SpecialistFile: ...
    @operation("DELETE", "/specialists/{name}")
    async def delete_specialist(self, name: str) -> None:
        """Remove a specialist's file from the home; a built-in one is used again."""
        ...

    @operation("POST", "/specialists/{name}/try")
    async def try_specialist(
        self, name: str, *, team: str, task: str, text: str | None = None
    ) -> specialist_views.PromptPreview:
        """Return what the specialist's model would be shown for a task. No model is called."""
        ...

    @operation("GET", "/models")
    async def models(self) -> server_views.ModelsView: ...
    @operation("POST", "/models/test")
    async def test_model(self, model: str) -> server_views.ModelTestView:
        """Call a model once each for words, a tool call, a schema and its cache."""
        ...

    @operation("POST", "/operations/keys")
    async def set_api_key(
        self, key: str, *, provider: str = "", model: str = ""
    ) -> server_views.SetupView:
        """Give the server an API key. It is tested, and if the model answers, stored and used."""
        ...

    @operation("DELETE", "/operations/keys/{provider}")
    async def remove_api_key(self, provider: str) -> None:
        """Remove the stored API key of a provider, which is then used with the key of the
        environment, if there is one."""
        ...

    @operation("POST", "/operations/default-model")
    async def set_default_model(self, model: str) -> server_views.SetupView:
        """Test a model, and if it answers make it the default of new teams."""
        ...

    # Persons, access and the server

    @operation("GET", "/persons/me")
    async def me(self) -> server_views.PersonView: ...
    @operation("PATCH", "/persons/me", until="away_until")
    async def set_away(self, until: datetime | None) -> server_views.PersonView:
        """Say that the person is away until this moment, which has an offset; None: back."""
        ...

    @operation("PATCH", "/persons/me")
    async def set_zone(self, zone: str) -> server_views.PersonView: ...
    @operation("GET", "/channels")
    async def channels(self) -> list[channel_views.ChannelView]: ...
    @operation("POST", "/channels/{channel}/pair")
    async def pair_channel(self, channel: str) -> channel_views.PairingView:
        """Make a code that pairs the person who sends it on the channel."""
        ...

    @operation("DELETE", "/channels/{channel}/pairing")
    async def unpair_channel(self, channel: str) -> channel_views.ChannelView: ...
    @operation("PUT", "/secrets/{name}")
    async def enter_secret(self, name: str, value: str) -> None:
        """Keep a secret under a name; it is hidden in all that is written from now on."""
        ...

    @operation("GET", "/tokens")
    async def tokens(self) -> list[server_views.TokenView]: ...
    @operation("POST", "/tokens")
    async def create_token(
        self, name: str, *, scope: Scope = "read", days: int | None = None
    ) -> server_views.IssuedToken:
        """Create a token for a program. Only this response contains its secret."""
        ...

    @operation("DELETE", "/tokens/{token}")
    async def revoke_token(self, token: str) -> None: ...
    @operation("POST", "/tokens/link")
    async def create_link(self) -> server_views.LinkView:
        """Create a link that signs a browser in, once."""
        ...

    @operation("GET", "/tokens/links/{link}")
    async def link_use(self, link: str) -> server_views.LinkUseView:
        """Return whether a sign-in link was used, and by which session."""
        ...

    @operation("GET", "/nodes/{node}/shares")
    async def shares(self, node: str) -> sharing_views.SharesView: ...
    @operation("POST", "/nodes/{node}/shares")
    async def share(self, node: str, *, days: Literal[1, 7, 30] = 7) -> sharing_views.MadeShareView:
        """Make a link by which others read a report. Only this response contains it."""
        ...

    @operation("DELETE", "/nodes/{node}/shares/{share}")
    async def revoke_share(self, node: str, share: str) -> None: ...

    @operation("GET", "/audit")
    async def audit(
        self,
        *,
        after: str = "",
        limit: int = 100,
        newest: bool = False,
        who: str = "",
        path: str = "",
    ) -> list[AuditEntry]:
        """List who changed what, oldest first or newest first; `who` is a part of the token's name
        and `path` the beginning of the path."""
        ...

    @operation("POST", "/stop")
    async def stop_everything(self) -> server_views.EmergencyStopView:
        """Cancel the open work of all teams and end every process they started."""
        ...

    @operation("GET", "/operations")
    async def operations(self) -> server_views.OperationsView: ...
    @operation("GET", "/operations/providers")
    async def provider_status(self) -> list[server_views.ProviderStatusView]:
        """Return the last calls of each provider of models, and what it cost today."""
        ...

    @operation("POST", "/operations/doctor")
    async def examine(self) -> server_views.ExaminationView:
        """Make all health checks of `agiraph doctor` on the server."""
        ...

    @operation("POST", "/operations/stop")
    async def stop_all_work(self) -> server_views.WorkStopView:
        """Interrupt all work of all teams until it is resumed. Nothing is cancelled."""
        ...

    @operation("POST", "/operations/resume")
    async def resume_all_work(self) -> server_views.ResumedView:
        """End the emergency stop."""
        ...

    @operation("GET", "/healthz")
    async def alive(self) -> server_views.HealthView: ...
    @operation("GET", "/readyz")
    async def ready(self) -> server_views.HealthView: ...
    @operation("GET", "/status")
    async def status(self) -> server_views.StatusView: ...
    @operation("GET", "/metrics")
    async def metrics(self) -> str:
        """Return the metrics in the Prometheus text format."""
        ...

    @operation("GET", "/openapi.json")
    async def openapi(self) -> bytes:
        """Return the OpenAPI document."""
        ...
