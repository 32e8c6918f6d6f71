"""Firing: what happens in a slot of a trigger, written down with it. Once each, or not at all."""

from datetime import datetime
from typing import Any

import orjson

from agiraph.domain.agents import Team
from agiraph.domain.errors import Refused
from agiraph.domain.events.triggers import TriggerEnded, TriggerFired, TriggerSkipped
from agiraph.domain.ids import NodeId
from agiraph.domain.taint import graver
from agiraph.domain.triggers import NOTHING_TO_DO, ONCE, Firing, Outcome, Trigger, TriggerStatus
from agiraph.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.prompts import prompt
from agiraph.services.board import budgets, planning, taint
from agiraph.services.board.texts import first_line
from agiraph.services.mail import bus
from agiraph.services.members import roster
from agiraph.services.triggers import configuration
from agiraph.store import nodes, triggers, waits
from agiraph.store.nodes import NODES
from agiraph.store.teams import AGENTS, TEAMS
from agiraph.store.triggers import FIRINGS, TRIGGERS, Errand
from agiraph.store.tx import Tx

TIMER = "trigger:"
OVERLAP = "overlap"
MISFIRE = "misfire"
KEPT = 4000
"""Characters of an earlier result, or of what set a trigger off, that its waking is told."""


def at(moment: datetime) -> str:
    """The name of the slot at that moment."""
    return moment.isoformat(timespec="seconds")


def handle(
    tx: Tx, trigger: Trigger, slot: str, *, news: str = "", tainted_by: str | None = None
) -> Firing:
    """Let the trigger fire in this slot, unless something stands against it; recorded either way.

    The caller holds the trigger's row, and has seen to it that the slot was not handled before.
    `tainted_by` is about the news.
    """
    if trigger.overlap == "skip" and triggers.is_unfinished(tx, trigger.id):
        return skip(tx, trigger, slot, OVERLAP)
    if trigger.action == "wake_agent" and (spent := _spent(tx, trigger)):
        return skip(tx, trigger, slot, f"budget: {spent}")
    try:
        firing = _act(tx, trigger, slot, news, graver(trigger.tainted_by, tainted_by))
    except Refused as refusal:
        return skip(tx, trigger, slot, str(refusal))
    FIRINGS.insert(tx, firing)
    TRIGGERS.update(tx, trigger.id, fired=trigger.fired + 1, fired_at=tx.now)
    tx.emit(
        trigger.team_id,
        TriggerFired(
            trigger_id=trigger.id,
            agent_id=trigger.agent_id,
            slot=slot,
            action=trigger.action,
            node_id=firing.node_id,
        ),
    )
    return firing


def skip(
    tx: Tx, trigger: Trigger, slot: str, reason: str, *, count: int = 1, last: str | None = None
) -> Firing:
    """Let a slot, or several in a row, pass; that is recorded, too."""
    firing = Firing(
        trigger_id=trigger.id,
        slot=slot,
        at=tx.now,
        outcome="skipped",
        reason=reason,
        count=count,
        last_slot=last,
    )
    FIRINGS.insert(tx, firing)
    TRIGGERS.update(tx, trigger.id, skipped=trigger.skipped + count)
    tx.emit(
        trigger.team_id,
        TriggerSkipped(
            trigger_id=trigger.id,
            agent_id=trigger.agent_id,
            slot=slot,
            reason=reason,
            count=count,
        ),
    )
    return firing


def _spent(tx: Tx, trigger: Trigger) -> StopReason | None:
    payer = triggers.payer(tx, trigger)
    return None if payer is None else budgets.exhausted_above(tx, payer)


def go_on(tx: Tx, trigger: Trigger, due: datetime | None) -> None:
    """Be due again then; or end, if this was the last time."""
    trigger = TRIGGERS.get(tx, trigger.id)
    if trigger.type in ONCE:
        return end(tx, trigger, "expired", "it was for one time")
    if trigger.max_fires is not None and trigger.fired >= trigger.max_fires:
        return end(tx, trigger, "expired", f"it has fired {trigger.fired} times, as agreed")
    if trigger.until is not None and max(due or tx.now, tx.now) > trigger.until:
        return end(tx, trigger, "expired", f"its time was over on {trigger.until:%Y-%m-%d %H:%M}")
    if trigger.type == "scheduled" and due is None:
        return end(tx, trigger, "expired", "its schedule has come to an end")
    return arm(tx, trigger, due)


def arm(tx: Tx, trigger: Trigger, due: datetime | None, **changes: Any) -> None:
    """Set the time at which it rings next."""
    TRIGGERS.update(tx, trigger.id, due_at=due, **changes)
    if due is None:
        triggers.drop_timer(tx, TIMER + trigger.id)
    else:
        waits.set_timer(tx, TIMER + trigger.id, due)


def end(tx: Tx, trigger: Trigger, status: TriggerStatus, why: str) -> None:
    """Let a trigger be over; what it set off goes on."""
    TRIGGERS.update(tx, trigger.id, status=status, due_at=None, ended_at=tx.now, ended=why)
    triggers.drop_timer(tx, TIMER + trigger.id)
    triggers.drop_errands(tx, trigger.id)
    tx.emit(
        trigger.team_id,
        TriggerEnded(
            trigger_id=trigger.id,
            agent_id=trigger.agent_id,
            status=status,
            reason=why,
        ),
    )


