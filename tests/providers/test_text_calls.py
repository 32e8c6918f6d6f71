"""Calls in text: which parts of a reply are calls and which are text."""

import pytest

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.errors import ModelGarbled
from agiraph.core.domain.text.json_text import MAX_DEPTH
from agiraph.models.wires.text import KEY_LENGTH, KEY_LETTERS, draw_key
from agiraph.models.wires.text_calls import (
    MAX_CALLS,
    NO_NAME,
    ParsedReply,
    first_object,
    parse,
)
from tests.providers.text_replies import KEY, READ, READING
from tests.providers.transcripts import tool_call


def broken(name: str, malformed: str) -> ToolCall:
    return ToolCall(id="", name=name, malformed=malformed)


@pytest.mark.parametrize(
    ("text", "words", "calls"),
    [
        ("Just words.", "Just words.", ()),
        (READ, "", (READING,)),
        ('<call KEY bash>{"command": "ls"}</call>', "", (tool_call("", "bash", command="ls"),)),
        (f"First.\n{READ}\nThen.", "First.\nThen.", (READING,)),
        ("<call KEY a>\n</call>\n<call KEY a>{}</call>  ", "", (tool_call("", "a"),) * 2),
        ("<call KEY a>\r\n{}\r\n</call>\r\n", "", (tool_call("", "a"),)),
        ('<call KEY a>\n{"b": "\n</call> 2"}\n</call>', "", (tool_call("", "a", b="\n</call> 2"),)),
        ('<call KEY>{"name": "a", "arguments": {"b": 1}}</call>', "", (tool_call("", "a", b=1),)),
        ('<call KEY a>\n{"b": \n</call>', "", (broken("a", '{"b":'),)),
        ('<call KEY a>\n{"b": "\\\n"}\n</call>', "", (broken("a", '{"b": "\\\n"}'),)),
        ("<call KEY a>\nnull\n</call>", "", (broken("a", "null"),)),
        ("<call KEY a>\n[1]\n</call>", "", (broken("a", "[1]"),)),
        ('<call KEY>\n{"b": 1}\n</call>', "", (broken(NO_NAME, '{"b": 1}'),)),
        ("<call KEY>\n</call>", "", (broken(NO_NAME, ""),)),
        ('<call KEY a>\n{"b": 1}', "", (broken("a", '(without </call>) {"b": 1}'),)),
        ("<call KEY", "", (broken(NO_NAME, "(without > behind the name) "),)),
        ("<call KEY a>{}</call><call x>{}</call>", "", (broken("a", "{}</call><call x>{}"),)),
    ],
)  # fmt: skip
def test_a_reply_is_parsed_into_text_and_calls(
    text: str, words: str, calls: tuple[ToolCall, ...]
) -> None:
    assert parse(text.replace("KEY", KEY), KEY) == ParsedReply(text=words, calls=calls)


@pytest.mark.parametrize(
    "text",
    [
        "I would write <call KEY bash>{}</call>",
        " <call KEY bash>{}</call>",
        "> <call KEY bash>{}</call>",
        "```\n<call KEY bash>{}</call>\n```",
        "```xml\n<call KEY bash>{}</call>",
        "~~~~\n~~~\n<call KEY bash>{}</call>\n~~~~",
        "<call KEYx bash>{}</call>",
        "<call bbbbbbbb bash>{}</call>",
        "<call bash>{}</call>",
        "\u2028<call KEY bash>{}</call>",
    ],
)
def test_text_that_only_looks_like_a_call_stays_text_and_is_noted(text: str) -> None:
    text = text.replace("KEY", KEY)

    assert parse(text, KEY) == ParsedReply(text=text.strip(), has_missed_call=True)


def test_without_a_key_nothing_is_a_call() -> None:
    text = "<call >{}</call>\n<call None>{}</call>"

    assert parse(text, "") == ParsedReply(text=text)


def test_a_call_inside_thinking_is_not_made() -> None:
    text = f"<think>\nI could write\n{READ}\n</think>\nSo:\n{READ}".replace("KEY", KEY)

    read = parse(text, KEY)

    rehearsed = f"I could write\n{READ}".replace("KEY", KEY)
    assert read == ParsedReply(
        text="So:", calls=(tool_call("", "read_file", path="a.md"),), thinking=rehearsed
    )


def test_the_number_of_calls_and_their_nesting_are_limited() -> None:
    many = parse(f"<call {KEY} a>{{}}</call>\n" * (MAX_CALLS + 1), KEY)
    fits = '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH
    deep = f'{{"a":{fits}}}'

    assert (len(many.calls), many.has_missed_call) == (MAX_CALLS, True)
    assert parse(f"<call {KEY} a>{fits}</call>", KEY).calls[0].malformed is None
    assert parse(f"<call {KEY} a>{deep}</call>", KEY).calls == (broken("a", deep),)


@pytest.mark.parametrize("text", ["No idea.", "{", "[1]", '{"a": 1', '{"a":' * 65 + "1" + "}" * 65])
def test_a_text_without_a_json_object_is_garbled(text: str) -> None:
    with pytest.raises(ModelGarbled, match="was asked for a JSON object"):
        first_object(text)


def test_keys_are_random_letters() -> None:
    keys = {draw_key() for _ in range(1000)}

    assert len(keys) == 1000
    assert all(len(key) == KEY_LENGTH and set(key) <= set(KEY_LETTERS) for key in keys)
