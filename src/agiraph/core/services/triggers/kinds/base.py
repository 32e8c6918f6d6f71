"""Kind: the behaviour that a kind of trigger has unless it defines its own.

A kind is a subclass of `Kind` in a module of this package, with an entry in `registry.KINDS`. No
other module asks for a trigger's type: what depends on it is an attribute or a method here.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text.plurals import times
from agiraph.core.domain.times.moments import MAX_AHEAD, parse_moment, parse_zone
from agiraph.core.domain.triggers import Firing, Misfire, Overlap, Trigger, TriggerType
from agiraph.core.services.triggers import firing
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx

Seconds = Annotated[float, Field(gt=0, le=MAX_AHEAD.total_seconds())]

FileHashes = dict[str, str]
"""SHA-256 of watched files by path; the empty text stands for a file that cannot be read."""


class TriggerConfig(BaseModel):
    """The configuration fields that every kind accepts."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, defer_build=True)

    zone: str = "UTC"
    misfire: Misfire = "once"
    overlap: Overlap | None = None
    max_fires: Annotated[int, Field(ge=1)] | None = None
    until: str | None = None


C = TypeVar("C", bound=TriggerConfig)


class Kind(ABC, Generic[C]):
    """What one `TriggerType` means. Instances have no state: everything is in the trigger's row.

    The hooks (`on_…`) run in the caller's transaction. The caller has locked the agent's row, then
    the trigger's row, and has checked that trigger and team are active.
    """

    name: TriggerType
    config_type: type[C]
    example: str
    """A valid configuration as JSON, for error messages."""
    guidance: str = ""
    """The line about this kind in the `schedule` tool's guidance. Empty: only people create it."""
    fires_once: bool = False
    """The trigger ends after its first slot, whether that slot fired or was skipped."""
    ends_without_due: bool = False
    """The trigger ends when it has no next due time."""
    is_due_after_work: bool = False
    """The due time counts from the end of the agent's last work; there is none while it works."""
    follows_events: bool = False
    """The trigger reads the team's events; see `event_pattern` and `on_events`."""
    needs_secret: bool = False
    """The trigger is called from outside with a secret; see `given_secret` and `on_request`."""

    # ---- configuration ---------------------------------------------------------------------

    def read(self, config: Mapping[str, Any]) -> C:
        """Return the validated configuration. Raise `Refused` with the first error."""
        try:
            parsed = self.config_type.model_validate(config)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            problems = {"missing": "is missing", "extra_forbidden": "is not known"}
            problem = problems.get(first["type"], f"is wrong ({first['msg']})")
            raise Refused(
                f"config: {field!r} {problem}. A {self.name} trigger takes {self.example}."
            ) from error
        parse_zone(parsed.zone)
        if parsed.until is not None:
            parse_moment(parsed.until, parsed.zone)
        if parsed.misfire == "all" and parsed.overlap == "skip":
            raise Refused("misfire 'all' needs overlap 'queue': missed slots fire in a row.")
        self.check(parsed)
        return parsed

    def check(self, config: C) -> None:
        """Raise `Refused` for values that have the right type and still make no sense."""

    def stored_config(
        self, tx: Tx, team_id: TeamId, config: C, given: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the configuration as the trigger's row keeps it."""
        return given

    def given_secret(self, config: C) -> str | None:
        """Return the secret that the configuration sets, if any. It is stored only as a hash."""
        return None

    @abstractmethod
    def describe(self, config: C) -> str:
        """Return the reason for a firing as a clause, for the agent that the trigger wakes."""

    # ---- due times -------------------------------------------------------------------------

    def first_due(self, config: C, now: datetime) -> datetime | None:
        """Return the first due time of a new trigger; None if time alone does not fire it."""
        return self.next_due(config, now)

    def next_due(self, config: C, after: datetime) -> datetime | None:
        """Return when the trigger is due next after `after`; None if never again."""
        return None

    def shortest_gap_s(self, config: C, now: datetime) -> float:
        """Return how soon the trigger can fire, or fire again. Agents have to respect a minimum."""
        due = self.first_due(config, now)
        return float("inf") if due is None else (due - now).total_seconds()

    def repeats_after_s(self, config: C, now: datetime) -> float:
        """Return the shortest time between two firings; infinity for a kind that fires once."""
        return float("inf") if self.fires_once else self.shortest_gap_s(config, now)

    def slowed(self, config: dict[str, Any], least_s: float) -> dict[str, Any]:
        """Return the configuration with at least this time between two firings, if that changes
        nothing but how soon the trigger reacts."""
        return config

    # ---- hooks -----------------------------------------------------------------------------

    def on_due(self, tx: Tx, trigger: Trigger, agent: Agent) -> None:
        """Handle the due time, which has come."""
        firing.arm(tx, trigger, None)

    def on_agent_idle(self, tx: Tx, trigger: Trigger, *, quiet: int) -> None:
        """Handle the end of the agent's last work.

        `quiet` counts the wake-ups in a row in which the agent found nothing to do.
        """

    def watched_files(self, config: C) -> Sequence[str]:
        """Return the paths below the team's folder whose hashes `on_files_read` needs."""
        return ()

    def on_files_read(self, tx: Tx, trigger: Trigger, agent: Agent, hashes: FileHashes) -> None:
        """Handle the hashes of the watched files, which were read because the trigger is due."""

    def event_pattern(self, stored: Mapping[str, Any]) -> str:
        """Return the pattern of event types that may concern a trigger with this stored config.

        Only kinds that follow events have one. It must not validate: one trigger with a broken
        configuration would keep the events from all other triggers.
        """
        return ""

    def on_events(self, tx: Tx, trigger: Trigger) -> bool:
        """Read new events of the team. Return whether there may be more to read."""
        return False

    def on_request(self, tx: Tx, trigger: Trigger, slot: str, body: str) -> Firing:
        """Handle a call from outside whose secret is right."""
        raise Refused(f"{trigger.id} is a {self.name} trigger; it cannot be called.")

    # ---- for the hooks ---------------------------------------------------------------------

    def fire(
        self, tx: Tx, trigger: Trigger, slot: str, *, news: str = "", label: Label = CLEAN
    ) -> Firing:
        """Fire the trigger in this slot, or record why the slot is skipped."""
        why = self.describe(self.read(trigger.config))
        return firing.fire(tx, trigger, slot, why=why, news=news, label=label)

    def rearm(self, tx: Tx, trigger: Trigger, due: datetime | None) -> None:
        """Set the next due time, or end the trigger if it is over."""
        trigger = TRIGGERS.get(tx, trigger.id)
        if why := self._why_over(trigger, due, tx.now):
            return firing.end(tx, trigger, "expired", why)
        return firing.arm(tx, trigger, due)

    def _why_over(self, trigger: Trigger, due: datetime | None, now: datetime) -> str | None:
        if self.fires_once:
            return "it was for one time"
        if trigger.max_fires is not None and trigger.fired >= trigger.max_fires:
            return f"it has fired {times(trigger.fired)}, as agreed"
        if trigger.until is not None and max(due or now, now) > trigger.until:
            return f"its time was over on {trigger.until:%Y-%m-%d %H:%M}"
        return "its schedule has come to an end" if self.ends_without_due and due is None else None
