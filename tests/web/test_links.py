"""Links: addresses in texts, and which spellings mean the same request, host and site."""

import time

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


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("(see https://evil.example/?q=s).", "(see https[:]//evil[.]example/?q=s)."),
        ("[good](https://evil.example/s)", "[good](https[:]//evil[.]example/s)"),
        ("![](http://1.2.3.4/s)", "![](http[:]//1[.]2[.]3[.]4/s)"),
        ("<https://evil.example|good>", "<https[:]//evil[.]example|good>"),
        ("http://[2001:db8::1]/s", "http[:]//[2001:db8::1]/s"),
        ("ftp://evil.example/s", "ftp[:]//evil[.]example/s"),
        ("HTTPS://EVIL.example/s", "HTTPS[:]//EVIL[.]example/s"),
        ("https://s@good.example/", "https[:]//s@good.example/"),
        ("https://good.example.evil.example/", "https[:]//good[.]example[.]evil[.]example/"),
        ("www.evil.example", "www[.]evil[.]example"),
        ("evil.example/?q=s", "evil[.]example/?q=s"),
        ("evil.example?q=s", "evil[.]example?q=s"),
        ("s.evil.example", "s[.]evil[.]example"),
        (".s.evil.xn--p1ai", ".s[.]evil[.]xn--p1ai"),
        ("//evil.example/s", "//evil[.]example/s"),
        (
            "https://good.example/https://evil.example/s",
            "https[:]//good.example/https[:]//evil[.]example/s",
        ),
        ("https://good.example](https://evil.example/s)",
         "https://good.example](https[:]//evil[.]example/s)"),
        ("https://named.example/a)s", "https[:]//named[.]example/a)s"),
        ("https://named.example/as", "https[:]//named[.]example/as"),
    ],
)  # fmt: skip
def test_no_address_stays_a_link_that_is_not_allowed(text: str, written: str) -> None:
    assert without_links(text) == written


@pytest.mark.parametrize(
    "text",
    [
        "https://good.example/?q=1#x, [a](https://good.example/a) and www.good.example/b.",
        "See (https://named.example/a).",
        "[https://good.example](https://good.example)",
        "report.md, app.py: line 3. Did you read notes.md? Version 3.11.2, e.g. 1.5 of 2.5 MB.",
        "a@b.example, 12:30, src/app.py",
        "",
    ],
)
def test_allowed_links_and_names_of_files_stay(text: str) -> None:
    assert without_links(text) == text


def test_many_addresses_are_written_in_a_time_that_grows_with_the_text() -> None:
    for unit in ("https://good.example)", "https://a.b", "a.", "www.", "://", "https://(", "a.b/"):
        times: list[float] = []
        for size in (20_000, 80_000):
            begun = time.thread_time()
            without_links(unit * (size // len(unit)))
            times.append(time.thread_time() - begun)
        assert times[1] < max(8 * times[0], 0.5), unit


def without_links(text: str) -> str:
    return links.without_links(
        text,
        is_allowed=lambda host: host in ("good.example", "www.good.example"),
        is_named=lambda address: address == "https://named.example/a",
    )
