"""Replies of all providers are read alike."""

import asyncio
import traceback

import pytest

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.errors import ModelError, ModelGarbled, ModelRefused
from agiraph.core.domain.work import Usage
from agiraph.models.base import Reply, Request
from agiraph.testing import Call, ModelServer, call, says
from agiraph.testing.model_server import Garbage, Seen, Stall, Status, Step, Trickle
from agiraph.testing.model_server.anthropic import Anthropic
from agiraph.testing.model_server.form import Format
from agiraph.testing.model_server.gemini import Gemini
from agiraph.testing.model_server.openai import OpenAI
from agiraph.testing.model_server.responses import Responses
from tests.conformance.conftest import KEY, ModelOn, Provider
from tests.providers.transcripts import declined, request, thread, tool_call, turn

FORMATS: dict[str, Format] = {
    "openai": OpenAI(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
    "responses": Responses(),
}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "size": {"type": "integer", "minimum": 1}},
    "required": ["city"],
}


async def test_text_is_streamed_and_returned_whole(model_on: ModelOn, provider: Provider) -> None:
    heard: list[str] = []
    said = says("Grüße aus Köln.", input_tokens=120, output_tokens=30, cached_tokens=100, chunk=5)
    async with ModelServer([said]) as server:
        reply = await model_on(provider, server).reply(request(), heard.append)

    usage = Usage(input_tokens=120, output_tokens=30, cached_tokens=100)
    assert reply == Reply(text="Grüße aus Köln.", usage=usage)
    assert heard == ["Grüße", " aus ", "Köln."]


async def test_a_call_is_read_with_its_arguments(model_on: ModelOn, provider: Provider) -> None:
    arguments = {"path": "ä.md", "lines": [1, 2], "deep": {"a": None, "b": 1.5}}
    async with ModelServer([says(Call("read_file", arguments, id="a"))]) as server:
        reply = await model_on(provider, server).reply(request())

    call = ToolCall(id="a", name="read_file", arguments=arguments)
    assert reply == Reply(calls=(call,), usage=Usage(input_tokens=100, output_tokens=20))


async def test_parallel_calls_keep_their_order_ids_and_arguments(
    model_on: ModelOn, provider: Provider
) -> None:
    said = says(
        "Two things.",
        Call("read_file", {"path": "a.md"}, id="a"),
        Call("bash", {"command": "ls", "timeout": 5}, id="b"),
        Call("check_messages", {}, id="c"),
    )
    async with ModelServer([said]) as server:
        reply = await model_on(provider, server).reply(request())

    assert (reply.text, reply.calls) == (
        "Two things.",
        (
            tool_call("a", "read_file", path="a.md"),
            tool_call("b", "bash", command="ls", timeout=5),
            tool_call("c", "check_messages"),
        ),
    )


@pytest.mark.parametrize("raw", ['{"path": "a', "[1]", "5", "path=a.md", "{'a': 1}"])
async def test_arguments_that_are_no_json_object_are_kept_as_written(
    model_on: ModelOn, provider: Provider, raw: str
) -> None:
    async with ModelServer([says(Call("read_file", id="a", raw=raw))]) as server:
        reply = await model_on(provider, server).reply(request())

    assert reply.calls == (ToolCall(id="a", name="read_file", malformed=raw),)


async def test_thinking_is_stored_apart_from_the_text(
    model_on: ModelOn, provider: Provider
) -> None:
    heard: list[str] = []
    async with ModelServer([says("Four.", thinking="Two and two.")]) as server:
        reply = await model_on(provider, server).reply(request(), heard.append)

    assert (reply.text, reply.provider_data.thinking, "".join(heard)) == (
        "Four.",
        "Two and two.",
        "Four.",
    )


@pytest.mark.parametrize("thinking", ["", "Hm. Let me see."])
async def test_a_response_without_streaming_gives_the_same_reply(
    model_on: ModelOn, provider: Provider, thinking: str
) -> None:
    said = says("Look:", Call("bash", {"command": "ls"}, id="a"), thinking=thinking)

    def whole(seen: Seen) -> Step:
        return said if seen.index == 0 else Status(200, FORMATS[seen.wire].whole(seen, said))

    async with ModelServer(whole) as server:
        model = model_on(provider, server)
        streamed, in_one_piece = [await model.reply(request()) for _ in range(2)]

    assert in_one_piece == streamed


