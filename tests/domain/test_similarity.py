"""Similarity: which statements are one, and which known ones a text is shown with."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agiraph.core.domain.text.similarity import (
    MOST_SEGMENTS,
    Statements,
    interleave,
    is_repetition,
    segments,
)

KNOWN = {
    "en": "The build server is restarted every Monday at six",
    "de": "Der Bauserver wird jeden Montag um sechs Uhr neu gestartet",
    "zh": "构建服务器每周一早上六点重启",
    "es": "El servidor de compilación se reinicia cada lunes a las seis",
    "fish": "Salmon is smoked over beech wood",
    "fisch": "Lachs wird über Buchenholz geräuchert",
    "yu": "三文鱼用山毛榉木熏制",
    "pez": "El salmón se ahúma con madera de haya",
}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("SEC filings are reliable.", "sec  filings ARE reliable", True),
        ("构建服务器每周一重启。", "构建服务器每周一重启", True),
        ("Ｆｕｌｌ width!", "full width", True),  # noqa: RUF001
        ("SEC filings are reliable", "SEC filings are not reliable", False),
        ("The limit is 60", "The limit is 600", False),
        ("Are SEC filings reliable", "SEC filings are reliable", False),
    ],
)
def test_only_the_same_words_are_a_repetition(one: str, other: str, same: bool) -> None:
    assert is_repetition(one, other) is same
    assert is_repetition(other, one) is same


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We restart the build servers on Mondays", "en"),
        ("Die Bauserver starten montags neu", "de"),
        ("周一重启构建服务器", "zh"),
        ("Los lunes se reinician los servidores de compilación", "es"),
        ("smoked salmons", "fish"),
        ("geräucherter Lachs", "fisch"),
        ("熏三文鱼", "yu"),
        ("salmones ahumados", "pez"),
    ],
)
def test_the_nearest_statement_is_found_in_each_language(text: str, expected: str) -> None:
    [(found, _)] = Statements(KNOWN).nearest(text, limit=1)
    assert found == expected


def test_a_text_without_anything_in_common_is_near_to_nothing() -> None:
    assert Statements(KNOWN).nearest("🚀", limit=3) == []
    assert Statements({}).nearest("salmon", limit=3) == []


def test_each_sentence_of_a_text_finds_its_own_statement() -> None:
    text = "The build server restarts on Monday! Lachs wird geräuchert.\n三文鱼用木熏制。再见"
    found = Statements(KNOWN).nearest_to_any(segments(text), each=1, limit=10)
    assert set(found) == {"en", "fisch", "yu"}


def test_of_a_long_text_sentences_from_all_of_it_are_compared() -> None:
    found = segments("\n".join(f"Line {number}" for number in range(3 * MOST_SEGMENTS)))
    assert len(found) == MOST_SEGMENTS
    assert (found[0], found[-1]) == ("Line 0", f"Line {3 * MOST_SEGMENTS - 3}")


def test_rankings_are_joined_in_turn() -> None:
    assert interleave(["a", "b", "c"], ["b", "d"], [], limit=4) == ["a", "b", "d", "c"]
    assert interleave(limit=3) == []


@settings(max_examples=25)
@given(st.lists(st.text(max_size=60), max_size=12), st.text(max_size=200))
def test_any_text_can_be_compared(known: list[str], text: str) -> None:
    statements = Statements({str(number): said for number, said in enumerate(known)})
    found = statements.nearest_to_any(segments(text), each=3, limit=5)
    assert len(found) == len(set(found)) <= 5
    assert all(0 < score < 1.0001 for _, score in statements.nearest(text, limit=5))
