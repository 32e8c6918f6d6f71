"""OpenAI wire: the request that is sent, and the reply that is read."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import orjson
import pytest

from agiraph.core.domain.chat import ToolCall, ToolSpec, Transcript
from agiraph.core.domain.work import Usage
from agiraph.models.base import Reply, Request
from agiraph.models.http.client import HttpClient
from agiraph.models.wires.chat_completions import OpenAIModel, encode
from agiraph.testing import Call, ModelServer, call, says
from agiraph.testing.model_server import Garbage, Status, Trickle
from tests.providers.conftest import KEY
from tests.providers.transcripts import request, thread, tool_call, turn

ModelOn = Callable[[ModelServer], OpenAIModel]


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def stream(*chunks: dict[str, Any]) -> Garbage:
    """Return the bytes of a stream with these chunks."""
    events = [b"data: " + orjson.dumps(c) + b"\n\n" for c in chunks]
    return Garbage(b"".join([*events, b"data: [DONE]\n\n"]))


async def test_text_is_streamed_and_returned_whole(model_on: ModelOn) -> None:
    heard: list[str] = []
    said = says("Grüße aus Köln.", input_tokens=120, output_tokens=30, cached_tokens=100, chunk=5)
    async with ModelServer([said]) as server:
        reply = await model_on(server).reply(request(), heard.append)

    usage = Usage(input_tokens=120, output_tokens=30, cached_tokens=100)
    assert reply == Reply(text="Grüße aus Köln.", usage=usage)
    assert heard == ["Grüße", " aus ", "Köln."]


async def test_parallel_calls_keep_their_order_ids_and_arguments(model_on: ModelOn) -> None:
    said = says(
        "Two things.",
        Call("read_file", {"path": "a.md"}, id="a"),
        Call("bash", {"command": "ls", "timeout": 5}, id="b"),
        Call("check_messages", {}, id="c"),
    )
    async with ModelServer([said]) as server:
        reply = await model_on(server).reply(request())

    assert reply == Reply(
        text="Two things.",
        calls=(
            tool_call("a", "read_file", path="a.md"),
            tool_call("b", "bash", command="ls", timeout=5),
            tool_call("c", "check_messages"),
        ),
        usage=Usage(input_tokens=100, output_tokens=20),
    )


@pytest.mark.parametrize("raw", ['{"path": "a', "[1]", "5", '"a.md"', "path=a.md", "{'a': 1}"])
async def test_arguments_that_are_not_an_object_are_kept_as_malformed(
    model_on: ModelOn, raw: str
) -> None:
    async with ModelServer([says(Call("read_file", id="a", raw=raw))]) as server:
        reply = await model_on(server).reply(request())

    assert reply.calls == (ToolCall(id="a", name="read_file", malformed=raw),)


async def test_thinking_is_not_part_of_the_reply(model_on: ModelOn) -> None:
    async with ModelServer([says("Four.", thinking="Two and two.")]) as server:
        reply = await model_on(server).reply(request())

    assert reply.text == "Four."


async def test_a_response_without_streaming_is_read(model_on: ModelOn) -> None:
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    message = {
        "role": "assistant",
        "content": "Look:",
        "tool_calls": [{"id": "a", "type": "function", "function": function}],
    }
    whole = {
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        "error": None,
    }
    async with ModelServer([Status(200, whole)]) as server:
        reply = await model_on(server).reply(request())

    assert reply == Reply(
        text="Look:",
        calls=(tool_call("a", "bash", command="ls"),),
        usage=Usage(input_tokens=7, output_tokens=3),
    )


async def test_a_reply_that_arrives_byte_by_byte_is_the_same_reply(model_on: ModelOn) -> None:
    said = says("Grüße", Call("read_file", {"path": "ä.md"}, id="a"))
    async with ModelServer([said, Trickle(1, said)]) as server:
        whole = await model_on(server).reply(request())
        torn = await model_on(server).reply(request())

    assert torn == whole


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


async def test_without_a_key_no_authorization_header_is_sent(http: HttpClient) -> None:
    async with ModelServer([says("Hello.")]) as server:
        address = server.openai_url + "/"
        model = OpenAIModel(name="openai/m", model="m", base_url=address, key="", http=http)
        await model.reply(request())

    assert "authorization" not in server.requests[0].headers


async def test_the_output_limit_is_sent_as_max_tokens(model_on: ModelOn) -> None:
    async with ModelServer([says("Hello.")]) as server:
        await model_on(server).reply(Request(transcript=thread(), max_output_tokens=9))

    assert server.requests[0].body["max_tokens"] == 9


async def test_over_fifty_turns_each_request_begins_with_the_bytes_of_the_one_before(
    model_on: ModelOn,
) -> None:
    spec = ToolSpec(name="read_file", description="Read.", schema={"type": "object"})
    transcript = thread()
    model_says = [says(f"Step {n}.", call("read_file", path=f"ä{n}.md")) for n in range(50)]
    async with ModelServer(model_says) as server:
        model = model_on(server)
        for _ in range(50):
            reply = await model.reply(Request(transcript=transcript, tools=(spec,)))
            [made] = reply.calls
            transcript.add(turn("assistant", reply.text, calls=reply.calls))
            transcript.add(turn("intent", made.name, ref=made.id))
            transcript.add(turn("tool", "Hello.", ref=made.id))
        sent = [seen.raw for seen in server.requests]

    assert server.refused == []
    assert all(later.startswith(earlier[:-2]) for earlier, later in pairwise(sent))
    anew = Request(transcript=Transcript(transcript.turns), tools=(spec,))
    kept = Request(transcript=transcript, tools=(spec,))
    assert b"".join(encode("test", anew)) == b"".join(encode("test", kept))
    assert b"".join(encode("test", kept)).startswith(sent[-1][:-2])
