"""Responses reader: reads the events and items of OpenAI's Responses API into a reply."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import orjson

from agiraph.domain.errors import ModelError, ModelUnavailable
from agiraph.providers.http.errors import error_for_status
from agiraph.providers.http.events import CUT_OFF
from agiraph.providers.wires.call_pieces import build_calls
from agiraph.providers.wires.pieces import Pieces, text_of
from agiraph.providers.wires.reply_builder import ReplyBuilder
from agiraph.providers.wires.request_buffer import Part
from agiraph.providers.wires.usage import UsageReader, openai_usage

_ENDS = ("response.completed", "response.incomplete", "response.failed")
_STATUS_OF_CODE = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "bio_policy": 400,
    "data_residency_mismatch": 400,
    "image_content_policy_violation": 400,
}
"""Codes of a failed response. Those about images are lasting too; any other one counts as 503."""


class ResponsesReader:
    kind = "a response of the Responses API"

    def __init__(self, vendor: str) -> None:
        self.reply: ReplyBuilder = ReplyBuilder(vendor)
        self._items: dict[int, Part] = {}
        """The items of the output that have begun, by their index."""
        self._open: set[int] = set()
        """Of these, the ones that are not whole yet."""
        self._is_over = False
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._has_nameless_call = False

    def take(self, event: Part) -> Iterator[str]:
        match event.get("type"):
            case "response.output_item.added":
                self._items[event["output_index"]] = event["item"]
                self._open.add(event["output_index"])
            case "response.output_text.delta":
                if text := self.reply.text.append(text_of(event["delta"])):
                    yield text
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self.reply.thinking.append(text_of(event["delta"]))
            case "response.output_item.done":
                # The reasoning in `added` may be incomplete, so the whole item takes its place.
                self._items[event["output_index"]] = event["item"]
                self._open.discard(event["output_index"])
            case "error":
                code, message = event.get("code"), text_of(event.get("message"))
                raise _failure({"code": code, "message": message}, has_worked=bool(self._items))
            case str() as kind if kind in _ENDS:
                self._end(event["response"])
                self.reply.is_ended = self.reply.is_closed = True
            case _:
                pass  # other deltas, which the whole items repeat, and what OpenAI adds later

    def read(self, body: Part) -> None:
        self._end(body)
        if "output" not in body:
            raise ValueError("a response without output")

    def finish(self) -> None:
        reply, parts = self.reply, list[Part]()
        # A call that is not whole is never made.
        if not self._is_over or (self._open and not reply.is_truncated):
            raise ModelUnavailable(CUT_OFF)
        # The whole items count; the pieces before them were for display.
        reply.text, reply.thinking = Pieces(), Pieces()
        items = [item for index, item in sorted(self._items.items()) if index not in self._open]
        for item in items:
            match item.get("type"):
                case "message":
                    parts += self._take_message(item)
                case "function_call":
                    is_cut = reply.is_truncated and item is items[-1]
                    parts += self._take_call(item, is_cut=is_cut)
                case "reasoning":
                    parts += self._take_reasoning(item)
                case "web_search_call" if _is_search(item):
                    reply.usage = replace(reply.usage, searches=reply.usage.searches + 1)
                case str():
                    pass  # other tools that OpenAI runs itself, which we never request
                case other:
                    raise TypeError(f"{other!r:.40} is not the type of an item")
        reply.text.append("\n\n".join(self._texts))
        reply.thinking.append("\n\n".join(self._thoughts))
        if self._has_nameless_call and not reply.calls and not reply.text:
            raise ValueError("a call without a name")
        # An incomplete response may end in reasoning that nothing follows, which OpenAI refuses.
        wants_back = any("reasoning" in part or "phase" in part for part in parts)
        if wants_back and not reply.is_truncated:
            reply.parts = parts

    def _take_message(self, item: Part) -> Iterator[Part]:
        """Add the words of a message; yield the part to send back, unless it is blank."""
        texts: list[str] = []
        for content in item.get("content") or ():
            match content.get("type"):
                case "output_text":
                    texts.append(text_of(content.get("text")))
                case "refusal":
                    self.reply.refusal = text_of(content.get("refusal")) or "refusal"
                case str():
                    pass
                case other:
                    raise TypeError(f"{other!r:.40} is not the type of a content")
        if text := "".join(texts):
            self._texts.append(text)
        if text.strip():
            known = {key: item.get(key) for key in ("id", "status", "phase")}
            yield {"text": text, **_without_nothing(known)}

    def _take_call(self, item: Part, *, is_cut: bool) -> Iterator[Part]:
        """Add the calls of an item; yield the part that stands for each of them."""
        name = text_of(item.get("name"))
        if not name:
            self._has_nameless_call = True
            return
        calls = build_calls(
            text_of(item.get("call_id")), name, item.get("arguments"), is_cut=is_cut
        )
        own = _without_nothing({"id": item.get("id")}) if len(calls) == 1 else {}
        yield from ({**part, **own} for part in self.reply.add_calls(calls))

    def _take_reasoning(self, item: Part) -> Iterator[Part]:
        """Add the thoughts; yield the item to send back, if it can be understood there."""
        told = [*(item.get("summary") or ()), *(item.get("content") or ())]
        self._thoughts += filter(None, (text_of(part.get("text")) for part in told))
        # Nothing is stored at OpenAI, so reasoning that is not here whole would be looked for there
        # in vain.
        if item.get("encrypted_content") or item.get("content"):
            known = {key: value for key, value in item.items() if key != "status"}
            yield {"reasoning": _without_nothing({"summary": [], **known})}

    def _end(self, response: Part) -> None:
        self._is_over = True
        self.reply.name_model(response.get("model"))
        output: list[Part] = response.get("output") or []
        if output:
            self._items, self._open = dict(enumerate(output)), set()
        self._count(response.get("usage"))
        error = response.get("error")
        if response.get("status") == "failed" or error:
            raise _failure(error, has_worked=bool(output or response.get("usage")))
        if response.get("status") != "incomplete":
            return
        details: Part = response.get("incomplete_details") or {}
        reason = text_of(details.get("reason"))
        self.reply.is_truncated = reason != "content_filter"
        if reason == "content_filter":
            self.reply.refusal = reason

    def _count(self, usage: Any) -> None:
        if usage is None:
            return
        counts = UsageReader(usage)
        self.reply.usage = openai_usage(counts, "input", "output")
        self.reply.doubts = counts.doubts


def _is_search(item: Part) -> bool:
    """Whether OpenAI charges for this step of a web search: pages that it opens cost nothing."""
    action: Any = item.get("action")
    kind = cast(Part, action).get("type") if isinstance(action, dict) else "search"
    return kind == "search"


def _failure(error: Any, *, has_worked: bool) -> ModelError:
    details = cast(Part, error) if isinstance(error, dict) else {"message": str(error)}
    code = str(details.get("code"))
    status = 400 if "image" in code else _STATUS_OF_CODE.get(code, 503)
    reason = f"{text_of(details.get('message')) or 'no reason is given'} ({code})"
    failure = error_for_status(
        status, reason, f"The response failed: {reason}", body=orjson.dumps(details)
    )
    # It may have worked, and charged, before it failed. A limit that was met at once cost nothing.
    failure.unused = failure.unused and (status == 400 or (status == 429 and not has_worked))
    return failure


def _without_nothing(part: Part) -> Part:
    return {key: value for key, value in part.items() if value is not None}
