"""Timing: what the configuration of a trigger may say, and what moments follow from it."""

import re
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agiraph.domain import cron
from agiraph.domain.errors import Refused
from agiraph.domain.events import EventType
from agiraph.domain.triggers import Misfire, Overlap, TriggerType

LONGEST = timedelta(days=3660)
DAY_SECONDS = 86_400.0

Seconds = Annotated[float, Field(gt=0, le=LONGEST.total_seconds())]


class Form(BaseModel):
    """What every trigger may say."""

    model_config = ConfigDict(extra="forbid", strict=True)

    zone: str = "UTC"
    misfire: Misfire = "once"
    overlap: Overlap | None = None
    max_fires: Annotated[int, Field(ge=1)] | None = None
    until: str | None = None


class Scheduled(Form):
    cron: str


class Delayed(Form):
    delay_seconds: Seconds


class AtTime(Form):
    at: str


class Heartbeat(Form):
    interval_seconds: Seconds
    when: Literal["news", "always"] = "news"
    """Whether it takes news to wake the agent, or only time."""
    backoff: bool = True
    """Whether an agent that found nothing to do is woken ever more seldom."""
    hours: str | None = None
    watch: list[str] = []


class OnIdle(Form):
    idle_seconds: Seconds


class OnEvent(Form):
    event_pattern: str
    filter: dict[str, Any] = {}
    min_seconds: Annotated[float, Field(ge=0)] = 60.0
    """Between two firings; what happens meanwhile is heard afterwards."""


class Webhook(Form):
    secret: Annotated[str, Field(min_length=16)] | None = None


FORMS: dict[TriggerType, type[Form]] = {
    "scheduled": Scheduled,
    "delayed": Delayed,
    "at_time": AtTime,
    "heartbeat": Heartbeat,
    "on_idle": OnIdle,
    "on_event": OnEvent,
    "webhook": Webhook,
}
_EXAMPLES: dict[TriggerType, str] = {
    "scheduled": '{"cron": "0 9 * * MON", "zone": "Europe/Berlin"}',
    "delayed": '{"delay_seconds": 1800}',
    "at_time": '{"at": "2030-05-20T09:00", "zone": "Europe/Berlin"}',
    "heartbeat": '{"interval_seconds": 1800}',
    "on_idle": '{"idle_seconds": 3600}',
    "on_event": '{"event_pattern": "node.completed", "filter": {"node_id": "node_…"}}',
    "webhook": "{}",
}


def read(type: str, config: dict[str, Any]) -> Form:
    """The configuration of a trigger of this type, or `Refused` with what is wrong with it."""
    form = FORMS.get(type)  # pyright: ignore[reportArgumentType, reportCallIssue]
    if form is None:
        raise Refused(f"There is no trigger of type {type!r}; there are {', '.join(FORMS)}.")
    try:
        read = form.model_validate(config)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        what = {"missing": "is missing", "extra_forbidden": "is not known"}
        said = what.get(first["type"], f"is wrong ({first['msg']})")
        example = next(e for t, e in _EXAMPLES.items() if t == type)
        raise Refused(f"config: {where!r} {said}. A {type} trigger takes {example}.") from error
    _check(read)
    return read


def _check(form: Form) -> None:
    """What the types of the fields do not say."""
    cron.zone_of(form.zone)
    if form.until is not None:
        moment(form.until, form.zone)
    if form.misfire == "all" and form.overlap == "skip":
        raise Refused("misfire 'all' needs overlap 'queue': the slots are made up for in a row.")
    match form:
        case Scheduled():
            cron.parse(form.cron, form.zone)
        case AtTime():
            moment(form.at, form.zone)
        case Heartbeat(hours=str() as hours):
            _hours(hours)
        case OnEvent():
            _check_pattern(form.event_pattern)
        case _:
            pass


def _check_pattern(pattern: str) -> None:
    known = get_args(EventType)
    if not any(fnmatchcase(type, pattern) for type in known) or "[" in pattern:
        stem = pattern.partition(".")[0]
        near = [type for type in known if type.startswith(f"{stem}.")] or known
        raise Refused(
            f"No event is called {pattern!r}. There are {', '.join(near)}; 'node.*' means all "
            "that begin so."
        )


def moment(text: str, zone: str) -> datetime:
    """A moment as people write it; without an offset it is meant in that zone."""
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise Refused(
            f"{text!r} is not a time; write it as 2030-05-20T09:00 or 2030-05-20T09:00+02:00."
        ) from error
    if read.tzinfo is None:
        read = read.replace(tzinfo=cron.zone_of(zone))
    return read.astimezone(UTC)


_AFTER = re.compile(r"(?:in\s+)?(\d+(?:\.\d+)?)\s*(s|m|h|d|w)\w*", re.IGNORECASE)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": DAY_SECONDS, "w": 7 * DAY_SECONDS}


def when(text: str, now: datetime, zone: str = "UTC") -> datetime:
    """A moment, or how long from now: `2 hours`, `in 3 days`."""
    if found := _AFTER.fullmatch(text.strip()):
        seconds = float(found[1]) * _UNITS[found[2].lower()]
        if seconds <= LONGEST.total_seconds():
            return now + timedelta(seconds=seconds)
        raise Refused(f"{text!r} is too far away; ten years is the most.")
    try:
        return moment(text, zone)
    except Refused as error:
        raise Refused(
            f"{text!r} is not a time; write '2 hours', 'in 3 days' or 2030-05-20T09:00."
        ) from error


def first_due(form: Form, now: datetime) -> datetime | None:
    """The first slot of a new trigger; None if it is not time that sets it off."""
    match form:
        case Scheduled():
            return cron.parse(form.cron, form.zone).next(now)
        case Delayed():
            return now + timedelta(seconds=form.delay_seconds)
        case AtTime():
            due = moment(form.at, form.zone)
            if due <= now:
                raise Refused(f"{form.at!r} is in the past: it is {now:%Y-%m-%d %H:%M} UTC now.")
            if due > now + LONGEST:
                raise Refused(f"{form.at!r} is too far away; ten years is the most.")
            return due
        case _:
            return None


def rest_seconds(form: Form) -> float:
    """How long after its agent's last work it is due."""
    match form:
        case Heartbeat():
            return form.interval_seconds
        case OnIdle():
            return form.idle_seconds
        case _:
            raise AssertionError(f"{form!r} does not wait for rest")


def backoff_seconds(interval: float, quiet: int) -> float:
    """How long an agent sleeps that found nothing to do so many times: up to a day."""
    return max(min(interval * 2.0 ** min(quiet, 40), DAY_SECONDS), interval)


_HOURS = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-4]):([0-5]\d)")


def _hours(text: str) -> tuple[int, int]:
    found = _HOURS.fullmatch(text.strip())
    first = last = 0
    if found is not None:
        first, last = (60 * int(found[i]) + int(found[i + 1]) for i in (1, 3))
    if first == last or last > 24 * 60:
        raise Refused(f"{text!r} is not a span of hours; write 08:00-20:00.")
    return first, last


def opens_at(hours: str | None, zone: str, now: datetime) -> datetime | None:
    """When the active hours begin; None if it is within them."""
    if hours is None:
        return None
    first, last = _hours(hours)
    local = now.astimezone(cron.zone_of(zone))
    minute = 60 * local.hour + local.minute
    within = first <= minute < last if first < last else minute >= first or minute < last
    if within:
        return None
    # By way of a schedule, which knows the days on which clocks are set.
    return cron.parse(f"{first % 60} {first // 60} * * *", zone).next(now)
