"""Requests have the fields that the vendors document."""

from dataclasses import replace
from typing import Any

import pytest

from agiraph.core.domain.chat import Attachment, Turn
from agiraph.core.domain.text.fence import enclose_file
from agiraph.models.base import Request
from agiraph.models.http.client import HttpClient
from agiraph.models.registry import Account, Keys, Registry
from agiraph.testing import ManualClock, ModelServer, says
from tests.conformance.conftest import KEY, PROVIDERS, ModelOn, Provider, WireModel
from tests.conformance.threads import (
    BLOB,
    BROKEN,
    NOTE,
    PAPER,
    PICTURE,
    SPEC,
    broken_call,
)
from tests.providers.transcripts import request, thread, tool_call, turn

ANTHROPIC, OPENAI, GEMINI, OPENROUTER, HOUSE, DIRECT = PROVIDERS
CACHED = {"type": "ephemeral"}
TURNS = (
    turn("system", "You are Ada."),
    turn("user", "Read a.md."),
    turn(
        "assistant", "Reading.", calls=(tool_call("a", "read_file", path="a.md"), broken_call("b"))
    ),
    turn("intent", "read_file", ref="a"),
    turn("tool", "Hello.", ref="a"),
    turn("tool", "Not an object.", ref="b", failed=True),
    turn("user", "[Budget] Hurry."),
    turn("user", ""),
    turn("assistant", "", calls=(tool_call("c", "read_file"),)),
    turn("tool", "", ref="c"),
)


async def sent_body(model_on: ModelOn, provider: Provider, asked: Request) -> dict[str, Any]:
    async with ModelServer([says("Done.")]) as server:
        await model_on(provider, server).reply(asked)
    assert server.refused == []
    return server.requests[0].body


async def test_a_thread_is_encoded_for_anthropic(model_on: ModelOn) -> None:
    tool = {"name": "read_file", "description": "Read.", "input_schema": SPEC.schema}
    first = {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "a.md"}}
    second: dict[str, Any] = {"type": "tool_use", "id": "b", "name": "read_file_v2", "input": {}}

    def text(said: str) -> dict[str, Any]:
        return {"type": "text", "text": said}

    def result(identity: str, **more: Any) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": identity, **more}

    assert await sent_body(model_on, ANTHROPIC, request(*TURNS, tools=(SPEC,))) == {
        "model": "claude-m",
        "max_tokens": 32000,
        "stream": True,
        "cache_control": CACHED,
        "tools": [tool | {"cache_control": CACHED}],
        "system": [text("You are Ada.") | {"cache_control": CACHED}],
        "messages": [
            {"role": "user", "content": [text("Read a.md.")]},
            {"role": "assistant", "content": [text("Reading."), first, second]},
            {
                "role": "user",
                "content": [
                    result("a", content=[text("Hello.")]),
                    result("b", content=[text("Not an object.")], is_error=True),
                ],
            },
            {"role": "user", "content": [text("[Budget] Hurry.")]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "read_file", "input": {}}],
            },
            {"role": "user", "content": [result("c")]},
        ],
    }


async def test_a_thread_is_encoded_for_gemini(model_on: ModelOn) -> None:
    tool = {"name": "read_file", "description": "Read.", "parametersJsonSchema": SPEC.schema}
    foreign = {"thoughtSignature": "skip_thought_signature_validator"}

    def call(identity: str, name: str, **arguments: Any) -> dict[str, Any]:
        return {"functionCall": {"id": identity, "name": name, "args": arguments}}

    def result(identity: str, name: str, **response: Any) -> dict[str, Any]:
        return {"functionResponse": {"id": identity, "name": name, "response": response}}

    assert await sent_body(model_on, GEMINI, request(*TURNS, tools=(SPEC,))) == {
        "tools": [{"functionDeclarations": [tool]}],
        "systemInstruction": {"parts": [{"text": "You are Ada."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Read a.md."}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Reading."},
                    call("a", "read_file", path="a.md") | foreign,
                    call("b", "read_file_v2"),
                ],
            },
            {
                "role": "user",
                "parts": [
                    result("a", "read_file", output="Hello."),
                    result("b", "read_file_v2", error="Not an object."),
                ],
            },
            {"role": "user", "parts": [{"text": "[Budget] Hurry."}]},
            {"role": "model", "parts": [call("c", "read_file") | foreign]},
            {"role": "user", "parts": [result("c", "read_file", output="")]},
        ],
    }


