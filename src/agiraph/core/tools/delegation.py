"""Delegation tools: assign a task, wait for its result, and resume it."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field

from agiraph.core.domain.agents import Agent, Specialist
from agiraph.core.domain.chat import AGAIN, ToolCall
from agiraph.core.domain.errors import NotFound, OutOfScope, Refused
from agiraph.core.domain.outcomes import Answer, Done, Pending
from agiraph.core.domain.provenance.labels import CLEAN
from agiraph.core.domain.provenance.sinks import Sink, WayOut
from agiraph.core.domain.text.fence import one_line
from agiraph.core.domain.tools import ON_DEMAND
from agiraph.core.domain.value import value
from agiraph.core.domain.work import Effort, NodeStatus, WaitingOn, WorkNode
from agiraph.core.domain.work_kinds import PUBLIC_TASK, TASK
from agiraph.core.home.scopes import Area
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import (
    briefs,
    budgets,
    labels,
    leases,
    planning,
    texts,
    unfinished,
    waiting,
)
from agiraph.core.services.board.briefs import Brief
from agiraph.core.services.members import roster
from agiraph.core.services.members.roster import Hirer
from agiraph.core.store import messages, nodes, teams
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.core.tools import acceptance
from agiraph.core.tools.base import Tool, tool
from agiraph.core.tools.files.file_labels import has_written

SHOWN_CHARACTERS = 160
"""Characters that the prompt shows of a specialist's description."""
TASK_CHARACTERS, PART_CHARACTERS = 100_000, 10_000
LONGEST_WAIT_MS = 7 * 24 * 3600 * 1000

_NODE_ID = re.compile(r"node_\w+")

InBackground = Annotated[bool, Field(description="Get the id now, the result later by task_output")]

Public = Annotated[
    bool, Field(description="It reads the web freely; put nothing private into the brief")
]

WORKER = "A teammate, a specialist, new:provider/model or cli:command"
"""How models are told whom they may give a task to."""
AS_AGENT = "As agent of assign_task"
"""Of other tools' arguments that take what `WORKER` says."""
EffortArgument = Annotated[Effort | None, Field(description="How thorough it should be")]

Task = Annotated[
    str,
    Field(
        min_length=1,
        max_length=TASK_CHARACTERS,
        validation_alias=AliasChoices("task", "objective"),
        description="What to achieve, and what it is for",
    ),
    BeforeValidator(briefs.read_task),
]
_Text = BeforeValidator(briefs.read_text)
Context = Annotated[
    str, Field(max_length=TASK_CHARACTERS, description="What is known already"), _Text
]
Inputs = Annotated[
    list[str] | None,
    Field(max_length=50, description="What to read: ids of ended tasks, their files, addresses"),
    BeforeValidator(briefs.read_list),
]
Output = Annotated[
    str, Field(max_length=PART_CHARACTERS, description="What to return, in which form"), _Text
]
Boundaries = Annotated[
    str, Field(max_length=PART_CHARACTERS, description="What to leave alone or others do"), _Text
]


def hirer(ctx: RunContext) -> Hirer:
    """Return this run's agent as a hirer, with the specialists and models that it may hire."""
    label = CLEAN if ctx.is_confirmed else ctx.label
    return Hirer(ctx.agent, ctx.lease.thread_id, ctx.specialists, ctx.check_model, label)


async def hire_way_out(ctx: RunContext, call: ToolCall) -> WayOut | None:
    """Return the way out of a call whose address may hire an agent with more tools than the caller
    has. A program needs no approval here: it is checked when it is run."""
    given = call.arguments
    address = str(given.get("agent") or given.get("assigned_to") or given.get("worker_id") or "")
    wanted = _tools_at(ctx, address.strip().lower())
    return None if wanted is None else more_tools(ctx, address, wanted)


def more_tools(ctx: RunContext, target: str, wanted: Collection[str]) -> WayOut | None:
    """Return the way out of hiring an agent with these tools (none: all), if it would have more
    tools than the hiring agent; else None."""
    granted = {name for name, tool in ctx.known_tools.items() if tool.always_granted}
    own = set(ctx.agent.tools)
    if not own or (wanted and not set(wanted) - own - granted):
        return None
    why = "the newcomer would have more tools than I have"
    return WayOut(sink=Sink.MORE_TOOLS, target=target, why=why)


