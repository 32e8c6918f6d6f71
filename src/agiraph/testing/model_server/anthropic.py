"""Anthropic: the wire format of the Messages API."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import orjson

from agiraph.testing.model_server.form import (
    BadRequest,
    Conversation,
    arguments_text,
    arguments_value,
    content,
    mapping,
    pieces,
    signature,
    string,
)
from agiraph.testing.script import Overflow, Says, Seen, SeenCall, SeenMessage, Wire

ERRORS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
FINISHES = {"length": "max_tokens", "content_filter": "refusal"}


class Anthropic:
    wire: Wire = "anthropic"
    overload = 529

    def read(self, body: dict[str, Any]) -> Conversation:
        if not body["messages"]:
            raise BadRequest("messages: at least one message is required")
        if not isinstance(body.get("max_tokens"), int):
            raise BadRequest("max_tokens: Field required")
        messages = [seen for item in body["messages"] for seen in _seen_messages(item)]
        ids = [call.id for message in messages for call in message.calls]
        if len(ids) > len(set(ids)):
            raise BadRequest("messages: `tool_use` ids must be unique")
        system = body.get("system") or ""
        if not isinstance(system, str):
            system = "\n\n".join(block["text"] for block in system)
        tools = tuple(string(tool["name"]) for tool in body.get("tools") or ())
        return Conversation(system=system, messages=tuple(messages), tools=tools)

    def unanswered(self, ids: list[str]) -> str:
        return (
            "messages: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` "
            "block in the next message."
        )

    def unasked(self, call_id: str | None) -> str:
        return (
            f"messages: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}. Each "
            "`tool_result` block must have a corresponding `tool_use` block in the previous "
            "message."
        )

    def whole(self, seen: Seen, said: Says) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = []
        if said.thinking:
            sealed = signature(said.thinking)
            blocks.append({"type": "thinking", "thinking": said.thinking, "signature": sealed})
        if said.text:
            blocks.append({"type": "text", "text": said.text})
        for call in said.calls:
            value = arguments_value(call)
            blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": value})
        return _message(seen, said) | {"content": blocks, "stop_reason": _finish(said)}

    def events(self, seen: Seen, said: Says) -> Iterator[bytes]:
        yield self.frame({"type": "message_start", "message": _message(seen, said, output=1)})
        yield self.frame({"type": "ping"})
        for index, (block, deltas) in enumerate(_blocks(said)):
            start = {"type": "content_block_start", "index": index, "content_block": block}
            yield self.frame(start)
            for delta in deltas:
                yield self.frame({"type": "content_block_delta", "index": index, "delta": delta})
            yield self.frame({"type": "content_block_stop", "index": index})
        end = {"stop_reason": _finish(said), "stop_sequence": None}
        usage = {"output_tokens": said.output_tokens}
        yield self.frame({"type": "message_delta", "delta": end, "usage": usage})
        yield self.frame({"type": "message_stop"})

    def frame(self, event: dict[str, Any]) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps(event))

    def error(self, code: int, message: str) -> dict[str, Any]:
        kind = ERRORS.get(code, "api_error" if code >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}

    def overflow(self, fault: Overflow) -> dict[str, Any]:
        message = f"prompt is too long: {fault.tokens} tokens > {fault.window} maximum"
        return self.error(400, message)


def _seen_messages(item: dict[str, Any]) -> Iterator[SeenMessage]:
    blocks = item["content"]
    if isinstance(blocks, str):
        blocks = [{"type": "text", "text": blocks}]
    if any(block["type"] == "text" and not block["text"] for block in blocks):
        raise BadRequest("messages: text content blocks must be non-empty")
    match item["role"]:
        case "assistant":
            uses = (block for block in blocks if block["type"] == "tool_use")
            text, _ = content(blocks)
            yield SeenMessage(role="assistant", text=text, calls=tuple(map(_seen_call, uses)))
        case "user" if not blocks:
            raise BadRequest("messages: user messages must have non-empty content")
        case "user":
            # In the order they came: the API wants results before anything else is said.
            for are_results, group in groupby(blocks, lambda b: b["type"] == "tool_result"):
                if are_results:
                    yield from map(_seen_result, group)
                else:
                    text, images = content(list(group))
                    yield SeenMessage(role="user", text=text, images=images)
        case other:
            raise BadRequest(f"messages: role: {other!r} should be 'user' or 'assistant'")


def _seen_call(block: dict[str, Any]) -> SeenCall:
    name, arguments = string(block["name"]), mapping(block["input"])
    return SeenCall(id=string(block["id"]), name=name, arguments=arguments)


def _seen_result(block: dict[str, Any]) -> SeenMessage:
    text, images = content(block.get("content"))
    return SeenMessage(
        role="tool",
        text=text,
        call_id=string(block["tool_use_id"]),
        failed=block.get("is_error") is True,
        images=images,
    )


def _blocks(said: Says) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each content block as it starts, with the deltas that fill it."""
    if said.thinking:
        parts = pieces(said.thinking, said.chunk)
        deltas = [{"type": "thinking_delta", "thinking": part} for part in parts]
        deltas.append({"type": "signature_delta", "signature": signature(said.thinking)})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if said.text:
        parts = pieces(said.text, said.chunk)
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in parts]
    for call in said.calls:
        # Anthropic's first delta of a call is empty.
        parts = ["", *pieces(arguments_text(call), said.chunk)]
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, deltas


def _message(seen: Seen, said: Says, output: int | None = None) -> dict[str, Any]:
    """Return the message without its blocks; a stream begins with it, before output is counted."""
    return {
        "id": f"msg_{seen.index:06}",
        "type": "message",
        "role": "assistant",
        "model": seen.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": said.input_tokens - said.cached_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": said.cached_tokens,
            "output_tokens": said.output_tokens if output is None else output,
        },
    }


def _finish(said: Says) -> str:
    if said.finish:
        return FINISHES.get(said.finish, said.finish)
    return "tool_use" if said.calls else "end_turn"
