"""Habits P1 to P16: refusals, broken calls, reasoning, silence and empty accounts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph.core.domain.chat import ProviderData, VendorParts
from agiraph.core.domain.errors import (
    ModelDeclined,
    ModelRefused,
    ModelSilent,
    ModelUnavailable,
    QuotaSpent,
)
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.models.attempts import Fallback, Retrying
from agiraph.models.base import Request
from agiraph.models.http.client import HttpClient
from agiraph.models.http.patience import LOCAL, REMOTE, Patience
from agiraph.models.registry import Account, Keys
from agiraph.testing import ManualClock, ModelServer, ScriptedModel, World, call, says
from agiraph.testing.model_server import Garbage, Stall, Status, Step
from tests.conformance.threads import SPEC
from tests.habits.wire_streams import (
    WIRES,
    anthropic,
    chat,
    frames,
    gemini,
    message,
    on,
    responses,
)
from tests.providers.transcripts import request, thread, tool_call, turn

WRITE = {"index": 0, "id": "a", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    opened = HttpClient(ManualClock(), stall_timeout_s=20)
    yield opened
    await opened.close()


LS = {"name": "bash", "input": {"command": "ls"}}
MADE = {"functionCall": {"name": "bash", "args": {"command": "ls"}}}
CALLED = {"type": "function_call", "call_id": "a", "name": "bash", "arguments": '{"command": "ls"}'}
FILTER = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
WITHHELD = {
    "openai": chat({"content": "Well, I "}, {"tool_calls": [WRITE]}, finish="content_filter"),
    "anthropic": anthropic("Well, I ", call=LS, stop="refusal"),
    "gemini": gemini({"text": "Well, I "}, MADE, finish="SAFETY"),
    "responses": responses(message("Well, I "), CALLED, **FILTER),
}
"""Half an answer and a whole call in it."""
NO_WORD = {
    "openai": chat({"content": ""}, finish="content_filter"),
    "anthropic": anthropic("", stop="refusal"),
    "gemini": gemini(finish="PROHIBITED_CONTENT"),
    "responses": responses(**FILTER),
}


@pytest.mark.parametrize("wire", NO_WORD)
async def test_p1_a_refusal_is_passed_to_the_next_model_and_never_asked_again(
    http: HttpClient, wire: str
) -> None:
    async with ModelServer([NO_WORD[wire]]) as server:
        refusing = Retrying(model=on(server, http, wire), clock=ManualClock())
        chain = Fallback((refusing, ScriptedModel("b/2", [says("Here you are.")])))
        reply = await chain.reply(request())

    assert (reply.text, len(server.requests)) == ("Here you are.", 1)


async def test_p1_a_refusal_of_every_model_asks_a_person_and_says_that_it_is_one(
    world: World,
) -> None:
    world.script("ada", ModelDeclined("The model refuses to answer: cyber."))
    founded = await world.found("Write an exploit")
    await world.settle()
    [question] = await world.questions(founded.team.id)

    assert question.text == (
        "I cannot go on: The model refuses to answer: cyber. Tell me when I should try again. "
        f"`agiraph set {founded.team.id} --model NAME` gives me another model."
    )


@pytest.mark.parametrize("wire", WITHHELD)
async def test_p2_half_an_answer_that_is_refused_is_marked_and_makes_no_call(
    http: HttpClient, wire: str
) -> None:
    async with ModelServer([WITHHELD[wire]]) as server:
        reply = await on(server, http, wire).reply(request())

    assert (reply.text, reply.calls, reply.is_cut) == ("Well, I ", (), True)
    assert reply.provider_data.refusal
    assert reply.provider_data.vendor is None


async def test_p2_the_next_model_answers_without_the_half_and_both_are_paid(
    http: HttpClient,
) -> None:
    async with ModelServer([WITHHELD["openai"]]) as server:
        chain = Fallback((on(server, http), ScriptedModel("b/2", [says("Whole.")])))
        reply = await chain.reply(request())

    assert (reply.text, reply.is_cut) == ("Whole.", False)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (110, 25)


async def test_p2_a_half_is_paid_even_if_the_next_model_cannot_be_asked(http: HttpClient) -> None:
    refusal = ModelRefused("bad key", unused=True)
    async with ModelServer([WITHHELD["openai"]]) as server:
        chain = Fallback((on(server, http), ScriptedModel("b/2", [refusal])))
        with pytest.raises(ModelRefused) as caught:
            await chain.reply(request())

    assert not caught.value.unused


FILTERED = {
    "content_filter": ("openai", WITHHELD["openai"]),
    "content_filter of a response": ("responses", WITHHELD["responses"]),
    "refusal": ("anthropic", WITHHELD["anthropic"]),
    "SAFETY": ("gemini", WITHHELD["gemini"]),
    "OTHER": ("gemini", gemini({"text": "Well, I "}, MADE, finish="OTHER")),
}


@pytest.mark.parametrize("word", FILTERED)
async def test_p3_the_vendors_word_is_kept_with_the_half(http: HttpClient, word: str) -> None:
    wire, stream = FILTERED[word]
    async with ModelServer([stream]) as server:
        reply = await on(server, http, wire).reply(request())

    said = word.removesuffix(" of a response")
    assert (reply.provider_data.refusal, reply.text, reply.calls) == (said, "Well, I ", ())


async def test_p3_a_filtered_half_never_becomes_the_result(tmp_path: Path) -> None:
    async with ModelServer(lambda _: WITHHELD["openai"]) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        async with World(tmp_path / "home", keys=keys) as world:
            founded = await world.found("Say hello", model="openai/m")
            await world.settle()
            [node] = await world.board(founded.team.id)
            events = await world.events(founded.team.id)

    assert (node.status, node.stop_reason, node.result) == (
        NodeStatus.FAILED,
        StopReason.SILENT,
        None,
    )
    assert {e.data["refusal"] for e in events if e.type == "turn.added"} == {"content_filter"}
    assert "withheld the rest of your reply (content_filter)" in server.requests[1].raw.decode()


@pytest.mark.parametrize("finish", ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE"])
async def test_p4_a_malformed_call_is_asked_for_again_with_the_vendors_words_three_times(
    http: HttpClient, finish: str
) -> None:
    broken = gemini(finish=finish, message="Malformed function call: bash(")
    async with ModelServer([broken] * 4) as server:
        patient = Retrying(model=on(server, http, "gemini"), clock=ManualClock())
        reply = await patient.reply(request())

    assert (reply.text, reply.calls, len(server.requests)) == ("", (), 4)
    assert reply.usage.is_estimated  # the four broken replies are paid for
    assert reply.usage.input_tokens > 100
    first, *again = [seen.messages[-1].text for seen in server.requests]
    assert first == "Hello."
    assert all("Malformed function call: bash(" in text for text in again)


async def test_p4_a_hint_stays_out_of_the_thread(http: HttpClient) -> None:
    asked, broken = request(), chat({}, finish="function_call_filter: MALFORMED_FUNCTION_CALL")
    async with ModelServer([broken, says("Hi."), says("Ho.")]) as server:
        patient = Retrying(model=on(server, http), clock=ManualClock())
        await patient.reply(asked)
        await patient.reply(asked)

    first, second, third = [seen.body["messages"] for seen in server.requests]
    assert (second[:-1], third) == (first, first)


@pytest.mark.parametrize("finish", ["UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"])
async def test_p5_a_call_where_none_may_be_made_ends_as_an_empty_reply(
    http: HttpClient, finish: str
) -> None:
    async with ModelServer([gemini(finish=finish)] * 4) as server:
        patient = Retrying(model=on(server, http, "gemini"), clock=ManualClock())
        asked = Request(transcript=thread(), tools=(SPEC,), may_call=False)
        reply = await patient.reply(asked)

    assert (reply.text, reply.calls) == ("", ())


@pytest.mark.parametrize("wire", WIRES)
async def test_p6_a_summary_without_words_has_no_words_on_any_wire(
    http: HttpClient, wire: str
) -> None:
    """`compaction` takes a digest then: see test_compaction."""
    async with ModelServer([says(call("bash", command="ls"))]) as server:
        asked = Request(transcript=thread(), tools=(SPEC,), may_call=False)
        reply = await on(server, http, wire).reply(asked)

    assert (reply.text, [c.name for c in reply.calls]) == ("", ["bash"])


async def test_p7_calls_are_made_whatever_the_finish_reason_says(http: HttpClient) -> None:
    streams: list[Step] = [
        chat({"tool_calls": [WRITE]}, finish=finish) for finish in ("stop", "odd", "tool_calls")
    ]
    async with ModelServer(streams) as server:
        replies = [await on(server, http).reply(request()) for _ in streams]

    assert [reply.calls for reply in replies] == [(tool_call("a", "bash", command="ls"),)] * 3


@pytest.mark.parametrize(
    ("wire", "stream"),
    [
        ("anthropic", anthropic("", call=LS, stop="end_turn")),
        ("gemini", gemini(MADE)),
        ("responses", responses(message("Done."), CALLED)),
    ],
)
async def test_p7_calls_are_made_although_the_reply_ended_as_words_do(
    http: HttpClient, wire: str, stream: Step
) -> None:
    async with ModelServer([stream]) as server:
        [made] = (await on(server, http, wire).reply(request())).calls

    assert (made.name, made.arguments, made.malformed) == ("bash", {"command": "ls"}, None)


async def test_p8_a_refused_signature_is_dropped_and_asked_once_more(http: HttpClient) -> None:
    refused = Status(400, "messages.1.content.0: Invalid `signature` in `thinking` block")
    parts = [
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "text", "text": "A"},
    ]
    data = ProviderData(vendor=VendorParts(vendor="anthropic", parts=parts))
    asked = request(
        turn("user", "Hi"), turn("assistant", "A", provider_data=data), turn("user", "?")
    )
    async with ModelServer([refused, says("Good.")]) as server:
        reply = await on(server, http, "anthropic").reply(asked)

    assert reply.text == "Good."
    assert b'"signature"' not in server.requests[-1].raw


MISSING = "The `reasoning_content` in the thinking mode must be passed back to the API."


def foreign() -> Request:
    """A thread with calls of another vendor's model."""
    made = turn("assistant", "I look.", calls=(tool_call("c1", "bash", command="ls"),))
    return request(turn("user", "Hi"), made, turn("tool", "a.md", ref="c1"), turn("user", "Go."))