async def test_a_thread_is_encoded_for_chat_completions(model_on: ModelOn) -> None:
    body = await sent_body(model_on, HOUSE, request(*TURNS, tools=(SPEC,)))

    assert [(m["role"], m["content"]) for m in body["messages"]] == [
        ("system", "You are Ada."),
        ("user", "Read a.md."),
        ("assistant", "Reading."),
        ("tool", "Hello."),
        ("tool", "Error: Not an object."),
        ("user", "[Budget] Hurry."),
        ("assistant", None),
        ("tool", ""),
    ]


async def test_older_gemini_models_get_no_thought_signature(model_on: ModelOn) -> None:
    older = Provider("gemini/gemini-2.5-flash", "gemini")
    body = await sent_body(model_on, older, request(*TURNS, tools=(SPEC,)))

    assert "skip_thought_signature_validator" not in str(body)


async def test_the_api_key_and_the_version_are_sent_as_headers(
    model_on: ModelOn, provider: Provider
) -> None:
    async with ModelServer([says("Done.")]) as server:
        await model_on(provider, server).reply(request())

    [seen] = server.requests
    wanted = {
        "anthropic": {"x-api-key": KEY, "anthropic-version": "2023-06-01"},
        "openai": {"authorization": f"Bearer {KEY}"},
        "responses": {"authorization": f"Bearer {KEY}"},
        "gemini": {"x-goog-api-key": KEY},
    }
    assert seen.headers | wanted[seen.wire] == seen.headers
    assert (seen.model, seen.stream) == (provider.name.partition("/")[2], True)


@pytest.mark.parametrize("name", ["anthropic/m", "openai/m", "gemini/m", "openrouter/m"])
async def test_without_an_api_key_no_key_header_is_sent(
    http: HttpClient, clock: ManualClock, name: str
) -> None:
    async with ModelServer([says("Done.")]) as server:
        keys = Keys(
            {
                "anthropic": Account(base_url=server.anthropic_url),
                "openai": Account(base_url=server.openai_url + "/"),
                "gemini": Account(base_url=server.gemini_url),
                "openrouter": Account(base_url=server.openai_url),
            }
        )
        model = Registry(keys, clock).resolve(name)
        assert isinstance(model, WireModel)
        await replace(model, http=http).reply(request())

    known = {"authorization", "x-api-key", "x-goog-api-key"}
    assert known & set(server.requests[0].headers) == set()


async def test_a_failed_call_is_marked_as_such(model_on: ModelOn, provider: Provider) -> None:
    async with ModelServer([says("Done.")]) as server:
        await model_on(provider, server).reply(request(*TURNS[:6], tools=(SPEC,)))

    _, _, good, bad = server.requests[0].messages
    if provider.wire in ("openai", "responses"):
        assert (good.text, bad.text) == ("Hello.", "Error: Not an object.")
    else:
        assert (good.failed, bad.failed) == (False, True)
        assert (good.text, bad.text) == ("Hello.", "Not an object.")


NOTE_TEXT = enclose_file("Grüße", name="note.md")

ATTACHED: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "aW1hZ2U="},
        },
        {
            "type": "document",
            "title": "paper.pdf",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "cGFwZXI="},
        },
        {"type": "text", "text": NOTE_TEXT},
    ],
    "openai": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1hZ2U="}},
        {
            "type": "file",
            "file": {
                "filename": "paper.pdf",
                "file_data": "data:application/pdf;base64,cGFwZXI=",
            },
        },
        {"type": "text", "text": NOTE_TEXT},
    ],
    "responses": [
        {
            "type": "input_image",
            "image_url": "data:image/png;base64,aW1hZ2U=",
            "detail": "auto",
        },
        {
            "type": "input_file",
            "filename": "paper.pdf",
            "file_data": "data:application/pdf;base64,cGFwZXI=",
        },
        {"type": "input_text", "text": NOTE_TEXT},
    ],
    "gemini": [
        {"inlineData": {"mimeType": "image/png", "data": "aW1hZ2U="}},
        {"inlineData": {"mimeType": "application/pdf", "data": "cGFwZXI="}},
        {"text": NOTE_TEXT},
    ],
}


def messages_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    return body.get("messages") or body.get("input") or body["contents"]


