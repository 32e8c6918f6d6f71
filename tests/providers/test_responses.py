"""Responses: what OpenAI's Responses API can send, and what it refuses."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.errors import (
    ContextExceeded,
    ModelDeclined,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from agiraph.core.domain.work import Usage
from agiraph.models.base import Reply, Request
from agiraph.models.http.client import HttpClient
from agiraph.models.wires.responses import ResponsesModel
from agiraph.testing import ManualClock, ModelServer, call, says
from agiraph.testing.model_server import Garbage, Seen, Status
from tests.conformance.threads import SPEC, as_turn, tool_answers
from tests.providers.transcripts import request, thread, turn

THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAsealed"}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "read_file",
    "arguments": '{"path": "a.md"}',
}


def message(*content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [*content], **more}


def words(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def stream(*events: dict[str, Any]) -> Garbage:
    return Garbage(b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in events))


def ended(*items: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    response = {"status": status, "output": [*items], "error": None, **more}
    return {"type": f"response.{status}", "response": response}


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    opened = HttpClient(ManualClock())
    yield opened
    await opened.close()


def model_at(server: ModelServer, http: HttpClient, name: str = "openai/gpt-m") -> ResponsesModel:
    model = name.partition("/")[2]
    return ResponsesModel(name=name, model=model, base_url=server.openai_url, key="sk-1", http=http)


async def reply_to(http: HttpClient, *events: dict[str, Any]) -> Reply:
    async with ModelServer([stream(*events)]) as server:
        return await model_at(server, http).reply(request(tools=(SPEC,)))


async def error_of(http: HttpClient, *events: dict[str, Any]) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await reply_to(http, *events)
    return caught.value


async def test_items_are_kept_in_their_order_with_ids_and_phases(http: HttpClient) -> None:
    told = message(words("Looking."), phase="commentary", status="completed")
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 10},
        "output_tokens": 40,
        "output_tokens_details": {"reasoning_tokens": 30},
    }
    async with ModelServer([stream(ended(THOUGHT, told, CALL, usage=usage)), says("Done.")]) as s:
        model = model_at(s, http)
        transcript = thread(turn("user", "Hello."))
        reply = await model.reply(Request(transcript=transcript, tools=(SPEC,)))
        transcript.add(as_turn(reply), *tool_answers(reply))
        await model.reply(Request(transcript=transcript, tools=(SPEC,)))

    assert reply.calls == (ToolCall(id="call_1", name="read_file", arguments={"path": "a.md"}),)
    assert reply.usage == Usage(
        input_tokens=100,
        cached_tokens=64,
        cache_write_tokens=10,
        output_tokens=40,
        thinking_tokens=30,
    )
    first, second = s.requests
    assert second.body["input"][1:] == [
        THOUGHT,
        told,
        CALL | {"arguments": '{"path":"a.md"}'},
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": "What read_file said.",
        },
    ]
    assert (first.body["store"], first.body["include"]) == (False, ["reasoning.encrypted_content"])
    assert first.body["prompt_cache_key"] == second.body["prompt_cache_key"]
    assert first.body["tools"][0]["strict"] is False


async def test_a_refusal_is_no_reply(http: HttpClient) -> None:
    refusal = message({"type": "refusal", "refusal": "I cannot help with that."})
    error = await error_of(http, ended(refusal))
    assert (type(error), "I cannot help with that" in str(error)) == (ModelDeclined, True)


async def test_a_reply_that_reached_the_limit_is_cut_and_its_reasoning_dropped(
    http: HttpClient,
) -> None:
    details = {"reason": "max_output_tokens"}
    cut = ended(
        THOUGHT, message(words("Once upon")), status="incomplete", incomplete_details=details
    )
    reply = await reply_to(http, cut)
    assert (reply.text, reply.is_cut, reply.provider_data.vendor) == ("Once upon", True, None)


async def test_a_call_that_reached_the_limit_is_not_whole(http: HttpClient) -> None:
    details = {"reason": "max_output_tokens"}
    half = CALL | {"arguments": '{"path": "a'}
    reply = await reply_to(http, ended(half, status="incomplete", incomplete_details=details))
    assert (reply.calls[0].malformed, reply.is_cut) == ('{"path": "a', True)


async def test_words_before_a_filter_are_cut_off(http: HttpClient) -> None:
    details = {"reason": "content_filter"}
    cut = ended(message(words("Once")), CALL, status="incomplete", incomplete_details=details)
    reply = await reply_to(http, cut)
    assert (reply.text, reply.calls, reply.is_cut) == ("Once", (), True)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", ModelUnavailable),
        ("rate_limit_exceeded", ModelUnavailable),
        ("invalid_prompt", ModelRefused),
        ("invalid_image", ModelRefused),
        ("context_length_exceeded", ContextExceeded),
    ],
)
async def test_a_failed_response_is_an_error_that_says_whether_to_retry(
    http: HttpClient, code: str, kind: type[ModelError]
) -> None:
    failure = {"code": code, "message": "It went wrong."}
    for event in (
        ended(status="failed", error=failure),
        {"type": "error", **failure, "param": None},
    ):
        error = await error_of(http, {"type": "response.created", "response": {}}, event)
        assert (type(error), "It went wrong." in str(error)) == (kind, True)


async def test_a_rate_limit_that_was_met_before_any_work_cost_nothing(http: HttpClient) -> None:
    failure = {"code": "rate_limit_exceeded", "message": "Slow down."}
    used = {"input_tokens": 9, "output_tokens": 1}
    for more, is_unused in (({}, True), ({"usage": used}, False)):
        error = await error_of(http, ended(status="failed", error=failure, **more))
        assert error.unused is is_unused


async def test_an_item_that_never_became_whole_is_never_a_call(http: HttpClient) -> None:
    begun = {"type": "response.output_item.added", "output_index": 0, "item": CALL}
    error = await error_of(http, begun, ended())
    assert type(error) is ModelUnavailable


async def test_whole_items_are_enough_where_the_end_repeats_none(http: HttpClient) -> None:
    done = {"type": "response.output_item.done", "output_index": 0, "item": CALL}
    reply = await reply_to(http, done, ended())
    assert [one.name for one in reply.calls] == ["read_file"]


async def test_refused_encrypted_reasoning_is_left_out_from_then_on(http: HttpClient) -> None:
    said = "The encrypted content gAAA... could not be verified."

    def check(seen: Seen) -> Any:
        if seen.index == 0:
            return says("Reading.", call("read_file", path="a.md"), thinking="Hm.")
        return Status(400, said) if "rs_" in seen.raw.decode() else says("Done.")

    transcript = thread(turn("user", "Hello."))
    async with ModelServer(check) as server:
        model = model_at(server, http)
        first = await model.reply(Request(transcript=transcript, tools=(SPEC,)))
        transcript.add(as_turn(first), *tool_answers(first))
        for _ in range(2):
            assert (await model.reply(Request(transcript=transcript))).text == "Done."
    assert ["rs_" in seen.raw.decode() for seen in server.requests] == [False, True, False, False]
    assert server.refused == []


async def test_reasoning_of_another_model_of_openai_is_not_sent(http: HttpClient) -> None:
    transcript = thread(turn("user", "Hello."))
    said = says("Reading.", call("read_file", path="a.md"), thinking="Hm.")
    async with ModelServer([said, says("Done.")]) as server:
        first = await model_at(server, http).reply(Request(transcript=transcript, tools=(SPEC,)))
        transcript.add(as_turn(first), *tool_answers(first))
        await model_at(server, http, "openai/other").reply(Request(transcript=transcript))
    assert ("rs_" in server.requests[1].raw.decode(), server.refused) == (False, [])


async def test_a_model_that_does_not_reason_is_not_asked_for_its_reasoning(
    http: HttpClient,
) -> None:
    def check(seen: Seen) -> Any:
        if "include" in seen.body:
            return Status(400, "Encrypted content is not supported with this model.")
        return says("Done.")

    async with ModelServer(check) as server:
        model = model_at(server, http)
        for _ in range(2):
            assert (await model.reply(request())).text == "Done."
    assert ["include" in seen.body for seen in server.requests] == [True, False, False]


async def test_a_hint_stands_at_the_end_of_one_request(http: HttpClient) -> None:
    async with ModelServer([says("Done.")] * 2) as server:
        asked = request(turn("user", "Hello."))
        await model_at(server, http).reply(replace(asked, hint="Again."))
        await model_at(server, http).reply(asked)
    ends = [seen.messages[-1].text for seen in server.requests]
    assert ends == ["Again.", "Hello."]
