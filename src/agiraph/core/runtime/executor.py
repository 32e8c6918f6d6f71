"""Executor: loads the rows of a leased node and lets the runner of its kind work.

It has what all runners need: models, tools, programs, folders and the context of a run. Without a
run it shows the prompt that a specialist would get.
"""

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from agiraph.core.domain.agents import Agent, Command, Specialist, Team, seen_by
from agiraph.core.domain.chat import LEAN_SYSTEM, Attachment, Lease, Transcript, Turn
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.features import found_at
from agiraph.core.domain.ids import SYSTEM, AgentId, NodeId, TeamId
from agiraph.core.domain.outcomes import Outcome
from agiraph.core.domain.persons import OWNER, is_person
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text.fence import Line
from agiraph.core.domain.text.previews import PromptText
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Effort, WaitingOn, WorkNode, first_effort
from agiraph.core.home import file_lock, file_versions
from agiraph.core.home.layout import PLAN, Home, TeamFolder, goal_text
from agiraph.core.home.scopes import Scope
from agiraph.core.policies.breaker import Breaker
from agiraph.core.policies.budget import BudgetPolicy
from agiraph.core.policies.permission import PermissionPolicy
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.calls import ToolCaller
from agiraph.core.runtime.daily_spend import DailySpend
from agiraph.core.runtime.parts import OfferedTools
from agiraph.core.runtime.prompts import prompt
from agiraph.core.runtime.prompts.means import Means, TeamState, team_state
from agiraph.core.runtime.prompts.prompt import Opening, find_tellers
from agiraph.core.runtime.steps import Steps
from agiraph.core.runtime.tracing import TracedCaller, TracedModel, Tracing
from agiraph.core.services.board import labels, planning, texts
from agiraph.core.services.board.budgets import LimitsOfRun, limits_of_run
from agiraph.core.services.lifecycle import conversation, journal, work_state
from agiraph.core.store import messages, teams, threads, waits
from agiraph.core.store.database import Store
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.texts import file_labels
from agiraph.core.store.texts.file_labels import FileLabel
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import Tool
from agiraph.core.tools.toolsets import Toolset
from agiraph.models.catalogue import SHORT_WAIT_S, Catalogue
from agiraph.models.hireable import hireable_models
from agiraph.sandbox.levels import CommandRules
from agiraph.web.access import Web

PREVIEWED_GIVER = "coordinator"


class Loaded(NamedTuple):
    """The rows that a run starts from, read in one transaction."""

    team: Team
    agent: Agent
    node: WorkNode
    giver: str | None
    """The name of the teammate who assigned the node; None if a person did."""
    turns: list[Turn]
    attachments: tuple[Attachment, ...]
    """Files that a person attached to their message."""
    parked_calls: dict[str, WaitingOn]
    limits: LimitsOfRun
    trusted: frozenset[str]
    """Sources that a person trusts: text from them does not label a thread."""
    told: tuple[Any, ...]
    """What each feature has loaded for its sections of a new thread's prompt, in the features'
    order; only for a node without turns."""
    label: Label
    """The label of the task, its messages and the work that it builds on; loaded with these."""
    team_state: TeamState | None
    """The state of the team; loaded only for a coordinator's node without turns."""
    zone: str = "UTC"
    """The time zone of the node's person; loaded only for a node without turns."""
    said_before: Sequence[Line] = ()
    """The conversation that a person's message belongs to; loaded only for a node without turns."""
    said: Sequence[str] = ()
    """The person's messages that the task was made of, without those that it holds."""


