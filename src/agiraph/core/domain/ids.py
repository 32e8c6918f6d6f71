"""Ids: row ids that start with their kind and sort by creation time."""

import secrets
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import NewType

TeamId = NewType("TeamId", str)
AgentId = NewType("AgentId", str)
NodeId = NewType("NodeId", str)
ThreadId = NewType("ThreadId", str)
MessageId = NewType("MessageId", str)
StageId = NewType("StageId", str)
TriggerId = NewType("TriggerId", str)
PersonId = NewType("PersonId", str)

SYSTEM = "system"
"""The sender of the runtime's own messages."""

# Crockford's base 32: no letters that look alike, and in ASCII order, so that ids sort like their
# numbers.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS = 45
_lock = threading.Lock()
_last = 0


_now: Callable[[], datetime] | None = None


def use_clock(now: Callable[[], datetime]) -> None:
    """Take the time in new ids from this clock, which all processes share."""
    global _now
    _now = now


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000 if _now is None else int(_now().timestamp() * 1000)


def _base32(number: int, digits: int) -> str:
    places = range(5 * (digits - 1), -1, -5)
    return "".join([_ALPHABET[(number >> place) & 31] for place in places])


def new_id(kind: str) -> str:
    """Return a new id such as `node_01j9…`. Later ids of one process sort after earlier ones."""
    global _last
    with _lock:
        made = (_milliseconds() << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
        # `+ 1` keeps the order of this process's ids within a millisecond, and when the clock is
        # set back.
        _last = max(made, _last + 1)
        return f"{kind}_{_base32(_last, 18)}"


def short(identifier: str) -> str:
    """Return the last characters of an id, enough to tell the rows of one list apart."""
    return identifier[-6:]
