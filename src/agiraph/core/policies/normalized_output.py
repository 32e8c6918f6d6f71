"""Normalized output: a tool's answer without times, durations, process ids and random ids.

These differ each time a command is repeated, also if its outcome is the same. Without them the
loop detector sees that two answers are equal.
"""

import re
from collections.abc import Iterable

_EXAMINED = 4000
"""Characters of an answer that are compared, half from its beginning and half from its end."""
_VOLATILE = re.compile(
    "|".join(
        (
            # Dates with or without a time, and times of day.
            r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?"
            r"(?:Z|[+-]\d\d:?\d\d| ?UTC)?)?\b",
            r"\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+(?:\w{3}\s+\d{1,2}|\d{1,2}\s+\w{3})\b",
            r"\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[ap]m)?\b",
            # Durations and sizes of time: 0.31s, 12 ms, 3 minutes.
            r"\b\d+(?:[.,]\d+)?\s?(?:ns|µs|us|ms|msec|s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?)\b",
            # UUIDs, ids such as node_01j9…, hashes and addresses in memory.
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
            r"\b0x[0-9a-f]+\b",
            r"\b(?=[0-9a-z]*\d)(?=[0-9a-z]*[a-z])(?:[a-z]+_[0-9a-z]{8,}|[0-9a-f]{12,})\b",
            # Processes, and numbers of tries.
            r"\b(?:pid|process|thread|tid|port|job)\b[\s:=#]*\d+",
            r"\b(?:attempt|try|retry|retries|iteration|round|run|tick|count|counter|seq|request)\b"
            r"[\s:=#(]*\d+(?:\s?(?:/|of)\s?\d+)?",
            r"(?<=\[)\d{3,}(?=\])",
            r"/tmp/[\w./-]+",
        )
    ),
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`|«[^«»\n]*»|“[^“”\n]*”")


def outcome(text: str, *, failed: bool) -> str:
    """Return the answer without times, durations, counters and ids.

    In a failure no number counts. A success may count something up, such as the lines of a log, and
    that is progress.
    """
    examined = text if len(text) <= _EXAMINED else text[: _EXAMINED // 2] + text[-_EXAMINED // 2 :]
    normal = _VOLATILE.sub("#", examined)
    return _NUMBER.sub("#", normal) if failed else normal


def complaint(text: str, arguments: Iterable[object]) -> str:
    """Return the message of a failed call without what the call's own arguments put into it."""
    normal = outcome(text, failed=True)
    for value in sorted({str(v) for v in arguments if str(v).strip()}, key=len, reverse=True):
        normal = normal.replace(_NUMBER.sub("#", _VOLATILE.sub("#", value)), "@")
    return _QUOTED.sub("@", normal)
