"""Habits P17 to P24: counts, chunks, windows, templates, repetition and names of servers."""

import json
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agiraph.api.routes import board
from agiraph.core.domain.errors import ModelRepeats, ModelUnavailable, PromptCut
from agiraph.core.domain.work import Budget, NodeStatus, StopReason, Usage
from agiraph.models.attempts import CircuitBreaker, Guarded, Retrying
from agiraph.models.base import Request
from agiraph.models.catalogue import Catalogue
from agiraph.models.facts.model_facts import Fact
from agiraph.models.facts.prices import Prices, Terms
from agiraph.models.http.client import HttpClient
from agiraph.models.registry import Account, Keys, Registry
from agiraph.models.servers import Server
from agiraph.models.wires.pieces import Pieces, RepetitionGuard
from agiraph.models.wires.usage import check_prompt
from agiraph.testing import ManualClock, ModelServer, World, call, says
from agiraph.testing.model_server import Cut, Seen, Status, Step
from tests.habits.wire_streams import (
    NO_USAGE,
    anthropic,
    chat,
    gemini,
    message,
    on,
    piece,
    responses,
)
from tests.providers.transcripts import request, tool_call, turn
from tests.runtime.test_loop import next_event


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    opened = HttpClient(ManualClock(), stall_timeout_s=20)
    yield opened
    await opened.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(tokens=12_000), StopReason.TOKENS_SPENT),
        (Budget(usd=0.012), StopReason.MONEY_SPENT),
    ],
)
async def test_p17_limits_hold_for_a_server_that_counts_nothing(
    tmp_path: Path, budget: Budget, reason: StopReason
) -> None:
    def uncounted(seen: Seen) -> Step:
        made = piece("bash", f'{{"command": "echo {seen.index}"}}', index=0, id=f"c{seen.index}")
        return chat(made, finish="tool_calls", usage=NO_USAGE)

    async with ModelServer(uncounted) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        prices = Prices({"openai/m": Terms(input_usd=1.0, output_usd=1.0)})
        async with World(tmp_path / "home", keys=keys, prices=prices) as world:
            founded = await world.found("Go", model="openai/m", budget=budget)
            await world.settle()
            [node] = await world.board(founded.team.id)
            total = (await world.store.read(board.costs_of_team, founded.team.id)).total

    assert node.stop_reason is reason
    assert total.input_tokens > 2_000
    assert len(server.requests) < 12


@pytest.mark.parametrize(
    ("wire", "stream"),
    [
        ("openai", chat({"content": "Hello there."}, usage=NO_USAGE)),
        ("openai", chat({"content": "Hello there."}, usage={"completion_tokens": 3})),
        ("anthropic", anthropic("Hello there.", usage={"input_tokens": 0, "output_tokens": 3})),
        ("gemini", gemini({"text": "Hello there."}, usage={"promptTokenCount": 0})),
    ],
)
async def test_p17_a_missing_count_is_estimated_and_marked(
    http: HttpClient, wire: str, stream: Step
) -> None:
    async with ModelServer([stream]) as server:
        usage = (await on(server, http, wire).reply(request())).usage

    sent = len(server.requests[0].raw)
    assert usage == Usage(
        input_tokens=sent // 4 + 1, output_tokens=usage.output_tokens, is_estimated=True
    )
    assert usage.output_tokens in (3, 4)


async def test_p18_chunks_with_all_the_text_so_far_are_the_text_once(http: HttpClient) -> None:
    shown: list[str] = []
    whole = [{"content": text} for text in ("Hello", "Hello wor", "Hello world")]
    short = [{"content": "Good"}, {"content": "Good day"}]
    async with ModelServer([chat(*whole), chat(*short)]) as server:
        model = on(server, http)
        replies = [
            (await model.reply(request())).text,
            (await model.reply(request(), shown.append)).text,
        ]

    assert replies == ["Hello world", "Good day"]
    assert shown == ["Good", " day"]


@pytest.mark.parametrize(
    "pieces",
    [
        ["ha", "ha", "ha ha", "!"],
        ["1", "10", "100"],
        ["no", "no"],
        ["\n", "\n- a", "\n- b"],
        ["The", "The end"],
        ["Hello", "Hello wor", "ld, Hello world"],
    ],
)
def test_p18_words_that_repeat_are_kept(pieces: list[str]) -> None:
    text = Pieces()
    for each in pieces:
        text.append(each)

    assert str(text) == "".join(pieces)


