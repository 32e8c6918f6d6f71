"""Request buffer: the messages of a thread as JSON bytes. Each turn is encoded once.

Old bytes never change, so vendors can cache the beginning of every request.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, cast
from zlib import crc32

import orjson

from agiraph.core.domain.chat import Attachment, ToolCall, Transcript, Turn
from agiraph.core.domain.text.fence import enclose_file

Part = dict[str, Any]

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The image types that every vendor accepts."""
PDF = "application/pdf"
_TEXT_TYPES = re.compile(
    r"text/.+|application/(json|xml|yaml|toml|javascript|sql|x-(yaml|sh|python|ndjson))|.+\+(json|xml)"
)
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


class TurnEncoder(Protocol):
    """Encodes the turns of a thread as messages of one vendor."""

    has_reasoning: bool
    """Whether a message contains reasoning of the vendor's own model, which it may refuse."""

    def message(self, turn: Turn) -> Part | list[Part] | None:
        """Return the message or messages of a user or assistant turn; None if the turn has no
        content."""
        ...

    def results(self, turns: Sequence[Turn]) -> list[Part]:
        """Return the messages with the results of all tool calls of one reply."""
        ...


Filler = Callable[[str, str], Part | None]
"""Returns the message that a server wants between two messages of these roles, if any."""


class RequestBuffer:
    """The messages of a thread as bytes, and the request's beginning before them.

    The results of one reply's calls are encoded together, because Anthropic and Gemini want them
    in one message. All of them exist whenever a request is made, so the bytes depend on the turns
    alone: a thread that is loaded again after a restart gives the same bytes.
    """

    def __init__(
        self, encoder: TurnEncoder, first: Part | None = None, filler: Filler | None = None
    ) -> None:
        self.encoder = encoder
        self._filler = filler
        self._last_role = ""
        self.messages: bytearray = bytearray()
        self._turn_count = 0
        self._prefix: tuple[Hashable, bytes] = (None, b"")
        if first is not None:
            self._add(first)

    def prefix(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """Return the bytes before the messages; make them only when the key has changed."""
        if self._prefix[0] != key:  # the usual case is the same tuple object, which is fast
            self._prefix = (key, make())
        return self._prefix[1]

    def extend(self, transcript: Transcript) -> bytearray:
        """Encode the turns that are new since the last call and return all messages."""
        results: list[Turn] = []
        for turn in transcript.spoken(self._turn_count):
            if turn.role == "tool":
                results.append(turn)
                continue
            self._add_results(results)
            message = self.encoder.message(turn.as_sent)
            for each in message if isinstance(message, list) else (message,):
                if each is not None:
                    self._add(each)
        self._add_results(results)
        self._turn_count = len(transcript.turns)
        return self.messages

    def _add_results(self, results: list[Turn]) -> None:
        if results:
            for message in self.encoder.results(results):
                self._add(message)
            results.clear()

    def last(self, message: Part | None) -> bytes:
        """Return the bytes of a message that ends this request only: it is not added to the buffer,
        so the next request does not contain it."""
        if message is None:
            return b""
        return b"".join(b"," + to_json(part) for part in self._spaced(message))

    def _add(self, message: Part) -> None:
        for part in [message] if self._filler is None else self._spaced(message):
            if self.messages:
                self.messages += b","
            self.messages += to_json(part)
        self._last_role = message.get("role", "")

    def _spaced(self, message: Part) -> list[Part]:
        """Return the message, after the one that the server wants before it."""
        if self._filler is None:
            return [message]
        between = self._filler(self._last_role, message.get("role", ""))
        return [message] if between is None else [between, message]


def to_json(value: Part) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # a lone surrogate, as in file names that are not UTF-8
        return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def buffer_of(
    transcript: Transcript, wire: str, make: Callable[[], RequestBuffer]
) -> RequestBuffer:
    """Return the thread's buffer for this wire, creating it if needed."""
    if wire not in transcript.wire:
        transcript.wire[wire] = make()
    return transcript.wire[wire]


def replace_buffer(transcript: Transcript, wire: str, plain: RequestBuffer) -> bool:
    """Use a buffer without reasoning from now on. Return False if the old one had none either."""
    if not cast(RequestBuffer, transcript.wire[wire]).encoder.has_reasoning:
        return False
    transcript.wire[wire] = plain
    return True


def suffix(settings: Part) -> bytes:
    """Return the bytes after the messages: the settings that may change with every request."""
    return b"]" + (b"," + to_json(settings)[1:] if settings else b"}")


def vendor_parts(turn: Turn, vendor: str) -> list[Part]:
    """Return the parts of a reply that this vendor wants back; none of another vendor's."""
    stored = turn.provider_data.vendor
    return stored.parts if stored is not None and stored.vendor == vendor else []


def unchanged_parts(turn: Turn, vendor: str) -> list[Part]:
    """Return all parts of a reply in order; none if the turn's text or calls were changed since."""
    # A signature covers the reply as the model wrote it. Vendors refuse the whole request if the
    # text beside the signature is another one.
    parts = vendor_parts(turn, vendor)
    calls = [part["call"] for part in parts if "call" in part]
    text = "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))
    # Parts with nothing but white space are not stored, so white space is not compared.
    is_same = "".join(text.split()) == "".join(turn.text.split())
    return parts if is_same and calls == [*range(len(turn.calls))] else []


def call_of(part: Part, turn: Turn) -> ToolCall | None:
    """Return the call that this part of a reply refers to by its index; None for other parts."""
    return turn.calls[cast(int, part["call"])] if "call" in part else None


def tool_name(name: str) -> str:
    """Return a name that all vendors accept: they refuse other ones, even those a model made up."""
    # OpenAI and Anthropic allow letters, digits, "_" and "-". Gemini also refuses a digit or a dash
    # in front.
    clean = _NOT_IN_NAMES.sub("_", name)[:64]
    return clean if clean[:1].isalpha() or clean[:1] == "_" else f"_{clean}"[:64]


def arguments(call: ToolCall) -> Part:
    """Return a call's arguments; {} if they were not a JSON object, which a vendor would refuse."""
    return {} if call.malformed is not None else call.arguments


def call_id(identity: str, allowed: re.Pattern[str]) -> str:
    """Return the id if the vendor accepts it, else one made from it that stays the same."""
    if allowed.fullmatch(identity):
        return identity
    # A pure function of the id, because call and result are encoded apart and must match. The
    # checksum keeps ids apart that begin with the same 24 characters.
    return f"{_NOT_IN_NAMES.sub('_', identity)[:24]}_{crc32(identity.encode()):08x}"


def attachment_text(attachment: Attachment) -> str:
    """Return a text file's content, or a note that the model cannot be shown the file."""
    if _TEXT_TYPES.fullmatch(attachment.media_type):
        try:
            content = base64.b64decode(attachment.data).decode(errors="replace")
            return enclose_file(content, name=attachment.name)
        # The API refuses such data, but a row from a restored backup may contain it. One bad file
        # must not fail every later request of its thread.
        except binascii.Error:
            pass
    return f"[The file {attachment.name} ({attachment.media_type}) cannot be shown to you.]"