def _act(tx: Tx, trigger: Trigger, slot: str, news: str, tainted_by: str | None) -> Firing:
    node_id, outcome = None, "fired"
    match trigger.action:
        case "wake_agent":
            node_id = _wake(tx, trigger, news, tainted_by).id
        case "run_node":
            node_id = _run(tx, trigger).id
        case "send_message":
            bus.send(
                tx,
                team_id=trigger.team_id,
                sender=trigger.agent_id,
                recipient=trigger.payload["to"],
                text=trigger.payload["content"],
                node_id=trigger.payer_id,
            )
        case "run_callback":
            outcome = "calling"
            errand = Errand(f"call:{trigger.id}:{slot}", trigger.id, slot)
            triggers.leave_errand(tx, errand)
    return Firing(
        trigger_id=trigger.id,
        slot=slot,
        at=tx.now,
        outcome=outcome,  # pyright: ignore[reportArgumentType]
        node_id=node_id,
    )


def called(tx: Tx, errand: Errand, *, outcome: Outcome, reason: str) -> bool:
    """What became of a callback; False if somebody reported that before."""
    triggers.drop_errand(tx, errand.id)
    return triggers.close_firing(
        tx, errand.trigger_id, errand.slot, outcome=outcome, reason=reason[:KEPT]
    )


def _run(tx: Tx, trigger: Trigger) -> WorkNode:
    """Hand out a node that was put on the board for later."""
    node = NODES.get(tx, NodeId(trigger.payload["node_id"]), lock=True)
    if node.status is not NodeStatus.PENDING:
        raise Refused(f"{node.id} is {node.status}, it cannot be started any more.")
    if not planning.is_ready(tx, node):
        raise Refused(f"{node.id} still needs other work to be done first.")
    return planning.assign_ready(tx, node)


def _wake(tx: Tx, trigger: Trigger, news: str, tainted_by: str | None) -> WorkNode:
    """The agent gets up: what it finds before it is a node of this trigger's."""
    team = TEAMS.get(tx, trigger.team_id)
    agent = roster.reinstate(tx, AGENTS.get(tx, trigger.agent_id))
    last = nodes.last_of(tx, agent.id) if _is_cycle(trigger, team) else None
    title, task = _words(tx, trigger, team, news, last)
    if last is not None:
        tainted_by = graver(tainted_by, taint.of_nodes(tx, [last.id]))
    return planning.create(
        tx,
        team_id=team.id,
        task=task,
        title=title,
        source="trigger",
        creator_id=trigger.made_by,
        assignee_id=agent.id,
        payer_id=trigger.payer_id,
        trigger_id=trigger.id,
        tainted_by=tainted_by,
    )


def _is_cycle(trigger: Trigger, team: Team) -> bool:
    """Whether it is the heartbeat of a team without an end."""
    return team.mode == "infinite" and not trigger.payload.get("task")


def _words(
    tx: Tx, trigger: Trigger, team: Team, news: str, last: WorkNode | None
) -> tuple[str, str]:
    """What the work is called, and what the agent is told when it wakes."""
    task = str(trigger.payload.get("task", ""))
    made = f"{trigger.created_at:%Y-%m-%d %H:%M} UTC"
    if trigger.promised_to is not None:
        whom = planning.name_of(tx, trigger.promised_to)
        words = prompt("promise").format(whom=whom, made=made, what=task)
        return f"Promise: {first_line(task)}", words
    if _is_cycle(trigger, team):
        number = trigger.fired + 1 + int(bool(trigger.payload.get("begun")))
        words = prompt("cycle").format(
            number=number, goal=team.goal, news=news, before=_before(last)
        )
        return f"Cycle {number}", words
    if not task:
        return "Heartbeat", prompt("heartbeat").format(news=news)
    words = prompt("woken").format(
        task=task, why=described(trigger), id=trigger.id, made=made, news=f" {news}" if news else ""
    )
    return first_line(task), words


def _before(last: WorkNode | None) -> str:
    """Where the agent said it stood when it last rested."""
    said = [] if last is None else [last.checkpoint, last.result]
    return "\n\n".join(text[:KEPT] for text in said if text) or "(this is the first)"


def described(trigger: Trigger) -> str:
    """When a trigger fires, in words."""
    form = configuration.read(trigger.type, trigger.config)
    match form:
        case configuration.Scheduled():
            return f"it is scheduled for {form.cron!r} ({trigger.zone})"
        case configuration.Delayed():
            return f"it was put off by {form.delay_seconds:g} seconds"
        case configuration.AtTime():
            return f"it was set for {form.at} ({trigger.zone})"
        case configuration.Heartbeat():
            return f"it is your heartbeat of {form.interval_seconds:g} seconds"
        case configuration.OnIdle():
            return f"you have done nothing for {form.idle_seconds:g} seconds"
        case configuration.OnEvent():
            filter = f" with {orjson.dumps(form.filter).decode()}" if form.filter else ""
            return f"it waits for {form.event_pattern}{filter}"
        case _:
            return "somebody called its webhook"


def is_quiet(node: WorkNode) -> bool:
    """Whether an agent woke up and found nothing to do."""
    return node.source == "trigger" and (
        node.stop_reason is StopReason.NOTHING_TO_DO or (node.result or "").strip() == NOTHING_TO_DO
    )
