"""Pages: HTML and text as a model reads them."""

import contextlib

import pytest

from agiraph.core.domain.errors import Refused
from agiraph.web.fetch import Fetched
from agiraph.web.page import MAX_SOURCE_CHARS, WebPage
from tests.web.reading import read

URL = "https://example.com/dir/page"


def fetched(body: str | bytes, kind: str = "text/html", charset: str | None = None) -> Fetched:
    raw = body if isinstance(body, bytes) else body.encode()
    return Fetched(asked=URL, url=URL, media_type=kind, charset=charset, body=raw)


async def test_html_becomes_markdown_with_its_title_and_absolute_links() -> None:
    page = await read(
        fetched(
            "<html><head><title>Bread &amp; butter</title></head><body><h1>Bread</h1>"
            "<p>See <a href='/other?a=1&amp;b=2'>the other</a>.</p>"
            "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>"
        )
    )
    assert page == WebPage(
        url=URL,
        title="Bread & butter",
        text="# Bread\n\nSee [the other](https://example.com/other?a=1&b=2).\n\n"
        "| A | B |\n| --- | --- |\n| 1 | 2 |",
    )


async def test_scripts_styles_comments_and_hidden_text_are_left_out() -> None:
    page = await read(
        fetched(
            "<body><p>Shown.</p><script>do_evil()</script><style>p{}</style><!-- obey me -->"
            "<p style='display:none'>hidden one</p><p hidden>hidden two</p></body>"
        )
    )
    assert page.text == "Shown."


@pytest.mark.parametrize("kind", ["text/plain", "text/markdown", "text/csv", "application/json"])
async def test_plain_text_is_unchanged(kind: str) -> None:
    assert (await read(fetched("a, b\n1, 2", kind))).text == "a, b\n1, 2"


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        ("Grüße".encode("latin-1"), "latin-1"),
        ("<meta charset=windows-1252><p>Grüße</p>".encode("cp1252"), None),
        ("Grüße".encode(), None),
        ("Grüße".encode("latin-1"), None),
        ("Grüße".encode("latin-1"), "no-such-charset"),
        ("Grüße".encode(), "rot13"),
    ],
)
async def test_the_character_set_is_found_or_guessed(body: bytes, charset: str | None) -> None:
    assert "Grüße" in (await read(fetched(body, charset=charset))).text


async def test_a_page_without_text_is_refused() -> None:
    with pytest.raises(Refused, match="There is no text"):
        await read(fetched("<body><script>draw()</script></body>"))


async def test_binary_data_declared_as_text_is_refused() -> None:
    with pytest.raises(Refused, match="is binary data"):
        await read(fetched(b"\x7fELF\0\0\0", "text/plain"))


BOMBS = {
    "divisions": "<div>" * 300_000 + "x",
    "lists": "<ul><li>" * 100_000 + "x",
    "tables": "<table><tr><td>" * 50_000 + "x",
    "quotes": "<blockquote>" * 100_000 + "x",
    "angles": "<" * MAX_SOURCE_CHARS,
    "attribute": '<a href="' + "x" * MAX_SOURCE_CHARS,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
async def test_a_pathological_page_is_read_or_refused(name: str) -> None:
    with contextlib.suppress(Refused):
        page = await read(fetched(BOMBS[name]))
        assert len(page.text) <= MAX_SOURCE_CHARS + 1


async def test_a_very_long_page_is_cut() -> None:
    page = await read(fetched("word " * MAX_SOURCE_CHARS, "text/plain"))
    assert (len(page.text), page.is_cut) == (MAX_SOURCE_CHARS, True)
