"""Staffing tools: hire workers, give them work, and keep them on the team."""

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field

from agiraph.core.domain.agents import Agent, Specialist
from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.provenance.labels import CLEAN
from agiraph.core.domain.provenance.sinks import Sink, WayOut
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.tools import ON_DEMAND
from agiraph.core.domain.value import value
from agiraph.core.domain.work import Extension, NodeStatus, WorkNode
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import budgets, planning, texts
from agiraph.core.services.board.feature_verbs import find_verbs
from agiraph.core.services.lifecycle import continuations
from agiraph.core.services.members import roster
from agiraph.core.store import dependencies, nodes, spend, teams
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import tool
from agiraph.core.tools.delegation import AS_AGENT, EffortArgument, hire_way_out, hirer, more_tools

BRIEFING = "knowledge/briefing.md"
"""Where a newcomer finds what it was told when a thread with untrusted text hired it."""


def check_tools(names: Collection[str], known: Collection[str]) -> None:
    """Raise `Refused`, with all names that are known, if one of these is not the name of a tool."""
    if unknown := sorted(set(names) - set(known)):
        there = ", ".join(sorted(known))
        raise Refused(f"There are no tools called {', '.join(unknown)}. There are: {there}.")


async def _hire_way_out(ctx: RunContext, call: ToolCall) -> WayOut | None:
    given = call.arguments
    name = str(given.get("name", ""))
    if given.get("type") == "autonomous" or given.get("agent_command"):
        command = str(given.get("agent_command") or "")
        return WayOut(sink=Sink.PROGRAM, target=command, why="a program would be run")
    return more_tools(ctx, name, given.get("tools") or ())


async def _promote_way_out(ctx: RunContext, call: ToolCall) -> WayOut:
    target = str(call.arguments.get("worker", ""))
    return WayOut(sink=Sink.KEEP_WORKER, target=target, why="it has effect after this work is done")


@value
class NewWorker:
    """The arguments of `spawn_worker`."""

    name: str
    type: Literal["harnessed", "autonomous"] = "harnessed"
    model: Annotated[str | None, Field(description="provider/model; else yours")] = None
    agent_command: Annotated[
        str | None,
        Field(
            description="For an autonomous one: a program that reads _task.md, writes _result.md"
        ),
    ] = None
    tools: Annotated[list[str] | None, Field(description="Only these")] = None
    memory: Annotated[dict[str, str] | None, Field(description="What they know from the start")] = (
        None
    )
    effort: EffortArgument = None
    role: Annotated[str, Field(description="Such as a specialist's name")] = "worker"
    identity: Annotated[
        str, Field(max_length=20_000, description="Who they are and how they work")
    ] = ""


@tool(
    effect="transaction",
    roles=frozenset({"coordinator"}),
    leads=True,
    way_out=_hire_way_out,
    in_sight=frozenset({"coordinator"}),
    rare=frozenset({"type", "agent_command", "tools", "memory", "effort"}),
)
def spawn_worker(tx: Tx, ctx: RunContext, given: NewWorker) -> Answer:
    """Hire a worker who stays for several tasks; for one, assign_task is enough."""
    by = hirer(ctx)
    if given.type == "autonomous" and not given.agent_command:
        raise Refused("An autonomous worker needs agent_command: the command to run.")
    if given.type == "harnessed" and given.agent_command:
        raise Refused('agent_command is for type="autonomous"; leave it out for a model.')
    if given.model is not None:
        roster.check_model(by, given.model)
    check_tools(given.tools or (), ctx.known_tools)
    role, identity = _checked_role(given.role), given.identity
    specialist = ctx.specialists.get(role)
    if specialist is not None and given.agent_command:
        raise Refused(f"A program cannot be the specialist {role!r}; give it another role.")
    told = dict(given.memory or {})
    if identity and ctx.label:  # only what is unverified may come from such a thread
        told, identity = {"Who you are": identity} | told, ""
    notes = "\n\n".join(f"## {key}\n\n{value}" for key, value in told.items())
    agent = roster.hire(
        tx,
        ctx.team.id,
        name=given.name,
        role=role,
        model="cli" if given.type == "autonomous" else given.model or ctx.agent.model,
        kind="cli" if given.type == "autonomous" else "llm",
        command=given.agent_command,
        tools=_tools_for_newcomer(ctx, given.tools, specialist),
        identity="\n\n".join(filter(None, [specialist.prompt if specialist else "", identity])),
        notes="" if ctx.label else notes,
        effort=given.effort,
        parent_thread_id=ctx.lease.thread_id,
        label=by.label if given.agent_command else CLEAN,
    )
    # The thread's label decides: a rule that allows the call does not make its words clean.
    said = _keep_notes(tx, ctx, agent, notes) if notes and ctx.label else ""
    return Done(f"Hired {agent.name} ({agent.id}, {agent.model}).{said}")


def _checked_role(role: str) -> str:
    """Return the role of a newcomer, who works as a worker or as the specialist of that name."""
    role = role.strip().lower() or "worker"
    if role == "coordinator":
        raise Refused("The team has one coordinator, you. Give a worker another role.")
    roster.check_name(role)
    return role


