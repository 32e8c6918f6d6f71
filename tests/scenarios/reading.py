"""Reading: what a scripted model finds in the thread it is shown, as a real one would."""

import re
from itertools import takewhile

from agiraph.domain.events import Event
from agiraph.providers.base import Request
from agiraph.testing.script import Seen

_CREATED = re.compile(r"Created (node_\w+)")


def created(request: Request) -> list[str]:
    """The ids of the nodes this thread put on the board, oldest first."""
    said = "\n".join(turn.text for turn in request.transcript.spoken() if turn.role == "tool")
    return _CREATED.findall(said)


def news(request: Request) -> list[str]:
    """What was said since the model's last reply: answers to its calls first, then messages."""
    turns = list(request.transcript.spoken())
    replies = [index for index, turn in enumerate(turns) if turn.role == "assistant"]
    return [turn.text for turn in turns[replies[-1] + 1 if replies else 0 :]]


def shown(request: Request) -> str:
    """All that the model is shown, but not what it said itself."""
    return "\n".join(t.text for t in request.transcript.spoken() if t.role != "assistant")


def place(events: list[Event], type: str, **data: object) -> int:
    """Where in the team's history something happened, the only time that it did."""
    [found] = [e.seq for e in events if e.type == type and data.items() <= e.data.items()]
    return found


def name(seen: Seen) -> str:
    """Whom a request is for, by what its system prompt says."""
    found = re.search(r"You are ([\w.-]+)\.$", seen.system, re.MULTILINE)
    assert found is not None
    return found[1]


def step(seen: Seen) -> int:
    """How often this thread has been answered before."""
    return sum(message.role == "assistant" for message in seen.messages)


def heard(seen: Seen) -> str:
    """What was said since the last answer: the results of its calls first, then messages."""
    fresh = takewhile(lambda message: message.role != "assistant", reversed(seen.messages))
    return "\n".join(message.text for message in reversed([*fresh]))


def made(seen: Seen) -> list[str]:
    """The ids of the nodes this thread put on the board, oldest first."""
    return _CREATED.findall("\n".join(m.text for m in seen.messages if m.role == "tool"))
