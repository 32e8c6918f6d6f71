"""Transcripts: turns, threads and requests without a database, for tests of models."""

from datetime import UTC, datetime
from typing import Any

from agiraph.core.domain.chat import Role, ToolCall, ToolSpec, Transcript, Turn
from agiraph.core.domain.ids import ThreadId
from agiraph.models.base import Request

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def turn(role: Role, text: str, **more: Any) -> Turn:
    return Turn(
        thread_id=ThreadId("t_1"), seq=0, node_id=None, role=role, text=text, at=NOON, **more
    )


def thread(*turns: Turn) -> Transcript:
    return Transcript(turns or [turn("system", "You are Ada."), turn("user", "Hello.")])


def request(*turns: Turn, tools: tuple[ToolSpec, ...] = ()) -> Request:
    return Request(transcript=thread(*turns), tools=tools)


def tool_call(id: str, name: str, **arguments: Any) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments)


def declined(reason: str) -> str:
    """Return the error text for a reply that the vendor withheld."""
    return (
        f"The model refuses to answer: {reason.rstrip('.')}. Say the task in other words, or "
        "choose another model."
    )
