"""Thread queries: what a scripted model finds in the thread that it is shown.

`ScriptedModel` gets a `Request`; a script of `ModelServer` gets a `Seen`.
"""

import re
from itertools import takewhile

from agiraph.core.domain.events import Event
from agiraph.models.base import Request
from agiraph.testing.script import Seen

_CREATED = re.compile(r"Created (node_\w+)")


def created_nodes(request: Request) -> list[str]:
    """Return the ids of the nodes that this thread created, oldest first."""
    said = "\n".join(turn.text for turn in request.transcript.spoken() if turn.role == "tool")
    return _CREATED.findall(said)


def new_texts(request: Request) -> list[str]:
    """Return the texts since the model's last reply: answers to its calls, then messages."""
    turns = list(request.transcript.spoken())
    replies = [index for index, turn in enumerate(turns) if turn.role == "assistant"]
    return [turn.text for turn in turns[replies[-1] + 1 if replies else 0 :]]


def shown_text(request: Request) -> str:
    """Return everything that the model is shown, without its own replies."""
    return "\n".join(t.text for t in request.transcript.spoken() if t.role != "assistant")


def event_number(events: list[Event], type: str, **data: object) -> int:
    """Return the number of the only event of this type with these data."""
    [found] = [e.seq for e in events if e.type == type and data.items() <= e.data.items()]
    return found


def agent_name(seen: Seen) -> str:
    """Return the name of the agent, from its system prompt."""
    found = re.search(r"You are ([\w.-]+)\.$", seen.system, re.MULTILINE)
    assert found is not None
    return found[1]


def reply_count(seen: Seen) -> int:
    """Return how many replies the thread already has."""
    return sum(message.role == "assistant" for message in seen.messages)


def new_text(seen: Seen) -> str:
    """Return the text since the last reply: answers to its calls, then messages."""
    fresh = takewhile(lambda message: message.role != "assistant", reversed(seen.messages))
    return "\n".join(message.text for message in reversed([*fresh]))


def seen_created_nodes(seen: Seen) -> list[str]:
    """Return the ids of the nodes that this thread created, oldest first."""
    return _CREATED.findall("\n".join(m.text for m in seen.messages if m.role == "tool"))
