"""Chat reader: reads chat completions, as OpenAI and many compatible servers send them."""

from collections.abc import Iterator
from typing import Any

from agiraph.domain.errors import CallGarbled, ModelUnavailable
from agiraph.providers.wires.call_pieces import BROKEN_CALL, CallPieces
from agiraph.providers.wires.pieces import Pieces, content_of, text_of
from agiraph.providers.wires.reply_builder import ReplyBuilder
from agiraph.providers.wires.request_buffer import Part
from agiraph.providers.wires.usage import UsageReader, openai_usage

_TRUNCATED = frozenset(("length", "max_tokens", "model_length", "max_output_tokens"))
_WITHHELD = frozenset(("content_filter", "refusal", "safety", "sensitive", "recitation", "blocked"))
_BROKEN_OFF = frozenset(("error", "network_error", "insufficient_system_resource", "abort"))
"""Reasons when a server, or the vendor behind a router, failed in the middle of a reply."""


class ChatReader:
    kind = "a chat completion"

    def __init__(self, vendor: str) -> None:
        self.reply: ReplyBuilder = ReplyBuilder(vendor)
        self._calls = CallPieces()
        self._reasoning = Pieces(None)
        self._details: dict[Any, Part] = {}
        self._refusal: list[str] = []
        self._has_finish_reason = False

    def take(self, event: Part) -> Iterator[str]:
        self.reply.name_model(event.get("model"))
        if event.get("usage"):
            self._count(event["usage"])
        if (choice := self._own_choice(event.get("choices"))) is not None:
            if text := self._take_delta(choice.get("delta") or {}):
                yield text
            self._end(choice.get("finish_reason"))

    def _own_choice(self, choices: Any) -> Part | None:
        """Return the choice that the reply is read from; raise if there are only others."""
        # Empty in the last event, which has the token counts, and in Azure's first, which has its
        # filters.
        if not choices:
            return None
        # We ask for one choice. A second one beside it is left out, but one that comes alone may
        # be a part of the reply, and nobody knows of which.
        own = next((choice for choice in choices if (choice.get("index") or 0) == 0), None)
        if own is None or isinstance(own.get("index"), bool):
            raise ValueError("a choice that nobody asked for")
        return own

    def read(self, body: Part) -> None:
        self.reply.name_model(body.get("model"))
        choice = body["choices"][0]
        message: Part = choice["message"]
        given: list[Part] = message.get("tool_calls") or []
        calls = [{**call, "index": index} for index, call in enumerate(given)]
        self._take_delta({**message, "tool_calls": calls})
        self._end(choice.get("finish_reason"))
        self._has_finish_reason = True  # one JSON object is whole
        if body.get("usage"):
            self._count(body["usage"])

    def finish(self) -> None:
        reply = self.reply
        is_open = reply.is_truncated or not self._has_finish_reason
        try:
            reply.calls = self._calls.build(is_truncated=is_open)
        except ValueError:
            if not reply.text:  # a nameless call beside words is dropped
                raise
        reply.refusal = "".join(self._refusal) or reply.refusal
        if self._details:
            # OpenRouter wants `reasoning_details` back unchanged.
            reply.parts = [{"reasoning_details": [*self._details.values()]}]
        elif self._reasoning and self._calls:
            # DeepSeek and others that send `reasoning_content` refuse a tool call that comes back
            # without it.
            reply.parts = [{"reasoning_content": str(self._reasoning)}]

    def _count(self, usage: Any) -> None:
        counts = UsageReader(usage)
        self.reply.usage = openai_usage(counts, "prompt", "completion")
        self.reply.doubts = counts.doubts

    def _take_delta(self, delta: Part) -> str:
        """Add a delta and return its text."""
        text, thoughts = content_of(delta.get("content"))
        shown = self.reply.text.append(text)
        if refusal := delta.get("refusal"):
            self._refusal.append(text_of(refusal))
        reasoning = delta.get("reasoning_content")
        if isinstance(reasoning, str) and reasoning:
            self._reasoning.append(reasoning)
        # OpenRouter and vLLM call the field `reasoning`, DeepSeek `reasoning_content`.
        thought = reasoning or delta.get("reasoning")
        if isinstance(thought, str):
            thoughts += text_of(thought)
        self.reply.thinking.append(thoughts)
        for detail in delta.get("reasoning_details") or ():
            self._take_detail(detail)
        for part in delta.get("tool_calls") or ():
            self._take_call(part)
        return shown

    def _take_call(self, part: Part) -> None:
        function: Part = part.get("function") or {}
        # Some compatible servers send arguments as an object instead of JSON text.
        self._calls.take(
            part.get("index"),
            text_of(part.get("id")),
            text_of(function.get("name")),
            function.get("arguments"),
        )

    def _take_detail(self, detail: Part) -> None:
        """Add a piece of OpenRouter's `reasoning_details` to the detail it belongs to."""
        key = (detail.get("type"), detail.get("index"), detail.get("id"))
        known = self._details.setdefault(key, {})
        for name, value in detail.items():
            grows = name in ("text", "summary", "data") and isinstance(known.get(name), str)
            known[name] = known[name] + text_of(value) if grows else known.get(name) or value

    def _end(self, reason: Any) -> None:
        if reason is None:
            return
        # Not `is_closed`: the token counts follow in an event of their own, after the finish
        # reason.
        self.reply.is_ended = self._has_finish_reason = True
        word = text_of(reason).lower()
        self.reply.is_truncated = self.reply.is_truncated or word in _TRUNCATED
        if word in _BROKEN_OFF:
            raise ModelUnavailable(f"The response broke off ({word}) without a reason.")
        # Google's own compatible API says `function_call_filter: MALFORMED_FUNCTION_CALL`.
        if "malformed_function_call" in word:
            raise CallGarbled(
                f"The model's reply contains a broken tool call ({reason}).",
                hint=BROKEN_CALL.format(reason=reason, detail=""),
            )
        if word in _WITHHELD:
            self.reply.refusal = text_of(reason)
