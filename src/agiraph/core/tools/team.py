"""Team tools: the board, its stages and the background work."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import NodeId, ThreadId
from agiraph.core.domain.outcomes import Answer, Done, Pending
from agiraph.core.domain.stages import Judgement, Stage, StageContract, StageDecision, Verdict
from agiraph.core.domain.text.fence import one_line
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.tools import ON_DEMAND
from agiraph.core.domain.value import value
from agiraph.core.domain.work import IfUnmet, NodeStatus, WaitingOn, WorkNode
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import (
    acceptance_lines,
    budgets,
    jobs,
    labels,
    planning,
    stages,
    texts,
)
from agiraph.core.services.board.confided import Confided
from agiraph.core.services.board.jobs import Job
from agiraph.core.services.lifecycle import endings, reconvening
from agiraph.core.services.members import roster
from agiraph.core.store import dependencies, messages, nodes, threads
from agiraph.core.store import stages as stage_rows
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import tool
from agiraph.core.tools.delegation import (
    AS_AGENT,
    EffortArgument,
    Task,
    hire_way_out,
    hirer,
    refuse_after_failures,
    refuse_repeats,
)
from agiraph.core.tools.staffing import check_tools
from agiraph.core.tools.web.web import web_fetch, web_search
from agiraph.core.tools.work import Kinds

MAX_NODES = 100
"""Nodes that the board shows a model."""

Refs = Annotated[
    dict[str, str] | None,
    Field(description="What to read: a name of your choice, and a task's id or id/file"),
]

UnmetPolicy = Annotated[
    IfUnmet, Field(description="What to do if something it needs does not succeed")
]
UNASSIGNED = "Nobody is chosen yet: somebody takes it in half a minute, or when you wait."
STARTS_LATER = "It starts with its stage, when you wait for it, or in half a minute."


@value
class NodeForBoard:
    """The arguments of `create_work_node`."""

    task: Task
    title: Annotated[str, Field(max_length=200)] = ""
    refs: Refs = None
    depends_on: Annotated[list[str] | None, Field(description="Ids of tasks")] = None
    assigned_to: Annotated[str | None, Field(description=AS_AGENT)] = None
    acceptance: Annotated[list[str] | None, Field(description="What done means, in lines")] = None
    kinds: Kinds = None
    if_unmet: UnmetPolicy = "fail"
    tools: Annotated[list[str] | None, Field(description="That its worker must have")] = None
    max_turns: Annotated[
        int | None, Field(ge=1, le=1000, description="1: a single answer without tools")
    ] = None
    effort: EffortArgument = None


@tool(
    effect="transaction",
    way_out=hire_way_out,
    in_sight=frozenset({"coordinator"}),
    rare=frozenset({"title", "kinds", "if_unmet", "tools", "max_turns", "effort"}),
)
def create_work_node(tx: Tx, ctx: RunContext, given: NodeForBoard) -> Answer:
    """Put a task on the board, for a stage or after others: it starts when all that depends_on and
    refs name has succeeded. Without assigned_to, an idle or new worker takes it when you wait.
    Example: {"task": "Merge both", "refs": {"a": "node_1", "b": "node_2/b.md"}}
    """
    check_tools(given.tools or (), ctx.known_tools)
    refuse_after_failures(tx, ctx)
    paired = acceptance_lines.paired(given.acceptance or (), given.kinds)
    lines, line_kinds = acceptance_lines.split(paired)
    needs = [nodes.find(tx, ctx.team.id, name).id for name in given.depends_on or ()]
    paths, sources = _paths(tx, ctx, given.refs or {})
    open_sources = [n.id for n in sources if n.status is not NodeStatus.COMPLETED]
    named = given.assigned_to
    worker = None if named is None else roster.resolve(tx, hirer(ctx), named)
    refuse_repeats(tx, ctx, given.task, given.title, worker)
    node = planning.create(
        tx,
        team_id=ctx.team.id,
        task=given.task,
        title=given.title,
        source="delegation",
        creator_id=ctx.agent.id,
        assignee_id=None if worker is None else worker.id,
        parent_id=ctx.node.id,
        depends_on=list(dict.fromkeys([*needs, *open_sources])),
        refs=paths,
        acceptance=lines,
        line_kinds=line_kinds,
        needs_tools=tuple(given.tools or ()),
        if_unmet=given.if_unmet,
        budget=budgets.share(tx, ctx.node, turns=given.max_turns),
        effort=given.effort,
        starts_later=True,  # a stage may be about to start it together with others
    )
    warning = _budget_warning(node, given.max_turns)
    planning.hand_out_later(tx, node)
    if worker is not None:
        roster.set_purpose(tx, worker, node.id)
        return Done(f"Created {node.id}, given to {worker.name}. {STARTS_LATER}{warning}")
    return Done(f"Created {node.id}. {UNASSIGNED}{warning}")


def _budget_warning(node: WorkNode, max_turns: int | None) -> str:
    """Return a warning if the parent's budget leaves the node fewer turns than `max_turns`."""
    calls = node.budget.model_calls
    if max_turns is None or calls is None or calls >= max_turns:
        return ""
    return (
        f" Your own budget leaves it {counted(calls, 'model call')}, so it cannot use all of the "
        f"{max_turns} turns you gave it."
    )


