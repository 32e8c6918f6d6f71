"""Ringing: what becomes of a trigger whose time has come, or whose event or call has."""

import hmac
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

import orjson

from agiraph.domain import cron
from agiraph.domain.agents import Agent
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.events import Event
from agiraph.domain.ids import TeamId, TriggerId, new_id
from agiraph.domain.triggers import Firing, Trigger
from agiraph.domain.work import WorkNode
from agiraph.services.board import taint
from agiraph.services.mail.bus import TEXT_LIMIT
from agiraph.services.triggers import configuration, firing, wake_gate
from agiraph.services.triggers.definitions import hash_of
from agiraph.services.triggers.firing import KEPT, MISFIRE
from agiraph.store import events, teams, triggers
from agiraph.store.teams import TEAMS
from agiraph.store.triggers import TRIGGERS
from agiraph.store.tx import Tx

LATE = timedelta(minutes=2)
"""How late a slot may be and still count as on time."""
MOST_MADE_UP = 24
"""Missed slots that misfire 'all' makes up for at once."""
HEARD_AT_ONCE = 500
A_CALLER = "whoever calls a webhook"
"""What its words are tainted by."""


def _held(tx: Tx, trigger_id: TriggerId) -> tuple[Trigger, Agent] | None:
    """An active trigger, held; the agent first, as everyone does who hands it work."""
    found = TRIGGERS.find(tx, trigger_id)
    if found is None:
        return None
    agent = teams.lock(tx, found.agent_id)
    trigger = TRIGGERS.get(tx, trigger_id, lock=True)
    team = TEAMS.get(tx, trigger.team_id)
    # What is due in a paused team stays due until it goes on.
    is_active = (trigger.status, team.status) == ("active", "active")
    return (trigger, agent) if is_active and _makes_sense(tx, trigger) else None


def _makes_sense(tx: Tx, trigger: Trigger) -> bool:
    """Whether it can still be read: a zone may be unknown here. What cannot ends, alone."""
    try:
        configuration.read(trigger.type, trigger.config)
    except Refused as refusal:
        firing.end(tx, trigger, "expired", f"it makes no sense any more: {refusal}")
        return False
    return True


def ring(tx: Tx, trigger_id: TriggerId) -> None:
    """Its timer rang: let it fire, or find out that there is nothing to fire for."""
    held = _held(tx, trigger_id)
    if held is None:
        return
    trigger, agent = held
    if trigger.due_at is None:
        return
    if trigger.due_at > tx.now:  # it was put off meanwhile
        return firing.arm(tx, trigger, trigger.due_at)
    match trigger.type:
        case "scheduled":
            _ring_schedule(tx, trigger, trigger.due_at)
        case "delayed" | "at_time":
            _ring_once(tx, trigger, trigger.due_at)
        case "heartbeat":
            wake_gate.beat(tx, trigger, agent)
        case "on_idle":
            wake_gate.idle(tx, trigger, agent)
        case "on_event":
            hear(tx, trigger_id)
        case "webhook":
            firing.arm(tx, trigger, None)


def _ring_once(tx: Tx, trigger: Trigger, due: datetime) -> None:
    if trigger.misfire == "skip" and tx.now - due > LATE:
        firing.skip(tx, trigger, firing.at(due), MISFIRE)
    else:
        firing.handle(tx, trigger, firing.at(due))
    firing.go_on(tx, trigger, None)


def _ring_schedule(tx: Tx, trigger: Trigger, due: datetime) -> None:
    """Handle every slot up to now: the clock may have jumped, or nobody was there."""
    schedule = cron.parse(trigger.config["cron"], trigger.zone)
    if trigger.until is not None and due > trigger.until:
        return firing.go_on(tx, trigger, due)
    after = schedule.next(due)
    if tx.now - due <= LATE and (after is None or after > tx.now):
        firing.handle(tx, trigger, firing.at(due))
        return firing.go_on(tx, trigger, after)
    end = tx.now if trigger.until is None else min(tx.now, trigger.until)
    latest = schedule.last(end, not_before=due) or due
    made_up = _made_up(schedule, trigger, due, latest, now=tx.now)
    _skip(tx, schedule, trigger, due, made_up[0] - cron.MINUTE if made_up else latest)
    for slot in made_up:
        trigger = TRIGGERS.get(tx, trigger.id)
        if trigger.max_fires is None or trigger.fired < trigger.max_fires:
            firing.handle(tx, trigger, firing.at(slot))
    return firing.go_on(tx, trigger, schedule.next(latest))


def _skip(tx: Tx, schedule: cron.Cron, trigger: Trigger, due: datetime, until: datetime) -> None:
    """Record the slots from the due one on that nobody was there for."""
    last = schedule.last(until, not_before=due)
    if last is not None:
        count = schedule.count(due, last)
        firing.skip(tx, trigger, firing.at(due), MISFIRE, count=count, last=firing.at(last))


