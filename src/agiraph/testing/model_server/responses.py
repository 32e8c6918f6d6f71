"""Responses: the wire format of OpenAI's Responses API."""

from collections.abc import Iterator
from typing import Any

import orjson

from agiraph.testing.model_server.form import (
    CREATED,
    BadRequest,
    Conversation,
    arguments_text,
    loose,
    mapping,
    pieces,
    signature,
    string,
    thought_tokens,
)
from agiraph.testing.model_server.openai import OpenAI
from agiraph.testing.script import Overflow, Says, Seen, SeenCall, SeenMessage, Wire

FINISHES = {"length": "max_output_tokens", "content_filter": "content_filter"}
Item = dict[str, Any]


class Responses:
    wire: Wire = "responses"
    overload = 503

    def read(self, body: dict[str, Any]) -> Conversation:
        items: list[Item] = body["input"]
        if not items:
            raise BadRequest("Invalid 'input': empty array. Expected at least one item.")
        _check_reasoning(items, stores=body.get("store") is not False)
        messages: list[SeenMessage] = []
        system = [string(body.get("instructions") or "")]
        for item in items:
            if item.get("role") in ("developer", "system"):  # as Codex sends its instructions
                system.append(_content(item["content"])[0])
                continue
            seen = _seen(item)
            last = messages[-1] if messages else None
            # Reasoning, words and calls of one reply are items of their own.
            if last is not None and seen is not None and last.role == seen.role == "assistant":
                text, calls = last.text + seen.text, (*last.calls, *seen.calls)
                messages[-1] = SeenMessage(role="assistant", text=text, calls=calls)
            elif seen is not None:
                messages.append(seen)
        # A tool that the vendor runs itself has no name.
        tools = tuple(string(tool.get("name") or tool["type"]) for tool in body.get("tools") or ())
        whole = "\n".join(part for part in system if part)
        return Conversation(system=whole, messages=tuple(messages), tools=tools)

    def unanswered(self, ids: list[str]) -> str:
        return f"No tool output found for function call {', '.join(ids)}."

    def unasked(self, call_id: str | None) -> str:
        return f"No tool call found for function call output with call_id {call_id}."

    def whole(self, seen: Seen, said: Says) -> dict[str, Any]:
        return _response(seen, said, [*_items(seen, said)])

    def events(self, seen: Seen, said: Says) -> Iterator[bytes]:
        yield self.frame({"type": "response.created", "response": _response(seen, None, [])})
        items = [*_items(seen, said)]
        for index, item in enumerate(items):
            place = {"output_index": index, "item_id": item["id"]}
            begun = item | _nothing(item) | {"status": "in_progress"}
            yield self.frame(
                {"type": "response.output_item.added", "output_index": index, "item": begun}
            )
            for kind, delta in _deltas(item, said.chunk):
                yield self.frame({"type": f"response.{kind}.delta", **place, "delta": delta})
            yield self.frame(
                {"type": "response.output_item.done", "output_index": index, "item": item}
            )
        response = _response(seen, said, items)
        yield self.frame({"type": f"response.{response['status']}", "response": response})

    def frame(self, event: dict[str, Any]) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (
            str(event.get("type", "error")).encode(),
            orjson.dumps(event),
        )

    def error(self, code: int, message: str) -> dict[str, Any]:
        return OpenAI().error(code, message)

    def overflow(self, fault: Overflow) -> dict[str, Any]:
        message = "Your input exceeds the context window of this model. Please adjust your input."
        body = self.error(400, message)
        body["error"] |= {"param": "input", "code": "context_length_exceeded"}
        return body


