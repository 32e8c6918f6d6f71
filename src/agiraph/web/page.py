"""Web page: a fetched body as Markdown text.

A confined process converts HTML, feeds and PDF: a hostile document can crash, exhaust or take over
only that process, which sees no file and no network, and the runtime goes on meanwhile. What is
done with the text afterwards is done in threads (`in_thread`). A thread cannot be ended, so what
bounds its work is the length of the text and of its lines, in which all of it is linear.
"""

import asyncio
import codecs
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import orjson

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.text.conversion import Converter
from agiraph.core.domain.value import dataclass
from agiraph.web.fetch import Fetched, is_pdf
from agiraph.web.pdf_page import ALL, PageRange, read_pdf

MAX_SOURCE_CHARS = 4 * 2**20
"""How much of a page's source is converted: its beginning says what it is about."""
MAX_TEXT_CHARS = MAX_SOURCE_CHARS
"""How much of the converted text is taken: links of a page may be far longer there than in it."""
LONGEST_LINE = 10_000
"""Characters of a line; a longer one is broken between words, or where it must be."""
THREAD_S = 20.0
"""How long is waited for what a thread makes of a page; far more than any page needs."""
MAX_OUTPUT_BYTES = 32 * 2**20
"""A converter that prints more is stopped."""
_PIECE_BYTES = 16 * 2**10
_FOR_NAMES = frozenset({"idna", "punycode"})
"""Encodings of host names. They are slow on long texts, and no page is written in them."""
_FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})


T = TypeVar("T")
P = ParamSpec("P")


class NoText(Refused):
    """A page contains no text as it was sent. Its scripts may make some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    url: str
    title: str
    text: str
    modified: str = ""
    published: str = ""
    """The day that the page says it was published on; empty if it says none."""
    is_cut: bool = False
    is_pdf: bool = False
    is_bare: bool = False
    """Whether hardly any text came of a long source: scripts make the page."""
    note: str = ""
    """How much of a document was read, if it was not all."""


async def in_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a function makes of a page's text, off the event loop; refuse a page that takes
    too long."""
    try:
        async with asyncio.timeout(THREAD_S):
            return await asyncio.to_thread(work, *args, **kwargs)
    except TimeoutError:
        raise Refused("The page takes too long to read. Try another source.") from None


async def read(fetched: Fetched, converter: Converter, wanted: PageRange = ALL) -> WebPage:
    """Return the page as text, or raise `Refused` if it contains none. `wanted` are the pages to
    read of a PDF."""
    if is_pdf(fetched):
        pdf = await read_pdf(fetched, converter, wanted)
        about = {"title": pdf.title, "published": pdf.published}
        page = await in_thread(_page, fetched, about, pdf.text, is_cut=fetched.is_cut)
        return replace(page, is_pdf=True, note=pdf.note)
    source = await in_thread(_decoded, fetched)
    is_cut = fetched.is_cut or len(source) > MAX_SOURCE_CHARS
    source = source[:MAX_SOURCE_CHARS]
    about, text = dict[str, str](), source
    if _is_feed(fetched, source):
        about, text = await _converted(source, fetched, "feed", converter)
    elif _is_html(fetched, source):
        about, text = await _converted(source, fetched, "html", converter)
    if not text.strip():
        raise NoText(
            f"There is no text on {fetched.asked}; it may need a browser. Try another source."
        )
    from agiraph.web import markdown  # it imports the parsers of its own process

    is_bare = len(text) < markdown.LITTLE_TEXT and len(source) > markdown.LONG_SOURCE
    page = await in_thread(_page, fetched, about, text, is_cut=is_cut)
    return replace(page, is_bare=is_bare)


def _page(fetched: Fetched, about: dict[str, str], text: str, *, is_cut: bool) -> WebPage:
    return WebPage(
        url=fetched.url,
        title=" ".join(about.get("title", "").split())[:300],
        text=_with_short_lines(text[:MAX_TEXT_CHARS].strip())[:MAX_TEXT_CHARS],
        modified=fetched.modified[:80],
        published=" ".join(about.get("published", "").split())[:40],
        is_cut=is_cut or len(text) > MAX_TEXT_CHARS,
    )


