"""Excerpts: the places of a page where words stand."""

from agiraph.web.excerpts import LONGEST, Excerpt, find
from tests.known_web import SITES

MINUTES = SITES["council.example"]["/minutes"].on(0)


def test_the_passage_with_most_of_the_words_is_found_with_its_heading_and_place() -> None:
    [found] = find(MINUTES, "Mooring FEE")
    assert found.heading == "Item 187"
    assert MINUTES[found.offset :].startswith(found.text)
    assert "The mooring fee rises to 9.40 crowns a metre from April." in found.text


def test_words_in_a_row_come_before_the_same_words_apart() -> None:
    text = "The fee is low. A mooring is free.\n\nNothing.\n\nThe mooring fee is high."
    assert find(text, "mooring fee", most=1) == [
        Excerpt(offset=text.index("The mooring"), heading="", text="The mooring fee is high.")
    ]


def test_excerpts_stand_in_the_order_of_the_page() -> None:
    text = "# Top\n\nred\n\nred and blue\n\n## Next\n\nblue red"
    assert [(found.heading, found.text) for found in find(text, "red blue")] == [
        ("Top", "red"),
        ("Top", "red and blue"),
        ("Next", "blue red"),
    ]


def test_a_long_paragraph_is_cut_between_words() -> None:
    text = "word " * 1000 + "needle " + "word " * 1000
    [found] = find(text, "needle")
    assert len(found.text) <= LONGEST
    assert text[found.offset :].startswith(found.text)


def test_words_that_do_not_stand_there_and_no_words_find_nothing() -> None:
    assert find(MINUTES, "submarine") == []
    assert find(MINUTES, "?!") == []
