"""Executor: runs one leased node: loads its rows, prepares its folders, and starts the right run.

A `work` node is run by a model in the loop or by a program, a `reply` or `reflection` node by its
own module.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from agiraph.domain.agents import Agent, Specialist, Team
from agiraph.domain.chat import LEAN_SYSTEM, Lease, Transcript
from agiraph.domain.effort import Effort, first_effort
from agiraph.domain.errors import Misconfigured
from agiraph.domain.folders import seen_by
from agiraph.domain.ids import TeamId
from agiraph.domain.outcomes import Outcome
from agiraph.domain.time import Clock
from agiraph.home.layout import Home, TeamFolder
from agiraph.home.levels import CommandRules
from agiraph.home.scopes import Scope
from agiraph.policies.breaker import Breaker
from agiraph.policies.budget import BudgetPolicy
from agiraph.policies.permission import PermissionPolicy
from agiraph.providers.catalogue import SHORT_WAIT_S, Catalogue
from agiraph.providers.hireable import hireable_models
from agiraph.run_context import RunContext
from agiraph.runtime import (
    conversation_summary,
    own_notices,
    plans,
    prompt,
    reflection,
    refs,
    reply,
    reply_prompt,
    research,
)
from agiraph.runtime.calls import ToolCaller
from agiraph.runtime.command_line import ProgramRunner
from agiraph.runtime.compaction import Compaction
from agiraph.runtime.daily_spend import DailySpend
from agiraph.runtime.loading import Loaded, load
from agiraph.runtime.loop import Loop
from agiraph.runtime.means import Means
from agiraph.runtime.offered_tools import OfferedTools
from agiraph.runtime.program_setup import Command
from agiraph.runtime.prompt import Opening
from agiraph.runtime.shown_files import ShownFiles
from agiraph.runtime.steps import Steps
from agiraph.runtime.tracing import TracedCaller, TracedModel, Tracing
from agiraph.services.lifecycle import journal, summaries
from agiraph.store.database import Store
from agiraph.tools.base import Tool
from agiraph.tools.foreground import BASIC, FOREGROUND, UNSHOWN
from agiraph.tools.toolsets import PUBLIC, READER, REVIEW, Toolset, all_shown
from agiraph.web.access import Web


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """Runs nodes with the models, tools and programs of this installation."""

    store: Store
    home: Home
    clock: Clock
    models: Catalogue
    offered: OfferedTools = field(default_factory=OfferedTools)
    """The tools that agents are given."""
    specialists: Mapping[str, Specialist] = field(default_factory=dict[str, Specialist])
    commands: Mapping[str, Command] = field(default_factory=dict[str, Command])
    """Programs from the settings that can be hired as workers, by name."""
    reply_model: str = ""
    """The model that writes replies to people; empty: each agent's own model."""
    reader_model: str = ""
    """The model of the readers of a research; empty: that of its researcher."""
    efforts: Mapping[str, Effort] = field(default_factory=dict[str, Effort])
    """How much models think by the role of their agents, from the settings."""
    web: Web = field(default_factory=Web)
    command_rules: CommandRules = field(default_factory=CommandRules)
    daily: DailySpend | None = None
    """What all teams may spend today; None: no limit."""
    on_delta: Callable[[RunContext, str], None] | None = field(default=None)
    tracing: Tracing | None = None
    prepared: dict[TeamId, str] = field(default_factory=dict[TeamId, str], repr=False)
    """Teams whose folder exists, with the goal that was written into it."""

    async def run(self, lease: Lease) -> Outcome:
        """Run the leased node until it is finished, parked or failed."""
        # A write, although it changes nothing: a read takes no row lock, and a run that is fenced
        # while it loads must stop here.
        loaded = await self.store.write(load, lease)
        await self._prepare_team(loaded.team)
        # The prompt and its compaction follow the window, which a server of one's own may tell.
        if loaded.agent.kind != "cli":
            await self.models.learn(self._model_for(loaded))
        if self.tracing is None:
            return await self._run(lease, loaded)
        with self.tracing.run(loaded.agent, loaded.node, lease) as span:
            outcome = await self._run(lease, loaded)
            self.tracing.set_outcome(span, outcome)
            return outcome

    async def _run(self, lease: Lease, loaded: Loaded) -> Outcome:
        match loaded.node.lane:
            case "work":
                return await self._work(lease, loaded)
            case "reply":
                return await self._reply(lease, loaded)
            case "reflection":
                return await self._reflect(lease, loaded)

    async def _work(self, lease: Lease, loaded: Loaded) -> Outcome:
        folder = self.home.team(loaded.team.id)
        await self._prepare_folders(loaded, folder)
        skills = () if loaded.node.is_public else await self.offered.skills_of(loaded.team)
        extra = await self.offered.of_team(loaded.team, skills)
        tools = Toolset({}) if loaded.agent.kind == "cli" else self._tools(loaded, extra)
        ctx = self._context(lease, loaded, folder, extra)
        ctx.skills = skills
        await own_notices.tell(ctx, self.offered.take_notices())
        if loaded.node.research is not None:
            return await self._research(ctx, loaded, tools)
        if not loaded.turns:
            await _begin(ctx, await self._opening(ctx, loaded, folder, tools))
        if loaded.agent.kind == "cli":
            return await ProgramRunner(self.commands).run(ctx)
        compaction = Compaction(self.models.window(ctx.agent.model))
        return await Loop(steps=self._steps(ctx, tools), compaction=compaction).run(ctx)

    async def _opening(
        self, ctx: RunContext, loaded: Loaded, folder: TeamFolder, tools: Toolset
    ) -> Opening:
        """Return the first entries of a new thread. They are stored and never change, so that the
        vendor's cache holds for all of its calls."""
        now, is_lean = self.clock.now(), self._is_lean(loaded)
        if loaded.node.is_public:
            return prompt.public_opening(loaded.node, now)
        assert loaded.prior_knowledge is not None
        known = await prompt.refresh_knowledge(ctx, loaded.prior_knowledge)
        means = self.means_of(loaded.agent)

        def build(shown: ShownFiles) -> str:
            if loaded.node.reviews_call is not None:
                return prompt.review_prompt(loaded.agent, shown, now)
            about = (loaded.agent, folder, tools, loaded.giver, means, loaded.team_state)
            room = prompt.LEAN_BEFORE_BYTES if is_lean else prompt.BEFORE_BYTES
            before = shown.lines(loaded.said_before, room)
            more = {"shown": shown, "skills": ctx.skills, "zone": loaded.zone, "before": before}
            reader = prompt.Reader(*about, is_lean=is_lean, **more)
            return prompt.system_prompt(loaded.team, reader, now, known)

        label = loaded.prior_knowledge.label | known.label
        system, shown = await prompt.with_files(ctx, label, build)
        assignment = prompt.assignment(
            loaded.node,
            giver=loaded.giver,
            thread=ctx.lease.thread_id,
            refs=await self._refs(ctx, tools),
            said=loaded.said,
        )
        used = known.ids(is_lean=is_lean)
        return Opening(system, assignment, loaded.attachments, shown.label, is_lean, used)

    async def _research(self, ctx: RunContext, loaded: Loaded, tools: Toolset) -> Outcome:
        """Run a research job or one of its parts."""
        if not loaded.turns:
            await _begin(ctx, await research.opening(ctx))
        steps = self._steps(ctx, tools)
        if loaded.node.research == "reader":
            compaction = Compaction(self.models.window(ctx.agent.model))
            return await Loop(steps=steps, compaction=compaction).run(ctx)
        return await research.run(steps, ctx, reader_model=self.reader_model)

    def means_of(self, agent: Agent) -> Means:
        """Return what the settings offer to an agent that gives work away."""
        return Means(
            specialists=self.specialists,
            models=hireable_models(self.models, agent.model) if agent.role == "coordinator" else (),
            programs=tuple(self.commands),
            has_search=self.web.engine is not None,
            usd_per_day=None if self.daily is None else self.daily.limit_usd,
        )

    async def _refs(self, ctx: RunContext, tools: Toolset) -> list[str] | None:
        """Return the texts of the node's refs for an agent that cannot read them itself."""
        return None if tools.tools or ctx.agent.kind == "cli" else await refs.as_text(ctx)

    async def _reply(self, lease: Lease, loaded: Loaded) -> Outcome:
        """Answer a person's message, while the agent's work goes on in its own lane."""
        loaded = loaded._replace(agent=replace(loaded.agent, model=self._model_for(loaded)))
        ctx, is_lean, upto = self._context(lease, loaded), self._is_lean(loaded), ""
        tools = all_shown(BASIC if is_lean else FOREGROUND, besides=UNSHOWN)
        if not loaded.turns:
            opening = await reply_prompt.opening(ctx, tools.shown, is_lean=is_lean)
            upto = opening.summarise_upto
            await _begin(ctx, opening)
        try:
            steps = self._steps(ctx, tools, patient=False)
        except Misconfigured as error:
            return await reply.acknowledge(ctx, error)
        return await reply.answer(steps, ctx, summarise_upto=upto)

    def _model_for(self, loaded: Loaded) -> str:
        """Return the model that this run asks."""
        replies = loaded.node.lane == "reply"
        return (replies and self.reply_model) or loaded.agent.model

    async def _reflect(self, lease: Lease, loaded: Loaded) -> Outcome:
        """Extract insights from closed threads, or write the summary of a conversation."""
        ctx = self._context(lease, loaded)
        if loaded.node.task == summaries.TASK:
            return await self._summarise(ctx, loaded)
        if not loaded.turns:
            await _begin(ctx, await reflection.opening(ctx))
        window = self.models.window(ctx.agent.model)
        return await reflection.reflect(self._steps(ctx, Toolset({})), ctx, window)

    async def _summarise(self, ctx: RunContext, loaded: Loaded) -> Outcome:
        if not loaded.turns:
            await _begin(ctx, await conversation_summary.opening(ctx))
        return await conversation_summary.write(self._steps(ctx, Toolset({})), ctx)

    def _steps(self, ctx: RunContext, toolset: Toolset, *, patient: bool = True) -> Steps:
        tools = toolset.tools
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
            tool_specs=toolset.shown,
            daily=self.daily,
            longest_wait_s=None if patient else SHORT_WAIT_S,
            on_delta=self.on_delta,
            effort=self._effort(ctx),
            window=self.models.known_window(ctx.agent.model),
        )

    def _effort(self, ctx: RunContext) -> Effort | None:
        """Return how much the model thinks: the most specific setting counts."""
        of_role = self.efforts.get(ctx.agent.role)
        return first_effort(ctx.node.effort, ctx.agent.effort, ctx.team.effort, of_role)

    def _tools(self, loaded: Loaded, extra: tuple[Tool, ...]) -> Toolset:
        if loaded.node.research is not None:
            return all_shown(READER if loaded.node.research == "reader" else {})
        if loaded.node.parent_id is not None and loaded.node.budget.is_single_turn:
            return Toolset({})  # a single answer of the model
        if loaded.node.reviews_call is not None:
            return all_shown(REVIEW)
        if loaded.node.is_public:
            return all_shown(PUBLIC)
        return self.offered.toolset(loaded.agent, extra, is_lean=self._is_lean(loaded))

    def _is_lean(self, loaded: Loaded) -> bool:
        """Whether the thread has the short prompt: decided by settings and window when it begins,
        and kept for its life."""
        if loaded.turns:
            return loaded.turns[0].ref == LEAN_SYSTEM
        return self.models.wants_lean_prompt(loaded.agent.model, below=prompt.LEAN_WINDOW)

    async def _prepare_folders(self, loaded: Loaded, folder: TeamFolder) -> None:
        """Create the folders of the agent and the node."""
        agent, node = loaded.agent, loaded.node
        folder.agent(agent.name, identity=agent.identity, notes=agent.notes).close()
        if folder.node(node.id).prepare(node, node.refs):
            await asyncio.to_thread(self.home.settle, loaded.team.id, node.id)

    async def _prepare_team(self, team: Team) -> None:
        """Write the files of a team, if this process has not done it for its present goal."""
        if self.prepared.get(team.id) != team.goal:
            await plans.prepare(self.store, self.home, team)
            self.prepared[team.id] = team.goal

    def _context(
        self,
        lease: Lease,
        loaded: Loaded,
        folder: TeamFolder | None = None,
        extra: tuple[Tool, ...] = (),
    ) -> RunContext:
        agent, node = loaded.agent, loaded.node
        folder = folder or self.home.team(loaded.team.id)
        ctx = RunContext(
            store=self.store,
            home=self.home,
            clock=self.clock,
            team=loaded.team,
            agent=agent,
            node=node,
            lease=lease,
            scope=Scope(
                role=agent.role,
                agent=agent.name,
                node=node.id,
                team=folder,
                reviewed=None if node.reviews_call is None else node.parent_id,
                is_public=node.is_public,
                given=seen_by(loaded.team.folders, reviews=node.reviews_call is not None),
            ),
            # Empty here; `add_turns` fills it and counts what the node has consumed.
            transcript=Transcript(),
            parked_calls=loaded.parked_calls,
            envelopes=loaded.limits.envelopes,
            deadline=loaded.limits.deadline,
            outermost_budget=loaded.limits.outermost,
            specialists=self.specialists,
            check_model=self.models.check,
            trusted=loaded.trusted,
            known_tools=self.offered.properties(extra or self.offered.extra),
            window=self.models.window(agent.model),
            web=self.web,
            command_rules=self.command_rules,
        )
        ctx.add_turns(*loaded.turns)
        return ctx


async def _begin(ctx: RunContext, opening: Opening) -> None:
    """Write the system prompt and the assignment of a new thread."""
    ctx.add_turns(
        *await ctx.store.write(
            journal.begin,
            ctx.lease,
            system=opening.system,
            assignment=opening.assignment,
            attachments=opening.attachments,
            label=opening.label,
            is_lean=opening.is_lean,
            insights=opening.insights,
        )
    )
