"""Scheduled: a trigger that fires by a cron expression."""

from datetime import datetime

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.times import cron
from agiraph.core.domain.triggers import LATE_AFTER, Trigger, TriggerType
from agiraph.core.services.triggers import firing
from agiraph.core.services.triggers.firing import slot_at
from agiraph.core.services.triggers.kinds.base import Kind, TriggerConfig
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