def _paths(
    tx: Tx, ctx: RunContext, refs: Mapping[str, str]
) -> tuple[dict[str, str], list[WorkNode]]:
    """Return the published path of each ref, and the nodes the refs come from."""
    paths: dict[str, str] = {}
    sources: list[WorkNode] = []
    for name, target in refs.items():
        plain = target.strip().removeprefix("nodes/")
        node_id, _, file = plain.partition("/")
        source = nodes.find(tx, ctx.team.id, node_id)
        file = file.removeprefix("published").strip("/")
        paths[name] = f"nodes/{source.id}/published" + (f"/{file}" if file else "")
        sources.append(source)
    return paths, sources


@tool(
    effect="transaction",
    counts_as_work=False,
    looks_up=True,
    polls=True,
    in_sight=frozenset({"coordinator"}),
)
def check_board(tx: Tx, ctx: RunContext) -> Answer:
    """See all work: how it stands, who is on it, what is spent."""
    return board_as_answer(tx, ctx)


def board_as_answer(tx: Tx, ctx: RunContext) -> Done:
    """Return the board and the team as text for a model."""
    needs = dependencies.of_team(tx, ctx.team.id)
    lines = ["Work:"]
    shown = nodes.latest(tx, ctx.team.id, limit=MAX_NODES)
    if len(shown) == MAX_NODES:
        lines.append(f"(no more than {MAX_NODES}: what is open, then what ended last)")
    for node in shown:
        lines.append(_row(tx, node, needs.get(node.id, []), is_own=node.id == ctx.node.id))
    open_stages = [s for s in stage_rows.of_team(tx, ctx.team.id) if s.status != "reconvened"]
    if open_stages:
        lines += ["Stages:", *(f"- {s.name} ({s.id}): {s.status}" for s in open_stages)]
    lines.append("Team:")
    for member in roster.members(tx, ctx.team.id):
        agent = member.agent
        lines.append(f"- {agent.name} ({agent.role}, {agent.model}): {member.doing}")
    if spent := budgets.spent_share(tx, ctx.node):
        lines.append(spent)
    board = Confided(tx, ctx.agent).hide("\n".join(lines))
    return Done(board, label=labels.of_board(tx, shown))


def _row(tx: Tx, node: WorkNode, needs: list[NodeId], *, is_own: bool) -> str:
    who = "nobody" if node.assignee_id is None else planning.name_of(tx, node.assignee_id)
    parts = [f"{'  ' * node.depth}- {node.id} [{node.status}] {texts.title_of(node)} ({who})"]
    if is_own:
        parts.append("this is yours")
    if needs:
        parts.append(f"needs {', '.join(needs)}")
    if node.waiting_reason:
        parts.append(f"waits: {one_line(node.waiting_reason)}")
    if node.doubts:
        parts.append(f"not confirmed: {texts.not_confirmed(node, most=texts.DOUBTS)}")
    if node.stalled_at is not None and node.status is NodeStatus.RUNNING:
        parts.append("no progress for a while")
    if node.status.is_final and node.result:
        # Quoted words from outside the team would add their sources to this thread's label, and
        # a look at the board should not.
        is_labelled = bool(labels.of_nodes(tx, [node.id]))
        kept = f'its result is for task_output("{node.id}")'
        parts.append(kept if is_labelled else node.result.splitlines()[0][:200])
    return "; ".join(parts)


@tool(effect="transaction", in_sight=ON_DEMAND)
def cancel_work_node(
    tx: Tx,
    ctx: RunContext,
    node_id: str,
    reason: Annotated[str, Field(min_length=1, description="For the record")],
) -> Answer:
    """Cancel a task that was given away, and all tasks below it. Its files stay in its folder."""
    node = nodes.find(tx, ctx.team.id, node_id)
    if node.status.is_final:
        return Done(f"{node.id} is {node.status} already.")
    if node.id == ctx.node.id:
        raise Refused("That is your own work: submit what you have instead.")
    if ctx.agent.role != "coordinator" and node.creator_id != ctx.agent.id:
        raise Refused("You may cancel what you gave away yourself; ask the coordinator.")
    # Cancelling an ancestor would cancel this node too, before it has submitted anything.
    if dependencies.is_above(tx, node, ctx.node):
        raise Refused("Your own work is part of it: submit what you have instead.")
    if node.creator_id == ctx.agent.id:
        why = f"{ctx.agent.name} cancelled it: {texts.truncate(one_line(reason), texts.REASON)}"
        NODES.update(tx, node.id, given_up=why)
    endings.cancel(tx, node.id, by=ctx.agent.id)
    return Done(f"Cancelled {node.id} and all below it.")


