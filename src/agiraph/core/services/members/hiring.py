"""Hiring: find the agent that an address names, and hire it if it is not on the team yet.

An address is a teammate's name, a specialist's name, `new:provider/model`,
`new:specialist:provider/model` or `cli:command`.
"""

import shlex
from collections.abc import Callable, Mapping
from typing import NamedTuple, Unpack

from agiraph.core.domain.agents import Agent, Specialist
from agiraph.core.domain.errors import Misconfigured, NotFound, Refused
from agiraph.core.domain.ids import NodeId, ThreadId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.services.members import roster
from agiraph.core.store import nodes, teams
from agiraph.core.store.tx import Tx

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
    **details: Unpack[roster.AgentDetails],
) -> Agent:
    team_id, is_program = hirer.agent.team_id, details.get("command") is not None
    details["kind"] = "cli" if is_program else "llm"
    details["persistent"] = False
    details["parent_thread_id"] = hirer.thread_id
    details["label"] = hirer.label if is_program else CLEAN
    name = roster.free_name(tx, team_id, stem)
    return roster.hire(tx, team_id, name=name, role=role, model=model, **details)


def set_purpose(tx: Tx, agent: Agent, node_id: NodeId) -> None:
    """Store which node an agent was hired for. It leaves when its work is done, unless promoted."""
    if not agent.persistent and agent.created_for is None:
        teams.AGENTS.update(tx, agent.id, created_for=node_id)
