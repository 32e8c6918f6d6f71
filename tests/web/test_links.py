"""Links: addresses in texts, and which spellings mean the same request, host and site."""

import pytest

from agiraph.web import links


@pytest.mark.parametrize(
    "spelling",
    [
        "http://example.org",
        "HTTP://EXAMPLE.ORG/",
        "http://example.org:80/",
        "http://example.org/#part",
        "http://example.org/a/..",
    ],
)
def test_spellings_of_one_request_are_the_same(spelling: str) -> None:
    assert links.requested(spelling) == "http://example.org/"


@pytest.mark.parametrize(
    "other",
    [
        "https://example.org/",
        "http://example.org./",
        "http://example.org:8080/",
        "http://example.org/A",
        "http://www.example.org/",
    ],
)
def test_what_a_server_can_tell_apart_is_another_request(other: str) -> None:
    assert links.requested(other) not in (None, "http://example.org/", "http://example.org/a")


@pytest.mark.parametrize("wrong", ["", "example.org", "http://", "http://a:b@example.org/", "x y"])
def test_what_is_not_opened_has_no_request_and_no_host(wrong: str) -> None:
    assert (links.requested(wrong), links.host_of(wrong)) == (None, "")


@pytest.mark.parametrize(
    ("address", "host", "site"),
    [
        ("http://EXAMPLE.org:81/x", "example.org", "example.org"),
        ("http://a.b.example.org./x", "a.b.example.org", "example.org"),
        ("http://www.bücher.example/", "www.xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("http://www.xn--bcher-kva.example/", "www.xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("http://a.shop.co.uk/", "a.shop.co.uk", "shop.co.uk"),
        ("http://co.uk/", "co.uk", "co.uk"),
        ("http://a.b.de/", "a.b.de", "b.de"),
        ("http://127.0.0.1:81/", "127.0.0.1", "127.0.0.1"),
        ("http://[2001:db8::1]/", "2001:db8::1", "2001:db8::1"),
        ("http://localhost/", "localhost", "localhost"),
    ],
)
def test_a_host_has_one_spelling_and_belongs_to_a_site(address: str, host: str, site: str) -> None:
    assert (links.host_of(address), links.site_of(host)) == (host, site)


def test_a_text_holds_an_address_in_any_spelling() -> None:
    text = "See [it](http://Example.org/a_(b)), or http://bücher.example/x."
    assert links.holds(text, "http://example.org/a_(b)")
    assert links.holds(text, "http://xn--bcher-kva.example/x")
    assert not links.holds(text, "http://example.org/a")
    assert links.hosts_in(text) == {"example.org", "xn--bcher-kva.example"}
