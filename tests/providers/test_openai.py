"""OpenAI wire: the request that is sent, and the reply that is read."""

from collections.abc import Callable
from typing import Any

import orjson

from agiraph.core.domain.chat import ToolCall, ToolSpec
from agiraph.models.wires.chat_completions import OpenAIModel
from agiraph.testing import ModelServer, says
from agiraph.testing.model_server import Garbage
from tests.providers.conftest import KEY
from tests.providers.transcripts import request, tool_call, turn

ModelOn = Callable[[ModelServer], OpenAIModel]


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def stream(*chunks: dict[str, Any]) -> Garbage:
    """Return the bytes of a stream with these chunks."""
    events = [b"data: " + orjson.dumps(c) + b"\n\n" for c in chunks]
    return Garbage(b"".join([*events, b"data: [DONE]\n\n"]))


async def test_streamed_calls_without_an_index_are_separated_by_their_ids(
    model_on: ModelOn,
) -> None:
    def piece(id: str, **function: Any) -> dict[str, Any]:
        return chunk(tool_calls=[{"id": id, "function": function}])

    answer = stream(
        piece("a", name="bash", arguments='{"command": "ls"}'),
        piece("b", name="bash", arguments={"command": "pwd"}),
    )
    async with ModelServer([answer]) as server:
        reply = await model_on(server).reply(request())

    assert reply.calls == (
        tool_call("a", "bash", command="ls"),
        tool_call("b", "bash", command="pwd"),
    )


async def test_the_request_body_is_as_the_vendor_documents_it(model_on: ModelOn) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    spec = ToolSpec(name="read_file", description="Read.", schema=schema)
    broken = ToolCall(id="b", name="read file.v2", malformed='{"path')
    asked = request(
        turn("system", "You are Ada."),
        turn("user", "Read a.md."),
        turn("assistant", "Reading.", calls=(tool_call("a", "read_file", path="a.md"), broken)),
        turn("intent", "read_file", ref="a"),
        turn("tool", "Hello.", ref="a"),
        turn("tool", "Not an object.", ref="b"),
        turn("assistant", "", calls=(tool_call("c", "read_file"),)),
        turn("tool", "'path' is missing", ref="c"),
        tools=(spec,),
    )
    async with ModelServer([says("Done.")]) as server:
        await model_on(server).reply(asked)
        [seen] = server.requests

    def call_entry(id: str, name: str, arguments: str) -> dict[str, Any]:
        return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}

    first = [call_entry("a", "read_file", '{"path":"a.md"}'), call_entry("b", "read_file_v2", "{}")]
    function = {"name": "read_file", "description": "Read.", "parameters": schema}
    assert server.refused == []
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.body == {
        "model": "test",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "system", "content": "You are Ada."},
            {"role": "user", "content": "Read a.md."},
            {"role": "assistant", "content": "Reading.", "tool_calls": first},
            {"role": "tool", "tool_call_id": "a", "content": "Hello."},
            {"role": "tool", "tool_call_id": "b", "content": "Not an object."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [call_entry("c", "read_file", "{}")],
            },
            {"role": "tool", "tool_call_id": "c", "content": "'path' is missing"},
        ],
    }
