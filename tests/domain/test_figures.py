"""Figures and dates: numbers and dates mean the same in several languages' forms."""

from fractions import Fraction

import pytest

from agiraph.domain import dates, figures
from agiraph.domain.dates import Date
from agiraph.domain.sums import find_sums


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,234.5", "1.234,5"),
        ("1 234,5", "1'234.5"),
        ("1.2 million", "1,200,000"),
        ("1,2 Millionen", "1.200.000"),
        ("3 Mrd. Euro", "€3 billion"),
        ("3 mil millones", "3.000.000.000"),
        ("5 %", "5 percent"),
        ("5 Prozent", "5 pour cent"),
        ("1.5 km", "1,500 metres"),
        ("$5M", "5 million dollars"),
        ("12 engines", "twelve engines"),
        ("4", "vier Triebwerke"),
        ("1.2.3", "version 1.2.3"),
        ("380", "the A380"),
        ("-5 °C", "\u22125 degrees Celsius"),
        (".5 %", "0.5 percent"),
        ("30k euros", "EUR 30,000"),
        ("高500万人", "5 million"),
        ("3亿", "300,000,000"),
        ("5千米", "5"),
    ],
)
def test_two_forms_are_one_number(one: str, other: str) -> None:
    mine = next(figures.find(one))
    assert any(mine.stands_for(its) for its in figures.find_all(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5", "15"),
        ("5 %", "5 km"),
        ("$5", "€5"),
        ("5 km", "5 m"),
        ("5 million", "5"),
        ("1.5", "15"),
        ("-5 °C", "5 °C"),
        ("1.2.3", "1.2.4"),
        ("12,5", "125"),
    ],
)
def test_two_forms_are_different_numbers(one: str, other: str) -> None:
    mine = next(figures.find(one))
    assert not any(mine.stands_for(its) for its in figures.find_all(other))


def test_numbers_inside_names_are_no_numbers_of_a_sentence() -> None:
    assert [
        f.text
        for f in figures.find("The A380, GPT-4, COVID-19 and v1.2 cost 10-20 and EUR 30 each")
    ] == [
        "10",
        "20",
        "EUR 30",
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("埃菲尔铁塔高500米。", "500"),
        ("สูง500 เมตร", "500"),
        ("_500 m_", "500 m"),
        ("__2 million__", "2 million"),
        ("ca.500", "500"),
        (".5 %", ".5 %"),
        ("the mid-1990s", "1990"),
    ],
)
def test_a_number_is_seen_whatever_stands_before_it(text: str, number: str) -> None:
    assert [figure.text for figure in figures.find(text)] == [number]


def test_a_number_of_thousands_of_digits_is_read_as_none() -> None:
    assert [figure.values for figure in figures.find("9" * 5000)] == [frozenset()]
    assert list(figures.readings(".500")) == [Fraction(1, 2)]


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("于2024-05-03发布", Date(2024, 5, 3)),
        ("_May 2024_", Date(2024, 5, 0)),
        ("2024-05-03", Date(2024, 5, 3)),
        ("3 May 2024", Date(2024, 5, 3)),
        ("May 3rd, 2024", Date(2024, 5, 3)),
        ("am 3. Mai 2024", Date(2024, 5, 3)),
        ("le 1er août 2024", Date(2024, 8, 1)),
        ("el 3 de mayo de 2024", Date(2024, 5, 3)),
        ("03.05.2024", Date(2024, 5, 3)),
        ("März 2024", Date(2024, 3, 0)),
        ("on 3 May", Date(0, 5, 3)),
        ("2024年5月3日", Date(2024, 5, 3)),
    ],
)
def test_a_date_is_read_in_several_forms(text: str, date: Date) -> None:
    assert [found.readings[0] for found in dates.find(text)] == [date]


def test_a_date_with_slashes_may_be_read_in_two_ways() -> None:
    assert [found.readings for found in dates.find("03/05/2024")] == [
        (Date(2024, 5, 3), Date(2024, 3, 5))
    ]
    assert Date(2024, 5, 0).is_in(Date(2024, 5, 3))
    assert not Date(2024, 5, 3).is_in(Date(2024, 5, 0))


@pytest.mark.parametrize("text", ["It may rise 5 times", "a set of 12", "1.2.3", "call 5-5-5"])
def test_other_words_are_no_dates(text: str) -> None:
    assert list(dates.find(text)) == []


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("it is 30 m taller (330 m - 300 m = 30 m)", True),
        ("(330 \u2212 300) / 300 = 10 %", True),
        ("10 % = (330 - 300) / 300", True),
        ("1 / 3 = 0.33", True),
        ("1 / 3 = 0.34", False),
        ("2 + 2 = 5", False),
        ("330 - 300 = 31", False),
        ("1 / 0 = 1", False),
        ("in 2019 it was 30 (330 - 300 = 30)", True),
        ("in 2019 330 - 300 = 30", True),
        ("330 -300 = 30", True),
        ("1 km + 500 m = 1.5 km", True),
        ("1 km + 500 m = 1,500 m", True),
        ("1 km + 500 m = 501 km", False),
        ("1 km + 500 = 501 m", False),
        ("330 m - 300 m = 30 km", False),
        ("5 euros + 5 dollars = 10 euros", False),
        ("2 years - 6 months = 18 months", True),
        ("(1 km + 500 m) / 2 = 750 m", True),
        ("(1 km + 500 m) / 2 = 250.5 km", False),
        ("(330 m - 300 m) / 300 m = 10 %", True),
        ("120 km / 2 hours = 60", True),
        ("30 - 1.2.3 = 30", False),
    ],
)
def test_a_calculation_is_computed_again(text: str, is_right: bool) -> None:
    assert [found.is_right for found in find_sums(text)] == [is_right]


def test_an_equals_sign_without_a_calculation_is_none() -> None:
    assert list(find_sums("x = 5, and y = z, 3 = 3")) == []