def content(message: dict[str, Any]) -> list[dict[str, Any]]:
    return message.get("content") or message["parts"]


async def test_attachments_are_sent_with_a_users_text(
    model_on: ModelOn, provider: Provider
) -> None:
    shown = turn("user", "What is this?", attachments=(PICTURE, PAPER, NOTE))
    body = await sent_body(model_on, provider, request(turn("user", "Hello."), shown))

    messages = messages_of(body)
    kinds = {"gemini": {}, "responses": {"type": "input_text"}}
    words = {"text": "What is this?"} | kinds.get(provider.wire, {"type": "text"})
    assert content(messages[-1]) == [*ATTACHED[provider.wire], words]


async def test_attachments_are_sent_with_the_answer_of_a_call(
    model_on: ModelOn, provider: Provider
) -> None:
    calls = (tool_call("a", "read_file"), tool_call("b", "read_file"))
    asked = request(
        turn("user", "Look."),
        turn("assistant", "", calls=calls),
        turn("tool", "Here.", ref="a", attachments=(PICTURE, PAPER, NOTE)),
        turn("tool", "And this.", ref="b"),
    )
    async with ModelServer([says("Done.")]) as server:
        await model_on(provider, server).reply(asked)

    [seen] = server.requests
    answers = [m.text for m in seen.messages if m.role == "tool"]
    together = provider.wire in ("anthropic", "responses")
    whole = f"Here.{NOTE_TEXT}" if together else "Here."
    assert (server.refused, answers) == ([], [whole, "And this."])
    last = messages_of(seen.body)[-1]
    if provider.wire == "anthropic":
        assert content(last)[0]["content"][1:] == ATTACHED["anthropic"]
    elif provider.wire == "responses":
        assert seen.body["input"][-2]["output"][1:] == ATTACHED["responses"]
    else:
        assert content(last)[-3:] == ATTACHED[provider.wire]


@pytest.mark.parametrize("attachment", [BLOB, BROKEN], ids=lambda a: a.name)
async def test_an_unsupported_attachment_is_replaced_by_its_name(
    model_on: ModelOn, provider: Provider, attachment: Attachment
) -> None:
    shown = turn("user", "", attachments=(attachment,))
    async with ModelServer([says("Done.")]) as server:
        await model_on(provider, server).reply(request(shown))

    kind = attachment.media_type
    said = f"[The file {attachment.name} ({kind}) cannot be shown to you.]"
    assert [m.text for m in server.requests[0].messages] == [said]


@pytest.mark.parametrize("said", [turn("user", ""), turn("assistant", "")])
async def test_an_empty_turn_is_not_sent(model_on: ModelOn, provider: Provider, said: Turn) -> None:
    hello = turn("user", "Hello.")
    async with ModelServer([says("Done.")]) as server:
        await model_on(provider, server).reply(request(said, hello, said))

    assert [m.text for m in server.requests[0].messages] == ["Hello."]


async def test_a_lone_surrogate_is_replaced_and_the_rest_is_sent(
    model_on: ModelOn, provider: Provider
) -> None:
    async with ModelServer([says("Done.")]) as server:
        await model_on(provider, server).reply(Request(transcript=thread(turn("user", "a\ud800b"))))

    assert [m.text for m in server.requests[0].messages] == ["a?b"]


@pytest.mark.parametrize(
    ("provider", "forbidden"),
    [
        (ANTHROPIC, {"tool_choice": {"type": "none"}}),
        (OPENAI, {"tool_choice": "none"}),
        (GEMINI, {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}),
        (OPENROUTER, {"tool_choice": "none"}),
        (HOUSE, {"tool_choice": "none"}),
    ],
    ids=lambda value: value.vendor if isinstance(value, Provider) else "",
)
async def test_tools_that_may_not_be_called_are_still_sent(
    model_on: ModelOn, provider: Provider, forbidden: dict[str, Any]
) -> None:
    """So the request keeps the prefix that the vendor has cached."""
    plain = request(*TURNS, tools=(SPEC,))
    async with ModelServer([says("Yes."), says("No.")]) as server:
        model = model_on(provider, server)
        await model.reply(plain)
        await model.reply(replace(plain, may_call=False))
    with_calls, without = server.requests

    assert without.body == with_calls.body | forbidden
    end = with_calls.raw.rstrip(b"}")
    assert without.raw.startswith(end)
