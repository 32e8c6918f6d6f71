"""Local: the client's read methods on the database itself, for when no server runs."""

from agiraph import config
from agiraph.api.presenters import (
    agent_view,
    inbox_item_view,
    node_view,
    team_view,
    trigger_fields,
    turn_view,
)
from agiraph.api.views import (
    AgentView,
    InboxItem,
    InboxPage,
    NodeView,
    TeamView,
    TriggerView,
    TurnView,
)
from agiraph.domain.costs import DayCosts, TeamCosts
from agiraph.domain.ids import MessageId, NodeId, ThreadId
from agiraph.domain.messages import Decision
from agiraph.domain.persons import OWNER
from agiraph.domain.work import Extension
from agiraph.redaction import environment
from agiraph.services.board import costs
from agiraph.services.lifecycle import answers, daily_limit, extensions
from agiraph.services.mail import inbox
from agiraph.services.members import roster
from agiraph.store import nodes, threads, triggers
from agiraph.store import teams as rows
from agiraph.store.database import Store
from agiraph.store.tx import Tx

ALL = 1_000_000


class Local:
    """The read methods of `Client`, and `answer`: the next server continues the answered work."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def teams(self) -> list[TeamView]:
        return await self._store.read(
            lambda tx: [team_view(tx, team, OWNER) for team in rows.page(tx, limit=ALL)]
        )

    async def team(self, team: str) -> TeamView:
        return await self._store.read(lambda tx: team_view(tx, rows.find(tx, team), OWNER))

    async def board(self, team: str) -> list[NodeView]:
        def read(tx: Tx) -> list[NodeView]:
            found = rows.find(tx, team)
            return [node_view(tx, node) for node in nodes.board(tx, found.id, limit=ALL)]

        return await self._store.read(read)

    async def agents(self, team: str, *, all: bool = False) -> list[AgentView]:
        def read(tx: Tx) -> list[AgentView]:
            members = roster.members(tx, rows.find(tx, team).id, all=all)
            return [agent_view(tx, member, OWNER) for member in members]

        return await self._store.read(read)

    async def agent(self, agent: str) -> AgentView:
        return await self._store.read(
            lambda tx: agent_view(tx, roster.member(tx, rows.AGENTS.get(tx, agent)), OWNER)
        )

    async def thread(self, thread: str) -> list[TurnView]:
        def read(tx: Tx) -> list[TurnView]:
            turns = threads.turns(tx, ThreadId(threads.THREADS.get(tx, thread).id))
            return [turn_view(turn) for turn in turns if turn.role != "intent"]

        return await self._store.read(read)

    async def inbox(self, *, after: str = "", limit: int = 100) -> InboxPage:
        def read(tx: Tx) -> InboxPage:
            page = inbox.page(tx, OWNER, after=after, limit=limit)
            shown = [inbox_item_view(tx, item) for item in page.items]
            return InboxPage(items=shown, cursor=page.cursor, unread=inbox.count_unread(tx, OWNER))

        return await self._store.read(read)

    async def item(self, item: str) -> InboxItem:
        return await self._store.read(
            lambda tx: inbox_item_view(tx, inbox.item(tx, OWNER, MessageId(item)))
        )

    async def answer(
        self, item: str, text: str = "", *, decision: Decision | None = None, note: str = ""
    ) -> InboxItem:
        def write(tx: Tx) -> InboxItem:
            answers.answer_question(
                tx, MessageId(item), text or note, person_id=OWNER, decision=decision
            )
            return inbox_item_view(tx, inbox.item(tx, OWNER, MessageId(item)))

        return await self._store.write(write)

    async def extend_node(self, node: str, more: Extension) -> NodeView:
        def write(tx: Tx) -> NodeView:
            return node_view(tx, extensions.extend(tx, NodeId(node), more, by=OWNER))

        return await self._store.write(write)

    async def triggers(self, team: str) -> list[TriggerView]:
        def read(tx: Tx) -> list[TriggerView]:
            found = triggers.of_team(tx, rows.find(tx, team).id)
            return [TriggerView(**trigger_fields(tx, trigger)) for trigger in found]

        return await self._store.read(read)

    async def day_cost(self) -> DayCosts:
        limit_usd = config.load(environment()).usd_per_day
        return await self._store.read(daily_limit.costs, limit_usd)

    async def cost(self, team: str) -> TeamCosts:
        return await self._store.read(lambda tx: costs.of_team(tx, rows.find(tx, team).id))
