"""Wire streams: replies of model servers, event by event, with what is wrong in them."""

import json
from typing import Any

from agiraph.models.http.client import HttpClient
from agiraph.models.wires.anthropic import AnthropicModel
from agiraph.models.wires.chat_completions import OpenAIModel
from agiraph.models.wires.gemini import GeminiModel
from agiraph.models.wires.responses import ResponsesModel
from agiraph.testing import ModelServer
from agiraph.testing.model_server import Garbage

NO_USAGE: dict[str, Any] = {}
USAGE: dict[str, Any] = {"prompt_tokens": 10, "completion_tokens": 5}


def frames(*events: Any) -> bytes:
    """Return a stream of events; half a character is an escape, as servers in Python write it."""
    written = [json.dumps(event, separators=(",", ":")) for event in events]
    return b"".join(b"data: " + each.encode() + b"\n\n" for each in written)


def chat(
    *deltas: dict[str, Any],
    finish: str | None = "stop",
    usage: dict[str, Any] = USAGE,
    **more: Any,
) -> Garbage:
    """Return a stream of chat completions with these deltas; without a reason it has no end."""
    events: list[Any] = [{"choices": [{"index": 0, "delta": delta}], **more} for delta in deltas]
    if finish is None:
        return Garbage(frames(*events))
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], **more})
    if usage:
        events.append({"choices": [], "usage": usage})
    return Garbage(frames(*events) + b"data: [DONE]\n\n")


def anthropic(
    text: str,
    *,
    stop: str = "end_turn",
    usage: dict[str, Any] | None = None,
    call: dict[str, Any] | None = None,
) -> Garbage:
    """Return a stream of the Messages API with one block of text, or none, and one call."""
    counted = {"input_tokens": 10, "output_tokens": 5} if usage is None else usage
    events: list[Any] = [{"type": "message_start", "message": {"usage": counted}}]
    if text:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": text}
        events += [
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
        ]
    if call is not None:
        block = {"type": "tool_use", "id": "toolu_1", "input": {}, **call}
        events += [{"type": "content_block_start", "index": 1, "content_block": block}]
    events += [
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {}},
        {"type": "message_stop"},
    ]
    return Garbage(frames(*events))


def gemini(
    *parts: dict[str, Any], finish: str = "STOP", message: str = "", usage: Any = None
) -> Garbage:
    """Return a stream of Google's API with these parts."""
    counted = {"promptTokenCount": 10, "candidatesTokenCount": 5} if usage is None else usage
    events: list[Any] = [{"candidates": [{"content": {"parts": [part]}}]} for part in parts]
    end: dict[str, Any] = {"finishReason": finish, "finishMessage": message or None}
    events.append({"candidates": [end], "usageMetadata": counted})
    return Garbage(frames(*events))


def responses(*items: dict[str, Any], **end: Any) -> Garbage:
    """Return a stream of the Responses API with these items; `end` changes the response at its
    end, such as its status. With `end=None` the stream has no end."""
    events: list[Any] = []
    for index, item in enumerate(items):
        place = {"output_index": index, "item": item}
        events += [
            {"type": "response.output_item.added", **place},
            {"type": "response.output_item.done", **place},
        ]
    if end != {"end": None}:
        usage = {"input_tokens": 10, "output_tokens": 5}
        last = {"status": "completed", "usage": usage, "output": list(items), **end}
        events.append({"type": f"response.{last['status']}", "response": last})
    return Garbage(frames(*events))


def message(text: str) -> dict[str, Any]:
    """Return an item of the Responses API with these words."""
    return {"type": "message", "content": [{"type": "output_text", "text": text}]}


WIRES: dict[str, tuple[Any, str]] = {
    "openai": (OpenAIModel, "openai_url"),
    "responses": (ResponsesModel, "openai_url"),
    "anthropic": (AnthropicModel, "anthropic_url"),
    "gemini": (GeminiModel, "gemini_url"),
}


def on(server: ModelServer, http: HttpClient, wire: str = "openai", **more: Any) -> Any:
    """Return a model of this wire on a scripted server."""
    kind, url = WIRES[wire]
    base_url = getattr(server, url)
    return kind(name=f"{wire}/m", model="m", base_url=base_url, key="", http=http, **more)


def piece(name: str | None, arguments: Any, **more: Any) -> dict[str, Any]:
    """Return a delta with a piece of a call."""
    return {"tool_calls": [{"function": {"name": name, "arguments": arguments}, **more}]}