def _tools_at(ctx: RunContext, address: str) -> Collection[str] | None:
    """Return the tools of the agent that this address would hire (empty: all tools); None if the
    address hires no model."""
    kind, colon, rest = address.partition(":")
    if colon and kind == "cli":
        return None
    name = rest.partition(":")[0].strip() if colon and kind == "new" else address
    if (specialist := ctx.specialists.get(name)) is not None:
        return specialist.tools
    return () if colon and kind == "new" else None


@value
class TaskForWorker:
    """The arguments of `assign_task`."""

    agent: Annotated[str, Field(description=WORKER)]
    task: Task
    description: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            validation_alias=AliasChoices("description", "title"),
            description="Title, 5-10 words",
        ),
    ]
    context: Context = ""
    inputs: Inputs = None
    output: Output = ""
    boundaries: Boundaries = ""
    effort: EffortArgument = None
    run_in_background: InBackground = False
    resume: Annotated[str | None, Field(description="The id of an earlier task")] = None
    public: Public = False


@tool(
    effect="transaction",
    delegates=True,
    way_out=hire_way_out,
    in_sight=frozenset({"coordinator"}),
    rare=frozenset({"boundaries", "effort", "public"}),
    basic_for=frozenset({"coordinator"}),
)
def assign_task(tx: Tx, ctx: RunContext, given: TaskForWorker) -> Answer:
    """Give a task to a worker and get its result. They see only what you write here. Several calls
    in one reply run side by side. You wait at no cost, unless run_in_background. resume continues
    an ended task. Example: {"agent": "researcher", "description": "Pump
    prices", "task": "Find what A and B cost, for a report", "output": "`prices.md`, with sources"}
    """
    if given.public:
        refuse_private(ctx, given.resume)
    readable = tuple(_readable(tx, ctx, each) for each in given.inputs or () if each.strip())
    brief = Brief(
        objective=given.task, context=given.context, inputs=readable, output=given.output,
        boundaries=given.boundaries, effort=given.effort,
    )  # fmt: skip
    refuse_after_failures(tx, ctx)
    earlier = None if given.resume is None else _find_earlier(tx, ctx, given.resume)
    worker = (
        roster.resolve(tx, hirer(ctx), given.agent)
        if earlier is None
        else _same_worker(tx, ctx, earlier, given.agent)
    )
    if earlier is None:
        # Its description is a label that models word anew each time, so it does not count.
        refuse_repeats(tx, ctx, brief.text, "", worker, objective=given.task)
    node = planning.create(
        tx,
        team_id=ctx.team.id,
        task=brief.text,
        title=given.description,
        source="delegation",
        creator_id=ctx.agent.id,
        assignee_id=worker.id,
        parent_id=ctx.node.id,
        budget=budgets.share(tx, ctx.node),
        effort=given.effort,
        kind=PUBLIC_TASK if given.public else TASK,
    )
    roster.set_purpose(tx, worker, node.id)
    if earlier is not None:
        giver = planning.name_of(tx, node.creator_id)
        leases.continue_thread(tx, earlier, node, giver=giver)
    if given.run_in_background:
        return Done(
            f"{worker.name} works on it in the background as {node.id}. "
            f'Fetch the result with task_output("{node.id}").'
        )
    return Pending(WaitingOn("node", node.id), f"{worker.name}: {given.description}")


def refuse_private(ctx: RunContext, resume: str | None) -> None:
    """Raise `Refused` if this thread may not open a public one.

    The author of untrusted text in a labelled thread would choose what the public one is told.
    """
    if resume is not None:
        raise Refused("A public task begins anew: leave out resume, or leave out public.")
    if ctx.label:
        raise Refused(
            f"Not public: this thread holds words from {ctx.describe(ctx.label)}, and they could "
            "make it write what only the team knows into the task. Leave out public, and the task "
            "is done under the same rules as yours; read_links(url) sends a public reader to a "
            "page that you have read."
        )