def _check_reasoning(items: list[Item], *, stores: bool) -> None:
    """Raise `BadRequest` for reasoning that is not whole, or that nothing follows."""
    for place, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        identity = string(item["id"])
        if not stores and not item.get("encrypted_content"):
            raise BadRequest(
                f"Item with id '{identity}' not found. Items are not persisted when `store` is set "
                "to false."
            )
        following = items[place + 1] if place + 1 < len(items) else {}
        if following.get("type") not in ("message", "function_call", "reasoning"):
            raise BadRequest(
                f"Item '{identity}' of type 'reasoning' was provided without its required "
                "following item."
            )


def _seen(item: Item) -> SeenMessage | None:
    match item.get("type", "message"):
        case "message":
            role = item["role"]
            if role not in ("user", "assistant"):
                raise BadRequest(f"Invalid value for 'input[].role': {role!r}.")
            text, images = _content(item["content"])
            return SeenMessage(role=role, text=text, images=images)
        case "function_call":
            arguments: Any = loose(string(item["arguments"]))
            call = SeenCall(
                id=string(item["call_id"]),
                name=string(item["name"]),
                arguments=mapping(arguments) if isinstance(arguments, dict) else {},
            )
            return SeenMessage(role="assistant", calls=(call,))
        case "function_call_output":
            text, images = _content(item["output"])
            identity = string(item["call_id"])
            return SeenMessage(role="tool", text=text, call_id=identity, images=images)
        case "reasoning":
            return None
        case other:
            raise BadRequest(f"Invalid value for 'input[].type': {other!r}.")


def _content(value: Any) -> tuple[str, int]:
    if isinstance(value, str):
        return value, 0
    kinds = ("input_text", "output_text")
    text = "".join(part["text"] for part in value if part["type"] in kinds)
    return text, sum(part["type"] == "input_image" for part in value)


def _items(seen: Seen, said: Says) -> Iterator[Item]:
    # Not the number of the request: a request that is sent again gets the same reply.
    number = f"{len(seen.messages) - 1:06}"
    if said.thinking:
        yield {
            "type": "reasoning",
            "id": f"rs_{number}",
            "summary": [{"type": "summary_text", "text": said.thinking}],
            "encrypted_content": signature(said.thinking),
            "status": "completed",
        }
    if said.text:
        content = [{"type": "output_text", "text": said.text, "annotations": list[Any]()}]
        yield {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    for place, call in enumerate(said.calls):
        yield {
            "type": "function_call",
            "id": f"fc_{number}_{place}",
            "call_id": call.id,
            "name": call.name,
            "arguments": arguments_text(call),
            "status": "completed",
        }


def _nothing(item: Item) -> Item:
    """Return the fields of an item that are empty when it begins."""
    empty: dict[str, Item] = {
        "reasoning": {"summary": [], "encrypted_content": "gAAA"},
        "message": {"content": []},
        "function_call": {"arguments": ""},
    }
    return empty[item["type"]]


def _deltas(item: Item, size: int) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each delta of an item."""
    match item["type"]:
        case "reasoning":
            kind, text = "reasoning_summary_text", item["summary"][0]["text"]
        case "message":
            kind, text = "output_text", item["content"][0]["text"]
        case _:
            kind, text = "function_call_arguments", item["arguments"]
    yield from ((kind, piece) for piece in pieces(text, size))


def _response(seen: Seen, said: Says | None, output: list[Item]) -> dict[str, Any]:
    response: dict[str, Any] = {
        "id": f"resp_{seen.index:06}",
        "object": "response",
        "created_at": CREATED,
        "model": seen.model,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "output": output,
        "usage": None,
    }
    if said is None:
        return response
    status: dict[str, Any] = {"status": "completed"}
    if said.finish:
        reason = FINISHES.get(said.finish, said.finish)
        status = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    return response | status | {"usage": _usage(said)}


def _usage(said: Says) -> dict[str, Any]:
    return {
        "input_tokens": said.input_tokens,
        "input_tokens_details": {"cached_tokens": said.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": said.output_tokens,
        "output_tokens_details": {"reasoning_tokens": thought_tokens(said)},
        "total_tokens": said.input_tokens + said.output_tokens,
    }
