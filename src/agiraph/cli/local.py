"""Local: the client's read methods on the database itself, for when no server runs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from agiraph import config
from agiraph.api.decision_views import DecidedView, DigestView, GrantView
from agiraph.api.presenters import (
    agent_view,
    digest_view,
    grant_view,
    inbox_item_view,
    node_view,
    team_view,
    team_views,
    trigger_view,
    turn_views,
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
from agiraph.domain.digest import Decisions
from agiraph.domain.grants import GrantKind
from agiraph.domain.ids import AgentId, MessageId, NodeId, TeamId, ThreadId
from agiraph.domain.knowledge import Insight, Memory
from agiraph.domain.messages import Decision
from agiraph.domain.persons import OWNER
from agiraph.domain.work import Extension
from agiraph.redaction import environment
from agiraph.services.board import costs
from agiraph.services.knowledge import items
from agiraph.services.lifecycle import answers, continuations, digest, overspending
from agiraph.services.mail import inbox
from agiraph.services.members import roster
from agiraph.store import grants as grant_rows
from agiraph.store import nodes, threads, triggers
from agiraph.store import teams as rows
from agiraph.store.database import Store
from agiraph.store.tx import Tx

ALL = 1_000_000


class Local:
    """The read methods of `Client`, and the decisions of a person: the next server continues the
    work that they decided on."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def teams(self) -> list[TeamView]:
        return await self._store.read(lambda tx: team_views(tx, rows.page(tx, limit=ALL), OWNER))

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

    async def memories(self, agent: str, *, limit: int = 100) -> list[Memory]:
        found = AgentId(agent)
        return await self._store.read(lambda tx: items.memories(tx, found, limit=limit))

    async def insights(self, agent: str, *, query: str = "", limit: int = 100) -> list[Insight]:
        found = AgentId(agent)
        return await self._store.read(
            lambda tx: items.insights(tx, found, query=query, limit=limit)
        )

    async def thread(self, thread: str) -> list[TurnView]:
        def read(tx: Tx) -> list[TurnView]:
            found = threads.THREADS.get(tx, thread)
            return turn_views(tx, found.team_id, threads.turns(tx, ThreadId(found.id)))

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

    async def mark_read(self, item: str) -> InboxItem:
        return await self._store.write(
            lambda tx: inbox_item_view(tx, inbox.mark_read(tx, OWNER, MessageId(item)))
        )

    async def answer(
        self,
        item: str,
        text: str = "",
        *,
        decision: Decision | None = None,
        note: str = "",
        always: bool = False,
    ) -> InboxItem:
        def write(tx: Tx) -> InboxItem:
            answers.answer_question(
                tx,
                MessageId(item),
                text or note,
                person_id=OWNER,
                decision=decision,
                always=always,
            )
            return inbox_item_view(tx, inbox.item(tx, OWNER, MessageId(item)))

        return await self._store.write(write)

    async def grants(self, team: str) -> list[GrantView]:
        def read(tx: Tx) -> list[GrantView]:
            found = grant_rows.listed(tx, rows.find(tx, team).id)
            return [grant_view(grant, tx.now) for grant in found]

        return await self._store.read(read)

    async def grant(
        self,
        team: str,
        kind: GrantKind,
        pattern: str,
        *,
        until: datetime | None = None,
        home: bool = False,
    ) -> GrantView:
        def write(tx: Tx) -> GrantView:
            team_id = None if home else rows.find(tx, team).id
            made = answers.allow(
                tx, kind=kind, pattern=pattern, person_id=OWNER, team_id=team_id, until=until
            )
            return grant_view(made, tx.now)

        return await self._store.write(write)

    async def revoke_grant(self, team: str, grant: str) -> GrantView:
        def write(tx: Tx) -> GrantView:
            return grant_view(
                answers.revoke_grant(tx, grant, team_id=rows.find(tx, team).id), tx.now
            )

        return await self._store.write(write)

    async def digest(self, team: str = "", *, words: bool = False) -> list[DigestView]:
        def read(tx: Tx) -> list[DigestView]:
            found = [digest.of_team(tx, each, person_id=OWNER) for each in _team_ids(tx, team)]
            return [digest_view(tx, one, words=words) for one in found if one.entries]

        return await self._store.read(read)

    async def decide(
        self,
        *,
        team: str | None = None,
        confirm: Literal["all"] | Sequence[str] = (),
        reject: Sequence[str] = (),
        always: Sequence[str] = (),
        stop: Sequence[str] = (),
        as_of: datetime | None = None,
    ) -> DecidedView:
        decisions = Decisions(
            confirm="all" if confirm == "all" else tuple(confirm),
            reject=tuple(reject),
            always=tuple(always),
            stop=tuple(stop),
        )

        def write(tx: Tx) -> DecidedView:
            team_ids = _team_ids(tx, team or "")
            ids = digest.decide(tx, decisions, person_id=OWNER, team_ids=team_ids, as_of=as_of)
            return DecidedView(ids=ids)

        return await self._store.write(write)

    async def extend_node(self, node: str, more: Extension) -> NodeView:
        def write(tx: Tx) -> NodeView:
            return node_view(tx, continuations.extend_for_person(tx, NodeId(node), more, by=OWNER))

        return await self._store.write(write)

    async def triggers(self, team: str) -> list[TriggerView]:
        def read(tx: Tx) -> list[TriggerView]:
            found = triggers.of_team(tx, rows.find(tx, team).id)
            return [trigger_view(tx, trigger) for trigger in found]

        return await self._store.read(read)

    async def day_cost(self) -> DayCosts:
        limit_usd = config.load(environment()).usd_per_day
        return await self._store.read(overspending.costs_of_day, limit_usd)

    async def cost(self, team: str) -> TeamCosts:
        return await self._store.read(lambda tx: costs.of_team(tx, rows.find(tx, team).id))


def _team_ids(tx: Tx, name: str) -> list[TeamId]:
    """Return the team of this name, or all teams."""
    if name:
        return [rows.find(tx, name).id]
    return [team.id for team in rows.page(tx, limit=ALL)]
