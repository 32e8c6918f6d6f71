"""Features of single vendors: their responses are read, their requests built as documented."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from agiraph.core.domain.errors import ContextExceeded, ModelError, ModelGarbled, ModelRefused
from agiraph.core.domain.work import Usage
from agiraph.models.base import Reply, Request
from agiraph.testing import ModelServer, says
from agiraph.testing.model_server import Garbage, Seen, Status, Step
from tests.conformance.conftest import PROVIDERS, ModelOn, Provider
from tests.conformance.threads import SPEC, as_turn, tool_answers
from tests.providers.transcripts import declined, request, thread, tool_call

ANTHROPIC, OPENAI, GEMINI, OPENROUTER, HOUSE, DIRECT = PROVIDERS
Part = dict[str, Any]


def stream(*events: Part) -> Garbage:
    """Return a stream of these events."""
    return Garbage(b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in events))


async def reply_to(model_on: ModelOn, provider: Provider, step: Step) -> Reply:
    async with ModelServer([step]) as server:
        return await model_on(provider, server).reply(request())


async def error_of(model_on: ModelOn, provider: Provider, step: Step) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await reply_to(model_on, provider, step)
    return caught.value


async def sent_back(model_on: ModelOn, provider: Provider, step: Step) -> Part:
    """Return this reply as it is sent back in the next request."""
    transcript = thread()
    async with ModelServer([step, says("Done.")]) as server:
        model = model_on(provider, server)
        reply = await model.reply(Request(transcript=transcript, tools=(SPEC,)))
        transcript.add(as_turn(reply), *tool_answers(reply))
        await model.reply(Request(transcript=transcript, tools=(SPEC,)))
    assert server.refused == []
    messages = server.requests[-1].body.get("messages") or server.requests[-1].body["contents"]
    return next(m for m in messages if m["role"] in ("assistant", "model"))


# ---- Anthropic -------------------------------------------------------------------------------


def block(index: int, start: Part, *deltas: Part) -> list[Part]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def message(*blocks: list[Part], stop: Part | None = None, usage: Part | None = None) -> Garbage:
    end = {"type": "message_delta", "delta": stop or {"stop_reason": "end_turn"}}
    return stream(
        {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}},
        *(event for events in blocks for event in events),
        end | {"usage": usage or {"output_tokens": 9}},
        {"type": "message_stop"},
    )


USE: Part = {"type": "tool_use", "id": "a", "name": "read_file", "input": {}}


async def test_thinking_between_calls_keeps_its_place(model_on: ModelOn) -> None:
    hidden = {"type": "redacted_thinking", "data": "c2VjcmV0"}
    omitted = {"type": "thinking", "thinking": "", "signature": "c2lnbmVk"}
    step = message(
        block(0, {"type": "thinking", "thinking": "", "signature": ""},
              {"type": "signature_delta", "signature": "c2lnbmVk"}),
        block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Reading."}),
        block(2, USE, {"type": "input_json_delta", "partial_json": '{"path":"a"}'}),
        block(3, hidden),
        block(4, USE | {"id": "b"}, {"type": "input_json_delta", "partial_json": ""}),
    )  # fmt: skip
    sent = await sent_back(model_on, ANTHROPIC, step)

    assert sent["content"] == [
        omitted,
        {"type": "text", "text": "Reading."},
        USE | {"input": {"path": "a"}},
        hidden,
        USE | {"id": "b"},
    ]


async def test_unknown_parts_of_a_message_are_ignored(model_on: ModelOn) -> None:
    step = message(
        block(0, {"type": "text", "text": "He"}, {"type": "text_delta", "text": "llo."},
              {"type": "citations_delta", "citation": {}}),
        [{"type": "solar_flare"}],
        block(1, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        usage={"input_tokens": 7, "cache_read_input_tokens": 90, "output_tokens": 9,
               "cache_creation_input_tokens": 3},
    )  # fmt: skip
    reply = await reply_to(model_on, ANTHROPIC, step)

    usage = Usage(input_tokens=100, output_tokens=9, cached_tokens=90, cache_write_tokens=3)
    assert reply == Reply(text="Hello.", usage=usage)


async def test_arguments_in_the_start_event_of_a_call_are_read(model_on: ModelOn) -> None:
    reply = await reply_to(model_on, ANTHROPIC, message(block(0, USE | {"input": {"path": "a"}})))

    assert reply.calls == (tool_call("a", "read_file", path="a"),)


@pytest.mark.parametrize(
    ("details", "said"),
    [
        (None, "refusal"),
        ({"type": "refusal", "category": "cyber"}, "cyber"),
        ({"category": "cyber", "explanation": "It could do harm."}, "It could do harm."),
    ],
)
async def test_a_refusal_is_reported_with_its_explanation(
    model_on: ModelOn, details: Part | None, said: str
) -> None:
    step = message(stop={"stop_reason": "refusal", "stop_details": details})
    error = await error_of(model_on, ANTHROPIC, step)

    assert isinstance(error, ModelRefused)
    assert str(error) == declined(said)


@pytest.mark.parametrize("thought", [False, True])
async def test_a_full_context_window_raises_context_exceeded(
    model_on: ModelOn, thought: bool
) -> None:
    blocks = block(0, {"type": "thinking", "thinking": "Hm.", "signature": "AAAA"})
    stop = {"stop_reason": "model_context_window_exceeded"}
    step = message(*([blocks] if thought else []), stop=stop)

    assert isinstance(await error_of(model_on, ANTHROPIC, step), ContextExceeded)


# ---- Gemini ----------------------------------------------------------------------------------


def content(*parts: Part, **more: Any) -> Part:
    return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, **more}]}


async def test_calls_without_ids_get_ids(model_on: ModelOn) -> None:
    bash = {"functionCall": {"name": "bash", "args": {"command": "ls"}}}
    step = stream(
        content(bash, bash), content({"functionCall": {"name": "x"}}, finishReason="STOP")
    )
    reply = await reply_to(model_on, GEMINI, step)

    assert [(c.name, c.arguments) for c in reply.calls] == [
        ("bash", {"command": "ls"}),
        ("bash", {"command": "ls"}),
        ("x", {}),
    ]
    assert len({c.id for c in reply.calls} - {""}) == 3


async def test_signed_parts_are_sent_back_separately_and_in_order(model_on: ModelOn) -> None:
    step = stream(
        content({"text": "Hm.", "thought": True}),
        content({"text": "One "}, {"text": "two"}),
        content({"text": " three", "thoughtSignature": "AAAA"}, {"text": " four"}),
        content({"text": "Deep.", "thought": True, "thoughtSignature": "BBBB"}),
        content({"functionCall": {"name": "read_file", "id": "a"}, "thoughtSignature": "CCCC"}),
        content({"text": "", "thoughtSignature": "DDDD"}, finishReason="STOP"),
    )
    sent = await sent_back(model_on, GEMINI, step)

    assert sent["parts"] == [
        {"text": "One two"},
        {"text": " three", "thoughtSignature": "AAAA"},
        {"text": " four"},
        {"text": "Deep.", "thought": True, "thoughtSignature": "BBBB"},
        {
            "functionCall": {"id": "a", "name": "read_file", "args": {}},
            "thoughtSignature": "CCCC",
        },
        {"text": "", "thoughtSignature": "DDDD"},
    ]


async def test_an_unsigned_call_of_an_older_model_gets_a_placeholder_signature(
    model_on: ModelOn,
) -> None:
    unsealed = {"functionCall": {"name": "read_file", "id": "a"}}
    sent = await sent_back(model_on, GEMINI, stream(content(unsealed, finishReason="STOP")))

    assert sent["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "PROHIBITED_CONTENT"),
        (content(finishReason="RECITATION"), "RECITATION"),
        (content(finishReason="SPII", finishMessage="No names."), "SPII: No names."),
    ],
)
async def test_a_reply_that_google_blocks_is_refused(
    model_on: ModelOn, event: Part, said: str
) -> None:
    for step in (stream(event), Status(200, event)):
        error = await error_of(model_on, GEMINI, step)
        assert isinstance(error, ModelRefused)
        assert str(error) == declined(said)


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
async def test_the_text_of_a_malformed_call_is_not_returned_as_a_reply(
    model_on: ModelOn, reason: str
) -> None:
    step = stream(content({"text": "print(default_api.bash("}, finishReason=reason))
    error = await error_of(model_on, GEMINI, step)

    assert isinstance(error, ModelGarbled)
    assert reason in str(error)


# ---- chat completions ------------------------------------------------------------------------


def delta(**said: Any) -> Part:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": None}]}


END: Part = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
CALL = delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "read_file"}}])


@pytest.mark.parametrize(
    ("deltas", "fields"),
    [
        ([{"reasoning_content": "Hm "}, {"reasoning_content": "so."}],
         {"reasoning_content": "Hm so."}),
        ([{"reasoning": "Hm "}, {"reasoning": "so."}], {}),
        ([{"reasoning": "Hm ", "reasoning_content": "Hm "},
          {"reasoning": "so.", "reasoning_content": "so."}],
         {"reasoning_content": "Hm so."}),
        ([{"reasoning": "Hm ", "reasoning_details":
            [{"type": "reasoning.text", "text": "Hm ", "index": 0, "format": "x"}]},
          {"reasoning": "so.", "reasoning_details":
            [{"type": "reasoning.text", "text": "so.", "index": 0, "signature": "AAAA"},
             {"type": "reasoning.encrypted", "data": "BBBB", "index": 1}]}],
         {"reasoning_details": [
             {"type": "reasoning.text", "text": "Hm so.", "index": 0, "format": "x",
              "signature": "AAAA"},
             {"type": "reasoning.encrypted", "data": "BBBB", "index": 1}]}),
    ],
)  # fmt: skip
async def test_reasoning_is_sent_back_in_the_field_in_which_it_came(
    model_on: ModelOn, deltas: list[Part], fields: Part
) -> None:
    step = stream(*(delta(**said) for said in deltas), CALL, END)
    reply = await reply_to(model_on, OPENROUTER, step)
    sent = await sent_back(model_on, OPENROUTER, step)

    assert reply.provider_data.thinking == "Hm so."
    assert {name: value for name, value in sent.items() if "reasoning" in name} == fields


async def test_reasoning_of_another_model_behind_a_router_is_not_sent(
    model_on: ModelOn,
) -> None:
    transcript = thread()
    said = stream(delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "AAAA"}]),
                  CALL, END)  # fmt: skip
    async with ModelServer([said, says("Done.")]) as server:
        reply = await model_on(OPENROUTER, server).reply(Request(transcript=transcript))
        transcript.add(as_turn(reply), *tool_answers(reply))
        other = Provider("openrouter/vendor/other", "openai")
        await model_on(other, server).reply(Request(transcript=transcript))

    assert "AAAA" not in server.requests[-1].raw.decode()


async def test_a_refusal_in_a_separate_field_is_recognised(model_on: ModelOn) -> None:
    step = stream(delta(refusal="I cannot "), delta(refusal="do that."), END)
    error = await error_of(model_on, OPENAI, step)

    assert isinstance(error, ModelRefused)
    assert str(error) == declined("I cannot do that.")


async def test_a_price_in_the_response_is_used(model_on: ModelOn) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "cost": 0.00014}
    step = stream(delta(content="Hi."), END, {"choices": [], "usage": usage})
    reply = await reply_to(model_on, OPENROUTER, step)

    assert reply.usage == Usage(input_tokens=5, output_tokens=2, usd=0.00014)


CORRECTIONS: list[tuple[str, Callable[[Part], bool], Part]] = [
    (
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        lambda body: "max_tokens" in body,
        {"max_completion_tokens": 9},
    ),
    (
        "Function tools with reasoning_effort are not supported for gpt-6-sol in "
        "/v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort "
        "to 'none'.",
        lambda body: "tools" in body and body.get("reasoning_effort") != "none",
        {"reasoning_effort": "none"},
    ),
]


@pytest.mark.parametrize(("said", "wrong", "right"), CORRECTIONS, ids=["limit", "effort"])
async def test_a_request_is_corrected_as_the_servers_error_says(
    model_on: ModelOn, said: str, wrong: Callable[[Part], bool], right: Part
) -> None:
    def answer(seen: Seen) -> Step:
        return Status(400, said) if wrong(seen.body) else says("Hello.")

    asked = Request(transcript=thread(), tools=(SPEC,), max_output_tokens=9)
    async with ModelServer(answer) as server:
        model = model_on(OPENAI, server)
        replies = [await model.reply(asked) for _ in range(2)]

    # Refused once; the correction is remembered.
    assert [reply.text for reply in replies] == ["Hello.", "Hello."]
    bodies = [seen.body for seen in server.requests]
    assert [body | right == body for body in bodies] == [False, True, True]


async def test_a_correction_that_does_not_help_is_not_repeated(
    model_on: ModelOn,
) -> None:
    async with ModelServer(lambda _: Status(400, CORRECTIONS[0][0])) as server:
        with pytest.raises(ModelRefused):
            await model_on(OPENAI, server).reply(request())

    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "object", "properties": {}, "additionalProperties": False}, True),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, False),
        (
            {
                "type": "object",
                "properties": {"a": {"anyOf": [{"type": "object"}, {"type": "null"}]}},
                "required": ["a"],
                "additionalProperties": False,
            },
            False,
        ),
    ],
)
async def test_a_schema_is_strict_where_the_server_supports_it(
    model_on: ModelOn, schema: Part, strict: bool
) -> None:
    async with ModelServer([says("{}")]) as server:
        await model_on(OPENAI, server).reply(Request(transcript=thread(), schema=schema))

    form = server.requests[0].body["response_format"]["json_schema"]
    assert (form["schema"], form["strict"]) == (schema, strict)
