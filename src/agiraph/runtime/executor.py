"""Executor: sets an agent down at its node and lets the loop run."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from agiraph.domain.chat import Lease, ToolSpec, Transcript, Turn
from agiraph.domain.outcomes import Outcome
from agiraph.domain.people import Agent, Team
from agiraph.domain.time import Clock
from agiraph.domain.work import WorkNode
from agiraph.home.layout import Home
from agiraph.home.scopes import Scope
from agiraph.policies.breaker import Breaker
from agiraph.policies.budget import BudgetPolicy
from agiraph.policies.permission import PermissionPolicy
from agiraph.providers.catalogue import Catalogue
from agiraph.runtime.calls import Caller
from agiraph.runtime.compaction import Compaction
from agiraph.runtime.loop import Loop
from agiraph.runtime.prompt import assignment, system_prompt
from agiraph.services import journal
from agiraph.services.spending import Envelope, envelopes
from agiraph.store import threads, waits
from agiraph.store.database import Store
from agiraph.store.nodes import NODES
from agiraph.store.teams import AGENTS, TEAMS
from agiraph.store.tx import Tx
from agiraph.tools.base import Tool
from agiraph.tools.context import RunContext
from agiraph.tools.toolsets import tools_for


class _Seat(NamedTuple):
    """Everything about a lease that has to be read before its run can start."""

    team: Team
    agent: Agent
    node: WorkNode
    turns: list[Turn]
    waiting: dict[str, str]
    paid_from: tuple[Envelope, ...]


def _seat(tx: Tx, lease: Lease) -> _Seat:
    threads.hold(tx, lease)
    node = NODES.get(tx, lease.node_id)
    return _Seat(
        team=TEAMS.get(tx, lease.team_id),
        agent=AGENTS.get(tx, lease.agent_id),
        node=node,
        turns=threads.turns(tx, lease.thread_id),
        waiting={w.call_id: w.waiting_on for w in waits.of_node(tx, lease.node_id)},
        paid_from=envelopes(tx, node),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """Runs a node of an `llm` agent."""

    store: Store
    home: Home
    clock: Clock
    models: Catalogue
    extra_tools: tuple[Tool, ...] = ()
    on_delta: Callable[[RunContext, str], None] | None = field(default=None)

    async def run(self, lease: Lease) -> Outcome:
        seat = await self.store.write(_seat, lease)
        tools = tools_for(seat.agent, self.extra_tools)
        specs = tuple(tool.spec for tool in tools.values())
        ctx = await self._sit_down(lease, seat, specs)
        budget, permission = BudgetPolicy(self.models.usd), PermissionPolicy()
        loop = Loop(
            model=self.models.resolve(ctx.agent.model),
            budget=budget,
            breaker=Breaker(tools),
            compaction=Compaction(self.models.window(ctx.agent.model)),
            caller=Caller(tools=tools, budget=budget, permission=permission),
            specs=specs,
            on_delta=self.on_delta,
        )
        return await loop.run(ctx)

    async def _sit_down(self, lease: Lease, seat: _Seat, specs: tuple[ToolSpec, ...]) -> RunContext:
        folder = self.home.team(seat.team.id)

        # A few small files: a thread would spend longer on getting its turns than on them.
        folder.prepare(seat.team)
        folder.agent(seat.agent.name).close()
        if folder.node(seat.node.id).prepare(seat.node, seat.node.refs):
            await asyncio.to_thread(self.home.settle, seat.team.id, seat.node.id)
        ctx = RunContext(
            store=self.store,
            home=self.home,
            clock=self.clock,
            team=seat.team,
            agent=seat.agent,
            node=seat.node,
            lease=lease,
            scope=Scope(
                role=seat.agent.role, agent=seat.agent.name, node=seat.node.id, team=folder
            ),
            transcript=Transcript(),
            waiting=seat.waiting,
            paid_from=seat.paid_from,
        )
        turns = seat.turns
        if not turns:
            system = system_prompt(seat.team, seat.agent, folder, specs, self.clock.now())
            turns = await self.store.write(
                journal.begin, lease, system=system, assignment=assignment(seat.node)
            )
        ctx.heard(*turns)
        return ctx
