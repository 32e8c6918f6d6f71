"""Knowledge: agents' memories and insights, their changes, research and search."""

from datetime import datetime
from typing import Any

from agiraph.api.features.knowledge_views import PageTextView, SearchHitView, UnconfirmedView
from agiraph.api.features.research_views import ResearchView
from agiraph.api.file_views import FoundView
from agiraph.api.views import NodeView
from agiraph.client.connection import Connection, path_of
from agiraph.domain.knowledge import Change, Insight, InsightType, Memory
from agiraph.domain.notes import Note
from agiraph.domain.research import Depth


class KnowledgeCalls(Connection):
    async def memories(self, agent: str, *, limit: int = 100) -> list[Memory]:
        """List what an agent remembers about the person."""
        return await self.get(list[Memory], path_of("agents", agent, "memories"), limit=limit)

    async def add_memory(
        self, agent: str, content: str, *, valid_until: datetime | None = None
    ) -> Memory:
        body = {"content": content, "valid_until": valid_until}
        return await self.make(Memory, path_of("agents", agent, "memories"), body)

    async def forget_memory(self, agent: str, memory: str) -> None:
        await self.ask("DELETE", path_of("agents", agent, "memories", memory))

    async def insights(
        self, agent: str, *, query: str = "", type: InsightType | None = None, limit: int = 100
    ) -> list[Insight]:
        """List what an agent has learned for its work."""
        path = path_of("agents", agent, "insights")
        return await self.get(list[Insight], path, query=query, type=type, limit=limit)

    async def add_insight(
        self,
        agent: str,
        type: InsightType,
        content: str,
        *,
        confidence: float | None = None,
        valid_until: datetime | None = None,
    ) -> Insight:
        body = {
            "type": type,
            "content": content,
            "confidence": confidence,
            "valid_until": valid_until,
        }
        return await self.make(Insight, path_of("agents", agent, "insights"), body)

    async def remove_insight(self, agent: str, insight: str) -> None:
        await self.ask("DELETE", path_of("agents", agent, "insights", insight))

    async def changes(
        self, agent: str, *, after: str = "", before: str = "", limit: int = 100
    ) -> list[Change]:
        """List the changes to an agent's knowledge, oldest first: the newest page, or the page
        before or after an id."""
        path = path_of("agents", agent, "changes")
        return await self.get(list[Change], path, after=after, before=before, limit=limit)

    async def undo_change(self, change: str) -> Change:
        return await self.post(Change, path_of("changes", change, "undo"))

    async def start_research(
        self,
        agent: str,
        goal: str,
        *,
        depth: Depth | None = None,
        max_searches: int | None = None,
        max_pages: int | None = None,
        continues: str | None = None,
    ) -> NodeView:
        """Start research on a question; the report arrives in the inbox.

        `continues` is the node of an earlier research whose findings it goes on from.
        """
        chosen: dict[str, Any] = {"depth": depth, "max_searches": max_searches}
        chosen |= {"max_pages": max_pages, "continues": continues}
        body = {"goal": goal, **{k: v for k, v in chosen.items() if v is not None}}
        return await self.make(NodeView, path_of("agents", agent, "research"), body)

    async def research(self, team: str, *, limit: int = 50) -> list[ResearchView]:
        """List a team's research jobs, the newest first."""
        return await self.get(list[ResearchView], path_of("teams", team, "research"), limit=limit)

    async def research_job(self, node: str) -> ResearchView:
        """Return a research job: plan, readers, pages, ledger, cost, and its report's sources."""
        return await self.get(ResearchView, path_of("nodes", node, "research"))

    async def search_memory(self, team: str, query: str, *, limit: int = 20) -> list[SearchHitView]:
        """Search a team's notes, insights, web pages and reports."""
        body = {"query": query, "limit": limit}
        return await self.post(
            list[SearchHitView], path_of("teams", team, "memory", "search"), body
        )

    async def page_text(self, team: str, url: str) -> PageTextView:
        """Return the text of a web page that agents of a team have read."""
        return await self.get(PageTextView, path_of("teams", team, "memory", "page"), url=url)

    async def search(self, query: str, *, team: str = "", limit: int = 8) -> list[FoundView]:
        """Search all teams, or one, for teams, agents, work, files, messages, knowledge, steps."""
        return await self.get(
            list[FoundView], path_of("search"), query=query, team=team, limit=limit
        )

    async def unconfirmed(self, team: str) -> list[UnconfirmedView]:
        """List what no person has confirmed: pending items first, then unverified ones."""
        return await self.get(list[UnconfirmedView], path_of("teams", team, "unconfirmed"))

    async def confirm_knowledge(self, item: str) -> Insight | Memory | Note:
        """Confirm the exact words of an unverified or pending item."""
        return await self.post(Insight | Memory | Note, path_of("knowledge", item, "confirm"))

    async def reject_knowledge(self, item: str) -> Insight | Memory | Note:
        """Remove an unverified or pending item."""
        return await self.post(Insight | Memory | Note, path_of("knowledge", item, "reject"))