async def test_p9_a_vendor_that_wants_reasoning_gets_an_empty_one_for_foreign_turns(
    http: HttpClient,
) -> None:
    async with ModelServer([Status(400, MISSING), says("One."), says("Two.")]) as server:
        model = on(server, http)
        replies = [(await model.reply(foreign())).text for _ in range(2)]

    bodies = [seen.body["messages"][1] for seen in server.requests]
    assert replies == ["One.", "Two."]
    assert ["reasoning_content" in body for body in bodies] == [False, True, True]


async def test_p9_foreign_calls_are_told_as_text_if_an_empty_one_is_not_enough(
    http: HttpClient,
) -> None:
    refusal = Status(400, MISSING)
    async with ModelServer([refusal, refusal, says("Now.")]) as server:
        reply = await on(server, http).reply(foreign())

    _, said, heard, asked = server.requests[-1].body["messages"]
    assert reply.text == "Now."
    assert said["content"] == 'I look.\n[Called bash with {"command":"ls"}]'
    assert (heard["role"], heard["content"][0]["text"]) == ("user", "[bash] a.md")
    assert asked == {"role": "user", "content": "Go."}


async def test_p9_reasoning_goes_back_with_the_calls_that_it_led_to(http: HttpClient) -> None:
    thought = chat({"reasoning_content": "I look."}, {"tool_calls": [WRITE]}, finish="tool_calls")
    async with ModelServer([thought, says("Good.")]) as server:
        model = on(server, http)
        reply = await model.reply(request(turn("user", "Hi")))
        made = turn("assistant", "", calls=reply.calls, provider_data=reply.provider_data)
        await model.reply(request(turn("user", "Hi"), made, turn("tool", "a.md", ref="a")))

    assert server.requests[1].body["messages"][1]["reasoning_content"] == "I look."


