"""Labels: joined, counted, described and stored."""

import pytest

from agiraph.core.domain.provenance.labels import (
    CLEAN,
    MOST_NAMED,
    SEARCH,
    UNKNOWN,
    Label,
    join,
    of_page,
    of_program,
)

DOCS = of_page("https://docs.python.org/3/?q=secret")
MAKE = of_program("make")
SITES = [of_page(f"https://site{number:02}.example/") for number in range(12)]


def test_a_page_is_named_by_its_host_alone() -> None:
    assert DOCS.sources == ("page:docs.python.org",)
    assert of_page("nonsense").sources == ("page:unknown",)


def test_a_clean_label_adds_nothing() -> None:
    assert not CLEAN
    assert DOCS | CLEAN == CLEAN | DOCS == DOCS | DOCS == DOCS
    assert join([]) == CLEAN


def test_a_join_names_all_sources_in_any_order() -> None:
    assert (SEARCH | DOCS | MAKE).sources == ("page:docs.python.org", "program:make", "search")
    assert join([MAKE, SEARCH, DOCS]) == join([DOCS, MAKE, SEARCH])


def test_sources_beyond_the_most_are_counted_and_strangers_are_named_first() -> None:
    many = join([MAKE, *SITES])
    assert (len(many.sources), many.others) == (MOST_NAMED, 5)
    assert all(source.startswith("page:") for source in many.sources)
    assert many
    assert many | many == many


def test_a_program_is_a_stranger_until_a_person_trusts_it() -> None:
    trusted = {"program:make", "page:docs.python.org"}
    assert bool(MAKE)
    assert [label.without(trusted) for label in (CLEAN, MAKE, MAKE | DOCS, MAKE | SEARCH)] == [
        CLEAN,
        CLEAN,
        CLEAN,
        SEARCH,
    ]
    assert DOCS.without({"program:make"}) is DOCS


def test_counted_sources_are_never_trusted() -> None:
    many = join(SITES)
    assert many.without(many.sources) == Label(("unknown",), many.others)


@pytest.mark.parametrize(
    ("label", "described"),
    [
        (SEARCH, "a web search"),
        (DOCS, "a page of docs.python.org"),
        (DOCS | MAKE, "a page of docs.python.org and the program make"),
        (DOCS | MAKE | SEARCH, "a page of docs.python.org, a web search and the program make"),
    ],
)
def test_a_label_names_its_sources_in_words(label: Label, described: str) -> None:
    assert str(label) == label.describe() == described


def test_a_prompt_names_only_known_hosts() -> None:
    label = join([DOCS, SEARCH, *SITES[:2]])
    assert label.describe(known={"docs.python.org"}) == (
        "a page of docs.python.org, a web search and 2 other sites"
    )
    assert SITES[0].describe(known=()) == "1 site"


@pytest.mark.parametrize("label", [CLEAN, DOCS | MAKE, join(SITES), UNKNOWN])
def test_a_stored_label_is_read_back(label: Label) -> None:
    assert Label.from_list(label.to_list()) == label


@pytest.mark.parametrize("stored", [["martian:zog"], [0], [None], [["search"]]])
def test_a_damaged_label_is_refused(stored: list[object]) -> None:
    with pytest.raises(ValueError, match="is not a source of words"):
        Label.from_list(stored)
