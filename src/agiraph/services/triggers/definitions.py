"""Triggers: making them within limits, letting them rest, and ending them."""

import hashlib
import secrets
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from agiraph.domain.agents import Agent
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.events.triggers import TriggerChanged, TriggerCreated
from agiraph.domain.ids import HUMAN, SYSTEM, AgentId, NodeId, TeamId, TriggerId, new_id
from agiraph.domain.triggers import AT_REST, ActionType, Trigger
from agiraph.domain.work import WorkNode
from agiraph.services.board import budgets
from agiraph.services.mail.bus import TEXT_LIMIT
from agiraph.services.triggers import configuration, firing, wake_gate
from agiraph.services.triggers.configuration import Form
from agiraph.services.triggers.firing import TIMER
from agiraph.store import events, nodes, teams, triggers
from agiraph.store.teams import AGENTS, TEAMS
from agiraph.store.triggers import TRIGGERS
from agiraph.store.tx import Tx

LEAST_SECONDS = 60.0
MOST_ACTIVE = 20
MOST_IN_A_ROW = 24
"""Triggers an agent may set off one from another, before a person must have a look."""
TEAM_OVER = "the team was"


class Made(NamedTuple):
    trigger: Trigger
    secret: str | None
    """Of a webhook, and only now: its hash is all that is kept."""


def create(
    tx: Tx,
    *,
    agent_id: AgentId,
    type: str,
    config: dict[str, Any],
    action: ActionType = "wake_agent",
    payload: dict[str, Any] | None = None,
    made_by: str = HUMAN,
    made_in: WorkNode | None = None,
    promised_to: str | None = None,
    tainted_by: str | None = None,
) -> Made:
    """A new trigger of an agent; if the agent makes it itself, within its limits."""
    agent = teams.lock(tx, agent_id)
    team = TEAMS.get(tx, agent.team_id)
    if team.status not in ("active", "paused"):
        raise Refused(f"Team {team.name!r} is {team.status}; nothing can be scheduled for it.")
    form = configuration.read(type, config)
    generation = 0
    if made_by == agent_id:
        generation = _check_limits(tx, agent, form, made_in)
    secret = None
    if isinstance(form, configuration.Webhook):
        secret = form.secret or secrets.token_urlsafe(24)
    trigger = Trigger(
        id=TriggerId(new_id("trig")),
        team_id=team.id,
        agent_id=agent_id,
        type=type,  # pyright: ignore[reportArgumentType]
        action=action,
        created_at=tx.now,
        payload=_checked(tx, agent, action, payload or {}),
        **_configured(tx, team.id, form, config),
        due_at=_first(tx, agent, form),
        made_by=made_by,
        payer_id=_payer(made_in),
        generation=generation,
        cursor=events.head(tx, team.id),
        secret=None if secret is None else hash_of(secret),
        promised_to=promised_to,
        tainted_by=tainted_by,
    )
    TRIGGERS.insert(tx, trigger)
    if trigger.due_at is not None:
        firing.arm(tx, trigger, trigger.due_at)
    tx.emit(
        team.id,
        TriggerCreated(
            trigger_id=trigger.id,
            agent_id=agent_id,
            type=trigger.type,
            action=action,
            made_by=made_by,
            due_at=None if trigger.due_at is None else firing.at(trigger.due_at),
        ),
    )
    return Made(trigger, secret)


def _configured(tx: Tx, team_id: TeamId, form: Form, config: dict[str, Any]) -> dict[str, Any]:
    """What a trigger keeps of its configuration."""
    kept = {k: v for k, v in config.items() if k != "secret"}
    if isinstance(form, configuration.OnEvent):
        kept["filter"] = _resolved(tx, team_id, form.filter)
    return {
        "config": kept,
        "zone": form.zone,
        "misfire": form.misfire,
        "overlap": form.overlap or ("queue" if form.misfire == "all" else "skip"),
        "max_fires": form.max_fires,
        "until": None if form.until is None else configuration.moment(form.until, form.zone),
    }


def _first(tx: Tx, agent: Agent, form: Form) -> datetime | None:
    if isinstance(form, (configuration.Heartbeat, configuration.OnIdle)):
        if nodes.has_open(tx, agent.id):
            return None  # from when its agent rests
        return tx.now + timedelta(seconds=configuration.rest_seconds(form))
    return configuration.first_due(form, tx.now)


def _payer(made_in: WorkNode | None) -> NodeId | None:
    """Whose budget pays: that of the work it was made in, which it cannot outspend."""
    if made_in is None:
        return None
    return made_in.id if made_in.lane == "work" else made_in.payer_id