async def test_a_response_in_single_bytes_gives_the_same_reply(
    model_on: ModelOn, provider: Provider
) -> None:
    said = says("Grüße", Call("read_file", {"path": "ä.md"}, id="a"), thinking="Größe?")
    async with ModelServer([said, Trickle(1, said)]) as server:
        model = model_on(provider, server)
        whole, torn = [await model.reply(request()) for _ in range(2)]

    assert torn == whole


async def test_a_reply_that_reached_its_token_limit_is_returned(
    model_on: ModelOn, provider: Provider
) -> None:
    asked = Request(transcript=thread(), max_output_tokens=5)
    async with ModelServer([says("Once upon a", finish="length")]) as server:
        reply = await model_on(provider, server).reply(asked)

    [seen] = server.requests
    limit = {
        "openai": seen.body.get("max_tokens"),
        "anthropic": seen.body.get("max_tokens"),
        "responses": seen.body.get("max_output_tokens"),
        "gemini": seen.body.get("generationConfig", {}).get("maxOutputTokens"),
    }
    assert (reply.text, reply.is_cut, limit[seen.wire]) == ("Once upon a", True, 5)


async def test_a_token_limit_used_up_by_thinking_gives_a_reply_that_is_cut(
    model_on: ModelOn, provider: Provider
) -> None:
    async with ModelServer([says("", thinking="Hm.", finish="length")]) as server:
        reply = await model_on(provider, server).reply(request())

    assert (reply.text, reply.provider_data.thinking, reply.is_cut) == ("", "Hm.", True)


@pytest.mark.parametrize("thinking", ["", "Let me apply the edit."])
async def test_an_empty_reply_is_a_reply_and_its_thoughts_are_kept(
    model_on: ModelOn, provider: Provider, thinking: str
) -> None:
    async with ModelServer([says("", thinking=thinking)]) as server:
        reply = await model_on(provider, server).reply(request())

    kept = (reply.text, reply.calls, reply.provider_data.thinking, reply.is_cut)
    assert kept == ("", (), thinking, False)


async def test_a_reply_of_nothing_but_thoughts_is_left_out_of_the_next_request(
    model_on: ModelOn, provider: Provider
) -> None:
    async with ModelServer([says("", thinking="Hm."), says("Yes.")]) as server:
        model = model_on(provider, server)
        asked = request()
        reply = await model.reply(asked)
        data = reply.provider_data
        asked.transcript.add(turn("assistant", "", provider_data=data), turn("user", "Go on."))
        await model.reply(asked)

    assert server.refused == []
    assert [m.role for m in server.requests[-1].messages] == ["user", "user"]


@pytest.mark.parametrize(
    ("said", "text", "thinking"),
    [
        ("<think>hm</think>Answer", "Answer", "hm"),
        ("\n<think>\nhm\n</think>\n\nAnswer", "Answer", "hm"),
        ("hm\n</think>\n\nAnswer", "Answer", "hm"),
        ("<think>hm", "", "hm"),
        ("The mark `<think>` begins a thought.", "The mark `<think>` begins a thought.", ""),
    ],
)
async def test_thinking_inside_the_text_is_taken_apart(
    model_on: ModelOn, provider: Provider, said: str, text: str, thinking: str
) -> None:
    heard: list[str] = []
    async with ModelServer([says(said, chunk=3)]) as server:
        reply = await model_on(provider, server).reply(request(), heard.append)

    assert (reply.text, reply.provider_data.thinking) == (text, thinking)
    if said.strip().startswith(("<think>", "The")):  # an end without a beginning comes too late
        assert "".join(heard) == text


async def test_a_call_cut_off_by_the_token_limit_is_marked_as_malformed(
    model_on: ModelOn, provider: Provider
) -> None:
    cut = Call("bash", id="a", raw='{"command": "rm -rf /tmp/a')
    async with ModelServer([says(cut, finish="length")]) as server:
        reply = await model_on(provider, server).reply(request())

    assert [(c.arguments, c.malformed) for c in reply.calls] == [({}, cut.raw)]
    assert [c.is_cut_off for c in reply.calls] == [True]


async def test_a_filtered_reply_is_refused_with_the_vendors_reason(
    model_on: ModelOn, provider: Provider
) -> None:
    async with ModelServer([says("", finish="content_filter")]) as server:
        with pytest.raises(ModelRefused) as caught:
            await model_on(provider, server).reply(request())

    said = {
        "openai": "content_filter",
        "anthropic": "refusal",
        "gemini": "SAFETY",
        "responses": "content_filter",
    }
    assert str(caught.value) == declined(said[provider.wire])


