"""Anthropic reader: reads the responses of the Messages API."""

from collections.abc import Iterator
from typing import Any, cast

from agiraph.domain.chat import ToolCall
from agiraph.domain.errors import ContextExceeded
from agiraph.domain.work import Usage
from agiraph.providers.wires.call_pieces import build_calls
from agiraph.providers.wires.pieces import Pieces, text_of
from agiraph.providers.wires.repetition import RepetitionGuard
from agiraph.providers.wires.reply_builder import ReplyBuilder
from agiraph.providers.wires.request_buffer import Part
from agiraph.providers.wires.usage import UsageReader

WIRE = "anthropic"
_THINKING = ("thinking", "redacted_thinking")
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""The types of deltas: of which block each is a piece, and the field with the piece."""


class _Block:
    """A content block of a reply that arrives in deltas."""

    def __init__(self, start: Part) -> None:
        self.start = start
        self.kind: Any = start["type"]
        self.text = Pieces(RepetitionGuard(is_structure=self.kind == "tool_use"))
        self.signature: list[str] = []

    def take(self, delta: Part) -> str:
        """Add a delta. Return its text if it belongs to the reply and not to its reasoning."""
        kind = text_of(delta["type"])
        if not kind:
            raise ValueError("a delta without a type")
        if kind == "signature_delta":
            self.signature.append(text_of(delta["signature"]))
        # Other types are citations, and those that Anthropic adds later.
        if kind not in _DELTAS:
            return ""
        block, name = _DELTAS[kind]
        if block != self.kind:
            # Server-side tools, which we never request, have arguments as well.
            if kind == "input_json_delta" and self.kind not in ("text", *_THINKING):
                return ""
            raise ValueError(f"a {kind} in a block of type {self.kind!r:.40}")
        new = self.text.append(text_of(delta[name]))
        return new if kind == "text_delta" else ""

    def whole(self) -> Part:
        """Return the block as it stands in a response that is not a stream."""
        text, block = str(self.text), dict(self.start)
        match block["type"]:
            case "text":
                block["text"] = text_of(block.get("text")) + text
            case "thinking":
                block["thinking"] = text_of(block.get("thinking")) + text
                block["signature"] = text_of(block.get("signature")) + "".join(self.signature)
            # A call without arguments sends no delta; the `input` of its first event is then the
            # whole of it.
            case "tool_use" if text:
                block["input"] = text
            case _:
                pass
        return block


class AnthropicReader:
    kind = "a message"

    def __init__(self) -> None:
        self.reply: ReplyBuilder = ReplyBuilder(WIRE)
        self._blocks: dict[int, _Block] = {}
        self._usage: Part = {}
        self._doubts: list[str] = []
        self._content: list[Part] = []
        self._has_nameless_call = False
        self._has_stop_reason = False
        self._is_window_full = False
        """Thread and reply together fill the context window."""

    def take(self, event: Part) -> Iterator[str]:
        match event.get("type"):
            case "message_start":
                self.reply.name_model(event["message"].get("model"))
                self._count(event["message"].get("usage"))
            case "content_block_start":
                self._start(_position(event), event["content_block"])
            case "content_block_delta":
                if text := self._blocks[_position(event)].take(event["delta"]):
                    yield text
            case "message_delta":
                self._count(event.get("usage"))
                self._stop(event["delta"])
            # message_delta before it has the final counts, so nothing that matters can follow.
            case "message_stop":
                self.reply.is_ended = self.reply.is_closed = True
                self._content = [block.whole() for block in self._blocks.values()]
            case str():
                pass  # pings, and event types that Anthropic adds later
            case other:
                raise TypeError(f"{other!r:.40} is not the type of an event")

    def read(self, body: Part) -> None:
        self.reply.name_model(body.get("model"))
        self._content = body["content"]
        self._count(body.get("usage"))
        self._stop(body)
        self._has_stop_reason = True  # one JSON object is whole

    def finish(self) -> None:
        reply, parts = self.reply, list[Part]()
        for block in self._content:
            match block["type"]:
                case "text":
                    text = text_of(block["text"])
                    reply.text.append(text)
                    if text.strip():
                        parts.append({"type": "text", "text": text})
                case "tool_use":
                    parts += reply.add_calls(self._calls(block))
                # Redacted thinking is encrypted and has no text. It goes back unchanged like the
                # rest, or Anthropic refuses the tool results that follow.
                case "thinking" | "redacted_thinking":
                    reply.thinking.append(text_of(block.get("thinking")))
                    parts.append(block)
                case _:
                    pass  # server-side tools, which we never request
        if self._has_nameless_call and not reply.calls and not reply.text:
            raise ValueError("a call without a name")
        # Anthropic wants thinking blocks back with their signatures; other replies need not be
        # stored a second time.
        if any(part.get("type") in _THINKING for part in parts):
            reply.parts = parts
        counts = UsageReader(self._usage)
        reply.usage, reply.doubts = anthropic_usage(counts), [*self._doubts, *counts.doubts]
        if self._is_window_full and not reply.calls and not reply.text:
            raise ContextExceeded("The thread leaves no room for a reply in the context window.")
        reply.is_truncated = reply.is_truncated or self._is_window_full

    def _start(self, index: int, start: Part) -> None:
        known = self._blocks.get(index)
        if known is None:
            self._blocks[index] = _Block(start)
        elif known.start != start:  # its deltas so far would be lost
            raise ValueError(f"two blocks with index {index!r:.40}")

    def _calls(self, block: Part) -> list[ToolCall]:
        """Return the calls of a block; none if it has no name."""
        name = text_of(block.get("name"))
        if not name:
            self._has_nameless_call = True
            return []
        is_open = self.reply.is_truncated or not self._has_stop_reason
        is_cut = is_open and block is self._content[-1]
        return build_calls(text_of(block.get("id")), name, block.get("input"), is_cut=is_cut)

    def _count(self, usage: Any) -> None:
        # Input counts arrive with message_start, output counts with message_delta. Null means
        # that the earlier value still counts.
        if not isinstance(usage, dict):
            self._doubts = UsageReader(usage).doubts or self._doubts
            return
        known = cast(Part, usage)
        self._usage |= {name: value for name, value in known.items() if value is not None}

    def _stop(self, end: Part) -> None:
        reason = end.get("stop_reason")
        self._has_stop_reason = self._has_stop_reason or reason is not None
        match reason:
            case "refusal":
                details: Part = end.get("stop_details") or {}
                said = details.get("explanation") or details.get("category")
                self.reply.refusal = text_of(said) or "refusal"
            case "model_context_window_exceeded":
                self._is_window_full = True
            case "max_tokens":
                self.reply.is_truncated = True
            case _:
                pass


def _position(event: Part) -> int:
    """Return the index of an event's block; raise if it is none."""
    if type(index := event["index"]) is int:
        return index
    raise TypeError(f"{index!r:.40} is not the index of a block")


def anthropic_usage(counts: UsageReader) -> Usage:
    """Return the counts of a response."""
    # Anthropic's input_tokens leaves out cached tokens; ours, like the other vendors', counts all.
    cached = counts.tokens("cache_read_input_tokens")
    written = counts.tokens("cache_creation_input_tokens")
    return Usage(
        input_tokens=counts.tokens("input_tokens") + written + cached,
        output_tokens=counts.tokens("output_tokens"),
        cached_tokens=cached,
        cache_write_tokens=written,
        searches=counts.part("server_tool_use").tokens("web_search_requests"),
    )
