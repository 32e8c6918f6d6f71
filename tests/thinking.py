"""A model that takes its time: for what happens while it thinks."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.testing import Says
from agiraph.testing.scripted import as_reply

Thought = Says | Callable[[], Awaitable[Says]]


@dataclass(slots=True)
class ThinkingModel:
    """Says its lines in turn; a line that is a coroutine function acts before it speaks."""

    name: str
    lines: list[Thought]
    heard: list[str] = field(default_factory=list[str])
    """The last thing it was shown, each time."""

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        self.heard.append(list(request.transcript.spoken())[-1].text)
        line = self.lines.pop(0)
        return as_reply(line if isinstance(line, Says) else await line())
