"""Models: what the loop asks of one, whoever serves it."""

from collections.abc import Callable
from typing import Any, Protocol

from agiraph.domain.chat import ProviderData, ToolCall, ToolSpec, Transcript
from agiraph.domain.value import value
from agiraph.domain.work import Usage

OnDelta = Callable[[str], None]
"""Told the words of a reply as they come. For watching only: they are written down whole."""


@value
class Request:
    transcript: Transcript
    tools: tuple[ToolSpec, ...] = ()
    may_call: bool = True
    """Whether the tools may be called. They are shown all the same: the thread is full of calls,
    and its beginning stays as the vendor has cached it."""
    max_output_tokens: int | None = None
    schema: dict[str, Any] | None = None
    """The JSON schema the reply's text must meet, for a structured answer."""


@value
class Reply:
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    provider_data: ProviderData = ProviderData()
    """Kept with the turn: `thinking` to show, and `vendor` parts that one wire wants back."""
    model: str = ""
    """Who answered, where there was a choice."""


class Model(Protocol):
    @property
    def name(self) -> str:
        """`provider/model`, as people write it."""
        ...

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        """One whole answer, or a `ModelError`. Cancelling ends the request at once."""
        ...
