"""One shot: triggers that fire once, after a delay (delayed) or at a given time (at_time)."""

from datetime import datetime, timedelta

from agiraph.domain.agents import Agent
from agiraph.domain.errors import Refused
from agiraph.domain.moments import MAX_AHEAD, parse_moment
from agiraph.domain.triggers import LATE_AFTER, Trigger, TriggerType
from agiraph.services.triggers import firing
from agiraph.services.triggers.firing import MISFIRE, slot_at
from agiraph.services.triggers.kinds.base import C, Kind, Seconds, TriggerConfig
from agiraph.store.tx import Tx

BUDGET_CHECK = timedelta(hours=1)
"""How long a trigger waits for a budget that is used up before it looks again."""


class OneShot(Kind[C]):
    """A kind with a single slot. It waits for a budget that is used up, unless being late means to
    be skipped."""

    fires_once = True

    def on_due(self, tx: Tx, trigger: Trigger, agent: Agent) -> None:
        assert trigger.due_at is not None
        slot = slot_at(trigger.due_at)
        closed = None if trigger.misfire == "skip" else firing.closed_by_budget(tx, trigger)
        if closed is not None:
            # There is no later slot. `firing.recheck_budget` makes it due as soon as its payer has
            # more; the limit may also be one above its payer.
            later = tx.now + BUDGET_CHECK
            return firing.arm(tx, trigger, later, gated=trigger.gated + 1, gate=closed)
        if trigger.misfire == "skip" and tx.now - trigger.due_at > LATE_AFTER:
            firing.skip(tx, trigger, slot, MISFIRE)
        else:
            self.fire(tx, trigger, slot)
        self.rearm(tx, trigger, None)


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