def refuse_repeats(
    tx: Tx, ctx: RunContext, task: str, title: str, worker: Agent | None, *, objective: str = ""
) -> None:
    """Raise `Refused` for a task that is this node's own, was given before, goes on with another
    one, or is only handed on. `objective` is the part of the task that says what to achieve."""
    goal = ctx.team.goal if ctx.node.is_goal else ""
    to_program = worker is not None and not worker.has_model
    briefs.check_repeats(
        tx,
        ctx.node,
        task,
        title=title,
        goal=goal,
        to_program=to_program,
        objective=objective,
    )
    if not to_program:
        reply = ctx.transcript.last_reply
        given = [c for c in reply.calls if c.name in _GIVING] if reply is not None else []
        briefs.check_relay(tx, ctx.node, is_single=len(given) == 1, has_made=_has_made(ctx))


def refuse_after_failures(tx: Tx, ctx: RunContext) -> None:
    """Raise `Refused` if too many tasks of the goal have failed since the work was last begun."""
    again = (t.at for t in reversed(ctx.transcript.turns) if t.note == AGAIN)
    briefs.check_failures(tx, ctx.node, since=next(again, None))


def _has_made(ctx: RunContext) -> bool:
    """Whether a call of this node has done more than to read, to look or to give work away."""
    for call, answer in acceptance.answered(ctx):
        known = acceptance.properties(ctx, call)
        only_looks = known.reads_file or known.looks_up or known.polls
        if known.counts_as_work and not (answer.failed or only_looks or call.name in _GIVING):
            return True
    return False


_GIVING = frozenset({"assign_task", "create_work_node"})
"""The tools that give a task to a worker."""

_FOR_ALL = frozenset(
    {Area.PUBLISHED, Area.PLAN, Area.SOUL, Area.UPLOADS, Area.GIVEN_TO_READ, Area.GIVEN_TO_CHANGE}
)
"""Areas of the team's folder that every worker may read."""


def _readable(tx: Tx, ctx: RunContext, given: str) -> str:
    """Return an input as its worker can read it; refuse a file that only its giver can read.

    What is not a file of the team, such as an address or words, is left as it is.
    """
    given = given.strip()
    if _NODE_ID.fullmatch(given):
        node = nodes.find(tx, ctx.team.id, given)
        if not node.status.is_final:
            raise Refused(
                f"inputs: {node.id} is {node.status}, and its files are not published yet. Wait "
                "for it with task_output, or use create_work_node with depends_on."
            )
        return f"nodes/{node.id}/published"
    try:
        spot = ctx.scope.locate(given)
    except OutOfScope:
        return given
    is_file = spot.area is not Area.OWN_SCRATCH or given.startswith("scratch/")
    if spot.area in _FOR_ALL or not (is_file or has_written(ctx, spot)):
        return given
    raise Refused(
        f"inputs: a worker cannot read {given[:200]!r}: that is yours alone. Put what it needs of "
        "it into context. Of other tasks it can read nodes/<id>/published/…."
    )


def _find_earlier(tx: Tx, ctx: RunContext, identity: str) -> WorkNode:
    """Return the ended task with this id; an agent's name means the agent's last task."""
    try:
        node = nodes.find(tx, ctx.team.id, identity.strip())
    except NotFound as unknown:
        agent = teams.find_agent(tx, ctx.team.id, identity)
        last = nodes.last_of(tx, agent.id) if agent else None
        if last is None:
            raise Refused(f"{unknown} resume takes the id that assign_task gave.") from unknown
        node = last
    if not node.status.is_final:
        raise Refused(f"{node.id} is still {node.status}; send_message reaches its worker.")
    if node.thread_id is None:
        raise Refused(f"Nobody ever began {node.id}; create a new task, without resume.")
    return node