async def test_p10_a_thread_of_another_vendor_is_sent_in_the_new_vendors_form(
    http: HttpClient,
) -> None:
    async with ModelServer([says("Seen.")] * 4) as server:
        for wire in WIRES:
            await on(server, http, wire).reply(foreign())

    for seen in server.requests:
        assert [c.arguments for m in seen.messages for c in m.calls] == [{"command": "ls"}]
        assert [m.text for m in seen.messages if m.role == "tool"] == ["a.md"]


async def test_p11_an_answer_inside_the_thoughts_is_no_answer(http: HttpClient) -> None:
    thoughts = chat({"reasoning_content": "Let me apply the edit."}, finish="stop")
    async with ModelServer([thoughts]) as server:
        reply = await on(server, http).reply(request())

    assert (reply.text, reply.calls) == ("", ())
    assert reply.provider_data.thinking == "Let me apply the edit."


@pytest.mark.parametrize("wire", WIRES)
async def test_p12_thinking_in_the_content_is_taken_apart(http: HttpClient, wire: str) -> None:
    shown: list[str] = []
    async with ModelServer([says("<think>hm</think>Answer", chunk=3)]) as server:
        reply = await on(server, http, wire).reply(request(), shown.append)

    assert (reply.text, reply.provider_data.thinking, "".join(shown)) == ("Answer", "hm", "Answer")


