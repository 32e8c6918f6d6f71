"""Executor: sets an agent down at its node and lets it work: a model in the loop, or a command."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from agiraph.domain.agents import Agent, Specialist, Team
from agiraph.domain.chat import Attachment, Lease, Transcript, Turn
from agiraph.domain.errors import Misconfigured
from agiraph.domain.ids import HUMAN, SYSTEM, TeamId
from agiraph.domain.outcomes import Outcome
from agiraph.domain.time import Clock
from agiraph.domain.tools import ToolProperties
from agiraph.domain.work import WorkNode
from agiraph.home.layout import Home, TeamFolder
from agiraph.home.sandbox import CommandRules
from agiraph.home.scopes import Scope
from agiraph.policies.breaker import Breaker
from agiraph.policies.budget import BudgetPolicy
from agiraph.policies.permission import PermissionPolicy
from agiraph.providers.catalogue import Catalogue
from agiraph.run_context import RunContext
from agiraph.runtime import prompt, reflection, reply
from agiraph.runtime.calls import ToolCaller
from agiraph.runtime.command_line import Bridge, Command
from agiraph.runtime.compaction import Compaction
from agiraph.runtime.loop import Loop
from agiraph.runtime.prompt import Opening, Start
from agiraph.runtime.steps import Steps
from agiraph.runtime.tracing import TracedCaller, TracedModel, Tracing
from agiraph.services.board import planning
from agiraph.services.board.budgets import Envelope, envelopes, seconds_left
from agiraph.services.lifecycle import journal
from agiraph.store import messages, threads, waits
from agiraph.store.database import Store
from agiraph.store.nodes import NODES
from agiraph.store.teams import AGENTS, TEAMS
from agiraph.store.tx import Tx
from agiraph.tools.base import Tool
from agiraph.tools.delegation import assign_task, described
from agiraph.tools.foreground import FOREGROUND
from agiraph.tools.toolsets import BUILT_IN, tools_for
from agiraph.web.access import Web


class _Seat(NamedTuple):
    """Everything about a lease that has to be read before its run can start."""

    team: Team
    agent: Agent
    node: WorkNode
    giver: str | None
    """The teammate who gave the node away."""
    turns: list[Turn]
    attachments: tuple[Attachment, ...]
    """What a person sent along with what they asked for."""
    parked_calls: dict[str, str]
    envelopes: tuple[Envelope, ...]
    deadline: datetime | None
    start: Start | None
    """What is known for work that is only about to begin."""


def _seat(tx: Tx, lease: Lease) -> _Seat:
    threads.check_lease(tx, lease)
    node = NODES.get(tx, lease.node_id)
    by_teammate = node.creator_id not in (HUMAN, SYSTEM, lease.agent_id)
    agent, turns = AGENTS.get(tx, lease.agent_id), threads.turns(tx, lease.thread_id)
    left = seconds_left(tx, node)
    is_fresh = node.lane == "work" and not turns
    return _Seat(
        team=TEAMS.get(tx, lease.team_id),
        agent=agent,
        node=node,
        giver=planning.name_of(tx, node.creator_id) if by_teammate and node.parent_id else None,
        turns=turns,
        attachments=tuple(a for said in messages.of_node(tx, node.id) for a in said.attachments),
        parked_calls={w.call_id: w.waiting_on for w in waits.of_node(tx, lease.node_id)},
        envelopes=envelopes(tx, node),
        deadline=None if left is None else tx.now + timedelta(seconds=left),
        start=prompt.start(tx, agent, node) if is_fresh else None,
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
    reply_model: str = ""
    """Who answers people; empty: each agent's own model."""
    web: Web = field(default_factory=Web)
    command_rules: CommandRules = CommandRules()
    on_delta: Callable[[RunContext, str], None] | None = field(default=None)
    tracing: Tracing | None = None
    prepared: dict[TeamId, str] = field(default_factory=dict[TeamId, str], repr=False)
    """Teams whose folder is laid out, with the goal that stands in it."""
    toolsets: dict[tuple[str, tuple[str, ...]], Mapping[str, Tool]] = field(
        default_factory=dict[tuple[str, tuple[str, ...]], Mapping[str, Tool]], repr=False
    )
    """The tools of each role, or of a choice of names: the same objects for all who have them."""

    @property
    def _known_tools(self) -> Mapping[str, ToolProperties]:
        known = (*BUILT_IN.values(), *self.extra_tools)
        return {tool.name: tool.properties for tool in known}

    async def run(self, lease: Lease) -> Outcome:
        seat = await self.store.write(_seat, lease)
        if self.tracing is None:
            return await self._run(lease, seat)
        with self.tracing.run(seat.agent, seat.node, lease) as span:
            outcome = await self._run(lease, seat)
            self.tracing.ended(span, outcome)
            return outcome

    async def _run(self, lease: Lease, seat: _Seat) -> Outcome:
        match seat.node.lane:
            case "work":
                return await self._work(lease, seat)
            case "reply":
                return await self._reply(lease, seat)
            case "reflection":
                return await self._reflect(lease, seat)

    async def _work(self, lease: Lease, seat: _Seat) -> Outcome:
        folder = self._team_folder(seat.team)
        await self._lay_out(seat, folder)
        tools: Mapping[str, Tool] = {} if seat.agent.kind == "cli" else self._tools(seat)
        ctx = self._context(lease, seat, folder)
        if not seat.turns:
            specs = tuple(tool.spec for tool in tools.values())
            now = self.clock.now()
            assert seat.start is not None
            known = await prompt.known(ctx, seat.start)
            system = prompt.system_prompt(seat.team, seat.agent, folder, specs, now, known)
            said = prompt.assignment(seat.node, giver=seat.giver)
            await _begin(ctx, Opening(system, said, seat.attachments))
        if seat.agent.kind == "cli":
            return await Bridge(self.commands).run(ctx)
        compaction = Compaction(self.models.window(ctx.agent.model))
        return await Loop(steps=self._steps(ctx, tools), compaction=compaction).run(ctx)

    async def _reply(self, lease: Lease, seat: _Seat) -> Outcome:
        """Answer what a person said, beside whatever the agent works on."""
        agent = replace(seat.agent, model=self.reply_model or seat.agent.model)
        ctx = self._context(lease, seat._replace(agent=agent))
        if not seat.turns:
            await _begin(ctx, await reply.opening(ctx))
        try:
            steps = self._steps(ctx, FOREGROUND, patient=False)
        except Misconfigured as error:
            return await reply.without_a_model(ctx, error)
        return await reply.answer(steps, ctx)

    async def _reflect(self, lease: Lease, seat: _Seat) -> Outcome:
        """Look back on work that is done."""
        ctx = self._context(lease, seat)
        if not seat.turns:
            await _begin(ctx, await reflection.opening(ctx))
        window = self.models.window(ctx.agent.model)
        return await reflection.look_back(self._steps(ctx, {}), ctx, window)

    def _steps(self, ctx: RunContext, tools: Mapping[str, Tool], *, patient: bool = True) -> Steps:
        budget, permission = BudgetPolicy(self.models.usd), PermissionPolicy(tools)
        model = self.models.resolve(ctx.agent.model, patient=patient)
        caller = ToolCaller(tools=tools, budget=budget, permission=permission)
        if (tracing := self.tracing) is not None:
            thread_id = ctx.lease.thread_id
            model = TracedModel(model=model, tracing=tracing, thread_id=thread_id)
            caller = TracedCaller(
                tools=tools, budget=budget, permission=permission, tracing=tracing
            )
        return Steps(
            model=model,
            budget=budget,
            breaker=Breaker(tools),
            caller=caller,
            tool_specs=tuple(tool.spec for tool in tools.values()),
            on_delta=self.on_delta,
        )

    def _tools(self, seat: _Seat) -> Mapping[str, Tool]:
        if seat.node.parent_id is not None and seat.node.budget.is_single_turn:
            return {}  # a single inference
        key = (seat.agent.role, seat.agent.tools)
        if key not in self.toolsets:
            tools = dict(tools_for(seat.agent, self.extra_tools))
            if (assign := tools.get(assign_task.name)) is not None:
                tools[assign.name] = described(assign, self.specialists, self._known_tools)
            self.toolsets[key] = tools
        return self.toolsets[key]

    async def _lay_out(self, seat: _Seat, folder: TeamFolder) -> None:
        """The folders that an agent works in."""
        agent, node = seat.agent, seat.node
        folder.agent(agent.name, identity=agent.identity, notes=agent.notes).close()
        if folder.node(node.id).prepare(node, node.refs):
            await asyncio.to_thread(self.home.settle, seat.team.id, node.id)

    def _team_folder(self, team: Team) -> TeamFolder:
        folder = self.home.team(team.id)
        # A few small files: a thread would spend longer on getting its turns than on them.
        if self.prepared.get(team.id) != team.goal:
            folder.prepare(team)
            self.prepared[team.id] = team.goal
        return folder

    def _context(self, lease: Lease, seat: _Seat, folder: TeamFolder | None = None) -> RunContext:
        agent, node = seat.agent, seat.node
        folder = folder or self._team_folder(seat.team)
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
            parked_calls=seat.parked_calls,
            envelopes=seat.envelopes,
            deadline=seat.deadline,
            specialists=self.specialists,
            check_model=self.models.resolve,
            known_tools=self._known_tools,
            web=self.web,
            command_rules=self.command_rules,
        )
        ctx.add_turns(*seat.turns)
        return ctx


async def _begin(ctx: RunContext, opening: Opening) -> None:
    """The first entries of a fresh thread."""
    ctx.add_turns(
        *await ctx.store.write(
            journal.begin,
            ctx.lease,
            system=opening.system,
            assignment=opening.assignment,
            attachments=opening.attachments,
            tainted_by=opening.tainted_by,
        )
    )
