"""Run seeding: a team whose run is told by many events, inserted directly."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agiraph.core.domain.agents import Limits
from agiraph.core.domain.events import TeamEvent
from agiraph.core.domain.events.mail import MessageSent, QuestionAnswered, QuestionAsked
from agiraph.core.domain.events.work import (
    CallLost,
    CallPreview,
    ModelFailed,
    NodeAssigned,
    NodeChanged,
    NodeCompleted,
    NodeFailed,
    NodeStarted,
    NodeWaiting,
    ToolResult,
    TurnAdded,
)
from agiraph.core.domain.ids import AgentId, NodeId, TeamId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.services.lifecycle import teams
from agiraph.core.services.members import roster
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx
from agiraph.testing import World
from tests.web_ui.seeding import MODEL, add_node

TOOLS = ("read_file", "web_search", "shell", "write_file")


@dataclass(frozen=True, slots=True)
class Run:
    """A team with a long run."""

    team: TeamId
    agents: tuple[AgentId, ...]
    nodes: tuple[NodeId, ...]


async def run_team(path: Path, *, pages: int = 24, rounds: int = 3, workers: int = 6) -> Run:
    """Create a paused team in which workers have done so many pages, with so many rounds of model
    and tool for each; one page waited for a person, one for a provider, and one was interrupted."""
    async with World(path, easy_endings=True) as world:
        founded = await world.found(
            "Translate the handbook", name="Run", model=MODEL, start=False,
            limits=Limits(agents=32, nodes=5000),
        )  # fmt: skip
        made = await world.store.write(_plan, founded, pages, workers)
        for first in range(0, pages, workers):
            numbers = range(first, min(first + workers, pages))
            await _play(world, made, numbers, rounds)
        await world.store.write(_end_goal, made)
    return made


def _plan(tx: Tx, founded: teams.NewTeam, pages: int, workers: int) -> Run:
    team = founded.team.id
    TEAMS.update(tx, team, status="paused")
    hired = [
        roster.hire(tx, team, name=f"translator-{n}", role="worker", model=MODEL)
        for n in range(workers)
    ]
    lead = founded.coordinator.id
    goal = add_node(tx, team, 0, assignee=lead, status=NodeStatus.RUNNING, title="Translate all")
    tx.emit(team, NodeStarted(node_id=goal, agent_id=lead, attempt=1))
    nodes = [
        add_node(tx, team, n, parent=goal, title=f"Translate page {n + 1}") for n in range(pages)
    ]
    on = [f"node:{node}" for node in nodes]
    tx.emit(team, NodeWaiting(node_id=goal, on=on[:3], reason="waiting for the pages"))
    return Run(team, (lead, *(agent.id for agent in hired)), (goal, *nodes))


async def _play(world: World, run: Run, numbers: range, rounds: int) -> None:
    """Let each worker translate one page, all at the same time."""
    work = [(run.nodes[n + 1], run.agents[1 + n % (len(run.agents) - 1)], n) for n in numbers]

    async def tell(told: Iterable[TeamEvent], seconds: float) -> None:
        found = list(told)
        await world.store.write(_emit, run.team, found)
        world.clock.advance(seconds=seconds)

    await tell((NodeAssigned(node_id=n, agent_id=a, agent="worker") for n, a, _ in work), 1)
    await tell((NodeStarted(node_id=n, agent_id=a, attempt=1) for n, a, _ in work), 4)
    for part in range(rounds):
        await tell((_turn(n, a, i, part) for n, a, i in work), 2)
        await tell((_result(n, i, part) for n, _, i in work), 5)
    for node, agent, n in work:
        await _incident(tell, node, agent, n)
    await tell((_said(n, a, i) for n, a, i in work), 1)
    await world.store.write(_finish, run.team, work)
    world.clock.advance(seconds=3)


def _emit(tx: Tx, team: TeamId, told: list[TeamEvent]) -> None:
    for event in told:
        tx.emit(team, event)


async def _incident(tell, node: NodeId, agent: AgentId, n: int) -> None:  # type: ignore[no-untyped-def]
    """Let pages 2, 3 and 4 wait for a person, wait for a provider, and be interrupted."""
    if n == 1:
        text = "Is *Geländer* a railing or a banister?"
        asked = QuestionAsked(
            message_id="msg_page2", kind="question", sender=agent, recipient=OWNER, text=text,
            node_id=node,
        )  # fmt: skip
        on = ["answer:msg_page2", "time:timer_1"]
        await tell([asked, NodeWaiting(node_id=node, on=on, reason="waiting for your answer")], 90)
        given = QuestionAnswered(
            message_id="msg_page2", node_id=node, text="A railing", decision=None
        )
        await tell([given, NodeAssigned(node_id=node, agent_id=agent)], 1)
        await tell([NodeStarted(node_id=node, agent_id=agent, attempt=1)], 3)
    elif n == 2:
        why = "the model cannot be reached: 503. Trying again by itself."
        failed = ModelFailed(node_id=node, reason="503 Service Unavailable")
        await tell([failed, NodeWaiting(node_id=node, on=["time:timer_2"], reason=why)], 60)
        await tell([NodeAssigned(node_id=node, agent_id=agent)], 1)
        await tell([NodeStarted(node_id=node, agent_id=agent, attempt=1)], 3)
    elif n == 3:
        lost = CallLost(node_id=node, thread_id="t_1", tokens=900, usd=0.01)
        await tell([NodeStarted(node_id=node, agent_id=agent, attempt=2), lost], 3)


def _turn(node: NodeId, agent: AgentId, n: int, part: int) -> TurnAdded:
    call = CallPreview(
        id=f"call_{n}_{part}", name=TOOLS[(n + part) % len(TOOLS)], arguments={"page": n}
    )
    return TurnAdded(
        node_id=node, thread_id="t_1", agent_id=agent, seq=part, text=f"Page {n}, part {part}.",
        calls=[call], tokens=900 + n, usd=0.004,
    )  # fmt: skip


def _result(node: NodeId, n: int, part: int) -> ToolResult:
    return ToolResult(
        node_id=node, call_id=f"call_{n}_{part}", tool=TOOLS[(n + part) % len(TOOLS)],
        failed=(n + part) % 11 == 5, text=f"Row {part} of page {n}: done.",
    )  # fmt: skip


def _said(node: NodeId, agent: AgentId, n: int) -> MessageSent:
    return MessageSent(
        message_id=f"msg_{n}", kind="message", sender=agent, recipient=OWNER,
        text=f"Page {n + 1} is translated.", node_id=node,
    )  # fmt: skip


def _finish(tx: Tx, team: TeamId, work: list[tuple[NodeId, AgentId, int]]) -> None:
    for node, agent, n in work:
        failed = n == 5
        status = NodeStatus.FAILED if failed else NodeStatus.COMPLETED
        result = f"Page {n + 1} is translated."
        NODES.update(
            tx, node, status=status, assignee_id=agent, started_at=tx.now, ended_at=tx.now,
            attempt=1, result=None if failed else result,
        )  # fmt: skip
        if failed:
            reason = StopReason.LOOPING
            tx.emit(team, NodeFailed(node_id=node, reason=reason, result="It repeated itself."))
        else:
            tx.emit(team, NodeCompleted(node_id=node, reason=None, result=result))


def _end_goal(tx: Tx, run: Run) -> None:
    goal, lead = run.nodes[0], run.agents[0]
    tx.emit(run.team, NodeAssigned(node_id=goal, agent_id=lead))
    tx.emit(run.team, NodeChanged(node_id=goal, changed={"waiting_reason": None}))
    tx.emit(run.team, NodeStarted(node_id=goal, agent_id=lead, attempt=1))
    tx.emit(run.team, NodeCompleted(node_id=goal, reason=None, result="The book is translated."))
    NODES.update(tx, goal, status=NodeStatus.COMPLETED, ended_at=tx.now, attempt=1)
