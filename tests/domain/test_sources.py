"""Sources: the class of a site, its owner, and which pages are independent of each other."""

import pytest

from agiraph.features.research.model import sources
from agiraph.features.research.model.jobs import SourceClass
from agiraph.features.research.model.sources import classify, registrable_domain
from tests.domain.evidence_rows import row


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("https://www.bbc.co.uk/news/1", "bbc.co.uk"),
        ("https://en.wikipedia.org/wiki/X", "wikipedia.org"),
        ("https://alice.github.io/x", "alice.github.io"),
        ("https://docs.python.org:443/3/", "python.org"),
        ("https://a.b.example.com.au", "example.com.au"),
        ("https://www.shop.kobe.jp/x", "www.shop.kobe.jp"),
        ("https://bob.tumblr.com/x", "bob.tumblr.com"),
        ("http://192.0.2.7/x", "192.0.2.7"),
        ("http://[2001:db8::1]/x", "2001:db8::1"),
        ("https://localhost/", "localhost"),
        ("https://EXAMPLE.de./x", "example.de"),
        ("no address", ""),
        ("http://[broken", ""),
    ],
)
def test_the_owner_of_an_address_is_its_registrable_domain(url: str, domain: str) -> None:
    assert registrable_domain(url) == domain


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://doi.org/10.1000/182", "primary"),
        ("https://journal.example/article/10.1000/182", "primary"),
        ("https://www.legislation.gov.uk/ukpga/1998/42", "primary"),
        ("https://ec.europa.eu/eurostat", "primary"),
        ("https://de.wikipedia.org/wiki/Turm", "reference"),
        ("https://history.stateuniversity.edu/tower", "reference"),
        ("https://www.spiegel.de/a", "press"),
        ("https://www1.folha.uol.com.br/a", "press"),
        ("https://www.reddit.com/r/x", "forum"),
        ("https://forum.example.com/t/1", "forum"),
        ("https://github.com/a/b/issues/3", "forum"),
        ("https://github.com/a/b", "unknown"),
        ("https://acme.example/pricing", "vendor"),
        ("https://best-ten-things.example/", "unknown"),
        ("https://gov.example.com/", "unknown"),
        ("javascript:alert(1)", "unknown"),
    ],
)
def test_the_class_of_a_site_follows_from_its_address(url: str, found: SourceClass) -> None:
    assert classify(url) == found


def test_the_site_of_what_is_asked_about_is_primary() -> None:
    assert classify("https://acme.example/about", subjects=["ACME"]) == "primary"
    assert classify("https://github.com/acme/engine", subjects=["engine"]) == "primary"
    assert classify("https://notacme.example/about", subjects=["ACME"]) == "unknown"


def test_a_model_may_lower_a_class_and_never_raise_it() -> None:
    assert classify("https://www.spiegel.de/a", suggested="forum") == "forum"
    assert classify("https://www.spiegel.de/a", suggested="primary") == "press"
    assert classify("https://content-farm.example/a", suggested="primary") == "unknown"


RELEASE = (
    "The company announced on Monday that its new engine uses a third less fuel than before. " * 4
)
OTHER = "Independent tests by the institute found that the engine uses a quarter less fuel. " * 4


def test_pages_of_one_owner_or_with_the_same_words_are_one_source() -> None:
    rows = [
        row("e1", "x", url="https://one.example/a"),
        row("e2", "x", url="https://news.one.example/b"),
        row("e3", "x", url="https://two.example/a"),
        row("e4", "x", url="https://three.example/a"),
        row("e5", "x", url="https://three.example/a"),
    ]
    texts = [
        "Quite another page about towers.",
        f"Today. {RELEASE}",
        f"{RELEASE} Read more.",
        OTHER,
    ]
    pages = dict(zip(dict.fromkeys(r.page_hash for r in rows), texts, strict=True))
    assert sources.groups(rows, pages) == {"e1": 1, "e2": 1, "e3": 1, "e4": 4, "e5": 4}
    assert sources.independent(rows, pages) == 2


def test_two_copies_are_found_among_long_texts_and_two_others_are_not() -> None:
    long = " ".join(f"word{n}" for n in range(20_000))
    half = (
        " ".join(f"word{n}" for n in range(9_000)) + " " + " ".join(f"x{n}" for n in range(11_000))
    )
    texts = [long, f"Copied. {long}", half, "", ""]
    rows = [row(f"e{n}", "x", url=f"https://site{n}.example/a") for n in range(1, 6)]
    pages = dict(zip((r.page_hash for r in rows), texts, strict=True))
    assert sources.groups(rows, pages) == {"e1": 1, "e2": 1, "e3": 3, "e4": 4, "e5": 5}
