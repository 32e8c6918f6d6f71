"""Gemini: the wire format of generateContent."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import orjson

from agiraph.testing.model_server.form import (
    BadRequest,
    Conversation,
    arguments_value,
    mapping,
    pieces,
    signature,
    string,
    thought_tokens,
)
from agiraph.testing.script import Overflow, Says, Seen, SeenCall, SeenMessage, Wire

ERRORS = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
}
FINISHES = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}


class Gemini:
    wire: Wire = "gemini"
    overload = 503

    def read(self, body: dict[str, Any]) -> Conversation:
        if not body["contents"]:
            raise BadRequest("* GenerateContentRequest.contents: contents is not specified")
        messages: list[SeenMessage] = []
        waiting: list[SeenCall] = []
        for item in body["contents"]:
            parts = item["parts"]
            if not parts:
                raise BadRequest("* GenerateContentRequest.contents: parts must not be empty")
            match item.get("role", "user"):
                case "model":
                    messages.append(_seen_reply(parts, turn=len(messages)))
                    waiting = list(messages[-1].calls)
                case "user" | "function":
                    messages.extend(_seen_input(parts, waiting))
                case other:
                    raise BadRequest(f"Please use a valid role: user, model. Not {other!r}.")
        instruction = _field(body, "systemInstruction", "system_instruction")
        said = instruction["parts"] if instruction else ()
        system = "\n\n".join(string(part["text"]) for part in said)
        declared = (
            declaration
            for tool in body.get("tools") or ()
            for declaration in _field(tool, "functionDeclarations", "function_declarations") or ()
        )
        tools = tuple(string(declaration["name"]) for declaration in declared)
        return Conversation(system=system, messages=tuple(messages), tools=tools)

    def unanswered(self, ids: list[str]) -> str:
        return (
            "Please ensure that the number of function response parts is equal to the number of "
            f"function call parts of the function call turn. Missing: {', '.join(ids)}."
        )

    def unasked(self, call_id: str | None) -> str:
        return (
            "Please ensure that function response turn comes immediately after a function call "
            f"turn. No call awaits {call_id!r}."
        )

    def whole(self, seen: Seen, said: Says) -> dict[str, Any]:
        return _response(seen, said, list(_parts(said, size=None)), _finish(said))

    def events(self, seen: Seen, said: Says) -> Iterator[bytes]:
        for part in _parts(said, size=said.chunk):
            yield self.frame(_response(seen, said, [part], None))
        # The end has no news but the reason; its part is empty, and signed if the text was.
        end: dict[str, Any] = {"text": ""}
        if said.thinking and not said.calls:
            end["thoughtSignature"] = signature(said.thinking)
        yield self.frame(_response(seen, said, [end], _finish(said)))

    def frame(self, event: dict[str, Any]) -> bytes:
        # Google ends lines with "\r\n", the others with "\n".
        return b"data: %b\r\n\r\n" % orjson.dumps(event)

    def error(self, code: int, message: str) -> dict[str, Any]:
        name = ERRORS.get(code, "UNAVAILABLE" if code >= 500 else "INVALID_ARGUMENT")
        return {"error": {"code": code, "message": message, "status": name}}

    def overflow(self, fault: Overflow) -> dict[str, Any]:
        message = (
            f"The input token count ({fault.tokens}) exceeds the maximum number of tokens "
            f"allowed ({fault.window})."
        )
        return self.error(400, message)


def _field(item: dict[str, Any], camel: str, snake: str) -> Any:
    """Return a field by its camelCase or snake_case name: Google accepts both."""
    return item.get(camel, item.get(snake))


def _seen_reply(parts: list[dict[str, Any]], *, turn: int) -> SeenMessage:
    text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
    calls: list[SeenCall] = []
    for part in parts:
        if call := _field(part, "functionCall", "function_call"):
            # A client may leave the id out; then a result is matched by its name.
            call_id = string(call.get("id") or f"unnamed_{turn}_{len(calls)}")
            arguments = mapping(call.get("args") or {})
            calls.append(SeenCall(id=call_id, name=string(call["name"]), arguments=arguments))
    return SeenMessage(role="assistant", text=text, calls=tuple(calls))


def _response_of(part: dict[str, Any]) -> Any:
    return _field(part, "functionResponse", "function_response")


def _seen_input(parts: list[dict[str, Any]], waiting: list[SeenCall]) -> Iterator[SeenMessage]:
    """Yield results and texts in order; each result is matched with one of the open calls."""
    for are_results, group in groupby(parts, lambda part: _response_of(part) is not None):
        if are_results:
            yield from (_seen_result(_response_of(part), waiting) for part in group)
        else:
            yield _seen_words(list(group))


def _seen_words(parts: list[dict[str, Any]]) -> SeenMessage:
    text = "".join(part.get("text", "") for part in parts)
    images = sum("image/" in _mime_type(part) for part in parts)
    return SeenMessage(role="user", text=text, images=images)


def _mime_type(part: dict[str, Any]) -> str:
    data = _field(part, "inlineData", "inline_data") or _field(part, "fileData", "file_data")
    return string(_field(data, "mimeType", "mime_type")) if data else ""


def _seen_result(response: dict[str, Any], waiting: list[SeenCall]) -> SeenMessage:
    name, value = string(response["name"]), mapping(response["response"])
    call_id = response.get("id") or next((call.id for call in waiting if call.name == name), name)
    waiting[:] = [call for call in waiting if call.id != call_id]
    [text] = value.values() if len(value) == 1 else [None]
    return SeenMessage(
        role="tool",
        text=text if isinstance(text, str) else orjson.dumps(value).decode(),
        call_id=string(call_id),
        failed="error" in value,
    )


def _parts(said: Says, *, size: int | None) -> Iterator[dict[str, Any]]:
    """Yield the parts of a reply. Calls are not split in a stream; the first one is signed."""
    sealed = {"thoughtSignature": signature(said.thinking)} if said.thinking else {}
    for piece in pieces(said.thinking, size or len(said.thinking)):
        yield {"text": piece, "thought": True}
    for piece in pieces(said.text, size or len(said.text)):
        yield {"text": piece} | ({} if said.calls or size else sealed)
    for index, call in enumerate(said.calls):
        function = {"id": call.id, "name": call.name, "args": arguments_value(call)}
        yield {"functionCall": function} | ({} if index else sealed)


def _response(
    seen: Seen, said: Says, parts: list[dict[str, Any]], finish: str | None
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    thought = thought_tokens(said)
    usage = {
        "promptTokenCount": said.input_tokens,
        "candidatesTokenCount": said.output_tokens - thought,
        "totalTokenCount": said.input_tokens + said.output_tokens,
    }
    if thought:
        usage["thoughtsTokenCount"] = thought
    if said.cached_tokens:
        usage["cachedContentTokenCount"] = said.cached_tokens
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": seen.model,
        "responseId": f"response_{seen.index:06}",
    }


def _finish(said: Says) -> str:
    return FINISHES.get(said.finish, said.finish) if said.finish else "STOP"
