"""Definitions: create, change, pause, resume and end triggers, within the limits of agents."""

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, TypedDict, Unpack, get_args

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.events.triggers import TriggerChanged, TriggerCreated
from agiraph.core.domain.ids import SYSTEM, AgentId, NodeId, TeamId, TriggerId, new_id
from agiraph.core.domain.persons import is_person, means_a_person
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text.plurals import times
from agiraph.core.domain.times.moments import parse_moment
from agiraph.core.domain.triggers import ActionType, EndedWith, TeamEnd, Trigger
from agiraph.core.domain.work import Timer, WorkNode
from agiraph.core.services.triggers import actions, firing, labelled
from agiraph.core.services.triggers.firing import slot_at
from agiraph.core.services.triggers.kinds import registry
from agiraph.core.services.triggers.kinds.base import Kind, TriggerConfig
from agiraph.core.store import events, nodes, teams, triggers, waits
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx

MIN_GAP_S = 60.0
"""The least time until an agent's own trigger fires, and between two of its firings."""
MAX_ACTIVE = 20
"""Active triggers that an agent may have created itself."""
MAX_GENERATION = 24
"""Triggers that may follow from each other, each created in work that the last one started."""


class Created(NamedTuple):
    trigger: Trigger
    secret: str | None
    """The secret of a webhook. The database keeps only its hash, so it is shown here or never."""


class Origin(TypedDict, total=False):
    """Who makes a trigger, in which work, to whom its work was promised, and what they had read."""

    made_by: str | None
    """A person, an agent or the runtime; without it the team's owner."""
    made_in: WorkNode | None
    promised_to: str | None
    label: Label


def create(
    tx: Tx,
    *,
    agent_id: AgentId,
    type: str,
    config: dict[str, Any],
    action: ActionType = "wake_agent",
    payload: dict[str, Any] | None = None,
    is_bounded: bool = False,
    **origin: Unpack[Origin],
) -> Created:
    """Create a trigger for an agent. Limits apply if the agent creates it itself.

    With `is_bounded` it gets the bounds of labelled ones, and is refused if it exceeds one.
    """
    # Before `count_made`: two calls of one agent would both take the last free place.
    agent = teams.lock(tx, agent_id)
    team = TEAMS.get(tx, agent.team_id)
    if team.status not in ("active", "paused", "completed"):
        raise Refused(f"Team {team.name!r} is {team.status}; nothing can be scheduled for it.")
    kind, config = registry.kind_named(type), zoned(tx, team.id, config)
    if is_bounded:
        _refuse_excess(tx, agent, type, config)
        config = labelled.slowed(kind, config)
    read = kind.read(config)
    payload = _checked_payload(tx, agent, action, payload or {})
    columns = _columns(tx, team.id, kind, read, config)
    columns |= labelled.bounds(tx, columns) if is_bounded else {}
    generation = 0
    if origin.get("made_by") == agent_id:
        generation = _check_limits(tx, agent, kind, read, origin.get("made_in"))
        _refuse_copy(tx, agent, kind, columns, (action, payload))
    secret = kind.given_secret(read) or secrets.token_urlsafe(24) if kind.needs_secret else None
    trigger = Trigger(
        id=TriggerId(new_id("trig")),
        team_id=team.id,
        agent_id=agent_id,
        type=kind.name,
        action=action,
        created_at=tx.now,
        payload=payload,
        **columns,
        due_at=_first_due(tx, agent, kind, read),
        made_by=origin.get("made_by") or team.owner_id,
        payer_id=_payer(origin.get("made_in")),
        generation=generation,
        # Events from before the trigger must not fire it.
        cursor=events.head(tx, team.id),
        # Only the hash: a reader of the database or of a backup cannot call the webhook.
        secret=None if secret is None else hash_of(secret),
        promised_to=origin.get("promised_to"),
        label=origin.get("label", CLEAN),
    )
    _insert(tx, trigger)
    return Created(trigger, secret)