def load(tx: Tx, lease: Lease) -> Loaded:
    """Return the rows of a leased node; raise `Fenced` if another runner has claimed it."""
    threads.check_lease(tx, lease)
    node = NODES.get(tx, lease.node_id)
    creator = node.creator_id
    by_teammate = not is_person(creator) and creator not in (SYSTEM, lease.agent_id)
    agent, turns = AGENTS.get(tx, lease.agent_id), threads.turns(tx, lease.thread_id)
    team = TEAMS.get(tx, lease.team_id)
    # The threads of a research are shown nothing of what the team knows.
    asked = messages.of_node(tx, node.id)
    is_fresh = node.is_work and not turns and node.kind.is_told
    return Loaded(
        team=team,
        agent=agent,
        node=node,
        giver=planning.name_of(tx, creator) if by_teammate and node.parent_id else None,
        turns=turns,
        attachments=tuple(a for said in asked for a in said.attachments),
        parked_calls={w.call_id: w.waiting_on for w in waits.of_node(tx, lease.node_id)},
        limits=limits_of_run(tx, node),
        trusted=labels.trusted(tx, lease.team_id),
        told=tuple(each.load(tx, team, agent, node) for each in find_tellers()) if is_fresh else (),
        label=labels.of_task(tx, node) if is_fresh else CLEAN,
        team_state=team_state(tx, team, agent, node)
        if is_fresh and agent.role == "coordinator"
        else None,
        zone=teams.zone_of(tx, planning.person_for(tx, node)) if is_fresh else "UTC",
        said_before=work_state.said_before(tx, agent, node, lease.thread_id) if is_fresh else (),
        said=conversation.unsaid(tx, node.task, asked, lease.thread_id) if is_fresh else (),
    )


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
        if loaded.agent.has_model:
            await self.models.learn(self.model_for(loaded))
        runner = cast(Runner, found_at(loaded.node.kind.runner))
        if self.tracing is None:
            return await runner.run(self, lease, loaded)
        with self.tracing.run(loaded.agent, loaded.node, lease) as span:
            outcome = await runner.run(self, lease, loaded)
            self.tracing.set_outcome(span, outcome)
            return outcome

    def means_of(self, agent: Agent) -> Means:
        """Return what the settings offer to an agent that gives work away."""
        return Means(
            specialists=self.specialists,
            models=hireable_models(self.models, agent.model) if agent.role == "coordinator" else (),
            programs=tuple(self.commands),
            has_search=self.web.engine is not None,
            usd_per_day=None if self.daily is None else self.daily.limit_usd,
        )

    def model_for(self, loaded: Loaded) -> str:
        """Return the model that this run asks."""
        replies = loaded.node.kind.answers_messages
        return (replies and self.reply_model) or loaded.agent.model

    def steps(self, ctx: RunContext, toolset: Toolset, *, patient: bool = True) -> Steps:
        """Return the steps of a run: the model with these tools, and the policies."""
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

    def is_lean(self, loaded: Loaded) -> bool:
        """Whether the thread has the short prompt: decided by settings and window when it begins,
        and kept for its life."""
        if loaded.turns:
            return loaded.turns[0].ref == LEAN_SYSTEM
        return self.models.wants_lean_prompt(loaded.agent.model, below=prompt.LEAN_WINDOW)

    async def prepare_folders(self, loaded: Loaded) -> None:
        """Create the folders of the agent and the node."""
        agent, node, folder = loaded.agent, loaded.node, self.home.team(loaded.team.id)
        folder.agent(agent.name, identity=agent.identity, notes=agent.notes).close()
        if folder.node(node.id).prepare(node, node.refs):
            await asyncio.to_thread(self.home.settle, loaded.team.id, node.id)

    async def _prepare_team(self, team: Team) -> None:
        """Write the files of a team, if this process has not done it for its present goal."""
        if self.prepared.get(team.id) != team.goal:
            await prepare(self.store, self.home, team)
            self.prepared[team.id] = team.goal

    def context(self, lease: Lease, loaded: Loaded, extra: tuple[Tool, ...] = ()) -> RunContext:
        """Return what the run knows."""
        agent, node = loaded.agent, loaded.node
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
                team=self.home.team(loaded.team.id),
                reviewed=node.parent_id if node.kind.reads_above else None,
                sees_team=node.kind.sees_team,
                given=seen_by(loaded.team.folders, reviews=node.kind.reads_above),
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


class Runner(Protocol):
    """Runs leased work of one kind; `WorkKind.runner` names it."""

    async def run(self, executor: Executor, lease: Lease, loaded: Loaded) -> Outcome:
        """Run it until it is finished, parked or failed."""
        ...


async def begin(ctx: RunContext, opening: Opening) -> None:
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
            opened=opening.opened,
        )
    )


MOST_BYTES = 1 << 20


async def prepare(store: Store, home: Home, team: Team) -> None:
    """Write the files of a team. A team with a new goal begins with an empty plan."""
    folder = home.team(team.id)
    before, now = _read(folder, "GOAL.md"), goal_text(team)
    if before not in (b"", now) and _old_plan(folder, team):
        async with file_lock.hold(home, team.id):
            await _renew(store, folder, team)
        before = _read(folder, "GOAL.md")
    is_new_goal = before not in (b"", now)
    # A few small files: starting a thread would take longer than writing them.
    if is_new_goal:
        _keep_goal(folder, before)
    folder.prepare(team)
    if is_new_goal:
        _keep_goal(folder, now)


