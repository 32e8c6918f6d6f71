"""Threads for the suite: with every kind of turn, by any provider."""

import base64
from collections.abc import Iterator
from typing import Any

from agiraph.core.domain.chat import Attachment, ToolCall, ToolSpec, Turn
from agiraph.models.base import Reply, Request
from agiraph.testing import Call, ModelServer, says
from tests.conformance.conftest import WireModel
from tests.providers.transcripts import thread, tool_call, turn

SPEC = ToolSpec(
    name="read_file",
    description="Read.",
    schema={"type": "object", "properties": {"path": {"type": "string"}}},
)
THOUGHT = "A thought that is nobody else's business."

PICTURE = Attachment(name="map.png", media_type="image/png", data="aW1hZ2U=")
PAPER = Attachment(name="paper.pdf", media_type="application/pdf", data="cGFwZXI=")
NOTE = Attachment(
    name="note.md", media_type="text/markdown", data=base64.b64encode("Grüße".encode()).decode()
)
BLOB = Attachment(name="a.bin", media_type="application/octet-stream", data="AAAA")
BROKEN = Attachment(name="b.txt", media_type="text/plain", data="A")


def as_turn(reply: Reply, model: str = "") -> Turn:
    """Return a reply as the turn that is stored."""
    return turn(
        "assistant",
        reply.text,
        calls=reply.calls,
        provider_data=reply.provider_data,
        model=model or None,
        usage=reply.usage,
    )


def tool_answers(reply: Reply, **more: Any) -> Iterator[Turn]:
    """Yield the stored turns that answer a reply's calls."""
    for call in reply.calls:
        yield turn("intent", call.name, ref=call.id)
        yield turn("tool", f"What {call.name} said.", ref=call.id, **more)


async def play_story(model: WireModel, server: ModelServer) -> list[Turn]:
    """Return a thread with two replies of the model, with thinking, calls, errors and a picture.

    The server must be scripted with `STORY`.
    """
    transcript = thread(turn("system", "You are Ada."), turn("user", "Hello.", ref="assignment"))
    first = await model.reply(Request(transcript=transcript, tools=(SPEC,)))
    transcript.add(as_turn(first, model.name))
    one, two, three = first.calls
    transcript.add(
        turn("intent", one.name, ref=one.id),
        turn("tool", "What is in it.", ref=one.id, attachments=(PICTURE,)),
        turn("tool", "There is no such file.", ref=two.id, failed=True),
        turn("tool", "", ref=three.id),
        turn("user", "[Budget] Hurry up.", ref="budget:turns"),
        turn("user", "What do you see?", ref="msg_1", attachments=(PAPER, NOTE)),
    )
    second = await model.reply(Request(transcript=transcript, tools=(SPEC,)))
    transcript.add(as_turn(second, model.name), turn("user", "Thank you.", ref="msg_2"))
    assert server.refused == []
    return transcript.turns


STORY = (
    says(
        "Reading.",
        Call("read_file", {"path": "a.md"}, id="functions.read_file:0"),
        Call("read file.v2", id="b" * 60, raw='{"path": "b'),
        Call("read_file", {"path": "c.md"}, id="c"),
        thinking=THOUGHT,
    ),
    says("I see a map.", thinking=THOUGHT),
)


def long_thread(replies: int) -> list[Turn]:
    """Return system, assignment, and this many replies with two answered calls each."""
    turns = [turn("system", "You are Ada."), turn("user", "Hello.")]
    for number in range(replies):
        calls = tuple(tool_call(f"c{number}_{n}", "read_file", path="ä.md") for n in range(2))
        turns.append(turn("assistant", f"Step {number}.", calls=calls))
        turns += [turn("tool", "Hello.", ref=call.id) for call in calls]
    return turns


def broken_call(identity: str) -> ToolCall:
    return ToolCall(id=identity, name="read file.v2", malformed='{"path')
