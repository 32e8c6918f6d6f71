"""Form: what every wire format can do, and the few things they do alike."""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from agiraph.testing.script import Call, Overflow, Says, Seen, SeenMessage, Wire

CREATED = 1_700_000_000  # fixed, so that the same script gives the same bytes
IMAGES = frozenset({"image", "image_url", "input_image"})


class BadRequest(Exception):
    """The request breaks a rule of its vendor; the message is what the vendor would say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What a request says, without how it came."""

    system: str
    messages: tuple[SeenMessage, ...]
    tools: tuple[str, ...]


class Format(Protocol):
    wire: Wire
    overload: int
    """The status with which this vendor says that it is overloaded."""

    def read(self, body: dict[str, Any]) -> Conversation: ...

    def unanswered(self, ids: list[str]) -> str: ...

    def unasked(self, call_id: str | None) -> str: ...

    def whole(self, seen: Seen, said: Says) -> dict[str, Any]: ...

    def events(self, seen: Seen, said: Says) -> Iterator[bytes]: ...

    def frame(self, event: dict[str, Any]) -> bytes: ...

    def error(self, code: int, message: str) -> dict[str, Any]: ...

    def overflow(self, fault: Overflow) -> dict[str, Any]: ...


def check_results(form: Format, messages: tuple[SeenMessage, ...]) -> None:
    """Every call has one result before anyone else speaks, and every result has its call."""
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
    """The text of a message and how many images came with it."""
    if value is None or isinstance(value, str):
        return value or "", 0
    text = "".join(part["text"] for part in value if part["type"] == "text")
    return text, sum(part["type"] in IMAGES for part in value)


def pieces(text: str, size: int) -> list[str]:
    size = max(size, 1)
    return [text[start : start + size] for start in range(0, len(text), size)]


def loose(text: str) -> Any:
    """JSON if it is JSON, else the text itself."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def arguments_text(call: Call) -> str:
    return orjson.dumps(call.arguments).decode() if call.raw is None else call.raw


def arguments_value(call: Call) -> Any:
    return call.arguments if call.raw is None else loose(call.raw)


def signature(thinking: str) -> str:
    """What a vendor wants back untouched; a test can tell whether it came back."""
    return base64.b64encode(hashlib.sha256(thinking.encode()).digest()).decode()


def thought_tokens(said: Says) -> int:
    """How much of the output was thinking; a vendor may count it apart."""
    return said.output_tokens // 2 if said.thinking else 0
