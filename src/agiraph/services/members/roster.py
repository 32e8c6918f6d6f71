"""People: hiring within limits, leaving, and who on a team does what."""

import re
from datetime import timedelta
from typing import NamedTuple

from agiraph.domain.agents import Agent, AgentKind, Doing
from agiraph.domain.chat import Thread
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.ids import HUMAN, SYSTEM, AgentId, NodeId, TeamId, ThreadId, new_id
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.store import nodes, teams, threads, waits
from agiraph.store.teams import AGENTS, TEAMS
from agiraph.store.tx import Tx

EVERYONE = "everyone"
RESERVED = frozenset({HUMAN, SYSTEM, EVERYONE, "new", "cli"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


def hire(
    tx: Tx,
    team_id: TeamId,
    *,
    name: str,
    role: str,
    model: str,
    kind: AgentKind = "llm",
    command: str | None = None,
    tools: tuple[str, ...] = (),
    identity: str = "",
    notes: str = "",
    persistent: bool = True,
    created_for: NodeId | None = None,
    parent_thread_id: ThreadId | None = None,
) -> Agent:
    """A new member, if the team may still grow."""
    _check_name(name)
    make_room(tx, team_id)
    if name.lower() in teams.names(tx, team_id):
        raise Refused(f"There is already a {name!r} on this team; choose another name.")
    agent = Agent(
        id=AgentId(new_id("agent")),
        team_id=team_id,
        name=name,
        role=role,
        model=model,
        created_at=tx.now,
        kind=kind,
        command=command,
        tools=tools,
        identity=identity,
        notes=notes,
        persistent=persistent,
        created_for=created_for,
        parent_thread_id=parent_thread_id,
    )
    AGENTS.insert(tx, agent)
    tx.emit(
        team_id,
        "agent.hired",
        agent_id=agent.id,
        name=name,
        role=role,
        model=model,
        kind=kind,
        created_for=created_for,
    )
    return agent


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name.lower() in RESERVED:
        raise Refused(
            f"{name!r} cannot be a name: use up to 40 letters, digits, '-', '_' and '.', beginning "
            f"with a letter or digit, and none of {', '.join(sorted(RESERVED))}."
        )


def make_room(tx: Tx, team_id: TeamId) -> None:
    """Refuse to let a team grow beyond its limits; its row is held, so that nobody else does."""
    limits = TEAMS.get(tx, team_id, lock=True).limits
    if teams.count(tx, team_id) >= limits.agents:
        raise Refused(
            f"The team has {limits.agents} members and may have no more. Give the work to one of "
            "them, or wait until somebody who was hired for one task is done."
        )
    if teams.hired_since(tx, team_id, tx.now - timedelta(minutes=1)) >= limits.hires_per_minute:
        raise Refused(
            f"{limits.hires_per_minute} were hired within a minute, which is the limit. Use the "
            "teammates you have, or hire later."
        )


def free_name(tx: Tx, team_id: TeamId, stem: str) -> str:
    """A name nobody on the team ever had: the stem, or the stem with a number.

    The team's row is held, so that nobody else takes it meanwhile.
    """
    TEAMS.get(tx, team_id, lock=True)
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", stem).strip("-._")[:32] or "worker"
    taken = teams.names(tx, team_id) | RESERVED
    if stem.lower() not in taken:
        return stem
    return next(n for i in range(2, 10_000) if (n := f"{stem}-{i}").lower() not in taken)


def leave(tx: Tx, agent: Agent) -> bool:
    """Let somebody go who was hired for one task, when nothing is left to do for them."""
    if agent.persistent or agent.retired_at is not None or nodes.is_needed(tx, agent.id):
        return False
    AGENTS.update(tx, agent.id, retired_at=tx.now)
    tx.emit(agent.team_id, "agent.left", agent_id=agent.id, name=agent.name)
    return True


def return_to_work(tx: Tx, agent: Agent) -> Agent:
    """Bring back somebody who has left; they count as a member again."""
    if agent.retired_at is None:
        return agent
    make_room(tx, agent.team_id)
    AGENTS.update(tx, agent.id, retired_at=None)
    return AGENTS.get(tx, agent.id)


def promote(tx: Tx, agent: Agent) -> Agent:
    """Somebody hired for one task stays for good."""
    if not agent.persistent:
        agent = return_to_work(tx, agent)
        AGENTS.update(tx, agent.id, persistent=True)
        tx.emit(agent.team_id, "agent.promoted", agent_id=agent.id, name=agent.name)
    return AGENTS.get(tx, agent.id)


class Member(NamedTuple):
    """An agent, what it is at, and the thread it is in."""

    agent: Agent
    doing: Doing
    node: WorkNode | None
    thread: Thread | None


def members(tx: Tx, team_id: TeamId, *, all: bool = False) -> list[Member]:
    """Everyone on a team, coordinator first; with those who have left, if all are wanted."""
    everyone = teams.members(tx, team_id)
    if all:
        everyone += teams.retired(tx, team_id)
    return [member(tx, agent) for agent in everyone]


def member(tx: Tx, agent: Agent) -> Member:
    current = nodes.open_of(tx, agent.id)
    node = current[0] if current else nodes.last_of(tx, agent.id)
    thread = None if node is None else threads.of_node(tx, node.id)
    return Member(agent, _doing(tx, agent, current), node, thread)


def of_thread(tx: Tx, thread_id: str) -> Member:
    """Whose thread this is, with the node it was last worked on for."""
    thread = threads.THREADS.find(tx, thread_id)
    if thread is None:
        raise NotFound("thread", thread_id, known="`agiraph agents` lists agents and threads.")
    node = None if thread.node_id is None else nodes.NODES.get(tx, thread.node_id)
    return member(tx, AGENTS.get(tx, thread.agent_id))._replace(node=node, thread=thread)


def _doing(tx: Tx, agent: Agent, current: list[WorkNode]) -> Doing:
    if agent.retired_at is not None:
        return "left"
    if not current:
        return "idle"
    match current[0].status:
        case NodeStatus.RUNNING:
            return "working"
        case NodeStatus.WAITING:
            asked = [w.waiting_on for n in current for w in waits.of_node(tx, n.id)]
            person = any(on.startswith(("answer:", "approval:")) for on in asked)
            return "waiting_for_you" if person else "waiting"
        case _:
            return "queued"
