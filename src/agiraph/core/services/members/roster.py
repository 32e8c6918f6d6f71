"""Roster: add agents to a team within its limits, retire them, and list what each is doing.

An address finds its agent, and hires it if it is not on the team yet: a teammate's name, a
specialist's name, `new:provider/model`, `new:specialist:provider/model` or `cli:command`.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import NamedTuple, TypedDict, Unpack

from agiraph.core.domain.agents import Agent, AgentKind, Doing, Specialist, Team
from agiraph.core.domain.chat import Thread
from agiraph.core.domain.errors import Misconfigured, NotFound, Refused
from agiraph.core.domain.events.team import AgentHired, AgentLeft, AgentPromoted, AgentReturned
from agiraph.core.domain.ids import SYSTEM, AgentId, NodeId, TeamId, ThreadId, new_id
from agiraph.core.domain.persons import HUMAN_ADDRESS
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.work import Effort, NodeStatus, WorkNode
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


FORMS = (
    "Write a teammate's name, a specialist's name, new:provider/model, "
    "new:specialist:provider/model or cli:command."
)


class Hirer(NamedTuple):
    """The agent that delegates work, and the specialists and models it may hire."""

    agent: Agent
    thread_id: ThreadId
    specialists: Mapping[str, Specialist]
    check_model: Callable[[str], object]
    label: Label = CLEAN
    """Of the thread that hires, unless a person has allowed the call."""


def resolve(tx: Tx, hirer: Hirer, address: str) -> Agent:
    """Return the agent at this address, hiring it if the address asks for a new one."""
    address = address.strip()
    kind, colon, rest = address.partition(":")
    if colon and kind.lower() == "new":
        return _hire_new(tx, hirer, rest)
    if colon and kind.lower() == "cli":
        return cli_agent(tx, hirer, rest)
    specialist = hirer.specialists.get(address.lower())
    try:
        agent = teams.by_name(tx, hirer.agent.team_id, address)
    except NotFound as unknown:
        if specialist is None:
            raise _unknown_address(tx, hirer, address, unknown) from unknown
        return _idle_or_new_specialist(tx, hirer, specialist, specialist.model or hirer.agent.model)
    if agent.id == hirer.agent.id:
        raise Refused("That is you. Do it yourself, or give it to somebody else.")
    # A specialist's name means the kind of agent, not the member that has the role by chance.
    if specialist is not None and agent.role == specialist.name:
        return _idle_or_new_specialist(tx, hirer, specialist, specialist.model or hirer.agent.model)
    return agent


def specialist(tx: Tx, hirer: Hirer, name: str) -> Agent:
    """Return a member hired as this specialist who has no open work; hire one if there is none."""
    found = hirer.specialists.get(name)
    if found is None:
        raise Refused(f"There is no specialist {name!r}.")
    model = found.model or hirer.agent.model
    if not hirer.agent.has_model and not found.model:  # a program has no model
        model = teams.coordinator(tx, hirer.agent.team_id).model
    return _idle_or_new_specialist(tx, hirer, found, model)


def _unknown_address(tx: Tx, hirer: Hirer, address: str, error: NotFound) -> Refused:
    if not address:
        return Refused(f"Say who is to do it. {FORMS}")
    if "/" in address:
        return Refused(f"{address!r} looks like a model: write new:{address} to hire somebody.")
    known = ", ".join(hirer.specialists)
    return Refused(f"{error} Specialists: {known}. {FORMS}")


def _hire_new(tx: Tx, hirer: Hirer, rest: str) -> Agent:
    name, colon, model = rest.partition(":")
    known = hirer.specialists.get(name.strip().lower())
    if colon and known is not None:
        return _idle_or_new_specialist(tx, hirer, known, _parse_model(hirer, model), fresh=True)
    if colon and "/" not in name:
        listed = ", ".join(hirer.specialists)
        raise Refused(f"There is no specialist {name!r}; there are: {listed}. {FORMS}")
    model = _parse_model(hirer, rest)
    stem = model.rpartition("/")[2].partition(":")[0]
    return _hire(tx, hirer, stem=stem, role="worker", model=model)


def _parse_model(hirer: Hirer, name: str) -> str:
    name = name.strip()
    provider, slash, model = name.partition("/")
    if not slash or not provider or not model:
        example = hirer.agent.model if "/" in hirer.agent.model else "anthropic/claude-sonnet-4-5"
        raise Refused(
            f"new:{name} does not name a model: it takes provider/model, such as new:{example}."
        )
    return check_model(hirer, name)


def check_model(hirer: Hirer, name: str) -> str:
    """Return the model's name if its provider exists and has a key; refuse it otherwise."""
    try:
        hirer.check_model(name)
    except Misconfigured as error:
        raise Refused(f"Nobody can be hired with {name!r}: {error}") from error
    return name


def _idle_or_new_specialist(
    tx: Tx, hirer: Hirer, specialist: Specialist, model: str, *, fresh: bool = False
) -> Agent:
    """Return a member hired as this specialist who has no open work; hire one if there is none.

    With `fresh` a new one is always hired.
    """
    if not fresh:
        for agent in teams.members(tx, hirer.agent.team_id):
            # Without a lock: if two delegations choose the same idle agent, the second
            # node waits in its queue.
            if agent.role == specialist.name and not nodes.has_open(tx, agent.id):
                return agent
    return _hire(
        tx,
        hirer,
        stem=specialist.name,
        role=specialist.name,
        model=model,
        tools=specialist.tools,
        identity=specialist.prompt,
        effort=specialist.effort,
    )


def cli_agent(tx: Tx, hirer: Hirer, command: str, *, name: str = "") -> Agent:
    """Hire a command-line program as a teammate."""
    command = command.strip()
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Refused(f"cli:{command} cannot be read as a command: {error}.") from error
    if not words:
        raise Refused("cli: names no command; write cli:command, such as cli:./agent.sh.")
    stem = name or words[0].rpartition("/")[2]
    agent = _hire(tx, hirer, stem=stem, role="worker", model="cli", command=command)
    return agent


def _hire(
    tx: Tx,
    hirer: Hirer,
    *,
    stem: str,
    role: str,
    model: str,
    **details: Unpack[AgentDetails],
) -> Agent:
    team_id, is_program = hirer.agent.team_id, details.get("command") is not None
    details["kind"] = "cli" if is_program else "llm"
    details["persistent"] = False
    details["parent_thread_id"] = hirer.thread_id
    details["label"] = hirer.label if is_program else CLEAN
    name = free_name(tx, team_id, stem)
    return hire(tx, team_id, name=name, role=role, model=model, **details)


def set_purpose(tx: Tx, agent: Agent, node_id: NodeId) -> None:
    """Store which node an agent was hired for. It leaves when its work is done, unless promoted."""
    if not agent.persistent and agent.created_for is None:
        teams.AGENTS.update(tx, agent.id, created_for=node_id)
