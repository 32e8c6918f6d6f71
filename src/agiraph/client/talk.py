"""Talk: messages to agents, their threads, and the inbox."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from agiraph.api.decision_views import BulkView
from agiraph.api.views import InboxItem, InboxPage, MessageView, ThreadView, TurnView
from agiraph.client.connection import PAGE, Connection, path_of
from agiraph.domain.digest import EntryDecision
from agiraph.domain.messages import Box, Decision, Filing, MessageKind, Rating


class TalkCalls(Connection):
    async def send(
        self,
        agent: str,
        message: str,
        *,
        mode: Literal["send", "nudge"] = "send",
        client_id: str | None = None,
        attachments: Sequence[Mapping[str, str]] = (),
        mentions: Sequence[str] = (),
    ) -> MessageView:
        """Send a message. It is stored when this returns; the reply comes as an event.

        With `mentions`, ids of agents, it goes to these instead of the agent of the conversation.
        """
        body = {
            "message": message,
            "mode": mode,
            "client_id": client_id,
            "attachments": list(attachments),
            "mentions": list(mentions),
        }
        return await self.make(MessageView, path_of("agents", agent, "send"), body)

    async def read_up_to(self, agent: str, seq: int) -> None:
        """Mark this agent's messages as read up to a position."""
        await self.ask("PUT", path_of("agents", agent, "read"), body={"seq": seq})

    async def broadcast(self, team: str, message: str) -> list[MessageView]:
        """Send a message to every member of a team."""
        path = path_of("teams", team, "broadcast")
        return await self.make(list[MessageView], path, {"message": message})

    async def conversation(
        self, agent: str, *, before: str = "", limit: int = 100
    ) -> list[MessageView]:
        """Return the messages with this agent: the newest page, or the page before an id."""
        path = path_of("agents", agent, "conversation")
        return await self.get(list[MessageView], path, before=before, limit=limit)

    async def undo_act(self, message: str, place: int) -> MessageView:
        """Undo one thing that a reply did, by its place from 0; return the reply."""
        return await self.post(
            MessageView, path_of("messages", message, "acts", str(place), "undo")
        )

    async def threads(self, agent: str) -> list[ThreadView]:
        return await self.pages(ThreadView, path_of("agents", agent, "threads"))

    async def thread(self, thread: str) -> list[TurnView]:
        """Return all turns of a thread."""
        found: list[TurnView] = []
        while True:
            after = found[-1].seq if found else 0
            path = path_of("threads", thread)
            page = await self.get(list[TurnView], path, after=after, limit=PAGE)
            if not page:
                return found
            found += page

    async def enter_secret(self, name: str, value: str) -> None:
        """Keep a secret under a name; it is hidden in all that is written from now on."""
        await self.ask("PUT", path_of("secrets", name), body={"value": value})

    async def inbox(
        self,
        *,
        box: Box = "inbox",
        team: str = "",
        kind: MessageKind | None = None,
        after: str = "",
        limit: int = 100,
    ) -> InboxPage:
        """Return a page of the inbox; items that need an answer come first."""
        more = {} if kind is None else {"kind": kind}
        return await self.get(
            InboxPage, "/inbox", box=box, team=team, after=after, limit=limit, **more
        )

    async def act_in_bulk(
        self,
        action: Filing | EntryDecision,
        ids: Sequence[str],
        *,
        until: datetime | None = None,
    ) -> BulkView:
        """Apply one action to many items of the inbox or entries of the digest, and return the
        outcome of each. `until` is when snoozed items return."""
        moment = None if until is None else until.isoformat()
        body = {"action": action, "ids": list(ids), "until": moment}
        return await self.make(BulkView, "/inbox/bulk", body)

    async def item(self, item: str) -> InboxItem:
        return await self.get(InboxItem, path_of("inbox", item))

    async def mark_read(self, item: str) -> InboxItem:
        return await self.post(InboxItem, path_of("inbox", item, "read"))

    async def answer(
        self,
        item: str,
        text: str = "",
        *,
        decision: Decision | None = None,
        note: str = "",
        always: bool = False,
    ) -> InboxItem:
        """Answer a question, or decide on an approval. The first answer counts. `always` approves
        all later calls of the same kind as well."""
        body = {"text": text, "decision": decision, "note": note, "always": always}
        return await self.make(InboxItem, path_of("inbox", item, "answer"), body)

    async def rate(self, item: str, thumb: Rating) -> InboxItem:
        """Rate a briefing."""
        return await self.post(InboxItem, path_of("inbox", item, "rate"), {"thumb": thumb})
