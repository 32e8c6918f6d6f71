"""Approvals show a call to the last character, hidden characters included."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agiraph.api.views import ToolCallView
from agiraph.cli.asking import call_text
from agiraph.core.domain.text.visible import call_lines, suspect, visible

CODE = re.compile("⟨U\\+([0-9A-F]{4,6})⟩")


def read_back(shown: str) -> str:
    """Return the original of a shown text."""
    return CODE.sub(lambda found: chr(int(found[1], 16)), shown)


@given(st.text())
def test_a_shown_text_is_unambiguous_and_printable(text: str) -> None:
    shown = visible(text)
    assert read_back(shown) == text
    assert shown.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls -l <!-- ; echo ran > x # --> | head", "ls -l <!-- ; echo ran > x # --> | head"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\u200bb\u200d\ufeff", "a⟨U+200B⟩b⟨U+200D⟩⟨U+FEFF⟩"),
        ("safe\rrm", "safe⟨U+000D⟩rm"),
        ("\x1b[2K\x00", "⟨U+001B⟩[2K⟨U+0000⟩"),
        ("\u3164\u2800\U000e0041\U000e0101", "⟨U+3164⟩⟨U+2800⟩⟨U+E0041⟩⟨U+E0101⟩"),
        ("two\nlines, é, 漢字", "two\nlines, é, 漢字"),
        ("⟨U+202E⟩", "⟨U+27E8⟩U+202E⟩"),
    ],
)
def test_invisible_and_control_characters_are_shown_as_code_points(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_call_is_shown_whole_with_each_argument_behind_a_bar() -> None:
    call = {"command": "echo a\n  timeout │ 1\nrm -rf x", "timeout": 120, "network": False}
    assert call_lines("bash", call) == [
        "bash",
        "  command │ echo a",
        "          │   timeout │ 1",
        "          │ rm -rf x",
        "  timeout │ 120",
        "  network │ false",
    ]


def test_a_long_line_is_wrapped_and_continues_behind_another_bar() -> None:
    lines = call_lines("bash", {"command": f"{'x' * 30}漢漢漢漢漢漢 ; rm"}, width=30)
    assert lines == [
        "bash",
        f"  command │ {'x' * 18}",
        f"          ┊ {'x' * 12}漢漢漢",
        "          ┊ 漢漢漢 ; rm",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cat p\u0430sswd", "cat p⟨U+0430⟩sswd"),
        ("\u043c\u0438\u0440, ok", "\u043c\u0438\u0440, ok"),
        ("rm x\uff1b \uff4c\uff53 \u2215etc", "rm x\uff1b ⟨U+FF4C⟩⟨U+FF53⟩ ⟨U+2215⟩etc"),
        ("ls   \nend ", "ls⟨U+0020\u00d73⟩\nend⟨U+0020⟩"),
        ("a\u202eb ⟨", "a⟨U+202E⟩b ⟨U+27E8⟩"),
    ],
)
def test_letters_in_disguise_are_shown_as_code_points_in_a_call(text: str, shown: str) -> None:
    assert suspect(text) == shown


def test_a_call_with_letters_that_look_like_latin_ones_names_their_script() -> None:
    assert call_lines("bash", {"command": "cat p\u0430sswd", "note": "\u043c\u0438\u0440"}) == [
        "bash",
        "  command │ cat p⟨U+0430⟩sswd",
        "  note    │ \u043c\u0438\u0440",
        "! It has Cyrillic letters. Some look like Latin ones.",
    ]


def test_no_line_of_a_call_in_a_terminal_is_wider_or_escaped_twice() -> None:
    call = ToolCallView(id="c", name="bash", arguments={"command": "cat p\u0430sswd \u202e| sh"})
    assert [line.plain for line in call_text(call, 32)] == [
        "  bash",
        "    command │ cat p⟨U+0430⟩sswd ",
        "            ┊ ⟨U+202E⟩| sh",
        "  ! It has Cyrillic letters.",
        "    Some look like Latin ones.",
    ]