def _tools_for_newcomer(
    ctx: RunContext, names: list[str] | None, specialist: Specialist | None
) -> tuple[str, ...]:
    """Return the tools that a newcomer is limited to: those that are given, without what is not a
    worker's, else those of the specialist whose role it has. A person chose the latter."""
    if not names:
        return () if specialist is None else specialist.tools
    known = {name: ctx.known_tools[name] for name in names}
    return tuple(
        name
        for name, tool in known.items()
        if "worker" in tool.roles or not (tool.leads or tool.outside is not None)
    )


def _keep_notes(tx: Tx, ctx: RunContext, agent: Agent, notes: str) -> str:
    """Keep a newcomer's notes as unverified ones, and return what the hirer is told of it."""
    kept = [
        verbs.set_aside(tx, ctx.lease, agent, path=BRIEFING, content=notes, label=ctx.label)
        for verbs in find_verbs()
    ]
    become = "count as unverified" if any(kept) else "are not kept"
    return f" Their notes {become}; put what a task needs into the task."


@tool(
    effect="transaction",
    roles=frozenset({"coordinator"}),
    leads=True,
    way_out=hire_way_out,
    in_sight=frozenset({"coordinator"}),
)
def assign_worker(
    tx: Tx,
    ctx: RunContext,
    node_id: str,
    worker_id: Annotated[str, Field(description=AS_AGENT)],
) -> Answer:
    """Give a task of the board to a worker, or to another one than before."""
    node = nodes.find(tx, ctx.team.id, node_id)
    worker = roster.resolve(tx, hirer(ctx), worker_id)
    roster.set_purpose(tx, worker, node.id)
    node = planning.reassign(tx, node, worker)
    if node.status is NodeStatus.PENDING:
        return Done(f"{worker.name} gets {node.id} as soon as what it needs is done.")
    return Done(f"{worker.name} has {node.id} in the queue.")


@tool(
    effect="transaction",
    roles=frozenset({"coordinator"}),
    way_out=_promote_way_out,
    in_sight=ON_DEMAND,
)
def promote(tx: Tx, ctx: RunContext, worker: str) -> Answer:
    """Keep a worker on the team who was hired for one task only."""
    agent = teams.by_name(tx, ctx.team.id, worker, with_retired=True)
    return Done(f"{roster.promote(tx, agent).name} stays on the team.")


MOST_TURNS = 200
"""Turns that a task can be given at once: its tokens and dollars are bounded by the envelope of
the node that extends it, turns are not."""


@tool(
    effect="transaction",
    roles=frozenset({"coordinator"}),
    in_sight=ON_DEMAND,
)
def extend_task(
    tx: Tx,
    ctx: RunContext,
    id: Annotated[str, Field(description="The task's id, as assign_task or check_board gave it")],
    turns: Annotated[int, Field(ge=0, le=MOST_TURNS)] = 0,
    tokens: Annotated[int, Field(ge=0, le=10**12)] = 0,
    usd: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] = 0.0,
    seconds: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] = 0.0,
) -> Answer:
    """Raise the limits of a task that you gave away, by these amounts. For a task that a limit
    ended as partial or failed although it was on the right way, or that is about to reach one.
    It goes on with all it knows and reports its end again. Give more of the limit that its
    status names. A task that got nowhere needs another worker or other instructions, not more
    room.
    """
    node = nodes.find(tx, ctx.team.id, id)
    if node.id == ctx.node.id or dependencies.is_above(tx, node, ctx.node):
        raise Refused("Only the giver of your work can raise your own limits.")
    if node.creator_id != ctx.agent.id and not dependencies.is_above(tx, ctx.node, node):
        raise Refused(f"{node.id} is not part of your work; you may extend what you gave away.")
    more = Extension(turns=turns, tokens=tokens, usd=usd, seconds=seconds)
    _check_within_own_limits(tx, ctx, more)
    before = node.status
    node = continuations.extend(tx, node.id, more, by=ctx.agent.id)
    goes_on = "It is back in its queue" if before.is_final else f"It stays {before}"
    return Done(f"Extended {texts.title_of(node)} ({node.id}). {goes_on}. {_limits(node)}")


def _check_within_own_limits(tx: Tx, ctx: RunContext, more: Extension) -> None:
    """Refuse more than the budget of the node that extends has left."""
    for envelope in budgets.envelopes(tx, ctx.node):
        used = spend.total(tx, envelope.node_id)
        if envelope.tokens is not None and more.tokens > envelope.tokens - used.tokens:
            left = max(envelope.tokens - used.tokens, 0)
            raise Refused(f"You have {left:,} tokens left yourself; give less than that.")
        if envelope.usd is not None and more.usd > envelope.usd - used.usd:
            left = max(envelope.usd - used.usd, 0.0)
            raise Refused(f"You have ${left:.2f} left yourself; give less than that.")
    if (left_s := ctx.seconds_left) is not None and more.seconds > left_s:
        raise Refused(f"You have {left_s:.0f} seconds left yourself; give less than that.")


def _limits(node: WorkNode) -> str:
    budget = node.budget
    limits = [
        counted(budget.turns, "turn"),
        "" if budget.tokens is None else f"{budget.tokens:,} tokens",
        "" if budget.usd is None else f"${budget.usd:.2f}",
        "" if budget.seconds is None else f"{budget.seconds:,.0f} seconds",
    ]
    return f"Its limits are now {', '.join(limit for limit in limits if limit)} in all."
