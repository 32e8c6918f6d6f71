"""Reply builder: the part of a reply that has arrived so far, and the reply made of it."""

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Protocol

from agiraph.core.domain.chat import NO_DATA, ProviderData, ToolCall, VendorParts
from agiraph.core.domain.errors import ModelDeclined, ModelGarbled
from agiraph.core.domain.text.json_text import without_surrogates
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage
from agiraph.models.base import OnDelta, Reply
from agiraph.models.wires.pieces import Pieces, text_of

MAX_NAME_CHARS = 200


@dataclass(slots=True)
class ReplyBuilder:
    """The part of a reply that has arrived so far."""

    vendor: str
    text: Pieces = field(default_factory=Pieces)
    thinking: Pieces = field(default_factory=Pieces)
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    parts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The parts that the vendor wants back unchanged in the next request; empty if there are
    none."""
    usage: Usage = Usage()
    doubts: list[str] = field(default_factory=list[str])
    """The token counts that cannot be true, each with its value."""
    served_model: str = ""
    """The name of the model as the server gives it."""
    refusal: str = ""
    """The vendor's reason for withholding the reply."""
    is_truncated: bool = False
    """The reply reached the limit of output tokens."""
    has_begun: bool = False
    """A first part of the reply has arrived."""
    is_ended: bool = False
    """The vendor has said that the reply is complete; usage may still follow."""
    is_closed: bool = False
    """Nothing that matters follows, even if the stream stays open."""

    def name_model(self, name: Any) -> None:
        """Note the model's name that the server gives; the last one counts."""
        if name:
            self.served_model = text_of(name)[:MAX_NAME_CHARS]

    def add_calls(self, calls: Sequence[ToolCall]) -> Iterator[dict[str, Any]]:
        """Add calls and yield the part that stands for each of them in `parts`."""
        for call in calls:
            yield {"call": len(self.calls)}
            self.calls.append(call)

    @property
    def is_cumulative(self) -> bool:
        """Whether each piece of the text contained all the text so far."""
        return self.text.is_cumulative or self.thinking.is_cumulative

    def expect_cumulative(self) -> None:
        """Expect pieces that contain all the text so far, as this server sent before."""
        self.text.is_expected_whole = self.thinking.is_expected_whole = True

    def build(self) -> Reply:
        """Return the reply; an empty one is a reply, too. Raise if the vendor withheld it all."""
        text, thoughts = apart(without_surrogates(str(self.text)))
        if not text and self.refusal:
            # A call beside a refusal is not made; without words nothing is left of the reply.
            raise ModelDeclined(
                f"The model refuses to answer: {self.refusal.rstrip('.')}. Say the task in other "
                "words, or choose another model."
            )
        if not text and not self.calls and not self.has_begun:
            raise ModelGarbled("The response ended before a reply began.")
        thinking = "\n".join(filter(None, (str(self.thinking), thoughts)))
        # No call of a reply is made whose rest the vendor withheld, and it gets nothing of it back.
        parts = self.parts if not self.refusal else []
        return Reply(
            text=text,
            calls=() if self.refusal else tuple(self.calls),
            usage=self.usage,
            provider_data=ProviderData(
                thinking=thinking,
                vendor=VendorParts(vendor=self.vendor, parts=parts) if parts else None,
                served_model=self.served_model,
                refusal=self.refusal,
            )
            if thinking or parts or self.served_model or self.refusal
            else NO_DATA,
            is_cut=self.is_truncated or bool(self.refusal),
        )


class ResponseReader(Protocol):
    """Reads the response format of one vendor into a `ReplyBuilder`."""

    reply: ReplyBuilder
    kind: str
    """The vendor's name for a response, for error messages."""

    def take(self, event: dict[str, Any]) -> Iterator[str]:
        """Read one event of a stream and yield the reply's text in it."""
        ...

    def read(self, body: dict[str, Any]) -> None:
        """Read a response that arrived as one JSON object."""
        ...

    def finish(self) -> None:
        """Complete the reply with what only the whole response shows."""
        ...


_MARKS = (("<think>", "</think>"), ("<thinking>", "</thinking>"))


def apart(text: str) -> tuple[str, str]:
    """Return the text without its thoughts, and the thoughts. Later marks are quotations."""
    if "think" not in text:
        return text, ""
    thoughts: list[str] = []
    rest = text
    while (mark := _mark_at(rest)) is not None:
        inner, _, rest = rest.lstrip()[len(mark[0]) :].partition(mark[1])
        rest = rest.lstrip()
        thoughts.append(inner.strip())
    if not thoughts and "</think>" in text and "<think>" not in text:
        before, _, after = text.partition("</think>")
        if not after.startswith("`"):
            return after.lstrip(), before.strip()
    return (rest, "\n".join(thoughts)) if thoughts else (text, "")


def _mark_at(text: str) -> tuple[str, str] | None:
    start = text.lstrip()
    return next((mark for mark in _MARKS if start.startswith(mark[0])), None)


class ThoughtFilter:
    """Passes on the pieces of a streamed reply, without the thoughts that it begins with."""

    def __init__(self, on_delta: OnDelta) -> None:
        self._on_delta = on_delta
        self._held = self._half = ""
        self._has_thought = False
        self._is_text = False
        """Whether the text has begun; from there on every piece is passed on at once."""

    def feed(self, piece: str) -> None:
        """Take a piece. The half of a character that it may end with waits for the other half."""
        piece = self._half + piece
        self._half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        self._feed(without_surrogates(piece.removesuffix(self._half)))

    def _feed(self, piece: str) -> None:
        if self._is_text:
            return self._on_delta(piece)
        self._held += piece
        start = self._held.lstrip()
        if (mark := _mark_at(start)) is not None:
            _, closed, rest = start.partition(mark[1])
            if closed:
                self._held, self._has_thought = "", True
                self._feed(rest)
        elif start and not any(opening.startswith(start) for opening, _ in _MARKS):
            self._pass_on()
        return None

    def end(self) -> None:
        """Pass on what was held back and turned out to be text."""
        if self._held and _mark_at(self._held) is None:
            self._pass_on()

    def _pass_on(self) -> None:
        held, self._held, self._is_text = self._held, "", True
        self._on_delta(held.lstrip() if self._has_thought else held)