def _keep_goal(folder: TeamFolder, text: bytes) -> None:
    """Keep a version of GOAL.md. Only people give goals."""
    file_versions.keep(folder.folder, "GOAL.md", text, author=OWNER, is_labelled=False)


async def _renew(store: Store, folder: TeamFolder, team: Team) -> None:
    """Move PLAN.md to memory/archive/ if GOAL.md still holds another goal than the team has.

    GOAL.md is updated afterwards. A crash in between only repeats this: the name in the
    archive depends on the text alone. The label of the plan goes with it before it is moved. The
    caller holds the file lock, so that no thread writes a plan in between.
    """
    plan = _old_plan(folder, team)
    if not plan:
        return  # another process has moved it while this one waited for the lock
    kept = f"memory/archive/plan-{file_labels.digest(plan)[:12]}.md"
    labelled = await store.write(_copy_label, team.id, kept)
    with folder.folder.sub("memory/archive", create=True) as archive:
        archive.write(kept.rpartition("/")[2], plan)
    empty = PLAN.encode()
    folder.folder.write("PLAN.md", empty)
    if labelled is not None:
        # After the file, as a clean thread does it; a label that was set since then stays.
        await store.write(file_labels.clear, labelled, empty)


def _old_plan(folder: TeamFolder, team: Team) -> bytes:
    """Return the plan for an earlier goal; empty if PLAN.md holds none."""
    goal, plan = _read(folder, "GOAL.md"), _read(folder, "PLAN.md")
    is_old = goal and goal != goal_text(team) and plan.strip() != PLAN.strip().encode()
    return plan if is_old else b""


def _copy_label(tx: Tx, team_id: TeamId, kept: str) -> FileLabel | None:
    file_labels.copy(tx, team_id, {"PLAN.md": kept})
    return file_labels.find(tx, team_id, "PLAN.md")


def _read(folder: TeamFolder, path: str) -> bytes:
    try:
        return folder.folder.read(path, limit=MOST_BYTES)
    except Refused:
        return b""


async def preview_specialist(
    executor: Executor, team: Team, specialist: Specialist, task: str
) -> PromptText:
    """Return what a new agent of this kind would be shown, if the coordinator gave it this task.

    What agents have learned, and their notes, are left out: a new agent has none.
    """
    coordinator = await executor.store.read(teams.coordinator, team.id)
    agent = Agent(
        id=AgentId("agent_preview"),
        team_id=team.id,
        name=specialist.name,
        role=specialist.name,
        model=specialist.model or coordinator.model,
        created_at=executor.clock.now(),
        tools=specialist.tools,
        effort=specialist.effort,
        identity=specialist.prompt,
    )
    skills = await executor.offered.skills_of(team)
    offered = await executor.offered.of_team(team, skills)
    tools = executor.offered.toolset(agent, offered, is_lean=False)
    soul = await asyncio.to_thread(executor.home.soul, team.id)

    def build() -> str:
        return _previewed_system(executor, team, agent, tools, soul)

    node = WorkNode(
        id=NodeId("node_preview"),
        team_id=team.id,
        task=task,
        title="",
        source="delegation",
        creator_id=OWNER,
        created_at=agent.created_at,
    )
    return PromptText(
        system=await asyncio.to_thread(build),
        task=texts.assignment(node, giver=PREVIEWED_GIVER, thread="t_preview"),
        tools=tuple(spec.name for spec in tools.shown),
    )


def _previewed_system(
    executor: Executor, team: Team, agent: Agent, tools: Toolset, soul: str
) -> str:
    """Build the system prompt from a temporary folder, in which only soul and identity stand."""
    with tempfile.TemporaryDirectory(prefix="agiraph-preview-") as path:
        home = Home.open(Path(path))
        try:
            folder = home.team(team.id)
            folder.write_soul(soul)
            folder.agent(agent.name, identity=agent.identity).close()
            about = (agent, folder, tools, PREVIEWED_GIVER, executor.means_of(agent))
            return prompt.system_prompt(team, prompt.Reader(*about), executor.clock.now())
        finally:
            home.folder.close()