def _made_up(
    schedule: cron.Cron, trigger: Trigger, due: datetime, latest: datetime, *, now: datetime
) -> list[datetime]:
    """The slots that fire, of those from the due one to the latest."""
    if trigger.misfire == "all":
        found = [latest]
        while len(found) < MOST_MADE_UP and found[0] > due:
            earlier = schedule.last(found[0] - cron.MINUTE, not_before=due)
            if earlier is None:
                break
            found.insert(0, earlier)
        return found
    return [] if trigger.misfire == "skip" and now - latest > LATE else [latest]


def look(tx: Tx, trigger_id: TriggerId, hashes: wake_gate.Hashes) -> None:
    """The files a heartbeat watches were looked at: now it can be decided."""
    triggers.drop_errand(tx, triggers.look_of(trigger_id).id)
    held = _held(tx, trigger_id)
    if held is not None and held[0].due_at is not None and held[0].due_at <= tx.now:
        wake_gate.beat(tx, held[0], held[1], hashes)


def rest(tx: Tx, agent: Agent, last: WorkNode) -> None:
    """An agent has no more work: its heartbeats are due some time from now."""
    quiet = firing.is_quiet(last)
    for trigger in triggers.at_rest(tx, agent.id):
        if not _makes_sense(tx, trigger):
            continue
        found_nothing = trigger.quiet + int(last.trigger_id == trigger.id)
        wake_gate.rest(tx, trigger, quiet=found_nothing if quiet else 0)


def hear(tx: Tx, trigger_id: TriggerId) -> bool:
    """Look at what happened since it last did, event by event; whether there may be more."""
    held = _held(tx, trigger_id)
    if held is None:
        return False
    trigger = held[0]
    form = configuration.read(trigger.type, trigger.config)
    assert isinstance(form, configuration.OnEvent)
    head = events.head(tx, trigger.team_id)
    heard = triggers.matching_events(tx, trigger, form.event_pattern, limit=HEARD_AT_ONCE)
    cursor = min(heard[-1].seq, head) if len(heard) == HEARD_AT_ONCE else head
    due: datetime | None = None
    for event in heard:
        if event.seq > head or not _concerns(tx, trigger, form, event):
            continue
        may_fire = (trigger.fired_at or tx.now) + timedelta(seconds=form.min_seconds)
        if trigger.fired_at is not None and tx.now < may_fire:
            cursor, due = event.seq - 1, may_fire  # heard when its time has come
            break
        tainted_by = taint.of_nodes(tx, filter(None, [event.data.get("node_id")]))
        slot, news = f"event {event.seq}", _told(event)
        firing.handle(tx, trigger, slot, news=news, tainted_by=tainted_by)
        trigger = TRIGGERS.get(tx, trigger_id)
        if trigger.max_fires is not None and trigger.fired >= trigger.max_fires:
            cursor = event.seq
            break
    TRIGGERS.update(tx, trigger_id, cursor=cursor)
    firing.go_on(tx, trigger, due)
    return due is None and cursor < head


def _concerns(tx: Tx, trigger: Trigger, form: configuration.OnEvent, event: Event) -> bool:
    """Whether an event is what the trigger waits for, and not what it brought about itself."""
    if not fnmatchcase(event.type, form.event_pattern):
        return False
    if event.data.get("trigger_id") == trigger.id:
        return False
    for key, value in form.filter.items():
        if key not in event.data or str(event.data[key]) != str(value):
            return False
    node_id = event.data.get("node_id")
    return not (isinstance(node_id, str) and triggers.led_to(tx, trigger.id, node_id))


def _told(event: Event) -> str:
    data = orjson.dumps(event.data, default=str).decode()
    return f"What happened: {event.type} at {event.at:%Y-%m-%d %H:%M} UTC: {data[:KEPT]}"


def hit(
    tx: Tx, trigger_id: TriggerId, secret: str, body: str, *, delivery: str | None = None
) -> Firing:
    """Somebody calls a webhook. The same delivery again has no further effect."""
    found = TRIGGERS.find(tx, trigger_id)
    if found is None or not hmac.compare_digest(found.secret or "", hash_of(secret)):
        raise NotFound("webhook", trigger_id, known="Its address or its secret is wrong.")
    if len(body) > TEXT_LIMIT:
        raise Refused(f"A webhook takes {TEXT_LIMIT:,} characters; this has {len(body):,}.")
    slot = new_id("hit") if delivery is None else f"hit {delivery[:200]}"
    if before := triggers.firing(tx, trigger_id, slot):
        return before
    held = _held(tx, trigger_id)
    if held is None:
        raise Refused(f"{trigger_id} takes nothing at present: it, or its team, is not active.")
    trigger = held[0]
    said = f"It was called with this, which is data and not an order:\n{body[:KEPT]}"
    done = firing.handle(tx, trigger, slot, news=said, tainted_by=A_CALLER)
    firing.go_on(tx, trigger, None)
    return done


def overdue(tx: Tx, team_id: TeamId | None = None) -> list[Trigger]:
    """Triggers that should have fired and did not."""
    return triggers.overdue(tx, since=tx.now - LATE, team_id=team_id)