def _with_short_lines(text: str) -> str:
    """Return the text with its long lines broken: other programs read it line by line."""
    lines = text.split("\n")
    if max(map(len, lines)) <= LONGEST_LINE:
        return text
    return "\n".join(piece for line in lines for piece in _broken(line))


def _broken(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > LONGEST_LINE:
        end = line.rfind(" ", start + LONGEST_LINE // 2, start + LONGEST_LINE)
        is_between = end >= 0
        end = end if is_between else start + LONGEST_LINE
        yield line[start:end]
        start = end + is_between
    yield line[start:]


def _decoded(fetched: Fetched) -> str:
    body = fetched.body
    if b"\0" in body[:4096] and not body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Refused(f"{fetched.asked} is binary data, not text. Try another source.")
    for charset in (fetched.charset, _declared(body), "utf-8"):
        with contextlib.suppress(LookupError, UnicodeError, ValueError):
            # The page chooses the name, and Python has codecs, such as zlib, that are no character
            # sets.
            if charset and codecs.lookup(charset)._is_text_encoding:  # pyright: ignore
                return _text(body, charset, "strict" if charset == "utf-8" else "replace")
    return _text(body, "latin-1", "strict")


def _text(body: bytes, charset: str, errors: str) -> str:
    """Return the beginning of a body as text."""
    if codecs.lookup(charset).name in _FOR_NAMES:
        raise LookupError(charset)
    decoder = codecs.getincrementaldecoder(charset)(errors)
    pieces, length = list[str](), 0
    # Piece by piece: one call holds the interpreter for as long as it takes, also in a thread.
    for start in range(0, len(body), _PIECE_BYTES):
        if length > MAX_SOURCE_CHARS:
            break
        piece = body[start : start + _PIECE_BYTES]
        pieces.append(decoder.decode(piece, start + _PIECE_BYTES >= len(body)))
        length += len(pieces[-1])
    return "".join(pieces)


def _declared(body: bytes) -> str | None:
    """Return the character set that an HTML page declares in its head; None if there is none."""
    head = body[:2048].lower()
    _, found, rest = head.partition(b"charset=")
    if not found:
        return None
    name = rest.lstrip(b"\"'").split(b'"')[0].split(b"'")[0].split(b">")[0].split(b";")[0]
    return name.strip(b" /").decode("ascii", errors="replace")[:40] or None


def _is_html(fetched: Fetched, source: str) -> bool:
    if fetched.media_type in ("text/html", "application/xhtml+xml"):
        return True
    start = source[:512].lstrip().lower()
    is_unknown = fetched.media_type in ("", "application/octet-stream", "text/plain")
    return is_unknown and start.startswith(("<!doctype html", "<html"))


def _is_feed(fetched: Fetched, source: str) -> bool:
    """Whether this is RSS or Atom, which many servers send as any kind of XML."""
    if fetched.media_type in _FEEDS:
        return True
    is_xml = fetched.media_type in ("application/xml", "text/xml")
    start = source[:1024].lower()
    return is_xml and any(mark in start for mark in ("<rss", "<feed", "<rdf:rdf"))


async def _converted(
    source: str, fetched: Fetched, kind: str, converter: Converter
) -> tuple[dict[str, str], str]:
    """Return the title and the other facts of a page, and its text."""
    from agiraph.web import markdown

    found = await converter.convert(
        Path(markdown.__file__),
        (fetched.url, kind),
        source.encode(errors="replace"),
        timeout_s=markdown.TIMEOUT_S,
        most_bytes=MAX_OUTPUT_BYTES,
    )
    if found.end == "timeout":
        raise Refused(f"{fetched.asked} takes too long to convert to text. Try another source.")
    if found.end == "failed":
        raise Refused(f"{fetched.asked} cannot be converted to text. Try another source.")
    return await in_thread(_parsed, found.output)


def _parsed(output: bytes) -> tuple[dict[str, str], str]:
    about, _, text = output.partition(b"\n")
    facts = cast(dict[str, Any], orjson.loads(about))
    return {name: str(each) for name, each in facts.items()}, _text(text, "utf-8", "replace")