def test_p13_a_local_server_may_take_longer_to_begin_than_to_go_on() -> None:
    client = HttpClient(ManualClock(), patience={"house": {"first_byte_s": 1200.0}})
    assert client.patience_with("https://api.openai.com/v1") == REMOTE
    assert client.patience_with("http://127.0.0.1:11434/v1") == LOCAL
    assert client.patience_with("http://gpu.lan:8000/v1", "house/m") == Patience(
        first_byte_s=1200, between_bytes_s=LOCAL.between_bytes_s
    )
    assert REMOTE.first_byte_s > REMOTE.between_bytes_s
    assert LOCAL.first_byte_s > REMOTE.first_byte_s


async def test_p13_a_comment_is_life_but_does_not_begin_the_reply(clock: ManualClock) -> None:
    settings = {"openai": {"first_byte_s": 0.15, "between_bytes_s": 0.05}}
    client = HttpClient(clock, patience=settings)
    comment, begun = b": hello\n\n", chat({"content": "Half"}, finish=None).data
    steps = [Stall(len(data), Garbage(data + b": later\n\n")) for data in (comment, begun)]
    errors: list[ModelUnavailable] = []
    async with ModelServer([*steps]) as server:
        for _ in steps:
            with pytest.raises(ModelUnavailable) as caught:
                await on(server, client).reply(request())
            errors.append(caught.value)
    await client.close()

    assert [isinstance(error, ModelSilent) for error in errors] == [True, False]
    assert "0.15 s. If this server needs longer, set first_byte_s for it in" in str(errors[0])
    assert "0.05 s. If this server needs longer, set between_bytes_s for it in" in str(errors[1])


async def test_p13_a_silent_server_is_asked_once_more_with_more_patience(
    clock: ManualClock,
) -> None:
    client = HttpClient(clock, stall_timeout_s=0.05)
    async with ModelServer([Stall(0), Stall(0), says("Late.")]) as server:
        model = on(server, client)
        with pytest.raises(ModelSilent, match=r"no data arrived for 0\.1 s"):
            await Retrying(model=model, clock=clock).reply(request())
    await client.close()

    assert len(server.requests) == 2


OVERLOADED = b'data: {"error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'


async def test_p14_an_overload_inside_a_stream_is_retried_and_nothing_of_it_is_kept(
    http: HttpClient, clock: ManualClock
) -> None:
    half = chat({"content": "Half "}, {"tool_calls": [WRITE]}, finish=None)
    async with ModelServer([Garbage(half.data + OVERLOADED), says("Whole.")]) as server:
        reply = await Retrying(model=on(server, http), clock=clock).reply(request())

    assert (reply.text, reply.calls, len(clock.slept)) == ("Whole.", (), 1)


OVERLOAD = {"type": "overloaded_error", "message": "Overloaded"}
BUSY = {"code": "server_is_overloaded", "message": "Overloaded"}
OWN_FORMS = {
    "anthropic": frames(
        {"type": "message_start", "message": {}}, {"type": "error", "error": OVERLOAD}
    ),
    "responses, an event": responses(message("Half "), end=None).data
    + frames({"type": "error", **BUSY}),
    "responses, its end": responses(message("Half "), CALLED, status="failed", error=BUSY).data,
}


@pytest.mark.parametrize("form", OWN_FORMS)
async def test_p14_an_overload_in_the_vendors_own_form_is_one(
    http: HttpClient, clock: ManualClock, form: str
) -> None:
    wire = form.partition(",")[0]
    async with ModelServer([Garbage(OWN_FORMS[form]), says("Whole.")]) as server:
        reply = await Retrying(model=on(server, http, wire), clock=clock).reply(request())

    assert (reply.text, reply.calls, len(clock.slept)) == ("Whole.", (), 1)


