"""Gemini reader: reads the responses of Google's streamGenerateContent API."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from agiraph.domain.chat import ToolCall
from agiraph.domain.errors import CallGarbled, ModelGarbled
from agiraph.domain.work import Usage
from agiraph.providers.wires.call_pieces import BROKEN_CALL, build_calls
from agiraph.providers.wires.pieces import text_of
from agiraph.providers.wires.reply_builder import ReplyBuilder
from agiraph.providers.wires.request_buffer import Part
from agiraph.providers.wires.usage import UsageReader

WIRE = "gemini"
SIGNATURE = "thoughtSignature"

_WITHHELD = frozenset(
    ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
     "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "OTHER")
)  # fmt: skip
"""Finish reasons with which Google withholds a reply, or the rest of it."""
_BROKEN_CALL = frozenset(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE",
                          "TOO_MANY_TOOL_CALLS"))  # fmt: skip
"""Finish reasons of a reply with a broken tool call. No part of such a reply may be used."""
_PAYS_ONCE = re.compile(r"gemini-[12]\b")
"""Models for which Google charges web searches once for each reply that made some. For later ones
it charges each different query that is not empty (Gemini API, pricing)."""


class GeminiReader:
    kind = "a GenerateContentResponse"

    def __init__(self) -> None:
        self.reply: ReplyBuilder = ReplyBuilder(WIRE)
        self._parts: list[Part] = []
        self._open_text: list[str] = []
        """Text since the last part that must not be joined with another."""
        self._has_signature = False
        self._has_nameless_call = False
        self._usage: Any = {}
        self._queries: set[str] = set()
        """The web searches that Google made."""

    def take(self, event: Part) -> Iterator[str]:
        self.reply.name_model(event.get("modelVersion"))
        # Each event has the counts up to now, so the last one is the total.
        self._usage = event.get("usageMetadata") or self._usage
        feedback: Part = event.get("promptFeedback") or {}
        # A blocked prompt has no candidates, and so no finish reason.
        if blocked := feedback.get("blockReason"):
            self._withhold(blocked, feedback.get("blockReasonMessage"))
        for candidate in (event.get("candidates") or ())[:1]:
            content: Part = candidate.get("content") or {}
            for part in content.get("parts") or ():
                if text := self._take_part(part):
                    yield text
            self._search(candidate.get("groundingMetadata"))
            self._end(candidate)

    def _search(self, grounding: Any) -> None:
        known = cast(Part, grounding) if isinstance(grounding, dict) else {}
        queries: Any = known.get("webSearchQueries")
        if isinstance(queries, list):
            self._queries |= {q for q in cast(list[Any], queries) if isinstance(q, str) and q}

    def read(self, body: Part) -> None:
        for _ in self.take(body):
            pass
        if not self.reply.is_ended and not body["candidates"][0]:
            raise ValueError("an empty candidate")

    def finish(self) -> None:
        reply = self.reply
        self._close_text()
        counts = UsageReader(self._usage)
        searches = len(self._queries)
        if _PAYS_ONCE.match(reply.served_model):
            searches = min(searches, 1)
        reply.usage, reply.doubts = replace(gemini_usage(counts), searches=searches), counts.doubts
        if self._has_signature:
            reply.parts = self._parts
        if self._has_nameless_call and not reply.calls and not reply.text:
            raise ValueError("a call without a name")
        if reply.refusal.startswith("OTHER") and not reply.text:
            raise ModelGarbled("The model's reply broke off before its first word (OTHER).")

    def _take_part(self, part: Part) -> str:
        """Store a part. Return its text if it belongs to the reply and not to its reasoning."""
        signature = {SIGNATURE: text_of(part[SIGNATURE])} if part.get(SIGNATURE) else {}
        self._has_signature = self._has_signature or bool(signature)
        if call := part.get("functionCall"):
            self._close_text()
            for stored in self.reply.add_calls(self._calls(call)):
                self._parts.append({**stored, **signature})
                signature = {}
            return ""
        text = text_of(part.get("text"))
        is_thought = bool(part.get("thought"))
        new = (self.reply.thinking if is_thought else self.reply.text).append(text)
        if signature:  # Google refuses signed text that was joined with other text
            self._close_text()
            thought = {"thought": True} if is_thought else {}
            self._parts.append({"text": text, **thought, **signature})
        elif not is_thought:
            self._open_text.append(text)
        return "" if is_thought else new

    def _calls(self, call: Part) -> list[ToolCall]:
        """Return the calls of a part; none if it has no name or repeats a call."""
        name, identity = text_of(call.get("name")), text_of(call.get("id"))
        if not name:
            self._has_nameless_call = True
            return []
        # `willContinue`: the rest of the arguments follows, in a form that we never ask for.
        arguments = call.get("args")
        made = build_calls(identity, name, arguments, is_cut=False)
        if call.get("willContinue"):
            made = [ToolCall(id=identity, name=name, malformed="")]
        return [each for each in made if not identity or each not in self.reply.calls]

    def _close_text(self) -> None:
        text = "".join(self._open_text)
        if text.strip():
            self._parts.append({"text": text})
        self._open_text.clear()

    def _end(self, candidate: Part) -> None:
        reason: Any = candidate.get("finishReason")
        if not reason:
            return
        self.reply.is_ended = True
        self.reply.is_truncated = self.reply.is_truncated or reason == "MAX_TOKENS"
        if reason in _BROKEN_CALL:
            detail = text_of(candidate.get("finishMessage"))[:200]
            message = f"The model's reply contains a broken tool call ({reason}). {detail}"
            told = f" The server says: {detail}" if detail else ""
            raise CallGarbled(message.rstrip(), hint=BROKEN_CALL.format(reason=reason, detail=told))
        if reason in _WITHHELD:
            self._withhold(reason, candidate.get("finishMessage"))

    def _withhold(self, reason: Any, message: Any) -> None:
        self.reply.is_ended = True
        detail = text_of(message)
        self.reply.refusal = f"{text_of(reason)}: {detail}" if detail else text_of(reason)


def gemini_usage(counts: UsageReader) -> Usage:
    """Return the counts of a response."""
    # Google counts thoughts apart from the reply's tokens, and charges both as output.
    thoughts = counts.tokens("thoughtsTokenCount")
    return Usage(
        input_tokens=counts.tokens("promptTokenCount") + counts.tokens("toolUsePromptTokenCount"),
        output_tokens=counts.tokens("candidatesTokenCount") + thoughts,
        thinking_tokens=thoughts,
        cached_tokens=counts.tokens("cachedContentTokenCount"),
    )
