"""OpenAI: the wire format of chat completions, which most other servers speak too."""

from collections.abc import Iterator
from typing import Any

import orjson

from agiraph.testing.model_server.form import (
    CREATED,
    BadRequest,
    Conversation,
    arguments_text,
    content,
    loose,
    mapping,
    pieces,
    string,
    thought_tokens,
)
from agiraph.testing.script import Call, Overflow, Says, Seen, SeenCall, SeenMessage, Wire

ERRORS = {
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("permission_error", "permission_denied"),
    404: ("invalid_request_error", "model_not_found"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("requests", "rate_limit_exceeded"),
}


class OpenAI:
    wire: Wire = "openai"
    overload = 503

    def read(self, body: dict[str, Any]) -> Conversation:
        if not body["messages"]:
            raise BadRequest("Invalid 'messages': empty array. Expected at least one message.")
        _options(body)
        system: list[str] = []
        messages: list[SeenMessage] = []
        for item in body["messages"]:
            text, images = content(item.get("content"))
            match item["role"]:
                case "system" | "developer":
                    system.append(text)
                case "user":
                    messages.append(SeenMessage(role="user", text=text, images=images))
                case "assistant":
                    calls = tuple(_seen_call(entry) for entry in item.get("tool_calls") or ())
                    messages.append(SeenMessage(role="assistant", text=text, calls=calls))
                case "tool":
                    call_id = string(item["tool_call_id"])
                    messages.append(
                        SeenMessage(role="tool", text=text, call_id=call_id, images=images)
                    )
                case other:
                    raise BadRequest(f"Invalid value for 'messages[].role': {other!r}.")
        tools = tuple(string(tool[tool["type"]]["name"]) for tool in body.get("tools") or ())
        return Conversation(system="\n\n".join(system), messages=tuple(messages), tools=tools)

    def unanswered(self, ids: list[str]) -> str:
        return (
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(ids)}"
        )

    def unasked(self, call_id: str | None) -> str:
        return (
            "Invalid parameter: messages with role 'tool' must be a response to a preceding "
            f"message with 'tool_calls'. No call awaits {call_id!r}."
        )

    def whole(self, seen: Seen, said: Says) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
        if said.thinking:
            message["reasoning_content"] = said.thinking
        if said.calls:
            message["tool_calls"] = [_call(call, arguments_text(call)) for call in said.calls]
        choice = {"index": 0, "message": message, "finish_reason": _finish(said)}
        return _envelope(seen, "chat.completion", [choice]) | {"usage": _usage(said)}

    def events(self, seen: Seen, said: Says) -> Iterator[bytes]:
        with_usage = _options(seen.body).get("include_usage") is True
        for delta in _deltas(said):
            finish = None if delta else _finish(said)
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            chunk = _envelope(seen, "chat.completion.chunk", [choice])
            # As OpenAI does: null in all chunks but the last, which in turn has no choices.
            yield self.frame(chunk | {"usage": None} if with_usage else chunk)
        if with_usage:
            chunk = _envelope(seen, "chat.completion.chunk", [])
            yield self.frame(chunk | {"usage": _usage(said)})
        yield b"data: [DONE]\n\n"

    def frame(self, event: dict[str, Any]) -> bytes:
        return b"data: %b\n\n" % orjson.dumps(event)

    def error(self, code: int, message: str) -> dict[str, Any]:
        fallback = ("server_error" if code >= 500 else "invalid_request_error", None)
        kind, name = ERRORS.get(code, fallback)
        return {"error": {"message": message, "type": kind, "param": None, "code": name}}

    def overflow(self, fault: Overflow) -> dict[str, Any]:
        message = (
            f"This model's maximum context length is {fault.window} tokens. However, your messages "
            f"resulted in {fault.tokens} tokens. Please reduce the length of the messages."
        )
        body = self.error(400, message)
        body["error"] |= {"param": "messages", "code": "context_length_exceeded"}
        return body


def _options(body: dict[str, Any]) -> dict[str, Any]:
    return mapping(body.get("stream_options") or {})


def _seen_call(item: dict[str, Any]) -> SeenCall:
    function = item["function"]
    arguments: Any = loose(string(function["arguments"]))
    return SeenCall(
        id=string(item["id"]),
        name=string(function["name"]),
        arguments=mapping(arguments) if isinstance(arguments, dict) else {},
    )


def _deltas(said: Says) -> Iterator[dict[str, Any]]:
    """Yield the reply in pieces. The last one is empty: it goes with the finish reason."""
    yield {"role": "assistant", "content": ""}
    for piece in pieces(said.thinking, said.chunk):
        yield {"reasoning_content": piece}
    for piece in pieces(said.text, said.chunk):
        yield {"content": piece}
    for index, call in enumerate(said.calls):
        yield {"tool_calls": [{"index": index} | _call(call, "")]}
        for piece in pieces(arguments_text(call), said.chunk):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
    yield {}


def _call(call: Call, arguments: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _envelope(seen: Seen, kind: str, choices: list[Any]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{seen.index:06}",
        "object": kind,
        "created": CREATED,
        "model": seen.model,
        "choices": choices,
    }


def _finish(said: Says) -> str:
    return said.finish or ("tool_calls" if said.calls else "stop")


def _usage(said: Says) -> dict[str, Any]:
    return {
        "prompt_tokens": said.input_tokens,
        "completion_tokens": said.output_tokens,
        "total_tokens": said.input_tokens + said.output_tokens,
        "prompt_tokens_details": {"cached_tokens": said.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": thought_tokens(said)},
    }