async def test_text_before_a_content_filter_is_cut_and_its_calls_are_dropped(
    model_on: ModelOn, provider: Provider
) -> None:
    half = says("As far as I may say", call("finish", summary="x"), finish="content_filter")
    async with ModelServer([half]) as server:
        reply = await model_on(provider, server).reply(request())

    assert (reply.text, reply.calls, reply.is_cut) == ("As far as I may say", (), True)


async def test_an_unknown_finish_reason_is_accepted(model_on: ModelOn, provider: Provider) -> None:
    async with ModelServer([says("Well.", finish="SOLAR_FLARE")]) as server:
        reply = await model_on(provider, server).reply(request())

    assert reply.text == "Well."


async def test_calls_with_the_same_id_get_different_ids(
    model_on: ModelOn, provider: Provider
) -> None:
    twice = says(Call("bash", {"n": 1}, id="a"), Call("bash", {"n": 2}, id="a"))
    parts = FORMATS[provider.wire]

    def answer(seen: Seen) -> Step:
        return Status(200, parts.whole(seen, twice))

    async with ModelServer(answer) as server:
        reply = await model_on(provider, server).reply(request())

    first, second = reply.calls
    assert (first.arguments, second.arguments, first.id) == ({"n": 1}, {"n": 2}, "a")
    assert second.id not in ("", "a")


async def test_a_reply_can_be_requested_as_json_with_a_schema(
    model_on: ModelOn, provider: Provider
) -> None:
    asked = Request(transcript=thread(), schema=SCHEMA)
    async with ModelServer([says('{"city": "Köln"}')]) as server:
        reply = await model_on(provider, server).reply(asked)

    [seen] = server.requests
    closed = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "size": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    named = {"name": "answer", "schema": SCHEMA, "strict": False}
    wanted = {
        "openai": {"response_format": {"type": "json_schema", "json_schema": named}},
        "responses": {"text": {"format": {"type": "json_schema", **named}}},
        "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": closed}}},
        "gemini": {
            "generationConfig": {
                "responseMimeType": "application/json",
                "responseJsonSchema": SCHEMA,
            }
        },
    }
    assert reply.text == '{"city": "Köln"}'
    assert seen.body | wanted[seen.wire] == seen.body


async def test_a_reply_without_the_requested_json_is_garbled(
    model_on: ModelOn, provider: Provider
) -> None:
    asked = Request(transcript=thread(), schema=SCHEMA)
    async with ModelServer([says("It is Köln.")]) as server:
        with pytest.raises(ModelGarbled) as caught:
            await model_on(provider, server).reply(asked)

    assert str(caught.value) == "The model was asked for JSON and answered: 'It is Köln.'"


@pytest.mark.parametrize("begun", [False, True])
async def test_a_cancelled_request_is_closed_at_once(
    model_on: ModelOn, provider: Provider, begun: bool
) -> None:
    heard = asyncio.Event()

    def hang(_: Seen) -> "Step | asyncio.Future[Step]":
        said = says("One word and another.", chunk=3)
        return Stall(700, said) if begun else asyncio.get_running_loop().create_future()

    async with ModelServer(hang) as server:
        asking = asyncio.create_task(
            model_on(provider, server).reply(request(), lambda _: heard.set())
        )
        if begun:
            await heard.wait()
        else:
            await server.until(lambda: len(server.requests) == 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await server.until(lambda: server.in_flight == 0)


@pytest.mark.parametrize(
    "step",
    [
        Status(401, f"Incorrect API key provided: {KEY}."),
        Status(500, f"<p>{KEY}</p>".encode()),
        Status(200, {"error": {"message": f"No credit on {KEY}"}}),
        Garbage(f'data: {{"error": "who is {KEY}?"}}\n\n'.encode()),
        Garbage(f"data: {KEY}\n\n".encode()),
    ],
)
async def test_an_api_key_in_an_error_is_redacted(
    model_on: ModelOn, provider: Provider, step: Step
) -> None:
    async with ModelServer([step]) as server:
        with pytest.raises(ModelError) as caught:
            await model_on(provider, server).reply(request())

    assert "[key]" in str(caught.value)
    assert KEY not in "".join(traceback.format_exception(caught.value))
