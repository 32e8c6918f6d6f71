"""Idle wait: finds calls that wait at a cost, although a parked node waits for free.

A `sleep` in the shell keeps a process and a model's turn busy, and a second look at work that has
not changed brings nothing new. The runtime can park the node instead.
"""

import re
from collections.abc import Mapping

from agiraph.core.domain.chat import ToolCall, Transcript, Turn
from agiraph.core.tools.base import Tool

LONGEST_SLEEP_S = 30.0
"""A longer sleep is refused while delegated work is open."""
MAX_LOOKS = 4
"""Replies that are examined for an earlier look, newest first."""

_SLEEP = re.compile(r"\bsleep\s+((?:\d+(?:\.\d+)?[smhd]?\s*)+)|\btime\.sleep\(\s*(\d+(?:\.\d+)?)")
_LOOP = re.compile(r"\b(?:while|until|for)\b")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def seconds_asleep(command: str) -> float:
    """Return how long a shell command sleeps at least; a sleep in a loop counts as endless."""
    total = 0.0
    for shell, python in _SLEEP.findall(command):
        total += float(python) if python else sum(map(_seconds, shell.split()))
    return float("inf") if total and _LOOP.search(command) else total


def _seconds(text: str) -> float:
    return float(text.rstrip("smhd")) * _UNITS.get(text[-1], 1.0)


def earlier_look(transcript: Transcript, call: ToolCall, tools: Mapping[str, Tool]) -> str | None:
    """Return the answer to the same look in a reply before this one, with nothing but looks since;
    None if this is the first look."""
    for reply in transcript.steps(MAX_LOOKS)[1:]:
        if not reply.calls or not all(_polls(made, tools) for made in reply.calls):
            return None
        for made in reply.calls:
            if (made.name, made.arguments) == (call.name, call.arguments):
                return _answer_to(transcript, made.id, reply)
    return None


def _polls(call: ToolCall, tools: Mapping[str, Tool]) -> bool:
    tool = tools.get(call.name)
    return tool is not None and tool.properties.polls


def _answer_to(transcript: Transcript, call_id: str, reply: Turn) -> str | None:
    for turn in reversed(transcript.turns):
        if turn.seq <= reply.seq:
            return None
        if turn.role == "tool" and turn.ref == call_id:
            return turn.text
    return None