def _same_worker(tx: Tx, ctx: RunContext, earlier: WorkNode, address: str) -> Agent:
    """Return the worker of the earlier task, back on the team; refuse another's name."""
    assert earlier.assignee_id is not None
    worker = teams.AGENTS.get(tx, earlier.assignee_id)
    if worker.id == ctx.agent.id:
        raise Refused("That work was your own; you remember it.")
    # A model that names somebody else has mixed up two tasks; to go on silently would hide it.
    if address.strip().lower() not in (worker.name.lower(), worker.role.lower(), worker.id):
        raise Refused(
            f"{earlier.id} was done by {worker.name}; to resume it, give agent={worker.name!r}."
        )
    return roster.reinstate(tx, worker)


@tool(
    effect="transaction",
    polls=True,
    in_sight=ON_DEMAND,
    basic_for=frozenset({"coordinator"}),
)
def task_output(
    tx: Tx,
    ctx: RunContext,
    id: Annotated[str, Field(description="The task's id")],
    blocking: bool = False,
    timeout_ms: Annotated[
        int | None, Field(ge=1, le=LONGEST_WAIT_MS, description="How long to wait at most")
    ] = None,
) -> Answer:
    """Look at a task that was given away. With blocking=true it waits for the result. Waiting is
    free; a second look that finds nothing new waits, too.
    """
    # Locked for a blocking call: a node that ended between the read and the wait would wake
    # nobody.
    node = NODES.get(tx, nodes.find(tx, ctx.team.id, id).id, lock=blocking)
    worker = "nobody yet" if node.assignee_id is None else planning.name_of(tx, node.assignee_id)
    if node.status.is_final:
        text = node.result or f"(no result: {node.stop_reason})"
        done = node.status is NodeStatus.COMPLETED
        label, thread = labels.of_nodes(tx, [node.id]), ctx.lease.thread_id
        said = texts.completion(node, worker=worker, text=text, thread=thread, label=label)
        unread = messages.unread_endings(tx, ctx.agent.id, node.id)
        waiting.mark_told(tx, ctx.team.id, unread)  # else the result would come a second time
        return Done(said, failed=not done, label=label, is_fenced=True)
    state = _state(node, worker)
    if not blocking:
        return Done(state, label=labels.of_nodes(tx, [node.id]))
    if node.id == ctx.node.id:
        raise Refused("That is your own work; nobody else will end it.")
    unfinished.refuse_cycle(tx, ctx.lease, node)
    if node.status is NodeStatus.PENDING and planning.is_ready(tx, node):
        # Somebody must start the node now: the call would wait for work that nobody starts.
        planning.assign_ready(tx, node)
    seconds = None if timeout_ms is None else timeout_ms / 1000
    timed_out = f"The time is over. {state} It goes on; ask again later."
    return Pending(
        WaitingOn("node", node.id),
        f"the result of {texts.title_of(node)!r} ({node.id})",
        seconds,
        timed_out,
    )


def _state(node: WorkNode, worker: str) -> str:
    text = f"{texts.title_of(node)} ({node.id}) is {node.status}, with {worker}."
    if node.waiting_reason:
        text += f" It waits: {one_line(node.waiting_reason)}."
    if node.checkpoint:
        text += f" Last checkpoint: {one_line(node.checkpoint)}"
    return text


def described(assign: Tool, specialists: Mapping[str, Specialist]) -> Tool:
    """Return `assign_task` with all that the specialists' files say of them in its description."""
    lines = [assign.description, "Specialists:"]
    for name, specialist in specialists.items():
        lines.append(f"- {name}: {specialist.description}")
        if specialist.tools:
            lines.append(f"  Tools: {', '.join(specialist.tools)}")
        if specialist.when_not_to_use:
            lines.append(f"  Not when: {specialist.when_not_to_use}")
        lines += [f"  Example: {example}" for example in specialist.examples]
    return replace(assign, description="\n".join(lines))


def specialist_lines(specialists: Mapping[str, Specialist]) -> list[str]:
    """Return the specialists that can be given a task, a short line each."""
    return [
        f"- {name}: {texts.truncate(one_line(specialist.description), SHOWN_CHARACTERS)}"
        for name, specialist in specialists.items()
    ]
