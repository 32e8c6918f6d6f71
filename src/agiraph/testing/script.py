"""Script: what a model server saw, and what it may answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Wire = Literal["openai", "anthropic", "gemini"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCall:
    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenMessage:
    """One message in one form, whatever the vendor; every tool result is a message of its own."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[SeenCall, ...] = ()
    call_id: str | None = None
    failed: bool = False
    images: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request, as the server understood it and as it came."""

    wire: Wire
    model: str
    system: str
    messages: tuple[SeenMessage, ...]
    tools: tuple[str, ...]
    stream: bool
    headers: dict[str, str]
    """By lower-case name."""
    body: dict[str, Any]
    raw: bytes
    index: int
    """How many requests this server had understood before."""


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    id: str | None = None
    """None: the server counts, call_1, call_2 and so on."""
    raw: str | None = None
    """Sent instead of the arguments, as it is; where a wire wants an object, as a JSON string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """What the model says. Tokens are counted as a bill would: input with what was cached."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    input_tokens: int = 100
    output_tokens: int = 20
    cached_tokens: int = 0
    chunk: int = 8
    """Characters in one streamed delta."""
    finish: str | None = None
    """The vendor's word, or "length" or "content_filter", which every wire puts in its own."""


@dataclass(frozen=True, slots=True)
class Status:
    """An error before any reply: the vendor's own body, unless one is given."""

    code: int
    body: str | dict[str, Any] | bytes | None = None
    """A message for the vendor's form; or a whole JSON body; or bytes, as a gateway's page is."""
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Overflow:
    """The prompt does not fit, in the vendor's words."""

    tokens: int
    window: int


@dataclass(frozen=True, slots=True)
class Garbage:
    """HTTP 200 and the right content type, but these bytes."""

    data: bytes = b'{"choices": [}\xff\x00'


@dataclass(frozen=True, slots=True)
class Empty:
    """HTTP 200 and no body at all."""


@dataclass(frozen=True, slots=True)
class Oversize:
    """A well-formed reply with so many bytes of text."""

    bytes_: int
    then: Says = Says()


@dataclass(frozen=True, slots=True)
class StreamError:
    """HTTP 200, so many events of a reply, then an error event: the vendor is overloaded."""

    after_chunks: int
    then: Says = Says(text="This reply breaks off.")


Reply = Says | Status | Overflow | Garbage | Empty | Oversize | StreamError
"""What is sent; the faults below are about how."""


@dataclass(frozen=True, slots=True)
class Delay:
    seconds: float
    then: "Step" = Says(text="This reply is late.")


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection closes after so many bytes of the body; None: even before the headers."""

    after_bytes: int | None
    then: Reply = Says(text="This reply is cut off.")


@dataclass(frozen=True, slots=True)
class Stall:
    """So many bytes of the body, and then nothing more until the client goes away."""

    after_bytes: int
    then: Reply = Says(text="This reply never ends.")


@dataclass(frozen=True, slots=True)
class Trickle:
    """The whole reply, a few bytes at a time, so that events and characters are torn apart."""

    size: int
    then: Reply = Says(text="This reply comes in crumbs.")
    seconds: float = 0.0
    """Between one piece and the next."""


Step = Reply | Delay | Cut | Stall | Trickle

Script = Callable[[Seen], Step | Awaitable[Step]]


def says(text: str | Call = "", *calls: Call, **more: Any) -> Says:
    """`says("Hello.")`, `says("Look:", call("read"))` or just `says(call("read"))`."""
    if isinstance(text, Call):
        return Says(calls=(text, *calls), **more)
    return Says(text=text, calls=calls, **more)


def call(name: str, /, **arguments: Any) -> Call:
    return Call(name, arguments)


def context_overflow(tokens: int = 250_000, window: int = 200_000) -> Overflow:
    return Overflow(tokens, window)
