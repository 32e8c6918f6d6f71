"""Roster: add agents to a team within its limits, retire them, and list what each is doing."""

import re
from datetime import timedelta
from typing import NamedTuple, TypedDict, Unpack

from agiraph.core.domain.agents import Agent, AgentKind, Doing, Team
from agiraph.core.domain.chat import Thread
from agiraph.core.domain.effort import Effort
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.events.team import AgentHired, AgentLeft, AgentPromoted, AgentReturned
from agiraph.core.domain.ids import SYSTEM, AgentId, NodeId, TeamId, ThreadId, new_id
from agiraph.core.domain.persons import HUMAN_ADDRESS
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.store import nodes, teams, threads, waits
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.tx import Tx

EVERYONE = "everyone"
"""The address of all members of a team."""
RESERVED = frozenset({HUMAN_ADDRESS, SYSTEM, EVERYONE, "new", "cli"})
"""Names that no agent may have, because they mean something else in an address."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


class AgentDetails(TypedDict, total=False):
    """Fields of `Agent` that a new agent need not have."""

    kind: AgentKind
    command: str | None
    tools: tuple[str, ...]
    effort: Effort | None
    identity: str
    notes: str
    persistent: bool
    created_for: NodeId | None
    parent_thread_id: ThreadId | None
    label: Label


def hire(
    tx: Tx,
    team_id: TeamId,
    *,
    name: str,
    role: str,
    model: str,
    **details: Unpack[AgentDetails],
) -> Agent:
    """Add an agent to the team; refuse if the team is full or the name is taken."""
    check_name(name)
    check_capacity(tx, team_id)
    # Under the team's row lock, which `check_capacity` took.
    if name.lower() in teams.names(tx, team_id, begin_with=name):
        raise Refused(f"There is already a {name!r} on this team; choose another name.")
    agent = Agent(
        id=AgentId(new_id("agent")),
        team_id=team_id,
        name=name,
        role=role,
        model=model,
        created_at=tx.now,
        **details,
    )
    AGENTS.insert(tx, agent)
    tx.emit(
        team_id,
        AgentHired(
            agent_id=agent.id,
            name=name,
            role=role,
            model=model,
            kind=agent.kind,
            created_for=agent.created_for,
        ),
    )
    return agent


def check_name(name: str) -> None:
    """Raise `Refused` if an agent cannot be called so."""
    if not _NAME.fullmatch(name) or name.lower() in RESERVED:
        raise Refused(
            f"{name!r} cannot be a name: use up to 40 letters, digits, '-', '_' and '.', beginning "
            f"with a letter or digit, and none of {', '.join(sorted(RESERVED))}."
        )


def check_capacity(tx: Tx, team_id: TeamId) -> None:
    """Refuse if the team is full or hired too many agents within a minute.

    Locks the team's row, so that two transactions cannot both take the last place.
    """
    limits = TEAMS.get(tx, team_id, lock=True).limits
    if teams.count(tx, team_id) >= limits.agents:
        raise Refused(
            f"The team has {limits.agents} members and may have no more. Give the work to one of "
            "them, or wait until a member that was hired for one task is done."
        )
    if teams.hired_since(tx, team_id, tx.now - timedelta(minutes=1)) >= limits.hires_per_minute:
        raise Refused(
            f"{limits.hires_per_minute} were hired within a minute, which is the limit. Use the "
            "teammates you have, or hire later."
        )


def free_name(tx: Tx, team_id: TeamId, stem: str) -> str:
    """Return a name that no agent of the team ever had: the stem, or the stem with a number.

    Locks the team's row, so that no other transaction takes the name before the commit.
    """
    TEAMS.get(tx, team_id, lock=True)
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", stem).strip("-._")[:32] or "worker"
    # Also names of agents that have left: folders, messages and events still use them.
    taken = teams.names(tx, team_id, begin_with=stem) | RESERVED
    name, number = stem, 1
    while name.lower() in taken:
        number += 1
        name = f"{stem}-{number}"
    return name


def retire(tx: Tx, agent: Agent) -> bool:
    """Retire an agent that was hired for one task and is not needed any more; False if it stays."""
    if agent.persistent or agent.retired_at is not None or nodes.is_needed(tx, agent.id):
        return False
    AGENTS.update(tx, agent.id, retired_at=tx.now)
    tx.emit(agent.team_id, AgentLeft(agent_id=agent.id, name=agent.name))
    return True


def reinstate(tx: Tx, agent: Agent) -> Agent:
    """Return the agent as a member of the team; one that had left counts as a member again."""
    if agent.retired_at is None:
        return agent
    check_capacity(tx, agent.team_id)
    AGENTS.update(tx, agent.id, retired_at=None)
    tx.emit(agent.team_id, AgentReturned(agent_id=agent.id, name=agent.name))
    return AGENTS.get(tx, agent.id)


def promote(tx: Tx, agent: Agent) -> Agent:
    """Make an agent that was hired for one task a permanent member."""
    if not agent.persistent:
        agent = reinstate(tx, agent)
        AGENTS.update(tx, agent.id, persistent=True)
        tx.emit(agent.team_id, AgentPromoted(agent_id=agent.id, name=agent.name))
    return AGENTS.get(tx, agent.id)


class Member(NamedTuple):
    """An agent, what it is doing, and its current or last node and thread."""

    agent: Agent
    doing: Doing
    node: WorkNode | None
    thread: Thread | None


def members(tx: Tx, team_id: TeamId, *, all: bool = False) -> list[Member]:
    """Return the members of a team, coordinator first; `all` adds those that have left."""
    everyone = teams.members(tx, team_id)
    if all:
        everyone += teams.retired(tx, team_id)
    return [member(tx, agent) for agent in everyone]


def member(tx: Tx, agent: Agent) -> Member:
    """Return an agent with what it is doing now."""
    current = nodes.open_of(tx, agent.id)
    node = current[0] if current else nodes.last_of(tx, agent.id)
    thread = None if node is None else threads.of_node(tx, node.id)
    return Member(agent, _doing(tx, agent, current), node, thread)


def of_thread(tx: Tx, thread_id: str) -> Member:
    """Return the agent of a thread, with this thread and the node it was last used for."""
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
            person = any(on.is_for_person for on in asked)
            return "waiting_for_you" if person else "waiting"
        case _:
            return "queued"


def teams_by_name(tx: Tx) -> dict[str, Team]:
    """Return the teams that are not archived, each by its name, or by its id if a newer team has
    the same name."""
    open_teams = [team for team in teams.every(tx, limit=10_000) if team.status != "archived"]
    newest = {team.name: team for team in open_teams}
    return {t.name if newest[t.name] is t else t.id: t for t in open_teams}


def find_by_path(tx: Tx, path: str) -> Agent | None:
    """Return the agent of `team/agent`, or of `team` its coordinator. A team's id stands for its
    name."""
    named = teams_by_name(tx)
    named |= {team.id: team for team in named.values()}
    # A team's name may contain a slash, so the whole name is tried first, then each split.
    for at in [len(path), *(i for i in range(len(path) - 1, 0, -1) if path[i] == "/")]:
        team = named.get(path[:at])
        if team is None:
            continue
        if at == len(path):
            return teams.coordinator(tx, team.id)
        agent = teams.find_agent(tx, team.id, path[at + 1 :])
        if agent is not None and agent.retired_at is None:
            return agent
    return None
