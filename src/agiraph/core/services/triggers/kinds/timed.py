"""Timed: triggers that fire by the clock: after a delay, at a time, or by a cron expression."""

from datetime import datetime, timedelta
from typing import NamedTuple

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.times import cron
from agiraph.core.domain.times.moments import MAX_AHEAD, parse_moment
from agiraph.core.domain.triggers import LATE_AFTER, LEAST_APART, Trigger, TriggerType
from agiraph.core.services.board import budgets
from agiraph.core.services.triggers import firing
from agiraph.core.services.triggers.firing import slot_at
from agiraph.core.services.triggers.kinds.base import C, Kind, Seconds, TriggerConfig
from agiraph.core.store import triggers
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx

MAX_CATCH_UP = 24
"""Missed slots that misfire 'all' fires at once."""
COMPARED_SLOTS = 50
"""Coming slots that are compared to find the shortest time between two of them."""


class ScheduledConfig(TriggerConfig):
    cron: str


class Scheduled(Kind[ScheduledConfig]):
    name: TriggerType = "scheduled"
    config_type = ScheduledConfig
    example = '{"cron": "0 9 * * MON", "zone": "Europe/Berlin"}'
    guidance = f"{example}: again and again"
    ends_without_due = True

    def check(self, config: ScheduledConfig) -> None:
        cron.parse(config.cron, config.zone)

    def describe(self, config: ScheduledConfig) -> str:
        return f"it is scheduled for {config.cron!r} ({config.zone})"

    def next_due(self, config: ScheduledConfig, after: datetime) -> datetime | None:
        return cron.parse(config.cron, config.zone).next(after)

    def shortest_gap_s(self, config: ScheduledConfig, now: datetime) -> float:
        # The first slot may be seconds away; what counts is that slots are at least a minute apart.
        return cron.MINUTE.total_seconds()

    def repeats_after_s(self, config: ScheduledConfig, now: datetime) -> float:
        schedule = cron.parse(config.cron, config.zone)
        gaps: list[float] = []
        slot = schedule.next(now)
        while slot is not None and len(gaps) < COMPARED_SLOTS:
            after = schedule.next(slot)
            gaps += [] if after is None else [(after - slot).total_seconds()]
            slot = after
        return min(gaps, default=float("inf"))

    def on_due(self, tx: Tx, trigger: Trigger, agent: Agent) -> None:
        """Fire the slot that is due. Apply the misfire policy to slots that nobody handled in time.

        Slots are missed while no process runs, and when the clock jumps.
        """
        due = trigger.due_at
        assert due is not None
        schedule = cron.parse(trigger.config["cron"], trigger.zone)
        if trigger.until is not None and due > trigger.until:
            return self.rearm(tx, trigger, due)
        after = schedule.next(due)
        if tx.now - due <= LATE_AFTER and (after is None or after > tx.now):
            self.fire(tx, trigger, slot_at(due))
            return self.rearm(tx, trigger, after)
        end = tx.now if trigger.until is None else min(tx.now, trigger.until)
        latest = schedule.last(end, not_before=due) or due
        catch_up = _slots_to_catch_up(schedule, trigger, due, latest, now=tx.now)
        _skip(tx, schedule, trigger, due, catch_up[0] - cron.MINUTE if catch_up else latest)
        for slot in catch_up:
            trigger = TRIGGERS.get(tx, trigger.id)
            if trigger.max_fires is None or trigger.fired < trigger.max_fires:
                self.fire(tx, trigger, slot_at(slot))
        # From the last slot, not from now: after the clock was set back, slots
        # would fire a second time.
        return self.rearm(tx, trigger, schedule.next(latest))


def _slots_to_catch_up(
    schedule: cron.Cron, trigger: Trigger, due: datetime, latest: datetime, *, now: datetime
) -> list[datetime]:
    """Return the missed slots from `due` to `latest` that fire now, oldest first.

    The trigger's `misfire` decides: `all` fires the last `MAX_CATCH_UP` of them, `once` only the
    latest, `skip` the latest unless it is more than `LATE_AFTER` ago.
    """
    if trigger.misfire == "all":
        found = [latest]
        while len(found) < MAX_CATCH_UP and found[0] > due:
            earlier = schedule.last(found[0] - cron.MINUTE, not_before=due)
            if earlier is None:
                break
            found.insert(0, earlier)
        return found
    return [] if trigger.misfire == "skip" and now - latest > LATE_AFTER else [latest]


