# ruff: noqa: RUF001 (questions in their own scripts)
"""Spoken questions: a text that ends with the question mark of any script."""

import pytest

from agiraph.core.domain.text.spoken import ends_in_question


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Να συνεχίσω;", True),
        ("Να συνεχίσω\u037e", True),
        ("**Να συνεχίσω; **", True),
        ("ልቀጥል፧", True),
        ("هل أكمل؟ 🙂", True),
        ("let x = 1;", False),
        ("Ending;", False),
        (";", False),
        ("", False),
    ],
)
def test_a_question_ends_with_the_mark_of_its_script(text: str, asks: bool) -> None:
    assert ends_in_question(text) is asks