BROKEN_OFF = {
    "openai": chat({"tool_calls": [WRITE]}, finish=None).data,
    "anthropic": anthropic("", call=LS).data.split(b'data: {"type":"message_delta"')[0],
    "gemini": frames({"candidates": [{"content": {"parts": [MADE]}}]}),
    "responses": responses(CALLED, end=None).data,
}


@pytest.mark.parametrize("wire", BROKEN_OFF)
async def test_p15_no_call_of_a_broken_reply_is_made(http: HttpClient, wire: str) -> None:
    async with ModelServer([Garbage(BROKEN_OFF[wire])]) as server:
        with pytest.raises(ModelUnavailable, match="cut off before its end"):
            await on(server, http, wire).reply(request())


SPENT = {
    "OpenAI": (429, {"message": "You exceeded your current quota, please check your plan and "
                     "billing details.", "code": "insufficient_quota"}),
    "Anthropic": (400, {"message": "Your credit balance is too low to access the Anthropic API."}),
    "Anthropic, limits": (400, {"message": "You have reached your specified API usage limits. You "
                                "will regain access on 2026-12-01."}),
    "Gemini, a day": (429, {"message": "You exceeded your current quota, please check your plan",
                            "details": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"},
                                        {"retryDelay": "37s"}]}),
    "Kimi": (429, {"message": "Your account is suspended, please check your plan and billing "
                   "details", "type": "exceeded_current_quota_error"}),
    "DeepSeek": (402, {"message": "Insufficient Balance"}),
    "OpenRouter": (429, {"message": "Rate limit exceeded: free-models-per-day"}),
    "OpenRouter, key": (403, {"message": "Key limit exceeded (monthly limit)."}),
    "GLM": (429, {"code": "1113", "message": "Insufficient balance or no resource package. Please "
                  "recharge."}),
    "xAI": (403, {"message": "Your team has used all available credits or reached its monthly "
                  "spending limit."}),
}  # fmt: skip
PASSING = {
    "OpenAI": {"message": "Rate limit reached for gpt-6 on tokens per min (TPM): Limit 30000.",
               "code": "rate_limit_exceeded"},
    "Anthropic": {"message": "This request would exceed your organization's rate limit of 50,000 "
                  "input tokens per minute."},
    "Gemini, a minute": {"message": "You exceeded your current quota, please check your plan and "
                         "billing details.",
                         "details": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"},
                                     {"retryDelay": "37s"}]},
    "Kimi": {"message": "The engine is currently overloaded", "type": "engine_overloaded_error"},
}  # fmt: skip


@pytest.mark.parametrize("vendor", SPENT)
async def test_p16_no_money_is_told_from_a_rate_limit_and_passed_on(
    http: HttpClient, clock: ManualClock, vendor: str
) -> None:
    code, error = SPENT[vendor]
    async with ModelServer([Status(code, {"error": error})] * 2) as server:
        patient = Retrying(model=on(server, http), clock=clock)
        chain = Fallback((patient, ScriptedModel("b/2", [says("Here.")])))
        assert (await chain.reply(request())).text == "Here."
        with pytest.raises(QuotaSpent, match=r"no money or quota left\. Add credit"):
            await patient.reply(request())

    assert (clock.slept, len(server.requests)) == ([], 2)


@pytest.mark.parametrize("vendor", PASSING)
async def test_p16_a_rate_limit_is_waited_for(
    http: HttpClient, clock: ManualClock, vendor: str
) -> None:
    async with ModelServer([Status(429, {"error": PASSING[vendor]}), says("Hi.")]) as server:
        reply = await Retrying(model=on(server, http), clock=clock).reply(request())

    assert (reply.text, len(clock.slept)) == ("Hi.", 1)


async def test_p16_an_empty_account_asks_one_person_once(tmp_path: Path) -> None:
    code, error = SPENT["OpenAI"]
    async with ModelServer(lambda _: Status(code, {"error": error})) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        async with World(tmp_path / "home", keys=keys) as world:
            founded = await world.found("Say hello", model="openai/m")
            await world.settle()
            world.clock.advance(seconds=7200)
            await world.settle()
            [question] = await world.questions(founded.team.id)

    assert "no money or quota left" in question.text
    assert len(server.requests) == 1
