"""A thread can continue with any provider, and each request extends the bytes of the last."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from agiraph.core.domain.chat import Transcript, Turn
from agiraph.core.domain.errors import ModelRefused
from agiraph.models.base import Request
from agiraph.models.http.connection import Body
from agiraph.models.wires import anthropic, chat_completions, gemini, responses
from agiraph.testing import Call, ModelServer, call, says
from agiraph.testing.model_server import Seen, Status, Step
from agiraph.testing.model_server.form import signature
from tests.conformance.conftest import PROVIDERS, Journal, ModelOn, Provider
from tests.conformance.threads import (
    SPEC,
    STORY,
    THOUGHT,
    as_turn,
    long_thread,
    play_story,
    tool_answers,
)
from tests.providers.transcripts import thread, turn

ANTHROPIC, OPENAI, GEMINI, OPENROUTER, HOUSE, DIRECT = PROVIDERS
SEALED = signature(THOUGHT)
Encode = Callable[[str, Request], Body]
ENCODES: dict[str, Encode] = {
    "anthropic": anthropic.encode,
    "openai": chat_completions.encode,
    "gemini": gemini.encode,
    "responses": partial(responses.encode, vendor="responses:direct/gpt-m"),
}


def joined(body: Body) -> bytes:
    return b"".join(body)


# ---- thinking --------------------------------------------------------------------------------


async def test_stored_thinking_is_sent_back_unchanged(
    model_on: ModelOn, provider: Provider, journal: Journal
) -> None:
    async with ModelServer([*STORY, says("You are welcome.")]) as server:
        model = model_on(provider, server)
        turns = await journal.store_and_read(await play_story(model, server))
        await model.reply(Request(transcript=Transcript(turns), tools=(SPEC,)))
        again = server.requests[-1]

    assert server.refused == []
    if provider.wire == "responses":
        items = again.body["input"]
        kinds = [item.get("type", "message") for item in items]
        reply = ["reasoning", "message", *["function_call"] * 3, *["function_call_output"] * 3]
        assert kinds == ["message", *reply, "message", "message", "reasoning", *["message"] * 2]
        sealed = [i["encrypted_content"] for i in items if i.get("type") == "reasoning"]
        assert sealed == [SEALED, SEALED]
        assert [i["id"] for i in items if i.get("type") == "function_call"] == [
            "fc_000000_0",
            "fc_000000_1",
            "fc_000000_2",
        ]
        return
    messages = again.body.get("messages") or again.body["contents"]
    first, second = [m for m in messages if m["role"] in ("assistant", "model")]
    thought = {"type": "thinking", "thinking": THOUGHT, "signature": SEALED}
    match provider.wire:
        case "anthropic":
            assert [b["type"] for b in first["content"]] == ["thinking", "text", *["tool_use"] * 3]
            assert (first["content"][0], second["content"][0]) == (thought, thought)
        case "gemini":
            assert [part.get("thoughtSignature") for part in first["parts"]] == [
                None,
                SEALED,
                None,
                None,
            ]
            assert second["parts"] == [
                {"text": "I see a map."},
                {"text": "", "thoughtSignature": SEALED},
            ]
        case "openai":
            assert (first["reasoning_content"], "reasoning_content" in second) == (THOUGHT, False)


async def test_stored_thinking_has_the_name_of_its_vendor(
    model_on: ModelOn, provider: Provider
) -> None:
    async with ModelServer(STORY) as server:
        turns = await play_story(model_on(provider, server), server)

    first = next(t for t in turns if t.role == "assistant")
    assert first.provider_data.thinking == THOUGHT
    assert first.provider_data.vendor is not None
    assert first.provider_data.vendor.vendor == provider.thinking_owner


@pytest.mark.parametrize("provider", [ANTHROPIC, GEMINI, DIRECT], ids=lambda p: p.vendor)
@pytest.mark.parametrize(
    "change", [{"text": "Something else."}, {"calls": ()}], ids=["text", "calls"]
)
async def test_thinking_is_not_sent_with_a_reply_that_was_changed(
    model_on: ModelOn, provider: Provider, change: dict[str, Any]
) -> None:
    transcript = thread()
    said = says("Reading.", call("read_file", path="a.md"), thinking=THOUGHT)
    async with ModelServer([said, says("Done.")]) as server:
        model = model_on(provider, server)
        reply = replace(await model.reply(Request(transcript=transcript)), **change)
        transcript.add(as_turn(reply), *tool_answers(reply), turn("user", "Go on."))
        await model.reply(Request(transcript=transcript))

    assert server.refused == []
    assert [m.text for m in server.requests[1].messages if m.role == "assistant"] == [reply.text]
    assert (THOUGHT in server.requests[1].raw.decode(), SEALED in str(server.requests[1].body)) == (
        False,
        False,
    )


# ---- another provider ------------------------------------------------------------------------


@pytest.mark.parametrize("other", PROVIDERS, ids=lambda p: f"then-{p.vendor}")
async def test_a_thread_goes_on_with_another_provider(
    model_on: ModelOn, provider: Provider, other: Provider, journal: Journal
) -> None:
    async with ModelServer([*STORY, says("You are welcome.")]) as server:
        turns = await journal.store_and_read(await play_story(model_on(provider, server), server))
        asked = Request(transcript=Transcript(turns), tools=(SPEC,))
        reply = await model_on(other, server).reply(asked)
        seen = server.requests[-1]

    assert (reply.text, server.refused, seen.wire) == ("You are welcome.", [], other.wire)
    raw = seen.raw.decode()
    own = {
        "anthropic": (True, True),
        "openai": (True, False),
        "gemini": (False, True),
        "responses": (True, True),
    }
    shown = own[other.wire] if other.vendor == provider.vendor else (False, False)
    assert (THOUGHT in raw, SEALED in raw) == shown
    said = [m.text for m in seen.messages if m.role == "assistant"]
    calls = [c.name for m in seen.messages for c in m.calls]
    assert said == ["Reading.", "I see a map."]
    assert calls == ["read_file", "read_file_v2", "read_file"]
    assert sum(m.images for m in seen.messages) == 1


async def test_several_providers_can_alternate_in_one_thread(model_on: ModelOn) -> None:
    """As in a chain of fallbacks: each gets the whole thread, and only its own thinking."""
    transcript = thread()
    steps = [says(f"Step {n}.", call("read_file", path="a"), thinking=THOUGHT) for n in range(6)]
    async with ModelServer(steps) as server:
        models = [model_on(provider, server) for provider in (ANTHROPIC, GEMINI, OPENROUTER)]
        for model in [*models, *models]:
            reply = await model.reply(Request(transcript=transcript, tools=(SPEC,)))
            transcript.add(as_turn(reply, model.name), *tool_answers(reply))

    assert server.refused == []
    assert [len(seen.messages) for seen in server.requests] == [1, 3, 5, 7, 9, 11]
    fourth, fifth, sixth = [seen.raw.decode() for seen in server.requests[3:]]
    counts = (fourth.count(THOUGHT), fifth.count(SEALED), sixth.count(THOUGHT))
    assert counts == (1, 1, 1)


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        (ANTHROPIC, "messages.1.content.0: Invalid `signature` in `thinking` block. The block is "
                    "bound to a different conversation."),
        (ANTHROPIC, "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest "
                    "assistant message cannot be modified."),
        (GEMINI, "Corrupted thought signature."),
    ],
)  # fmt: skip
async def test_a_vendor_that_rejects_its_own_thinking_is_asked_without_it(
    model_on: ModelOn, provider: Provider, said: str
) -> None:
    def answer(seen: Seen) -> Step:
        if seen.index == 0:
            return says("Reading.", call("read_file", path="a.md"), thinking=THOUGHT)
        if SEALED in seen.raw.decode():
            return Status(400, said)
        return says(f"Step {seen.index}.")

    transcript = thread()
    async with ModelServer(answer) as server:
        model = model_on(provider, server)
        reply = await model.reply(Request(transcript=transcript, tools=(SPEC,)))
        transcript.add(as_turn(reply), *tool_answers(reply))
        replies = [await model.reply(Request(transcript=transcript)) for _ in range(2)]

    # Refused once, then asked without thinking, from then on at once without it.
    assert [reply.text for reply in replies] == ["Step 2.", "Step 3."]
    assert (len(server.requests), server.refused) == (4, [])


@pytest.mark.parametrize("provider", [ANTHROPIC, GEMINI], ids=lambda p: p.vendor)
async def test_a_refusal_about_thinking_in_a_thread_without_any_is_not_retried(
    model_on: ModelOn, provider: Provider
) -> None:
    async with ModelServer([Status(400, "Invalid `signature` in `thinking` block.")]) as server:
        with pytest.raises(ModelRefused):
            await model_on(provider, server).reply(Request(transcript=thread()))

    assert len(server.requests) == 1


# ---- bytes -----------------------------------------------------------------------------------


async def test_over_fifty_turns_each_request_starts_with_the_bytes_of_the_last(
    model_on: ModelOn, provider: Provider, journal: Journal
) -> None:
    transcript = thread()
    two = (Call("read_file", {"path": "ä.md"}), Call("bash", {"command": "ls"}))
    script = [says(f"Step {n}.", *two, thinking=THOUGHT) for n in range(50)]
    async with ModelServer([*script, says("Done.")]) as server:
        model = model_on(provider, server)
        for number in range(50):
            reply = await model.reply(Request(transcript=transcript, tools=(SPEC,)))
            transcript.add(as_turn(reply, model.name), *tool_answers(reply))
            if number % 7 == 0:
                transcript.add(turn("user", "[Budget] Hurry.", ref=f"budget:{number}"))
        sent = [seen.raw for seen in server.requests]
        anew = Transcript(await journal.store_and_read(transcript.turns))
        await model.reply(Request(transcript=anew, tools=(SPEC,)))

    assert server.refused == []
    assert all(later.startswith(earlier[:-2]) for earlier, later in pairwise(sent))
    assert server.requests[-1].raw.startswith(sent[-1][:-2])


class CountingTranscript(Transcript):
    """A transcript that counts how often its turns are read."""

    def __init__(self, turns: list[Turn]) -> None:
        self.shown = 0
        super().__init__(turns)

    def spoken(self, start: int = 0) -> list[Turn]:
        found = super().spoken(start)
        self.shown += len(found)
        return found


@pytest.mark.parametrize("encode", ENCODES.values(), ids=ENCODES.keys())
def test_encoding_a_request_reads_only_the_new_turns_of_the_thread(encode: Encode) -> None:
    turns = long_thread(200)
    transcript = CountingTranscript(turns[:2])
    request = Request(transcript=transcript, tools=(SPEC,))
    opening, messages, _ = encode("m", request)
    turns_read: list[int] = []
    sizes: list[int] = []
    for start in range(2, len(turns), 3):
        before, size = transcript.shown, len(messages)
        transcript.add(*turns[start : start + 3])
        body = encode("m", request)
        assert (body[0] is opening, body[1] is messages) == (True, True)
        turns_read.append(transcript.shown - before)
        sizes.append(len(messages) - size)

    assert turns_read == [3] * 200
    assert max(sizes[1:]) - min(sizes[1:]) <= 2 * 7  # a number of three digits, seven times
    assert joined(encode("m", request)) == joined(
        encode("m", Request(transcript=Transcript(turns), tools=(SPEC,)))
    )


@pytest.mark.parametrize("encode", ENCODES.values(), ids=ENCODES.keys())
def test_other_settings_do_not_change_the_encoded_messages(encode: Encode) -> None:
    transcript = Transcript(long_thread(3))
    bodies: list[Any] = [
        encode("m", Request(transcript=transcript, tools=(SPEC,))),
        encode("m", Request(transcript=transcript, tools=(SPEC,), schema={"type": "object"})),
        encode("m", Request(transcript=transcript)),
        encode("n", Request(transcript=transcript, max_output_tokens=5)),
    ]

    assert all(body[1] is bodies[0][1] for body in bodies)
    assert len({joined(body) for body in bodies}) == 4
    assert bodies[0][0] == bodies[1][0]