def _skip(tx: Tx, schedule: cron.Cron, trigger: Trigger, due: datetime, until: datetime) -> None:
    """Record the slots from `due` to `until` as missed, in one row."""
    last = schedule.last(until, not_before=due)
    if last is not None:
        count = schedule.count(due, last)
        firing.miss(tx, trigger, slot_at(due), count=count, last=slot_at(last))


BUDGET_CHECK = timedelta(hours=1)
"""How long a trigger waits for a budget that is used up before it looks again."""
LONGEST_WAIT = timedelta(days=7)
"""How long after its due time a trigger stops to wait for a budget, and is skipped."""
OVER = "its time was over on {:%Y-%m-%d %H:%M}"
APART = "another trigger with untrusted text has just fired"


class OneShot(Kind[C]):
    """A kind with a single slot. It waits for a budget that is used up, unless its misfire policy
    is `skip`."""

    fires_once = True

    def on_due(self, tx: Tx, trigger: Trigger, agent: Agent) -> None:
        assert trigger.due_at is not None
        slot = slot_at(trigger.due_at)
        if trigger.until is not None and tx.now - trigger.until > LATE_AFTER:
            firing.skip(tx, trigger, slot, OVER.format(trigger.until))
        elif trigger.misfire == "skip" and tx.now - trigger.due_at > LATE_AFTER:
            firing.miss(tx, trigger, slot)
        elif (wait := _wait(tx, trigger)) is not None:
            return firing.postpone(tx, trigger, wait.until, wait.why)
        else:
            self.fire(tx, trigger, slot)
        return self.rearm(tx, trigger, None)


class _Wait(NamedTuple):
    """A due trigger does not fire yet: until when, and why."""

    until: datetime
    why: str


def _wait(tx: Tx, trigger: Trigger) -> _Wait | None:
    """Return whether a due trigger waits: for an hour after another labelled one of its agent, or
    for its budget, if that can still be raised."""
    last = triggers.bounded_fired_at(tx, trigger)
    if last is not None and tx.now < last + LEAST_APART:
        return _Wait(last + LEAST_APART, APART)
    closed, payer = firing.closed_by_budget(tx, trigger), triggers.payer(tx, trigger)
    if closed is None or payer is None or trigger.misfire == "skip" or trigger.due_at is None:
        return None
    # `firing.recheck_budget` makes it due as soon as its payer has more; the limit may also be one
    # above its payer.
    later = tx.now + BUDGET_CHECK
    is_in_time = later <= trigger.due_at + LONGEST_WAIT
    return _Wait(later, closed) if is_in_time and budgets.can_be_raised(tx, payer) else None


class DelayedConfig(TriggerConfig):
    delay_seconds: Seconds


class Delayed(OneShot[DelayedConfig]):
    name: TriggerType = "delayed"
    config_type = DelayedConfig
    example = '{"delay_seconds": 1800}'
    guidance = f"{example}: once, after a while"

    def describe(self, config: DelayedConfig) -> str:
        return f"it was put off by {config.delay_seconds:g} seconds"

    def first_due(self, config: DelayedConfig, now: datetime) -> datetime:
        return now + timedelta(seconds=config.delay_seconds)


class AtTimeConfig(TriggerConfig):
    at: str


class AtTime(OneShot[AtTimeConfig]):
    name: TriggerType = "at_time"
    config_type = AtTimeConfig
    example = '{"at": "2030-05-20T09:00", "zone": "Europe/Berlin"}'
    guidance = f"{example}: once, then"

    def check(self, config: AtTimeConfig) -> None:
        parse_moment(config.at, config.zone)

    def describe(self, config: AtTimeConfig) -> str:
        return f"it was set for {config.at} ({config.zone})"

    def first_due(self, config: AtTimeConfig, now: datetime) -> datetime:
        due = parse_moment(config.at, config.zone)
        if due <= now:
            raise Refused(f"{config.at!r} is in the past: it is {now:%Y-%m-%d %H:%M} UTC now.")
        if due > now + MAX_AHEAD:
            raise Refused(f"{config.at!r} is too far away; ten years is the most.")
        return due
