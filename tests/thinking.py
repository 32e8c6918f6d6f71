"""Thinking model: a scripted model that can run test code while its reply is awaited."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import Says
from agiraph.testing.scripted import as_reply

Thought = Says | Callable[[], Awaitable[Says]]


@dataclass(slots=True)
class ThinkingModel:
    """Replies with its lines in turn; a coroutine function is awaited for its reply."""

    name: str
    lines: list[Thought]
    heard: list[str] = field(default_factory=list[str])
    """The last message that it was shown, one for each request."""

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        self.heard.append(list(request.transcript.spoken())[-1].text)
        line = self.lines.pop(0)
        return as_reply(line if isinstance(line, Says) else await line())
