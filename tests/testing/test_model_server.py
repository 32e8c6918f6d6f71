"""Model server: sends each vendor's wire format, and reads one conversation from all of them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import aiohttp
import orjson
import pytest

from agiraph.testing.model_server import (
    Call,
    ModelServer,
    Says,
    SeenCall,
    SeenMessage,
    Trickle,
    call,
    says,
)
from agiraph.testing.model_server.form import signature

WIRES = ("openai", "anthropic", "gemini")
WAYS = tuple(product(WIRES, (False, True)))

HELLO: dict[str, dict[str, Any]] = {
    "openai": {"model": "m-1", "messages": [{"role": "user", "content": "Hello."}]},
    "anthropic": {
        "model": "m-1",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hello."}],
    },
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}]},
}

TALK: dict[str, dict[str, Any]] = {
    "openai": {
        "model": "m-1",
        "tools": [{"type": "function", "function": {"name": "read"}}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                ],
            },
            {
                "role": "assistant",
                "content": "Two at once.",
                "tool_calls": [
                    {"id": "c1", "function": {"name": "read", "arguments": '{"path":"a"}'}},
                    {"id": "c2", "function": {"name": "read", "arguments": '{"path":"b"}'}},
                ],
            },
            {"role": "tool", "tool_call_id": "c2", "content": "B"},
            {"role": "tool", "tool_call_id": "c1", "content": "A"},
            {"role": "user", "content": "And?"},
        ],
    },
    "anthropic": {
        "model": "m-1",
        "max_tokens": 9,
        "tools": [{"name": "read", "input_schema": {}}],
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image", "source": {"type": "base64", "data": "AA=="}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                    {"type": "text", "text": "Two at once."},
                    {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "c2", "name": "read", "input": {"path": "b"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c2", "content": "B"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [{"type": "text", "text": "A"}],
                    },
                    {"type": "text", "text": "And?"},
                ],
            },
        ],
    },
    "gemini": {
        "tools": [{"functionDeclarations": [{"name": "read"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "Look."},
                    {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "Hm.", "thought": True},
                    {"text": "Two at once."},
                    {"functionCall": {"id": "c1", "name": "read", "args": {"path": "a"}}},
                    {"functionCall": {"id": "c2", "name": "read", "args": {"path": "b"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c2", "name": "read", "response": {"output": "B"}}},
                    {"functionResponse": {"name": "read", "response": {"output": "A"}}},
                    {"text": "And?"},
                ],
            },
        ],
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedReply:
    """A reply as a client reads it."""

    text: str = ""
    thinking: str = ""
    sealed: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    finish: str = ""
    usage: tuple[int, int, int] = (100, 20, 0)


def endpoint(server: ModelServer, wire: str, stream: bool) -> str:
    match wire:
        case "openai":
            return f"{server.openai_url}/chat/completions"
        case "anthropic":
            return f"{server.anthropic_url}/v1/messages"
        case _:
            verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
            return f"{server.gemini_url}/v1beta/models/m-1:{verb}"


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def post(
    http: aiohttp.ClientSession,
    server: ModelServer,
    wire: str,
    stream: bool,
    body: dict[str, Any] | None = None,
) -> bytes:
    body = HELLO[wire] if body is None else body
    if stream and wire != "gemini":
        body = body | {"stream": True, "stream_options": {"include_usage": True}}
    async with http.post(endpoint(server, wire, stream), json=body) as response:
        assert response.status == 200, await response.text()
        kind = "text/event-stream" if stream else "application/json"
        assert response.content_type == kind
        return await response.read()


def events(data: bytes) -> list[dict[str, Any]]:
    lines = data.replace(b"\r\n", b"\n").split(b"\n")
    found = [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]
    return [orjson.loads(event) for event in found if event != b"[DONE]"]


def parse_reply(wire: str, stream: bool, data: bytes) -> ParsedReply:
    return READERS[wire](events(data) if stream else [orjson.loads(data)])


def parse_openai(replies: list[dict[str, Any]]) -> ParsedReply:
    choices = [choice for reply in replies for choice in reply["choices"]]
    says = [choice.get("delta") or choice.get("message") or {} for choice in choices]
    calls: dict[int, tuple[str, str, str]] = {}
    for delta in says:
        for place, part in enumerate(delta.get("tool_calls") or ()):
            index, function = part.get("index", place), part["function"]
            id_, name, text = calls.get(index, (part.get("id"), function.get("name"), ""))
            calls[index] = (id_, name, text + function["arguments"])
    usage = replies[-1]["usage"]
    return ParsedReply(
        text="".join(delta.get("content") or "" for delta in says),
        thinking="".join(delta.get("reasoning_content") or "" for delta in says),
        calls=tuple(calls.values()),
        finish=choices[-1]["finish_reason"],
        usage=(
            usage["prompt_tokens"],
            usage["completion_tokens"],
            usage["prompt_tokens_details"]["cached_tokens"],
        ),
    )


def parse_anthropic(replies: list[dict[str, Any]]) -> ParsedReply:
    if replies[0]["type"] == "message":
        message, blocks = replies[0], replies[0]["content"]
    else:
        message = replies[0]["message"]
        message["stop_reason"] = replies[-2]["delta"]["stop_reason"]
        message["usage"] |= replies[-2]["usage"]
        blocks = [
            r["content_block"] | {"partial_json": ""} for r in replies if "content_block" in r
        ]
        for event in (r for r in replies if r["type"] == "content_block_delta"):
            for key, value in event["delta"].items():
                if key != "type":
                    blocks[event["index"]][key] += value
    usage = message["usage"]
    cached = usage["cache_read_input_tokens"]
    return ParsedReply(
        text="".join(b["text"] for b in blocks if b["type"] == "text"),
        thinking="".join(b["thinking"] for b in blocks if b["type"] == "thinking"),
        sealed="".join(b["signature"] for b in blocks if b["type"] == "thinking"),
        calls=tuple(
            (b["id"], b["name"], b.get("partial_json") or orjson.dumps(b["input"]).decode())
            for b in blocks
            if b["type"] == "tool_use"
        ),
        finish=message["stop_reason"],
        usage=(usage["input_tokens"] + cached, usage["output_tokens"], cached),
    )


def parse_gemini(replies: list[dict[str, Any]]) -> ParsedReply:
    candidates = [reply["candidates"][0] for reply in replies]
    parts = [part for candidate in candidates for part in candidate["content"]["parts"]]
    functions = [part["functionCall"] for part in parts if "functionCall" in part]
    usage = replies[-1]["usageMetadata"]
    return ParsedReply(
        text="".join(p["text"] for p in parts if "text" in p and not p.get("thought")),
        thinking="".join(p["text"] for p in parts if p.get("thought")),
        sealed="".join(p.get("thoughtSignature", "") for p in parts),
        calls=tuple((f["id"], f["name"], orjson.dumps(f["args"]).decode()) for f in functions),
        finish=candidates[-1]["finishReason"],
        usage=(
            usage["promptTokenCount"],
            usage["candidatesTokenCount"] + usage.get("thoughtsTokenCount", 0),
            usage.get("cachedContentTokenCount", 0),
        ),
    )


READERS = {"openai": parse_openai, "anthropic": parse_anthropic, "gemini": parse_gemini}
ENDS = {
    "openai": ("stop", "tool_calls", "length"),
    "anthropic": ("end_turn", "tool_use", "max_tokens"),
    "gemini": ("STOP", "STOP", "MAX_TOKENS"),
}


@pytest.mark.parametrize(("wire", "stream"), WAYS)
async def test_a_scripted_reply_is_sent_in_the_format_of_each_vendor(
    http: aiohttp.ClientSession, wire: str, stream: bool
) -> None:
    said = Says(
        text="Let me look — at both.",
        thinking="Two files, one question.",
        calls=(call("read", path="a.md"), call("search", query="naïve", limit=3)),
        input_tokens=1000,
        output_tokens=51,
        cached_tokens=800,
    )
    async with ModelServer([said, says("Done.")]) as server:
        first = await post(http, server, wire, stream)
        second = await post(http, server, wire, stream)
    stopped, called, _ = ENDS[wire]
    assert parse_reply(wire, stream, first) == ParsedReply(
        text="Let me look — at both.",
        thinking="Two files, one question.",
        sealed="" if wire == "openai" else signature("Two files, one question."),
        calls=(
            ("call_1", "read", '{"path":"a.md"}'),
            ("call_2", "search", '{"query":"naïve","limit":3}'),
        ),
        finish=called,
        usage=(1000, 51, 800),
    )
    assert parse_reply(wire, stream, second) == ParsedReply(text="Done.", finish=stopped)


@pytest.mark.parametrize(("wire", "stream"), WAYS)
async def test_a_conversation_is_parsed_alike_on_every_wire(
    http: aiohttp.ClientSession, wire: str, stream: bool
) -> None:
    async with ModelServer([says("Fine.")]) as server:
        await post(http, server, wire, stream, TALK[wire])
    [seen] = server.requests
    calls = tuple(
        SeenCall(id=id_, name="read", arguments={"path": path})
        for id_, path in (("c1", "a"), ("c2", "b"))
    )
    assert seen.messages == (
        SeenMessage(role="user", text="Look.", images=1),
        SeenMessage(role="assistant", text="Two at once.", calls=calls),
        SeenMessage(role="tool", text="B", call_id="c2"),
        SeenMessage(role="tool", text="A", call_id="c1"),
        SeenMessage(role="user", text="And?"),
    )
    assert (seen.wire, seen.model, seen.system, seen.tools, seen.stream, seen.index) == (
        (wire, "m-1", "Be brief.", ("read",), stream, 0)
    )
    assert orjson.loads(seen.raw) == seen.body
    assert seen.headers["content-type"] == "application/json"


@pytest.mark.parametrize(("wire", "stream"), WAYS)
async def test_a_reply_may_end_at_its_length_limit(
    http: aiohttp.ClientSession, wire: str, stream: bool
) -> None:
    async with ModelServer([says("And then", finish="length")]) as server:
        data = await post(http, server, wire, stream)
    assert parse_reply(wire, stream, data) == ParsedReply(text="And then", finish=ENDS[wire][2])


@pytest.mark.parametrize(("wire", "stream"), WAYS)
async def test_malformed_arguments_are_sent_as_they_are(
    http: aiohttp.ClientSession, wire: str, stream: bool
) -> None:
    async with ModelServer([says(Call("read", id="mine", raw='{"path": "a'))]) as server:
        data = await post(http, server, wire, stream)
    [(id_, name, text)] = parse_reply(wire, stream, data).calls
    as_text = wire == "openai" or (wire == "anthropic" and stream)
    assert (id_, name) == ("mine", "read")
    assert text == '{"path": "a' if as_text else orjson.loads(text) == '{"path": "a'


@pytest.mark.parametrize("wire", WIRES)
async def test_a_trickle_is_the_same_stream_in_single_bytes(
    http: aiohttp.ClientSession, wire: str
) -> None:
    said = says("Grüße", call("read", path="a"))
    async with ModelServer([said, Trickle(1, said)]) as server:
        whole = await post(http, server, wire, stream=True)
        crumbs = await post(http, server, wire, stream=True)
    first, second = parse_reply(wire, True, whole), parse_reply(wire, True, crumbs)
    assert [first.calls[0][0], second.calls[0][0]] == ["call_1", "call_2"]
    assert (first.text, first.calls[0][1:]) == (second.text, second.calls[0][1:])


async def test_openai_sends_usage_in_a_stream_only_if_requested(
    http: aiohttp.ClientSession,
) -> None:
    async with ModelServer([says("Hi."), says("Hi.")]) as server:
        plain = HELLO["openai"] | {"stream": True}
        async with http.post(f"{server.url}/chat/completions", json=plain) as response:
            silent = await response.read()
        counted = await post(http, server, "openai", stream=True)
    assert silent.endswith(b"data: [DONE]\n\n")
    assert not any("usage" in event for event in events(silent))
    assert [event["usage"] is None for event in events(counted)] == [True, True, True, False]
    assert events(counted)[-1]["choices"] == []


async def test_openai_splits_the_arguments_of_a_call_over_chunks(
    http: aiohttp.ClientSession,
) -> None:
    async with ModelServer([says(call("read", path="a.md"), chunk=8)]) as server:
        data = await post(http, server, "openai", stream=True)
    deltas = [c["delta"].get("tool_calls") for e in events(data) for c in e["choices"]]
    head = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": ""}}
    assert deltas[1:-1] == [
        [{"index": 0} | head],
        [{"index": 0, "function": {"arguments": '{"path":'}}],
        [{"index": 0, "function": {"arguments": '"a.md"}'}}],
    ]


async def test_anthropic_names_every_event(http: aiohttp.ClientSession) -> None:
    async with ModelServer([says("Hi.", call("read"), thinking="Hm.")]) as server:
        data = await post(http, server, "anthropic", stream=True)
    names = [line[7:].decode() for line in data.split(b"\n") if line.startswith(b"event: ")]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    twice = [block[0], block[1], block[1], block[2]]
    frame = ["message_start", "ping", *twice, *block, *twice, "message_delta", "message_stop"]
    assert names == frame == [event["type"] for event in events(data)]
