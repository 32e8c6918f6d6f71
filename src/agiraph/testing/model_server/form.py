"""Form: the interface of a wire format, and helpers that all formats share."""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any, Protocol

import orjson

from agiraph.core.domain.value import dataclass
from agiraph.testing.script import Call, Overflow, Says, Seen, SeenMessage, Wire

CREATED = 1_700_000_000  # fixed, so that the same script gives the same bytes
IMAGES = frozenset({"image", "image_url", "input_image"})


class BadRequest(Exception):
    """The request breaks a rule of the vendor; the message is the vendor's error message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The content of a request, independent of its wire format."""

    system: str
    messages: tuple[SeenMessage, ...]
    tools: tuple[str, ...]


class Format(Protocol):
    """One vendor's wire format: parses requests and writes replies."""

    wire: Wire
    overload: int
    """The HTTP status that this vendor sends when it is overloaded."""

    def read(self, body: dict[str, Any]) -> Conversation:
        """Parse a request body; raise `BadRequest` as the vendor would."""
        ...

    def unanswered(self, ids: list[str]) -> str:
        """Return the vendor's error for calls without results."""
        ...

    def unasked(self, call_id: str | None) -> str:
        """Return the vendor's error for a result without a call."""
        ...

    def whole(self, seen: Seen, said: Says) -> dict[str, Any]:
        """Return the body of a reply that is not streamed."""
        ...

    def events(self, seen: Seen, said: Says) -> Iterator[bytes]:
        """Yield the server-sent events of a streamed reply."""
        ...

    def frame(self, event: dict[str, Any]) -> bytes:
        """Return one server-sent event."""
        ...

    def error(self, code: int, message: str) -> dict[str, Any]:
        """Return the vendor's error body for an HTTP status."""
        ...

    def overflow(self, fault: Overflow) -> dict[str, Any]:
        """Return the vendor's error body for a prompt that is too long."""
        ...


def check_results(form: Format, messages: tuple[SeenMessage, ...]) -> None:
    """Raise `BadRequest` unless each call is followed by its result and each result has a call."""
    awaited: list[str] = []
    for message in messages:
        if message.role == "tool":
            if message.call_id not in awaited:
                raise BadRequest(form.unasked(message.call_id))
            awaited.remove(message.call_id)
            continue
        if awaited:
            break
        awaited = [call.id for call in message.calls]
    if awaited:
        raise BadRequest(form.unanswered(awaited))


def string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} should be a string")
    return value


def mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} should be an object")
    return value  # pyright: ignore[reportUnknownVariableType]


def content(value: Any) -> tuple[str, int]:
    """Return the text of a message and the number of its images."""
    if value is None or isinstance(value, str):
        return value or "", 0
    text = "".join(part["text"] for part in value if part["type"] == "text")
    return text, sum(part["type"] in IMAGES for part in value)


def pieces(text: str, size: int) -> list[str]:
    size = max(size, 1)
    return [text[start : start + size] for start in range(0, len(text), size)]


def loose(text: str) -> Any:
    """Return the parsed JSON; the text itself if it is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def arguments_text(call: Call) -> str:
    return orjson.dumps(call.arguments).decode() if call.raw is None else call.raw


def arguments_value(call: Call) -> Any:
    return call.arguments if call.raw is None else loose(call.raw)


def signature(thinking: str) -> str:
    """Return a signature of the thinking, which a client must send back unchanged."""
    return base64.b64encode(hashlib.sha256(thinking.encode()).digest()).decode()


def thought_tokens(said: Says) -> int:
    """Return the output tokens that count as thinking; some vendors report them separately."""
    return said.output_tokens // 2 if said.thinking else 0
