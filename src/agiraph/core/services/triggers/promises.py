"""Promises: what an agent promised to do by a time, kept as one-shot triggers that remind it."""

from typing import Any, Literal, NamedTuple

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import AgentId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.times.moments import as_text, local, parse_deadline
from agiraph.core.domain.triggers import Trigger
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.board import planning
from agiraph.core.services.triggers import definitions
from agiraph.core.store import teams, triggers
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx

State = Literal["open", "kept", "broken"]


class Promise(NamedTuple):
    what: str
    to: str
    trigger: Trigger
    state: State


class When(NamedTuple):
    """When a promise is kept: at one time, or again and again as a cron expression says. Without a
    zone, a time without an offset is in the person's."""

    moment: str
    repeats: str = ""
    zone: str = ""


def make(
    tx: Tx,
    agent: Agent,
    node: WorkNode,
    *,
    what: str,
    when: When,
    label: Label = CLEAN,
    is_bounded: bool = False,
) -> Promise:
    """Record a promise to the person whom the node is for, and create the trigger that wakes the
    agent at its time."""
    if not what.strip():
        raise Refused("Say what you promise.")
    to = planning.person_for(tx, node)
    type, config = timing(tx, when.moment, when.repeats, when.zone or teams.zone_of(tx, to))
    made = definitions.create(
        tx,
        agent_id=agent.id,
        type=type,
        config=config,
        payload={"task": what},
        made_by=agent.id,
        made_in=node,
        promised_to=to,
        label=label,
        is_bounded=is_bounded,
    )
    return Promise(what, to, made.trigger, "open")


def timing(tx: Tx, when: str, repeats: str, zone: str) -> tuple[str, dict[str, Any]]:
    """Return the type and the configuration of the trigger that reminds of a promise."""
    if bool(when.strip()) == bool(repeats.strip()):
        raise Refused("Give when, for one time, or repeats, for again and again.")
    if repeats.strip():
        return "scheduled", {"cron": repeats.strip(), "zone": zone}
    due = local(parse_deadline(when, tx.now, zone), zone)
    return "at_time", {"at": due.isoformat(), "zone": zone}


def of_agent(tx: Tx, agent_id: AgentId) -> list[Promise]:
    """Return all promises that an agent has made, with their state, oldest first. A promise is work
    that the agent said it would do later."""
    return [
        Promise(
            str(t.payload["task"]),
            t.promised_to or teams.owner_of(tx, t.team_id),
            t,
            _state(tx, t),
        )
        for t in triggers.promised(tx, agent_id)
    ]


def is_kept_in(tx: Tx, node: WorkNode) -> bool:
    """Return whether a promise for one time woke the agent for this node."""
    if node.trigger_id is None:
        return False
    trigger = TRIGGERS.get(tx, node.trigger_id)
    return trigger.promised_to is not None and trigger.type == "at_time"


def open_of_agent(tx: Tx, agent_id: AgentId) -> list[Promise]:
    """Return the promises that the agent has neither kept nor broken."""
    return [promise for promise in of_agent(tx, agent_id) if promise.state == "open"]


def _state(tx: Tx, trigger: Trigger) -> State:
    if trigger.status in ("active", "paused"):
        return "open"
    node = triggers.last_node(tx, trigger.id)
    if node is None:
        return "broken"  # the trigger ended without waking the agent
    if not node.status.is_final:
        return "open"
    return "kept" if node.status is NodeStatus.COMPLETED else "broken"


def as_line(tx: Tx, promise: Promise) -> str:
    """Return a promise as a list item, to remind the agent that gave it: to whom, by when, what."""
    due = promise.trigger.due_at
    by = "now" if due is None else as_text(due, promise.trigger.zone)
    return f"- to {planning.name_of(tx, promise.to)}, by {by}: {promise.what}"
