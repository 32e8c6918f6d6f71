"""Wording: a text that is not kept, or kept in other words, fails; each text belongs to a test."""

import ast
from pathlib import Path

import pytest

from tests.wording import FILE, Entry, Wording, kept

SAID = {"a": "Give a name.", "b": "One at 127.0.0.1:8000.\nTwo in /tmp/x/home."}
KEPT: Entry = {"a": "Give a name.", "b": ["One at HOST.", "Two in TMP/home."]}


@pytest.mark.parametrize(
    ("expected", "passes"),
    [
        ([KEPT], True),
        ([], False),
        ([{"a": "Give a name."}], False),
        ([{"a": "Give the name.", "b": ["One at HOST.", "Two in TMP/home."]}], False),
        ([KEPT, "More."], False),
    ],
)
def test_what_is_said_must_be_in_the_file_word_for_word(
    expected: list[Entry], passes: bool
) -> None:
    try:
        words = Wording(expected, "/tmp/x")
        words(SAID)
        words.close()
    except AssertionError:
        assert not passes
    else:
        assert passes


def test_an_update_keeps_what_is_said() -> None:
    words = Wording(None, "/tmp/x")
    words(SAID)
    words.close()
    assert words.said == [KEPT]


def test_each_text_in_the_file_belongs_to_a_test() -> None:
    def compared(file: Path) -> set[str]:
        """Return the tests of a file that take the fixture."""
        return {
            node.name
            for node in ast.parse(file.read_text()).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and "wording" in [argument.arg for argument in node.args.args]
        }

    without_test = {
        f"{file}: {test}"
        for file, tests in kept().items()
        for test in tests
        if test.partition("[")[0] not in compared(FILE.parent / file)
    }
    assert without_test == set()
