"""Habits C3, C9, C10, C12 and C20 to C22 on the wire: how calls come in pieces and go back."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agiraph.core.domain.chat import ToolCall
from agiraph.models.base import Request
from agiraph.models.http.client import HttpClient
from agiraph.models.wires.call_pieces import build_call
from agiraph.models.wires.chat_completions import ChatReader
from agiraph.testing import ManualClock, ModelServer, call, says
from tests.conformance.threads import SPEC
from tests.habits.wire_streams import WIRES, chat, on, piece
from tests.providers.transcripts import request, thread, turn


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    opened = HttpClient(ManualClock(), stall_timeout_s=20)
    yield opened
    await opened.close()


def calls_of(*deltas: dict[str, Any], finish: str = "tool_calls") -> list[Any]:
    """Return the calls of a reply with these deltas."""
    reader = ChatReader("house")
    for delta in deltas:
        list(reader.take({"choices": [{"delta": delta}]}))
    list(reader.take({"choices": [{"delta": {}, "finish_reason": finish}]}))
    reader.finish()
    return [
        (c.name, c.arguments if c.malformed is None else c.malformed) for c in reader.reply.calls
    ]


@pytest.mark.parametrize("given", [None, "", " ", "null", "[]", [], {}])
def test_c10_nothing_in_any_spelling_is_an_empty_object(given: Any) -> None:
    assert build_call("a", "check_board", given).arguments == {}
    assert build_call("a", "check_board", given).malformed is None


@pytest.mark.parametrize(
    ("deltas", "made"),
    [
        ([piece("a", '{"x":1}'), piece("b", '{"y":2}')], [("a", {"x": 1}), ("b", {"y": 2})]),
        ([piece("a", '{"x":1}'), piece("a", '{"x":2}')], [("a", {"x": 1}), ("a", {"x": 2})]),
        ([piece("a", '{"x":1}'), piece("a", '{"x":1}')], [("a", {"x": 1})]),
        ([piece("a", '{"x":1}{"x":2}', index=0, id="c")], [("a", {"x": 1}), ("a", {"x": 2})]),
        ([piece("a", '{}{"x":2}', index=0, id="c")], [("a", {"x": 2})]),
        ([piece("a", '{"x":1}{"x":', index=0, id="c")], [("a", '{"x":1}{"x":')]),
        ([piece("a", '{"x":'), piece(None, "1}")], [("a", {"x": 1})]),
    ],
)
def test_c20_calls_that_run_together_are_told_apart_if_each_is_whole(
    deltas: list[dict[str, Any]], made: list[Any]
) -> None:
    assert calls_of(*deltas) == made


@pytest.mark.parametrize(
    ("objects", "made"),
    [
        ([{"a": "b"}, {"c": "d"}], {"a": "b", "c": "d"}),
        ([{"a": "b"}, {"a": "bc"}], {"a": "bc"}),
        ([{"a": 1}, {"a": 2}], '{"a":1}{"a":2}'),
    ],
)
def test_c21_objects_of_one_call_are_merged_unless_they_differ(
    objects: list[Any], made: Any
) -> None:
    deltas = [piece("t", given, index=0, id="a") for given in objects]
    expected = [("t", {"a": 1}), ("t", {"a": 2})] if isinstance(made, str) else [("t", made)]
    assert calls_of(*deltas) == expected


@pytest.mark.parametrize(
    ("pieces", "made"),
    [
        (['{"x":"a', {}, 'b"}'], [("t", '{"x":"a')]),
        (['{"x":', {"y": 1}, "}"], [("t", '{"x":')]),
        (['{"x":1}', {"x": 2}], [("t", {"x": 1}), ("t", {"x": 2})]),
        ([" ", {"x": 1}, "\n"], [("t", {"x": 1})]),
    ],
)
def test_c21_an_object_in_the_middle_of_a_text_breaks_the_call_off(
    pieces: list[Any], made: list[Any]
) -> None:
    assert calls_of(*(piece("t", given, index=0, id="a") for given in pieces)) == made


@pytest.mark.parametrize(
    ("nameless", "made"),
    [("", {"x": 1}), (" ", {"x": 1}), ('{"y": 2}', {"x": 1}), ('"}', "")],
)
def test_c22_a_nameless_call_beside_a_good_one_is_dropped(nameless: str, made: Any) -> None:
    good = piece("a", '{"x": 1}', index=0, id="c")
    assert calls_of(good, piece("", nameless, index=1)) == [("a", made)]


async def test_c22_a_nameless_call_beside_words_is_dropped(http: HttpClient) -> None:
    stream = chat({"content": "Look."}, piece("", "", index=0))
    async with ModelServer([stream]) as server:
        reply = await on(server, http).reply(Request(transcript=thread(), tools=(SPEC,)))

    assert (reply.text, reply.calls) == ("Look.", ())


async def test_c12_one_id_for_two_calls_is_told_apart(http: HttpClient) -> None:
    twice = says(call("bash", command="a"), call("bash", command="b"))
    stream = chat(
        piece("bash", '{"command":"a"}', index=0, id="x"),
        piece("bash", '{"command":"b"}', index=1, id="x"),
    )
    async with ModelServer([stream]) as server:
        reply = await on(server, http).reply(request())

    assert len({made.id for made in reply.calls}) == len(twice.calls)


async def test_c12_an_id_of_an_earlier_turn_is_told_apart(http: HttpClient) -> None:
    made = turn("assistant", "", calls=(ToolCall(id="x", name="bash", arguments={}),))
    asked = request(turn("user", "Hi"), made, turn("tool", "a.md", ref="x"), tools=(SPEC,))
    stream = chat(piece("bash", '{"command":"b"}', index=0, id="x"))
    async with ModelServer([stream]) as server:
        [again] = (await on(server, http).reply(asked)).calls

    assert again.id != "x"
    assert again.arguments == {"command": "b"}


@pytest.mark.parametrize("wire", WIRES)
async def test_c3_a_dotted_name_is_sent_back_in_letters_that_every_vendor_accepts(
    http: HttpClient, wire: str
) -> None:
    made = turn("assistant", "", calls=(ToolCall(id="a", name="1.multi tool.use", arguments={}),))
    asked = request(turn("user", "Hi"), made, turn("tool", "No such tool.", ref="a"))
    async with ModelServer([says("Good.")]) as server:
        await on(server, http, wire).reply(asked)

    [name] = [c.name for m in server.requests[0].messages for c in m.calls]
    assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", name)


@pytest.mark.parametrize("wire", WIRES)
async def test_c9_arguments_that_were_no_json_go_back_as_an_object(
    http: HttpClient, wire: str
) -> None:
    made = turn("assistant", "", calls=(ToolCall(id="a", name="bash", malformed="{command: ls}"),))
    asked = request(turn("user", "Hi"), made, turn("tool", "Not a JSON object.", ref="a"))
    async with ModelServer([says("Good.")]) as server:
        await on(server, http, wire).reply(asked)

    assert [c.arguments for m in server.requests[0].messages for c in m.calls] == [{}]
