"""Logs: formats log records as plain lines for a terminal and as JSON for programs.

A record is one line. It carries the ids of the request, team, node, thread and agent that it is
about, and no secret.
"""

import contextlib
import logging
import re
import sys
import traceback
from collections.abc import Generator
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Protocol

import orjson

from agiraph.redaction import redact, redact_json

LEVELS = ("debug", "info", "warning", "error")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that move a terminal's cursor or reorder its text; a tab too, for column parsers."""

# A context variable: each asyncio task has its own, so concurrent runs do not mix their ids. The
# default is never changed, because `traced` sets a new dict.
_trace: ContextVar[dict[str, str]] = ContextVar("agiraph_trace", default={})  # noqa: B039


@contextlib.contextmanager
def traced(**ids: str | None) -> Generator[None]:
    """Add these ids to every record that is logged within the block."""
    known = {name: value for name, value in ids.items() if value}
    token = _trace.set({**_trace.get(), **known})
    try:
        yield
    finally:
        _trace.reset(token)


def trace() -> dict[str, str]:
    """Return the ids that records get here."""
    return _trace.get()


RECORD_CHARACTERS = 16_000
"""Longer messages and tracebacks are cut: an error may quote a whole file."""


def _fitted(text: str) -> str:
    """Return the text, cut in the middle if it is long, with lone surrogates escaped."""
    if len(text) > RECORD_CHARACTERS:
        half = RECORD_CHARACTERS // 2
        left_out = len(text) - RECORD_CHARACTERS
        text = f"{text[:half]} … {left_out:,} characters left out … {text[-half:]}"
    # orjson and UTF-8 streams refuse lone surrogates, which file names
    # and model replies may contain.
    return text.encode(errors="backslashreplace").decode()


class Json(logging.Formatter):
    """Formats a record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _fitted(record.getMessage()),
            **trace(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            error = "".join(traceback.format_exception(*record.exc_info))
            fields["error"] = _fitted(error.rstrip())
        # The finished line is redacted, because a secret may stand in the message, the facts or the
        # traceback. `default`: a fact of an unknown type must not make logging itself fail.
        return redact_json(orjson.dumps(fields, default=str).decode())


class Plain(logging.Formatter):
    """Formats a record as a line for people.

    Tracebacks are indented, so that text in an error cannot pass for another record.
    """

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).astimezone()
        facts = {**trace(), **getattr(record, "facts", {})}
        about = " ".join(f"{name}={value}" for name, value in facts.items())
        line = f"{at:%H:%M:%S} {record.levelname.lower():7} {_fitted(record.getMessage())}"
        line = _one_line(f"{line}  {about}".rstrip())
        if record.exc_info:
            trace_text = _fitted("".join(traceback.format_exception(*record.exc_info)).rstrip())
            line += "".join(f"\n    | {_one_line(text)}" for text in trace_text.split("\n"))
        return redact(line)


def _one_line(text: str) -> str:
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\n", "\\n"))


def begin(level: str = "", *, stream: IO[str] | None = None) -> None:
    """Log to standard error: warnings as plain lines to a terminal, else info as JSON."""
    out = logging.StreamHandler(stream or sys.stderr)
    is_terminal = out.stream.isatty()
    out.setFormatter(Plain() if is_terminal else Json())
    root = logging.getLogger()
    # Replaced, not added to: a second call would log every line twice.
    root.handlers = [out]
    # Libraries log only warnings and errors; the level in the settings is for agiraph's loggers.
    root.setLevel(logging.WARNING)
    chosen = level or ("warning" if is_terminal else "info")
    logging.getLogger("agiraph").setLevel(chosen.upper())


FIRST_REMINDER_S, LONGEST_REMINDER_S = 60.0, 3600.0
"""The interval between two lines about a lasting failure; doubled after each line."""


class _Clock(Protocol):
    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


@dataclass(slots=True, eq=False)
class Streak:
    """Consecutive failures of one activity that is retried until it succeeds.

    The first failure is logged in full. Later ones are counted, and a line at growing intervals
    says how many there were. Success ends the streak with one more line.
    """

    what: str
    log: logging.Logger
    clock: _Clock
    count: int = 0
    since: datetime | None = None
    error: BaseException | None = None
    _kinds: set[type[BaseException]] = field(default_factory=set[type[BaseException]])
    """Types of error that this streak has logged in full."""
    _reminder_s: float = FIRST_REMINDER_S
    _remind_at: float = 0.0

    def failed(self, error: BaseException, then: str, *, trace: bool = True) -> None:
        """Count a failure; `then` says what happens next. `trace` logs the traceback once."""
        self.count += 1
        self.error = error
        if self.since is None:
            self.since = self.clock.now()
            self._remind_at = self.clock.monotonic() + self._reminder_s
        # By type and not by text: texts contain times, ports and ids, so
        # each would count as a new error.
        if type(error) not in self._kinds:
            self._kinds.add(type(error))
            level = logging.ERROR if trace else logging.WARNING
            self.log.log(
                *(level, "%s failed: %s; %s", self.what, summary(error), then),
                exc_info=error if trace else None,
            )
        elif self.clock.monotonic() >= self._remind_at:
            self._reminder_s = min(2 * self._reminder_s, LONGEST_REMINDER_S)
            self._remind_at = self.clock.monotonic() + self._reminder_s
            self.log.warning("%s; %s", self.description, then)

    def succeeded(self) -> None:
        """End the streak with a line, if there was one."""
        if self.since is None:
            return
        self.log.warning(
            *("%s works again; it had failed %s since %s", self.what),
            *(_times(self.count), _moment(self.since)),
        )
        self.count, self.since, self.error = 0, None, None
        self._kinds.clear()
        self._reminder_s = FIRST_REMINDER_S

    @property
    def description(self) -> str:
        """Return a sentence: what fails, how often, since when, and the last error."""
        assert self.since is not None
        assert self.error is not None
        said = f"{self.what} has failed {_times(self.count)} since {_moment(self.since)}"
        return f"{said}: {summary(self.error)}"


def summary(error: BaseException) -> str:
    """Return the type of an error and the first line of its text, without secrets."""
    said = str(error).strip().partition("\n")[0]
    return redact(f"{type(error).__name__}: {said}" if said else type(error).__name__)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
