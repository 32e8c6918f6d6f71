"""Quotes: a quotation is found on a page if the page has its words, and only then."""

import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agiraph.features.research.model.page_quotes import QuoteFound, QuoteMissing, find_quote

TOWER = """# The tower

The **tower** is [330 m](https://one.example/h) tall,[3] which makes it the tallest building in the
city. It was "finished" in March 1889 after two years of well-known difficul-
ties, and weighs 10,100 tonnes.

| year | visitors |
|---|---|
| 2019 | 6.2 million |

Die Straße ist \u22125 °C kalt. 東京タワーは高さ332メートルである。
"""


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("The tower is 330 m tall", "The **tower** is [330 m] tall"),
        ("the TOWER is\n330 m tall, which", None),
        ("“finished” in March 1889", '"finished" in March 1889'),
        ("well-known difficulties", None),
        ("well\u2011known difficul- ties, and weighs", None),
        ("2019 6.2 million", "2019 | 6.2 million"),
        ("Die Strasse ist -5 °C kalt.", "Die Straße ist \u22125 °C kalt."),
        ("東京タワーは高さ332メートル", "東京タワーは高さ332メートル"),
        ("The tower […] the tallest building in the city", None),
        ("weighs 10,100 tonnes!", "weighs 10,100 tonnes"),
    ],
)
def test_a_quotation_is_found_whatever_its_marks_and_line_breaks(
    quote: str, text: str | None
) -> None:
    found = find_quote(quote, TOWER)
    assert isinstance(found, QuoteFound)
    assert TOWER[found.offset :].startswith(found.text[:9])
    assert text is None or found.text == text


@pytest.mark.parametrize(
    "quote",
    [
        "",
        "“”",
        "The tower is 331 m tall",
        "The tower is 30 m tall",
        "visitors 2019 6.2",  # it is 6.2 million
        "weighs 10",
        "5 °C kalt",  # it is below zero
        "the tallest building in the city […] The tower is",
        "The […] is […] in",
        "It was finished in April 1889 after two years of difficulties",
    ],
)
def test_a_quotation_with_other_words_or_numbers_is_not_found(quote: str) -> None:
    assert isinstance(find_quote(quote, TOWER), QuoteMissing)


def test_a_quotation_that_differs_at_an_end_is_missing_and_the_pages_words_are_told() -> None:
    page = "One. The committee adopted the resolution by a large majority on Monday, sources said."
    told = QuoteMissing("The committee adopted the resolution by a large majority on Monday")
    for quote in (
        "The committee rejected the resolution by a large majority on Monday",
        "The committee adopted the resolution by a large majority on Monday at",
    ):
        assert find_quote(quote, page) == told


@pytest.mark.parametrize(
    ("page", "quote"),
    [
        ("It is illegal in all fifty states.", "legal in all fifty states"),
        ("It is unsafe for children.", "safe for children"),
        ("It is **un**safe for children.", "safe for children"),
        ("It is non-toxic to cats.", "toxic to cats"),
        ("It cost 5 million euros.", "It cost 5 m"),
        ("It cost 5k last year.", "It cost 5"),
        ("Es war nicht erlaubt.", "nicht erlaub"),
    ],
)
def test_a_quotation_does_not_begin_or_end_inside_a_word(page: str, quote: str) -> None:
    assert isinstance(find_quote(quote, page), QuoteMissing)


def test_a_dash_or_a_script_without_spaces_divides_words() -> None:
    page = "The tower—known as the lady—stands. 東京タワーは高い。"
    for quote in ("known as the lady", "京タワーは高"):
        assert isinstance(find_quote(quote, page), QuoteFound)


def test_addresses_and_footnotes_are_no_words_of_the_page() -> None:
    page = "It has[[12]](#cite_note-12) [lifts](https://one.example/99)[4](#fn4) in all![3] Yes."
    assert find_quote("it has lifts in all! yes", page) == QuoteFound(
        0, "It has [lifts] in all! Yes"
    )


def test_parts_around_an_ellipsis_stand_close_together() -> None:
    near = "The mayor opened the bridge. " + "x " * 900 + "Nobody was there to see it."
    far = "The mayor opened the bridge. " + "x " * 1100 + "Nobody was there to see it."
    quote = "The mayor opened the bridge … Nobody was there"
    assert find_quote(quote, near) == QuoteFound(
        0, "The mayor opened the bridge … Nobody was there"
    )
    assert isinstance(find_quote(quote, far), QuoteMissing)


LETTERS = "abcdeXYZ äöüßéŒﬁ\u2019“”„-.,;\n\t \u00ad\u00a0*_[]東京"


@given(st.text(LETTERS, max_size=300), st.integers(0, 300), st.integers(1, 80))
def test_what_was_cut_out_of_a_page_is_found_on_it(page: str, start: int, length: int) -> None:
    page = f"The beginning {page} and the end"
    start %= len(page)
    end = min(start + length, len(page))
    # A quotation begins and ends with a whole word, also where marks stand inside the word.
    while start and not page[start - 1].isspace():
        start -= 1
    while end < len(page) and not page[end].isspace():
        end += 1
    quote = page[start:end]
    # What is cut between the hyphen and the rest of a word, or inside marks, may read otherwise.
    assume(
        any(c.isalnum() for c in quote) and not set("-*_[]\u00ad\n") & set(quote[:3] + quote[-3:])
    )
    assert isinstance(find_quote(quote, page), QuoteFound)


@pytest.mark.slow
@given(st.text(), st.text())
def test_what_is_found_stands_on_the_page_and_is_found_again(quote: str, page: str) -> None:
    found = find_quote(quote, f"{page} {quote} {page}")
    if isinstance(found, QuoteFound) and " … " not in found.text and "..." not in found.text:
        assert found.text in f"{page} {quote} {page}"
        assert isinstance(find_quote(found.text, found.text), QuoteFound)


@pytest.mark.parametrize(
    "page",
    [
        "The committee met again. " * 20_000,
        *(
            text * (100_000 // len(text))
            for text in ("a", "東", "-", "[", "1 ", "x-\n", "](", "... ")
        ),
    ],
    ids=["words", "letter", "unspaced", "hyphens", "brackets", "digits", "breaks", "links", "dots"],
)
def test_a_long_page_takes_no_more_than_linear_time(page: str) -> None:
    started = time.process_time()
    find_quote(f"{page[:40]}?{page[100:200]} … nowhere at all", page)
    assert time.process_time() - started < 5
