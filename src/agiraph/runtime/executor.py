"""Executor: sets an agent down at its node and lets it work: a model in the loop, or a command."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agiraph.domain.chat import Lease, Transcript, Turn
from agiraph.domain.ids import HUMAN, SYSTEM, TeamId
from agiraph.domain.outcomes import Outcome
from agiraph.domain.people import Agent, Specialist, Team
from agiraph.domain.time import Clock
from agiraph.domain.work import WorkNode
from agiraph.home.layout import Home
from agiraph.home.scopes import Scope
from agiraph.policies.breaker import Breaker
from agiraph.policies.budget import BudgetPolicy
from agiraph.policies.permission import PermissionPolicy
from agiraph.providers.catalogue import Catalogue
from agiraph.runtime.calls import Caller
from agiraph.runtime.command_line import Bridge, Command
from agiraph.runtime.compaction import Compaction
from agiraph.runtime.loop import Loop
from agiraph.runtime.prompt import assignment, system_prompt
from agiraph.services import board, journal
from agiraph.services.spending import Envelope, envelopes
from agiraph.store import threads, waits
from agiraph.store.database import Store
from agiraph.store.nodes import NODES
from agiraph.store.teams import AGENTS, TEAMS
from agiraph.store.tx import Tx
from agiraph.tools.base import Tool
from agiraph.tools.context import RunContext
from agiraph.tools.delegation import described
from agiraph.tools.toolsets import BUILT_IN, tools_for


class _Seat(NamedTuple):
    """Everything about a lease that has to be read before its run can start."""

    team: Team
    agent: Agent
    node: WorkNode
    giver: str | None
    """The teammate who gave the node away."""
    turns: list[Turn]
    waiting: dict[str, str]
    paid_from: tuple[Envelope, ...]


def _seat(tx: Tx, lease: Lease) -> _Seat:
    threads.hold(tx, lease)
    node = NODES.get(tx, lease.node_id)
    by_teammate = node.creator_id not in (HUMAN, SYSTEM, lease.agent_id)
    return _Seat(
        team=TEAMS.get(tx, lease.team_id),
        agent=AGENTS.get(tx, lease.agent_id),
        node=node,
        giver=board.name_of(tx, node.creator_id) if by_teammate and node.parent_id else None,
        turns=threads.turns(tx, lease.thread_id),
        waiting={w.call_id: w.waiting_on for w in waits.of_node(tx, lease.node_id)},
        paid_from=envelopes(tx, node),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    store: Store
    home: Home
    clock: Clock
    models: Catalogue
    extra_tools: tuple[Tool, ...] = ()
    specialists: Mapping[str, Specialist] = field(default_factory=dict[str, Specialist])
    commands: Mapping[str, Command] = field(default_factory=dict[str, Command])
    """Commands that work as teammates, by the names they are hired under."""
    on_delta: Callable[[RunContext, str], None] | None = field(default=None)
    prepared: dict[TeamId, str] = field(default_factory=dict[TeamId, str], repr=False)
    """Teams whose folder is laid out, with the goal that stands in it."""
    toolsets: dict[tuple[str, tuple[str, ...]], Mapping[str, Tool]] = field(
        default_factory=dict[tuple[str, tuple[str, ...]], Mapping[str, Tool]], repr=False
    )
    """The tools of each role, or of a choice of names: the same objects for all who have them."""

    @property
    def _known_tools(self) -> frozenset[str]:
        return frozenset(BUILT_IN) | {tool.name for tool in self.extra_tools}

    async def run(self, lease: Lease) -> Outcome:
        seat = await self.store.write(_seat, lease)
        if seat.agent.kind == "cli":
            return await Bridge(self.commands).run(await self._sit_down(lease, seat, {}))
        tools = self._tools(seat)
        ctx = await self._sit_down(lease, seat, tools)
        budget, permission = BudgetPolicy(self.models.usd), PermissionPolicy()
        loop = Loop(
            model=self.models.resolve(ctx.agent.model),
            budget=budget,
            breaker=Breaker(tools),
            compaction=Compaction(self.models.window(ctx.agent.model)),
            caller=Caller(tools=tools, budget=budget, permission=permission),
            specs=tuple(tool.spec for tool in tools.values()),
            on_delta=self.on_delta,
        )
        return await loop.run(ctx)

    def _tools(self, seat: _Seat) -> Mapping[str, Tool]:
        if seat.node.parent_id is not None and seat.node.budget.turns == 1:
            return {}  # a single inference
        key = (seat.agent.role, seat.agent.tools)
        if key not in self.toolsets:
            tools = dict(tools_for(seat.agent, self.extra_tools))
            if (assign := tools.get("assign_task")) is not None:
                tools["assign_task"] = described(assign, self.specialists, self._known_tools)
            self.toolsets[key] = tools
        return self.toolsets[key]

    async def _sit_down(self, lease: Lease, seat: _Seat, tools: Mapping[str, Tool]) -> RunContext:
        folder = self.home.team(seat.team.id)
        agent, node = seat.agent, seat.node
        # A few small files: a thread would spend longer on getting its turns than on them.
        if self.prepared.get(seat.team.id) != seat.team.goal:
            folder.prepare(seat.team)
            self.prepared[seat.team.id] = seat.team.goal
        folder.agent(agent.name, identity=agent.identity, notes=agent.notes).close()
        if folder.node(node.id).prepare(node, node.refs):
            await asyncio.to_thread(self.home.settle, seat.team.id, node.id)
        ctx = RunContext(
            store=self.store,
            home=self.home,
            clock=self.clock,
            team=seat.team,
            agent=agent,
            node=node,
            lease=lease,
            scope=Scope(role=agent.role, agent=agent.name, node=node.id, team=folder),
            transcript=Transcript(),
            waiting=seat.waiting,
            paid_from=seat.paid_from,
            specialists=self.specialists,
            check_model=self.models.resolve,
            known_tools=self._known_tools,
        )
        turns = seat.turns
        if not turns:
            specs = tuple(tool.spec for tool in tools.values())
            system = system_prompt(seat.team, agent, folder, specs, self.clock.now())
            said = assignment(node, giver=seat.giver)
            turns = await self.store.write(journal.begin, lease, system=system, assignment=said)
        ctx.heard(*turns)
        return ctx