WORDS = " ".join(f"Word{number} follows word{number - 1} here." for number in range(4_000))


def test_p19_a_prompt_that_the_server_cut_stops_the_work() -> None:
    asked = request(turn("user", WORDS))
    with pytest.raises(PromptCut) as caught:
        check_prompt(
            Usage(input_tokens=4_096), request=asked, model="ollama/qwen3", sent_bytes=len(WORDS)
        )

    said = str(caught.value)
    assert said.startswith("ollama/qwen3 counted 4,096 tokens of a prompt that has about ")
    assert "OLLAMA_CONTEXT_LENGTH, or num_ctx" in said
    assert "`window` in [servers.ollama]" in said


@pytest.mark.parametrize(
    "usage",
    [
        Usage(input_tokens=len(WORDS) // 5),
        Usage(input_tokens=1_200, cached_tokens=30_000),
        Usage(input_tokens=100),
    ],
    ids=["another tokenizer", "cached tokens apart", "only what was not cached"],
)
def test_p19_other_counts_are_believed(usage: Usage) -> None:
    check_prompt(usage, request=request(turn("user", WORDS)), model="a/b", sent_bytes=len(WORDS))


def test_p19_pictures_and_spaces_are_not_counted_as_words() -> None:
    table = " " * 200_000 + WORDS[:20_000]
    check_prompt(
        Usage(input_tokens=6_000),
        request=request(turn("user", table)),
        model="a/b",
        sent_bytes=5_000_000,
    )


async def test_p19_a_cut_prompt_raises_on_the_wire(http: HttpClient) -> None:
    async with ModelServer([says("Sure.", input_tokens=4_000)]) as server:
        with pytest.raises(PromptCut, match="Set the context of this server"):
            await on(server, http).reply(request(turn("user", WORDS)))


def test_p19_a_server_that_does_not_tell_its_window_is_assumed_to_have_a_small_one() -> None:
    clock = ManualClock()
    keys = Keys(servers={"house": Server(base_url="http://127.0.0.1:9/v1")})
    catalogue = Catalogue(Registry(keys, clock), Prices(), clock)
    assert catalogue.facts("house/m").window == Fact(8_192, "assumed")


def strict_thread() -> Request:
    made = turn("assistant", "", calls=(tool_call("call_1", "bash", command="ls"),))
    turns = [turn("system", "Be good."), turn("user", "Hi"), turn("user", "Look."), made]
    return request(*turns, turn("tool", "a.md", ref="call_1"), turn("user", "Go on."))


STRICT = {
    "Mistral, roles": (
        Status(400, "Unexpected role 'user' after role 'tool'"),
        ["system", "user", "user", "assistant", "tool", "assistant", "user"],
    ),
    "llama.cpp, alternation": (
        Status(500, "Jinja Exception: Conversation roles must alternate user/assistant/user/..."),
        ["system", "user", "assistant", "user", "assistant", "tool", "assistant", "user"],
    ),
    "Gemma, system": (
        Status(400, "System role not supported"),
        ["user", "user", "user", "assistant", "tool", "user"],
    ),
}


@pytest.mark.parametrize("server_kind", STRICT)
async def test_p20_a_strict_template_is_learned_from_its_error(
    http: HttpClient, server_kind: str
) -> None:
    refusal, roles = STRICT[server_kind]
    async with ModelServer([refusal, says("One."), says("Two.")]) as server:
        model = on(server, http)
        replies = [(await model.reply(strict_thread())).text for _ in range(2)]

    sent = [[m["role"] for m in seen.body["messages"]] for seen in server.requests]
    assert replies == ["One.", "Two."]
    assert sent[1:] == [roles, roles]


async def test_p20_ids_of_nine_letters_are_learned(http: HttpClient) -> None:
    said = "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."
    async with ModelServer([Status(400, said), says("Good.")]) as server:
        await on(server, http).reply(strict_thread())

    messages = server.requests[-1].body["messages"]
    [made] = [m["tool_calls"][0]["id"] for m in messages if "tool_calls" in m]
    [answered] = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert made == answered
    assert (len(made), made.isalnum()) == (9, True)


async def test_p20_a_refusal_that_says_nothing_of_a_form_is_raised(http: HttpClient) -> None:
    async with ModelServer([Status(400, "No.")] * 2) as server:
        with pytest.raises(Exception, match=r"answered 400: No\."):
            await on(server, http).reply(strict_thread())

    assert len(server.requests) == 1


async def test_p21_content_as_parts_is_words_and_thoughts(http: HttpClient) -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    parts = chat(
        {"content": [thought]}, {"content": [{"type": "text", "text": "hi"}, {"text": " you"}]}
    )
    async with ModelServer([parts]) as server:
        reply = await on(server, http).reply(request())

    assert (reply.text, reply.provider_data.thinking) == ("hi you", "Hm.")


LOOPS = {
    "one sign": "no " * 4_000,
    "one letter": "a" * 9_000,
    "a sentence": "I'll do it right away. " * 400,
    "a paragraph": ("So let me think about it once more, from the beginning. " * 20 + "\n\n") * 20,
    "resolutions in changing order": "".join(
        ("I'll do it. ", "I'll implement it. ", "I'll start now. ")[number * number % 7 % 3]
        for number in range(900)
    ),
}
MEANT = {
    "a table": "| 0 | 0 | 0 |\n" * 2_000,
    "JSON rows": "[" + '{"a": 0, "b": null}, ' * 1_500 + "]",
    "code": "```python\n" + "    x.append(0)\n" * 1_500 + "```",
    "a drawing": ("#" * 60 + "\n") * 300,
    "a list": "".join(f"- The {number}. point is a point.\n" for number in range(900)),
    "a poem": "Row, row, row your boat, gently down the stream.\n" * 60,
    "a rule": "Words. " + "=" * 1_000 + " More words.",
    "prose": WORDS[:60_000],
}


@pytest.mark.parametrize("name", LOOPS)
def test_p22_a_loop_is_cut_long_before_the_limit(name: str) -> None:
    guard = RepetitionGuard()
    guard.feed(WORDS[:3_000])
    looped = LOOPS[name] * 3
    pieces = (looped[start : start + 7] for start in range(0, len(looped), 7))
    with pytest.raises(ModelRepeats, match="repeats itself without end"):
        deque(map(guard.feed, pieces), maxlen=0)


@pytest.mark.parametrize("name", MEANT)
def test_p22_rows_code_and_drawings_may_repeat(name: str) -> None:
    guard = RepetitionGuard()
    for start in range(0, len(MEANT[name]), 9):
        guard.feed(MEANT[name][start : start + 9])


async def test_p22_a_loop_is_asked_once_more_and_nothing_of_it_is_kept(
    http: HttpClient, clock: ManualClock
) -> None:
    loop = says("I'll start now. " * 2_000, chunk=50)
    async with ModelServer([loop, says("Started.")]) as server:
        reply = await Retrying(model=on(server, http), clock=clock).reply(request())

    assert (reply.text, len(server.requests)) == ("Started.", 2)
    assert "do not repeat yourself" in server.requests[1].messages[-1].text
    assert reply.usage.output_tokens > 1_000


async def test_p22_the_known_output_limit_is_sent_until_the_server_refuses_it(
    http: HttpClient,
) -> None:
    refused = Status(400, "max_tokens is too large: 64000. This model supports at most 4096.")
    async with ModelServer([says("Hi."), refused, says("Hi.")]) as server:
        model = on(server, http, max_output_tokens=64_000)
        await model.reply(request())
        await model.reply(request())

    assert [seen.body.get("max_tokens") for seen in server.requests] == [64_000, 64_000, None]


def test_p22_the_limit_of_a_known_model_leaves_room_for_the_thread() -> None:
    keys = Keys({"openrouter": Account(key="k"), "deepseek": Account(key="k")})
    registry = Registry(keys, ManualClock())
    known: Any = registry.resolve("openrouter/anthropic/claude-sonnet-5.5")
    unknown: Any = registry.resolve("openrouter/some/other")
    assert (known.max_output_tokens, unknown.max_output_tokens) == (32_000, None)


async def test_p23_the_name_that_the_server_gives_is_kept_beside_the_one_asked_for(
    tmp_path: Path,
) -> None:
    named = chat({"content": "Hi."}, model="Qwen3-0.6B-Q4.gguf")
    async with ModelServer([named] * 5) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        async with World(tmp_path / "home", keys=keys) as world:
            founded = await world.found("Hi", model="openai/gpt-m", budget=Budget(turns=1))
            await world.settle()
            assert founded.node is not None
            turns = await world.turns(founded.node.id)

    served = {(t.model, t.provider_data.served_model) for t in turns if t.role == "assistant"}
    assert served == {("openai/gpt-m", "Qwen3-0.6B-Q4.gguf")}


@pytest.mark.parametrize("step", [Status(529), Status(503), Cut(None)])
async def test_p24_an_outage_is_retried_with_jitter_and_opens_the_circuit(
    http: HttpClient, clock: ManualClock, step: Step
) -> None:
    circuit = CircuitBreaker("openai", clock)
    async with ModelServer([step] * 4) as server:
        guarded = Guarded(model=on(server, http), circuit=circuit)
        with pytest.raises(ModelUnavailable):
            await Retrying(model=guarded, clock=clock, jitter=lambda: 0.5).reply(request())

    assert (clock.slept, circuit.failures) == ([0.75, 1.5, 3.0], 4)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_p24_after_an_outage_the_work_goes_on_by_itself(world: World) -> None:
    away = ModelUnavailable("Overloaded.")
    world.script("ada", away, *[says(call("finish", summary="done"))] * 3)
    founded = await world.found("Be patient")
    await world.settle()
    [parked] = await world.board(founded.team.id)
    questions = await world.questions(founded.team.id)
    done = next_event(world, "node.completed")
    world.clock.advance(seconds=60)
    await done
    await world.settle()
    [goal] = await world.board(founded.team.id)

    assert (parked.status, parked.waiting_reason) == (
        NodeStatus.WAITING,
        "the model cannot be reached: Overloaded. Trying again by itself.",
    )
    assert questions == []
    assert goal.status is NodeStatus.COMPLETED


HALVES = {"path": "a.md", "content": "a\ud800b \ud83d\ude00"}
MENDED = {"path": "a.md", "content": "a\ufffdb \U0001f600"}
ITEM = {"type": "function_call", "name": "write_file", "call_id": "c0"}


def whole(text: str) -> str:
    """Return a text with each half of a character as U+FFFD; the step does so with arguments."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.mark.parametrize(
    ("wire", "stream"),
    [
        (
            "openai",
            chat({"content": "Half \ud800"}, piece("write_file", json.dumps(HALVES), index=0)),
        ),
        ("responses", responses(message("Half \ud800"), {**ITEM, "arguments": json.dumps(HALVES)})),
        ("anthropic", anthropic("Half \ud800", call={"name": "write_file", "input": HALVES})),
        (
            "gemini",
            gemini(
                {"text": "Half \ud800"}, {"functionCall": {"name": "write_file", "args": HALVES}}
            ),
        ),
    ],
)
async def test_half_a_character_breaks_no_reply(http: HttpClient, wire: str, stream: Step) -> None:
    async with ModelServer([stream]) as server:
        reply = await on(server, http, wire).reply(request())
    [made] = reply.calls
    read = {name: whole(value) for name, value in made.arguments.items()}
    assert (reply.text, made.malformed, read) == ("Half \ufffd", None, MENDED)


async def test_a_character_that_a_server_cuts_in_two_is_whole_while_and_after_it_is_written(
    tmp_path: Path,
) -> None:
    written = json.dumps(json.dumps({"summary": "Done \U0001f600\udc00", "reached": "yes"}))
    cut = written.index("\\\\ude00")
    parts = [json.loads(part) for part in (f'{written[:cut]}"', f'"{written[cut:]}')]
    steps = [
        chat(
            {"content": "Words \ud800 and \ud83d"},
            {"content": "\ude00 joined"},
            piece("write_file", json.dumps(HALVES), index=0, id="c0"),
        ),
        chat(*(piece("finish" if n == 0 else None, part, index=0) for n, part in enumerate(parts))),
    ]
    shown: list[str] = []
    async with ModelServer(steps) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        path = tmp_path / "home"
        async with World(path, keys=keys, on_delta=lambda _, words: shown.append(words)) as world:
            founded = await world.found("Go", model="openai/m", acceptance=("answer",))
            await world.settle()
            [goal] = await world.board(founded.team.id)
            replies = [t.text for t in await world.turns(goal.id) if t.role == "assistant"]
            files = world.published(goal)
    assert (goal.status, goal.result) == (NodeStatus.COMPLETED, "Done \U0001f600\ufffd")
    assert replies == ["Words \ufffd and \U0001f600 joined", ""]
    assert "".join(shown) == replies[0]
    assert files == {"a.md": MENDED["content"]}
    assert len(server.requests) == 2