def _check_limits(tx: Tx, agent: Agent, form: Form, made_in: WorkNode | None) -> int:
    """How many triggers in a row led to this one; `Refused` if an agent should not go on so."""
    if _soonest(form, tx.now) < LEAST_SECONDS:
        raise Refused(f"That is too soon: {LEAST_SECONDS:.0f} seconds is the least you can set.")
    if isinstance(form, configuration.Webhook):
        raise Refused("Only a person sets up a webhook; ask the human for one.")
    if triggers.count_made(tx, agent.id) >= MOST_ACTIVE:
        raise Refused(
            f"You have {MOST_ACTIVE} active triggers, which is the limit. Cancel those you no "
            "longer need (list_triggers, cancel_trigger), or put several things into one."
        )
    origin = None if made_in is None else nodes.root(tx, made_in).trigger_id
    generation = 0 if origin is None else TRIGGERS.get(tx, origin).generation + 1
    if generation > MOST_IN_A_ROW:
        raise Refused(
            f"You have woken yourself {MOST_IN_A_ROW} times in a row, each time by a new trigger. "
            "Hand in what you have, or ask the human whether this should go on."
        )
    return generation


def _soonest(form: Form, now: datetime) -> float:
    """How soon it fires, or fires again."""
    match form:
        case configuration.Heartbeat() | configuration.OnIdle():
            return configuration.rest_seconds(form)
        case configuration.OnEvent():
            return form.min_seconds
        case configuration.Delayed() | configuration.AtTime():
            due = configuration.first_due(form, now)
            return LEAST_SECONDS if due is None else (due - now).total_seconds()
        case _:
            return LEAST_SECONDS  # a schedule has no shorter interval


def _resolved(tx: Tx, team_id: TeamId, filter: dict[str, Any]) -> dict[str, Any]:
    """Names of teammates as the ids that events carry."""
    known = {agent.name.lower(): agent.id for agent in teams.members(tx, team_id)}
    people = ("sender", "recipient", "agent_id", "creator_id")
    return {
        key: known.get(str(value).lower(), value) if key in people else value
        for key, value in filter.items()
    }


def _checked(tx: Tx, agent: Agent, action: ActionType, payload: dict[str, Any]) -> dict[str, Any]:
    """What an action needs, with ids for names."""
    match action:
        case "wake_agent":
            _text(payload.get("task", ""), "task", may_be_empty=True)
            return payload
        case "send_message":
            to = _text(payload.get("to", ""), "to").strip()
            _text(payload.get("content", ""), "content")
            is_person = to.lower() == HUMAN
            address = HUMAN if is_person else teams.by_name(tx, agent.team_id, to).id
            return {**payload, "to": address}
        case "run_node":
            node = nodes.find(tx, agent.team_id, _text(payload.get("node_id", ""), "node_id"))
            return {**payload, "node_id": node.id}
        case "run_callback":
            _text(payload.get("callback", ""), "callback")
            return payload


def _text(value: object, name: str, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str) or not (value.strip() or may_be_empty):
        raise Refused(f"action: {name!r} must be given, as text.")
    if len(value) > TEXT_LIMIT:
        raise Refused(f"action: {name!r} holds {TEXT_LIMIT:,} characters; put it into a file.")
    return value


def hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def find(tx: Tx, team_id: TeamId, identity: str) -> Trigger:
    """The trigger of that id, or of the id's tail, in this team."""
    wanted = identity.strip()
    every = triggers.of_team(tx, team_id)
    near = [t for t in every if t.id == wanted or (len(wanted) >= 4 and t.id.endswith(wanted))]
    if len(near) != 1:
        raise NotFound("trigger", identity, known="list_triggers shows them with their ids.")
    return near[0]


def cancel(tx: Tx, trigger_id: TriggerId) -> Trigger:
    trigger = _lock(tx, trigger_id)
    if trigger.status in ("active", "paused"):
        firing.end(tx, trigger, "cancelled", "it was cancelled")
    return TRIGGERS.get(tx, trigger_id)


def change(
    tx: Tx,
    trigger_id: TriggerId,
    *,
    config: dict[str, Any] | None = None,
    action: ActionType | None = None,
    payload: dict[str, Any] | None = None,
) -> Trigger:
    """Let a trigger fire at other times, or do something else; its type stays.

    A new configuration counts from now on: slots of the old one that nobody handled are gone.
    """
    trigger = _lock(tx, trigger_id)
    if trigger.status not in ("active", "paused"):
        raise Refused(f"{trigger_id} is {trigger.status}; make a new one instead.")
    agent = AGENTS.get(tx, trigger.agent_id)
    if config is not None:
        _reconfigure(tx, trigger, agent, config)
    if action is not None or payload is not None:
        does = action or trigger.action
        words = _checked(tx, agent, does, trigger.payload if payload is None else payload)
        # Whoever writes the task anew vouches for it.
        tainted_by = trigger.tainted_by if payload is None else None
        TRIGGERS.update(tx, trigger_id, action=does, payload=words, tainted_by=tainted_by)
    return _changed(tx, trigger_id)


