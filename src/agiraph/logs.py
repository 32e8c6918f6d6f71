"""Logs: what the runtime has to say about itself, for people at a terminal and for programs.

A record is one line. What belongs together carries the same ids: the request, team, node, thread
and agent that were at work when it was written. No secret is ever in it.
"""

import contextlib
import logging
import re
import sys
import traceback
from collections.abc import Generator
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import IO

import orjson

from agiraph.hidden import redact

LEVELS = ("debug", "info", "warning", "error")
_STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What moves a terminal's cursor or hides words from it; a tab too, for what reads columns."""

_trace: ContextVar[dict[str, str]] = ContextVar("agiraph_trace", default={})  # noqa: B039


@contextlib.contextmanager
def traced(**ids: str | None) -> Generator[None]:
    """Let everything that is written within carry these ids, besides those it has already."""
    known = {name: value for name, value in ids.items() if value}
    token = _trace.set({**_trace.get(), **known})
    try:
        yield
    finally:
        _trace.reset(token)


def trace() -> dict[str, str]:
    """The ids of what is going on here."""
    return _trace.get()


class Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **trace(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            said["error"] = "".join(traceback.format_exception(*record.exc_info)).rstrip()
        return redact(orjson.dumps(said, default=str).decode())


class Plain(logging.Formatter):
    """A line for people; what follows an error is set in, so that no words can pose as a record."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).astimezone()
        facts = {**trace(), **getattr(record, "facts", {})}
        about = " ".join(f"{name}={value}" for name, value in facts.items())
        line = f"{at:%H:%M:%S} {record.levelname.lower():7} {record.getMessage()}"
        line = _one_line(f"{line}  {about}".rstrip())
        if record.exc_info:
            told = "".join(traceback.format_exception(*record.exc_info)).rstrip()
            line += "".join(f"\n    | {_one_line(text)}" for text in told.split("\n"))
        return redact(line)


def _one_line(text: str) -> str:
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text.replace("\n", "\\n"))


def begin(level: str = "", *, stream: IO[str] | None = None) -> None:
    """Write to standard error: plainly to a terminal and little, else as JSON and more."""
    out = logging.StreamHandler(stream or sys.stderr)
    is_terminal = out.stream.isatty()
    out.setFormatter(Plain() if is_terminal else Json())
    root = logging.getLogger()
    root.handlers = [out]
    root.setLevel(logging.WARNING)
    chosen = level or ("warning" if is_terminal else "info")
    logging.getLogger("agiraph").setLevel(chosen.upper())
