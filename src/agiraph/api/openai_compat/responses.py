"""Responses: the JSON objects and stream events of OpenAI's two chat APIs."""

from datetime import datetime
from typing import Any, Literal

import orjson

from agiraph.domain.value import value
from agiraph.domain.work import Usage

KEEP_ALIVE = b": still working\n\n"
DONE = b"data: [DONE]\n\n"

Finish = Literal["stop"]


@value
class Chat:
    """Writes chat completions, whole and as chunks."""

    id: str
    model: str
    at: datetime

    def whole(self, text: str, usage: Usage) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {**self._head("chat.completion"), "choices": [choice], "usage": chat_usage(usage)}

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def text(self, words: str) -> bytes:
        return self._chunk({"content": words})

    def end(self, text: str, usage: Usage | None) -> bytes:
        """Return the chunks that end a stream: one with `finish_reason`, and one with the token
        usage if the client asked for it."""
        last = self._chunk({}, finish="stop")
        if usage is not None:
            head = self._head("chat.completion.chunk")
            last += _data({**head, "choices": [], "usage": chat_usage(usage)})
        return last + DONE

    def failure(self, error: dict[str, Any]) -> bytes:
        return _data(error) + DONE

    def _chunk(self, delta: dict[str, Any], finish: Finish | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _data({**self._head("chat.completion.chunk"), "choices": [choice]})

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.id}",
            "object": kind,
            "created": int(self.at.timestamp()),
            "model": self.model,
            "system_fingerprint": None,
        }


class Responses:
    """Writes objects of the Responses API, whole and as events."""

    def __init__(self, *, id: str, model: str, at: datetime, previous: str = "") -> None:
        self._id = f"resp_{id}"
        self._item = f"msg_{id}"
        self._model = model
        self._at = at
        self._previous = previous or None
        self._number = 0

    def whole(self, text: str, usage: Usage | None, *, status: str = "completed") -> dict[str, Any]:
        done = status == "completed"
        return {
            "id": self._id,
            "object": "response",
            "created_at": int(self._at.timestamp()),
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "max_output_tokens": None,
            "metadata": {},
            "model": self._model,
            "output": [self._message(text, status)] if done else [],
            "parallel_tool_calls": False,
            "previous_response_id": self._previous,
            "reasoning": {"effort": None, "summary": None},
            "store": True,
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
            "top_p": None,
            "truncation": "disabled",
            "usage": None if usage is None else response_usage(usage),
            "user": None,
        }

    def begin(self) -> bytes:
        open_ = self.whole("", None, status="in_progress")
        item: dict[str, Any] = {**self._message("", "in_progress"), "content": []}
        part = {"item_id": self._item, "output_index": 0, "content_index": 0, "part": _part("")}
        return (
            self._event("response.created", response=open_)
            + self._event("response.in_progress", response=open_)
            + self._event("response.output_item.added", output_index=0, item=item)
            + self._event("response.content_part.added", **part)
        )

    def text(self, words: str) -> bytes:
        return self._event(
            "response.output_text.delta",
            item_id=self._item,
            output_index=0,
            content_index=0,
            delta=words,
            logprobs=[],
        )

    def end(self, text: str, usage: Usage | None) -> bytes:
        """Return the events that close the text, its item and the response."""
        place = {"item_id": self._item, "output_index": 0, "content_index": 0}
        item = self._message(text, "completed")
        return (
            self._event("response.output_text.done", **place, text=text, logprobs=[])
            + self._event("response.content_part.done", **place, part=_part(text))
            + self._event("response.output_item.done", output_index=0, item=item)
            + self._event("response.completed", response=self.whole(text, usage or Usage()))
        )

    def failure(self, error: dict[str, Any]) -> bytes:
        failed = self.whole("", None, status="failed")
        said = error["error"]
        failed["error"] = {"code": "server_error", "message": said["message"]}
        return self._event("response.failed", response=failed)

    def _message(self, text: str, status: str) -> dict[str, Any]:
        return {
            "id": self._item,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [_part(text)],
        }

    def _event(self, kind: str, **fields: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        said = orjson.dumps({"type": kind, "sequence_number": number, **fields})
        return b"event: " + kind.encode() + b"\ndata: " + said + b"\n\n"


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _data(said: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(said) + b"\n\n"


def chat_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.thinking_tokens},
    }


def response_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.thinking_tokens},
        "total_tokens": usage.tokens,
    }