def _reconfigure(tx: Tx, trigger: Trigger, agent: Agent, config: dict[str, Any]) -> None:
    form = configuration.read(trigger.type, config)
    if form.max_fires is not None and trigger.fired >= form.max_fires:
        raise Refused(f"It has fired {trigger.fired} times; 'max_fires' must be more than that.")
    fields = _configured(tx, trigger.team_id, form, config)
    if isinstance(form, configuration.Webhook) and form.secret is not None:
        fields["secret"] = hash_of(form.secret)
    fields |= {"quiet": 0, "watched": {}, "cursor": events.head(tx, trigger.team_id)}
    due = _first(tx, agent, form)
    triggers.drop_errands(tx, trigger.id)
    firing.arm(tx, trigger, due, **fields)
    if trigger.status == "paused":
        triggers.drop_timer(tx, TIMER + trigger.id)


def _changed(tx: Tx, trigger_id: TriggerId) -> Trigger:
    trigger = TRIGGERS.get(tx, trigger_id)
    tx.emit(
        trigger.team_id,
        TriggerChanged(
            trigger_id=trigger.id,
            agent_id=trigger.agent_id,
            status=trigger.status,
            due_at=None if trigger.due_at is None else firing.at(trigger.due_at),
        ),
    )
    return trigger


def pause(tx: Tx, trigger_id: TriggerId) -> Trigger:
    """Let a trigger rest. Slots that pass meanwhile are missed, and treated as its policy says."""
    trigger = _lock(tx, trigger_id)
    if trigger.status != "active":
        raise Refused(f"{trigger_id} is {trigger.status}; only an active one can be paused.")
    TRIGGERS.update(tx, trigger_id, status="paused")
    triggers.drop_timer(tx, TIMER + trigger_id)
    triggers.drop_errands(tx, trigger_id)
    return _changed(tx, trigger_id)


def resume(tx: Tx, trigger_id: TriggerId) -> Trigger:
    trigger = _lock(tx, trigger_id)
    if trigger.status != "paused":
        raise Refused(f"{trigger_id} is {trigger.status}; only a paused one can be resumed.")
    TRIGGERS.update(tx, trigger_id, status="active")
    _go_on(tx, replace(trigger, status="active"))
    return _changed(tx, trigger_id)


def _lock(tx: Tx, trigger_id: TriggerId) -> Trigger:
    teams.lock(tx, TRIGGERS.get(tx, trigger_id).agent_id)
    return TRIGGERS.get(tx, trigger_id, lock=True)


def _go_on(tx: Tx, trigger: Trigger) -> None:
    """Wind it up again after a pause; what it missed is for its policy to decide."""
    if trigger.due_at is not None:
        firing.arm(tx, trigger, trigger.due_at)
    elif trigger.type in AT_REST and not nodes.has_open(tx, trigger.agent_id):
        wake_gate.rest(tx, trigger, quiet=trigger.quiet)


def resume_team(tx: Tx, team_id: TeamId) -> None:
    """The team goes on after a pause, and so do its triggers."""
    for trigger in triggers.active_of_team(tx, team_id):
        _go_on(tx, trigger)


def end_with_team(tx: Tx, team_id: TeamId, why: str) -> None:
    """What a team that is over has set up is over, too."""
    for trigger in triggers.of_team(tx, team_id):
        if trigger.status in ("active", "paused"):
            firing.end(tx, trigger, "expired", f"{TEAM_OVER} {why}")


def revive(tx: Tx, team_id: TeamId) -> None:
    """The team has something to do again: so do those that ended with it."""
    for trigger in triggers.of_team(tx, team_id):
        if trigger.status != "expired" or not (trigger.ended or "").startswith(TEAM_OVER):
            continue
        form = configuration.read(trigger.type, trigger.config)
        if isinstance(form, (configuration.Delayed, configuration.AtTime)):
            continue  # its moment has passed with the team
        TRIGGERS.update(tx, trigger.id, status="active", ended_at=None, ended=None)
        trigger = TRIGGERS.get(tx, trigger.id)
        due = configuration.first_due(form, tx.now)
        if due is not None:
            firing.arm(tx, trigger, due)
        else:
            TRIGGERS.update(tx, trigger.id, cursor=events.head(tx, team_id))
            _go_on(tx, trigger)


def birth(
    tx: Tx, coordinator: Agent, *, seconds: float, node: WorkNode | None, mode: str
) -> Trigger:
    """The heartbeat a coordinator is born with: it furthers the goal though nobody asks."""
    config: dict[str, Any] = {"interval_seconds": seconds, "when": "always"}
    if mode == "infinite":
        config["backoff"] = False  # what a cycle is for lies outside, where no gate can look
    return create(
        tx,
        agent_id=coordinator.id,
        type="heartbeat",
        config=config,
        payload={"begun": node is not None},
        made_by=SYSTEM,
        made_in=node if node is not None and budgets.envelopes(tx, node) else None,
    ).trigger