def zoned(tx: Tx, team_id: TeamId, config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with the time zone of the team's owner, if it names none."""
    zone = teams.zone_of_team(tx, team_id)
    return config if zone == "UTC" or "zone" in config else {**config, "zone": zone}


def _insert(tx: Tx, trigger: Trigger) -> None:
    TRIGGERS.insert(tx, trigger)
    if trigger.due_at is not None:
        firing.arm(tx, trigger, trigger.due_at)
    tx.emit(
        trigger.team_id,
        TriggerCreated(
            trigger_id=trigger.id,
            agent_id=trigger.agent_id,
            type=trigger.type,
            action=trigger.action,
            made_by=trigger.made_by,
            due_at=None if trigger.due_at is None else slot_at(trigger.due_at),
        ),
    )


def _columns(
    tx: Tx, team_id: TeamId, kind: Kind[Any], read: TriggerConfig, given: dict[str, Any]
) -> dict[str, Any]:
    """Return the columns of a trigger's row that follow from its configuration."""
    return {
        "config": kind.stored_config(tx, team_id, read, given),
        "zone": read.zone,
        "misfire": read.misfire,
        "overlap": read.overlap or ("queue" if read.misfire == "all" else "skip"),
        "max_fires": read.max_fires,
        "until": None if read.until is None else parse_moment(read.until, read.zone),
    }


def _first_due(tx: Tx, agent: Agent, kind: Kind[Any], read: TriggerConfig) -> datetime | None:
    if kind.is_due_after_work and nodes.has_open(tx, agent.id):
        return None  # the end of the agent's work sets it
    return kind.first_due(read, tx.now)


def _payer(made_in: WorkNode | None) -> NodeId | None:
    """Return the node whose budget pays: the work in which the trigger was created."""
    if made_in is None:
        return None
    return made_in.id if made_in.is_work else made_in.payer_id


def _check_limits(
    tx: Tx, agent: Agent, kind: Kind[Any], read: TriggerConfig, made_in: WorkNode | None
) -> int:
    """Return the new trigger's generation. Raise `Refused` if the agent exceeds a limit."""
    if kind.shortest_gap_s(read, tx.now) < MIN_GAP_S:
        raise Refused(f"That is too soon: {MIN_GAP_S:.0f} seconds is the least you can set.")
    if not kind.guidance:
        raise Refused(f"Only a person sets up a {kind.name}; ask the human for one.")
    if triggers.count_made(tx, agent.id) >= MAX_ACTIVE:
        raise Refused(
            f"You have {MAX_ACTIVE} active triggers, which is the limit. Cancel those you no "
            "longer need (list_triggers, cancel_trigger), or put several things into one."
        )
    origin = None if made_in is None else nodes.root(tx, made_in).trigger_id
    generation = 0 if origin is None else TRIGGERS.get(tx, origin).generation + 1
    if generation > MAX_GENERATION:
        raise Refused(
            f"You have woken yourself {MAX_GENERATION} times in a row, each time by a new trigger. "
            "Submit what you have, or ask the human whether this should go on."
        )
    return generation


def _refuse_excess(tx: Tx, agent: Agent, type: str, config: dict[str, Any]) -> None:
    """Raise `Refused` if another trigger took the last place since the call was decided on."""
    if (excess := labelled.excess(tx, agent.id, type, config)) is not None:
        raise Refused(f"Not set: {excess}. Without the human's word there are {labelled.WITHIN}.")


def _refuse_copy(
    tx: Tx,
    agent: Agent,
    kind: Kind[Any],
    columns: dict[str, Any],
    does: tuple[ActionType, dict[str, Any]],
) -> None:
    """Raise `Refused` with the id of a trigger of this agent that does the same at the same time:
    an agent that reads its task at every waking would set it up each time."""
    for other in triggers.of_team(tx, agent.team_id):
        if other.agent_id != agent.id or other.status not in ("active", "paused"):
            continue
        same_time = other.type == kind.name and other.config == columns["config"]
        if same_time and (other.action, _plain(other.payload)) == (does[0], _plain(does[1])):
            raise Refused(
                f"There is one already: {other.id} is {other.status} and does the same at the same "
                "time. Leave it as it is, or cancel it first (cancel_trigger)."
            )


def _plain(payload: dict[str, Any]) -> dict[str, Any]:
    """Return a payload for comparison: its texts in lower case, with single spaces."""
    return {
        key: " ".join(value.casefold().split()) if isinstance(value, str) else value
        for key, value in payload.items()
    }


def _checked_payload(
    tx: Tx, agent: Agent, action: ActionType, payload: dict[str, Any]
) -> dict[str, Any]:
    """Return the payload with ids for names. Raise `Refused` if the action needs something else."""
    match action:
        case "wake_agent":
            actions.text(payload.get("task", ""), "task", may_be_empty=True)
            return payload
        case "send_message":
            to = actions.text(payload.get("to", ""), "to").strip()
            actions.text(payload.get("content", ""), "content")
            owner = teams.owner_of(tx, agent.team_id)
            is_owner = means_a_person(to) or to == owner  # `change` checks a resolved address again
            address = owner if is_owner else teams.by_name(tx, agent.team_id, to).id
            return {**payload, "to": address}
        case "run_node":
            identity = actions.text(payload.get("node_id", ""), "node_id")
            return {**payload, "node_id": nodes.find(tx, agent.team_id, identity).id}
        case "run_callback":
            actions.text(payload.get("callback", ""), "callback")
            return payload
        case _:
            actions.brought()[action].check(payload)
            return payload


def hash_of(secret: str) -> str:
    """Return the SHA-256 of a webhook's secret, which is all that is stored of it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def find(tx: Tx, team_id: TeamId, identity: str) -> Trigger:
    """Return the team's trigger with this id, or whose id alone ends with this text."""
    wanted = identity.strip()
    every = triggers.of_team(tx, team_id)
    found = [t for t in every if t.id == wanted or (len(wanted) >= 4 and t.id.endswith(wanted))]
    if len(found) != 1:
        raise NotFound("trigger", identity, known="list_triggers shows them with their ids.")
    return found[0]


def cancel(tx: Tx, trigger_id: TriggerId) -> Trigger:
    """End a trigger by request. A trigger that has ended before stays as it is."""
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
    """Change when a trigger fires or what it does. Its type cannot change.

    A new configuration applies from now: unhandled slots of the old one are dropped.
    """
    trigger = _lock(tx, trigger_id)
    if trigger.status not in ("active", "paused"):
        raise Refused(f"{trigger_id} is {trigger.status}; make a new one instead.")
    agent = AGENTS.get(tx, trigger.agent_id)
    if config is not None:
        _reconfigure(tx, trigger, agent, config)
    if action is not None or payload is not None:
        does = action or trigger.action
        words = _checked_payload(tx, agent, does, trigger.payload if payload is None else payload)
        # A person who writes the task anew confirms it.
        label = trigger.label if payload is None else None
        TRIGGERS.update(tx, trigger_id, action=does, payload=words, label=label)
    return _emit_changed(tx, trigger_id)


def _reconfigure(tx: Tx, trigger: Trigger, agent: Agent, config: dict[str, Any]) -> None:
    kind = registry.kind_of(trigger)
    config = zoned(tx, trigger.team_id, config)
    read = kind.read(config)
    if read.max_fires is not None and trigger.fired >= read.max_fires:
        raise Refused(f"It has fired {times(trigger.fired)}; 'max_fires' must be more.")
    columns = _columns(tx, trigger.team_id, kind, read, config)
    if (secret := kind.given_secret(read)) is not None:
        columns["secret"] = hash_of(secret)
    # What the old configuration has seen means nothing to the new one.
    columns |= {"quiet": 0, "watched": {}, "gate": None, "cursor": events.head(tx, trigger.team_id)}
    triggers.drop_errands(tx, trigger.id)
    firing.arm(tx, trigger, _first_due(tx, agent, kind, read), **columns)
    # `arm` sets a timer in any case, but a paused trigger has none until it is resumed.
    if trigger.status == "paused":
        waits.drop_timer(tx, Timer("trigger", trigger.id))


def _emit_changed(tx: Tx, trigger_id: TriggerId) -> Trigger:
    trigger = TRIGGERS.get(tx, trigger_id)
    tx.emit(
        trigger.team_id,
        TriggerChanged(
            trigger_id=trigger.id,
            agent_id=trigger.agent_id,
            status=trigger.status,
            due_at=None if trigger.due_at is None else slot_at(trigger.due_at),
        ),
    )
    return trigger


def pause(tx: Tx, trigger_id: TriggerId) -> Trigger:
    """Stop a trigger until `resume`. The misfire policy decides about slots that pass meanwhile."""
    trigger = _lock(tx, trigger_id)
    if trigger.status != "active":
        raise Refused(f"{trigger_id} is {trigger.status}; only an active one can be paused.")
    TRIGGERS.update(tx, trigger_id, status="paused")
    waits.drop_timer(tx, Timer("trigger", trigger_id))
    triggers.drop_errands(tx, trigger_id)
    return _emit_changed(tx, trigger_id)


def resume(tx: Tx, trigger_id: TriggerId) -> Trigger:
    trigger = _lock(tx, trigger_id)
    if trigger.status != "paused":
        raise Refused(f"{trigger_id} is {trigger.status}; only a paused one can be resumed.")
    TRIGGERS.update(tx, trigger_id, status="active")
    _rearm(tx, replace(trigger, status="active"))
    return _emit_changed(tx, trigger_id)


def _lock(tx: Tx, trigger_id: TriggerId) -> Trigger:
    """Lock a trigger's row, and its agent's row before it, as all verbs do."""
    teams.lock(tx, TRIGGERS.get(tx, trigger_id).agent_id)
    return TRIGGERS.get(tx, trigger_id, lock=True)


def _rearm(tx: Tx, trigger: Trigger) -> None:
    """Set the timer again after a pause. A due time in the past fires at once, as missed."""
    if trigger.due_at is not None:
        return firing.arm(tx, trigger, trigger.due_at)
    kind = registry.kind_of(trigger)
    if kind.is_due_after_work and not nodes.has_open(tx, trigger.agent_id):
        kind.on_agent_idle(tx, trigger, quiet=trigger.quiet)


def resume_team(tx: Tx, team_id: TeamId) -> None:
    """Set the timers of a team's active triggers again after the team's pause."""
    for trigger in triggers.active_of_team(tx, team_id):
        _rearm(tx, trigger)


def end_with_team(tx: Tx, team_id: TeamId, why: TeamEnd) -> None:
    """End the triggers of a team that has ended; `why` says how.

    A completed team keeps what a person or an agent has scheduled. Only its heartbeat ends.
    """
    for trigger in triggers.of_team(tx, team_id):
        is_kept = why == "completed" and trigger.made_by != SYSTEM
        if trigger.status in ("active", "paused") and not is_kept:
            firing.end(tx, trigger, "expired", f"the team was {why}", ended_with=why)


def rest(tx: Tx, team_id: TeamId) -> None:
    """End what a team does by itself for its goal, until it has a new goal: its heartbeat, and what
    its agents have set in the work on the goal. What a person set or was promised stays."""
    heartbeat = triggers.team_heartbeat(tx, team_id)
    for trigger in triggers.of_team(tx, team_id):
        is_on = trigger.status in ("active", "paused")
        if is_on and _is_for_goal(tx, trigger, None if heartbeat is None else heartbeat.id):
            why = "a person stopped the team's goal"
            firing.end(tx, trigger, "expired", why, ended_with="goal")


def _is_for_goal(tx: Tx, trigger: Trigger, heartbeat: TriggerId | None) -> bool:
    if trigger.id == heartbeat:
        return True
    if is_person(trigger.made_by) or is_person(trigger.promised_to or ""):
        return False
    made_in = triggers.payer(tx, trigger)
    root = None if made_in is None else nodes.root(tx, made_in)
    return root is not None and (root.is_goal or root.trigger_id == heartbeat)


def revive(
    tx: Tx,
    team_id: TeamId,
    *,
    ended_as: Collection[TeamEnd] = get_args(TeamEnd),
    with_goal: bool = False,
) -> None:
    """Activate the triggers that ended when their team became one of `ended_as`; `with_goal` also
    those that ended when a person stopped the goal.

    One-shot triggers whose moment has passed stay ended. Events of the meantime are not read.
    """
    causes: set[EndedWith] = {*ended_as, *(["goal"] if with_goal else [])}
    for trigger in triggers.of_team(tx, team_id):
        if trigger.status != "expired" or trigger.ended_with not in causes:
            continue
        kind = registry.kind_of(trigger)
        since = trigger.created_at if kind.fires_once else tx.now
        due = None if kind.is_due_after_work else kind.first_due(kind.read(trigger.config), since)
        if kind.fires_once and (due is None or due <= tx.now):
            continue
        nothing = dict.fromkeys(("ended_at", "ended", "ended_with"))
        TRIGGERS.update(tx, trigger.id, status="active", **nothing)
        trigger = TRIGGERS.get(tx, trigger.id)
        if due is not None:
            firing.arm(tx, trigger, due)
        else:
            # The team did not work; what happened in the meantime is no reason to wake anybody.
            TRIGGERS.update(tx, trigger.id, cursor=events.head(tx, team_id))
            _rearm(tx, trigger)


def confirm(tx: Tx, trigger_id: TriggerId) -> Trigger:
    """Let a labelled trigger fire for as long as its configuration says.

    Its words stay labelled: the work that it starts still asks before it takes a way out.
    """
    # The agent's row before the trigger's, as every verb takes them.
    teams.lock(tx, TRIGGERS.get(tx, trigger_id).agent_id)
    trigger = TRIGGERS.get(tx, trigger_id, lock=True)
    if not trigger.label or trigger.status not in ("active", "paused"):
        raise Conflict(f"{trigger_id} is {trigger.status}: it does not wait for a decision.")
    read = registry.kind_of(trigger).read(trigger.config)
    until = None if read.until is None else parse_moment(read.until, read.zone)
    bounds = {"max_fires": read.max_fires, "until": until}
    TRIGGERS.update(tx, trigger_id, confirmed_at=tx.now, **bounds)
    due = None if trigger.due_at is None else slot_at(trigger.due_at)
    changed = TriggerChanged(
        trigger_id=trigger.id, agent_id=trigger.agent_id, status=trigger.status, due_at=due
    )
    tx.emit(trigger.team_id, changed)
    return TRIGGERS.get(tx, trigger_id)