class Terms(BaseModel):
    """When a stage is over."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", defer_build=True)

    wants: Literal["all", "majority", "any"] = Field("all", description="How many must succeed")
    turns_per_node: int = Field(10, ge=1, le=1000)
    timeout_seconds: float = Field(
        300, gt=0, le=30 * 86_400, description="The time a person is asked does not count"
    )


@tool(
    effect="transaction",
    roles=frozenset({"coordinator"}),
    leads=True,
    in_sight=frozenset({"coordinator"}),
    rare=frozenset({"contract"}),
)
def start_stage(
    tx: Tx,
    ctx: RunContext,
    name: Annotated[str, Field(min_length=1, max_length=100)],
    nodes: Annotated[list[str] | None, Field(description="Ids of tasks")] = None,
    contract: Terms | None = None,
) -> Answer:
    """Run tasks of the board as a stage: they start together. You wait until all have
    succeeded, one has failed, or 5 minutes are over (contract: other terms). To wait
    longer or add tasks, call it again with this name. Then call reconvene.
    """
    terms = contract or Terms.model_validate({})
    stage = stages.start(
        tx,
        ctx.lease,
        name=name,
        node_ids=nodes or [],
        contract=StageContract(
            turns_per_node=terms.turns_per_node,
            timeout_seconds=terms.timeout_seconds,
            wants=terms.wants,
        ),
    )
    if stage.status != "running":
        return _stage_result(tx, stage, ctx.lease.thread_id)
    return Pending(WaitingOn("stage", stage.id), texts.stage_wait(name))


class TaskVerdict(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", defer_build=True)

    node_id: str
    verdict: Judgement
    reason: str = Field("", max_length=10_000, description="For redo: what to do differently")


@tool(
    effect="transaction",
    roles=frozenset({"coordinator"}),
    leads=True,
    in_sight=frozenset({"coordinator"}),
    rare=frozenset({"decision"}),
)
def reconvene(
    tx: Tx,
    ctx: RunContext,
    assessment: Annotated[str, Field(min_length=1, max_length=20_000)],
    verdicts: Annotated[
        list[TaskVerdict] | None,
        Field(description="For tasks that have ended; none: all count"),
    ] = None,
    decision: Annotated[
        StageDecision | None, Field(description="redo if a verdict is redo")
    ] = None,
) -> Answer:
    """End the stage: assess its results and decide what comes next. Verdicts: accept, redo (the
    same worker, with your reason; you wait) or drop (cancelled).
    """
    before = stages.running(tx, ctx.node.id)
    stage = reconvening.reconvene(
        tx,
        ctx.lease,
        assessment=assessment,
        verdicts=[Verdict(**given.model_dump()) for given in verdicts or ()],
        decision=decision,
    )
    if stage.status == "running":
        return Pending(WaitingOn("stage", stage.id), texts.stage_wait(stage.name, is_redone=True))
    # The model has not seen the results yet if the stage ended during this call, or if the worker
    # of a task to be redone has left.
    if stage.decision == "redo" or (before is not None and before.status == "running"):
        return _stage_result(tx, stage, ctx.lease.thread_id)
    board = board_as_answer(tx, ctx)
    return replace(board, text=f"Stage {stage.name!r} is closed.\n{board.text}")


def _stage_result(tx: Tx, stage: Stage, thread: ThreadId) -> Done:
    """Return the summary of an ended stage, unless a message in this thread has it."""
    told = [m for m in messages.about(tx, "stage", stage.id) if m.created_at == stage.ended_at]
    if any(threads.has_ref(tx, thread, message.id) for message in told):
        return Done(
            f"Stage {stage.name!r} is over, and its results are in a message above. {stages.NEXT}"
        )
    return Done(
        stages.summary(tx, stage, thread),
        label=labels.of_wait(tx, WaitingOn("stage", stage.id)),
        is_fenced=True,
    )


@tool(effect="transaction", looks_up=True, polls=True, in_sight=ON_DEMAND)
def job_status(tx: Tx, ctx: RunContext) -> Answer:
    """See all background work of the team: what runs, waits, is queued, and ended lately."""
    found = [job for job in jobs.of_team(tx, ctx.team.id) if job.node.id != ctx.node.id]
    lines = [_job_line(job) for job in found] or ["There is no background work."]
    return Done("\n".join(lines), label=labels.of_board(tx, [job.node for job in found]))


def _job_line(job: Job) -> str:
    text = f"- {texts.title_of(job.node)} ({job.node.id}, {job.worker}): {job.state}"
    if job.position is not None:
        text += f", number {job.position} in the queue"
    limits = job.node.budget.calls
    for tool_name, what in ((web_search.name, "searches"), (web_fetch.name, "pages")):
        if tool_name in limits:
            text += f", {job.used[tool_name]} of {limits[tool_name]} {what} used"
    if job.label and job.progress and not job.node.waiting_reason:
        # A look at the list must not label the thread with what each task has read.
        return f'{text}; its progress is for look_into("{job.node.id}")'
    return f"{text}: {job.progress}" if job.progress else text
