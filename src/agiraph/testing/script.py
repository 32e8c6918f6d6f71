"""Script: the requests that a `ModelServer` receives, and the replies and faults it can send."""

from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Any, Literal

from agiraph.core.domain.value import dataclass

Wire = Literal["openai", "anthropic", "gemini", "responses"]
"""The vendor's wire format of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCall:
    """A tool call in a request's history."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenMessage:
    """One message of a request, in the same form for all vendors. A tool result is a message."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[SeenCall, ...] = ()
    call_id: str | None = None
    failed: bool = False
    images: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request: parsed into a common form, and as it was received."""

    wire: Wire
    model: str
    system: str
    messages: tuple[SeenMessage, ...]
    tools: tuple[str, ...]
    stream: bool
    headers: dict[str, str]
    """HTTP headers by lower-case name."""
    body: dict[str, Any]
    raw: bytes
    index: int
    """The number of valid requests before this one."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the model makes. `call` is the short form."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    id: str | None = None
    """The id of the call; None: `call_1`, `call_2` and so on."""
    raw: str | None = None
    """Malformed arguments: sent as they are instead of `arguments`. A wire format that requires an
    object gets a JSON string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """A reply of the model. `says` is the short form.

    `input_tokens` includes `cached_tokens`, as on a vendor's bill.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    input_tokens: int = 100
    output_tokens: int = 20
    cached_tokens: int = 0
    chunk: int = 8
    """Characters of each streamed piece."""
    finish: str | None = None
    """The finish reason: a vendor's own word, or "length" or "content_filter", which are translated
    to the vendor's word."""


@dataclass(frozen=True, slots=True)
class Status:
    """An HTTP error. Without a body, the vendor's usual error body is sent."""

    code: int
    body: str | dict[str, Any] | bytes | None = None
    """A message for the vendor's error body, a JSON body, or bytes such as a gateway's page."""
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Overflow:
    """The vendor's error for a prompt that does not fit into the context window."""

    tokens: int
    window: int


@dataclass(frozen=True, slots=True)
class Garbage:
    """HTTP 200 with the right content type and a body that cannot be parsed."""

    data: bytes = b'{"choices": [}\xff\x00'


@dataclass(frozen=True, slots=True)
class Empty:
    """HTTP 200 with an empty body."""


@dataclass(frozen=True, slots=True)
class Oversize:
    """A valid reply whose text has so many bytes."""

    bytes_: int
    then: Says = Says()


@dataclass(frozen=True, slots=True)
class StreamError:
    """HTTP 200, so many events of a streamed reply, then the vendor's error event for overload."""

    after_chunks: int
    then: Says = Says(text="This reply breaks off.")


Reply = Says | Status | Overflow | Garbage | Empty | Oversize | StreamError
"""What the server sends. The faults below change how it is sent."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Waits before the next step."""

    seconds: float
    then: "Step" = Says(text="This reply is late.")


@dataclass(frozen=True, slots=True)
class Cut:
    """Closes the connection after so many bytes of the body; None: before the headers."""

    after_bytes: int | None
    then: Reply = Says(text="This reply is cut off.")


@dataclass(frozen=True, slots=True)
class Stall:
    """Sends so many bytes of the body, then nothing until the client disconnects."""

    after_bytes: int
    then: Reply = Says(text="This reply never ends.")


@dataclass(frozen=True, slots=True)
class Trickle:
    """Sends the whole reply a few bytes at a time, so that events and characters are split."""

    size: int
    then: Reply = Says(text="This reply comes in crumbs.")
    seconds: float = 0.0
    """The pause between two pieces."""


Step = Reply | Delay | Cut | Stall | Trickle

Script = Callable[[Seen], Step | Awaitable[Step]]
"""Decides the reply to each request; a list of steps is played in order instead."""


def says(text: str | Call = "", *calls: Call, **more: Any) -> Says:
    """Return a reply: `says("Hello.")`, `says("Look:", call("read"))` or `says(call("read"))`."""
    if isinstance(text, Call):
        return Says(calls=(text, *calls), **more)
    return Says(text=text, calls=calls, **more)


def call(name: str, /, **arguments: Any) -> Call:
    """Return a tool call: `call("write_file", path="a.md", content="Hello")`.

    `finish` and `publish` say `reached="yes"` unless they say otherwise.
    """
    if name in ("finish", "publish") and not arguments.get("nothing_to_do"):
        arguments.setdefault("reached", "yes")
    return Call(name, arguments)


def context_overflow(tokens: int = 250_000, window: int = 200_000) -> Overflow:
    """Return the error for a prompt of so many tokens."""
    return Overflow(tokens, window)
