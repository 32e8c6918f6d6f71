"""Encoded: a thread as the bytes of a request, every turn made once and never changed."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, cast
from zlib import crc32

import orjson

from agiraph.domain.chat import Attachment, ToolCall, Transcript, Turn

Part = dict[str, Any]

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What every vendor can look at."""
PDF = "application/pdf"
_TEXTS = re.compile(
    r"text/.+|application/(json|xml|yaml|toml|javascript|sql|x-(yaml|sh|python|ndjson))|.+\+(json|xml)"
)
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


class Form(Protocol):
    """How one vendor writes the turns of a thread."""

    replayed: bool
    """Whether the vendor's own thinking is among what was written."""

    def message(self, turn: Turn) -> Part | None:
        """What was said by the agent or to it; None if nothing of it can be shown."""
        ...

    def answers(self, turns: Sequence[Turn]) -> list[Part]:
        """The answers to all calls of one reply."""
        ...


class Encoded:
    """The messages of a thread as bytes.

    The answers to one reply's calls go together, because some vendors want them in one message.
    All of them are there whenever a request is made, so what is written depends on the turns alone
    and a thread that is read again gives the same bytes.
    """

    def __init__(self, form: Form, first: Part | None = None) -> None:
        self.form = form
        self.messages = bytearray()
        self._entries = 0
        self._opening: tuple[Hashable, bytes] = (None, b"")
        if first is not None:
            self._add(first)

    def opening(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """What comes before the messages; the same tools are not written out twice."""
        if self._opening[0] != key:  # tuples of the same objects compare at once
            self._opening = (key, make())
        return self._opening[1]

    def extend(self, transcript: Transcript) -> bytearray:
        """Write what is new."""
        answers: list[Turn] = []
        for turn in transcript.spoken(self._entries):
            if turn.role == "tool":
                answers.append(turn)
                continue
            self._close(answers)
            if (message := self.form.message(turn)) is not None:
                self._add(message)
        self._close(answers)
        self._entries = len(transcript.turns)
        return self.messages

    def _close(self, answers: list[Turn]) -> None:
        if answers:
            for message in self.form.answers(answers):
                self._add(message)
            answers.clear()

    def _add(self, message: Part) -> None:
        if self.messages:
            self.messages += b","
        self.messages += dumped(message)


def dumped(value: Part) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # half a surrogate pair, as odd file names have
        return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def kept(transcript: Transcript, key: str, make: Callable[[], Encoded]) -> Encoded:
    """What this wire has written of the thread so far."""
    if key not in transcript.wire:
        transcript.wire[key] = make()
    return transcript.wire[key]


def forget_thinking(transcript: Transcript, key: str, plain: Encoded) -> bool:
    """Write the thread anew without the vendor's own thinking; whether that makes a difference."""
    if not cast(Encoded, transcript.wire[key]).form.replayed:
        return False
    transcript.wire[key] = plain
    return True


def ending(settings: Part) -> bytes:
    """What comes behind the messages: what may differ from one request to the next."""
    return b"]" + (b"," + dumped(settings)[1:] if settings else b"}")


def vendor_parts(turn: Turn, vendor: str) -> list[Part]:
    """What this vendor wants back of its own reply; another's is not for it."""
    found = turn.provider_data.vendor
    return found.parts if found is not None and found.vendor == vendor else []


def own_parts(turn: Turn, vendor: str) -> list[Part]:
    """All parts of a reply in their order, if the turn still says what they say and no more."""
    parts = vendor_parts(turn, vendor)
    calls = [part["call"] for part in parts if "call" in part]
    said = "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))
    # Parts of nothing but white space are not kept, so that is not compared.
    is_same = "".join(said.split()) == "".join(turn.text.split())
    return parts if is_same and calls == [*range(len(turn.calls))] else []


def call_of(part: Part, turn: Turn) -> ToolCall | None:
    """The call that stands in this place of a reply, as it is known in the thread."""
    return turn.calls[cast(int, part["call"])] if "call" in part else None


def is_failed(turn: Turn) -> bool:
    """Whether a call's answer tells of an error."""
    return turn.failed


def tool_name(name: str) -> str:
    """A name as every vendor takes it: they reject another, even a model's own."""
    clean = _NOT_IN_NAMES.sub("_", name)[:64]
    return clean if clean[:1].isalpha() or clean[:1] == "_" else f"_{clean}"[:64]


def arguments(call: ToolCall) -> Part:
    """A call's arguments; of those that were no object, none: a vendor would reject them."""
    return {} if call.malformed is not None else call.arguments


def call_id(identity: str, allowed: re.Pattern[str]) -> str:
    """An id as the vendor takes it, whoever made it up."""
    if allowed.fullmatch(identity):
        return identity
    return f"{_NOT_IN_NAMES.sub('_', identity)[:24]}_{crc32(identity.encode()):08x}"


def as_text(attachment: Attachment) -> str:
    """A file in words: what it says if it is text, else that it cannot be shown."""
    if _TEXTS.fullmatch(attachment.media_type):
        try:
            said = base64.b64decode(attachment.data).decode(errors="replace")
            return f"File {attachment.name}:\n{said}"
        except binascii.Error:
            pass
    return f"[The file {attachment.name} ({attachment.media_type}) cannot be shown to you.]"
