"""PDF page: the text of a fetched PDF, with a heading for each page."""

import re
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import orjson

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.text.conversion import Converter
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.value import dataclass
from agiraph.web import pdf_text
from agiraph.web.fetch import Fetched

MAX_CHARS = 4 * 2**20
MAX_OUTPUT_BYTES = 32 * 2**20
ELSEWHERE = "Look for the same content elsewhere, or say that it could not be read."
_RANGE = re.compile(r"\s*(\d{1,6})\s*(?:(-)\s*(\d{1,6})?)?\s*")


@dataclass(frozen=True, slots=True)
class PageRange:
    """The range of PDF pages that a call of `web_fetch` asks for; pages are counted from 1."""

    first: int = 1
    last: int = pdf_text.LAST_PAGE

    @classmethod
    def parse(cls, text: str) -> "PageRange":
        """Return the range that "7", "40-80" or "40-" means, or raise `Refused`."""
        match = _RANGE.fullmatch(text)
        first = int(match[1]) if match else 0
        last = int((match and match[3]) or (pdf_text.LAST_PAGE if match and match[2] else first))
        if match is None or not 1 <= first <= last:
            raise Refused(f'pages takes a page or a range, such as "7" or "40-80", not {text!r}.')
        return cls(first, last)


ALL = PageRange()


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfText:
    """The text of a PDF, as far as it was read."""

    title: str
    published: str
    text: str
    note: str


@dataclass(slots=True)
class _Document:
    """What the script has printed."""

    about: dict[str, Any] = field(default_factory=dict[str, Any])
    pages: dict[int, str] = field(default_factory=dict[int, str])
    error: str = ""
    end: str = ""


async def read_pdf(
    fetched: Fetched,
    converter: Converter,
    wanted: PageRange = ALL,
    *,
    timeout_s: int = pdf_text.TIMEOUT_S,
    reader: str = "",
) -> PdfText:
    """Return the text of the wanted pages, or raise `Refused` with the reason why there is none.

    `reader` names the library; empty: the fastest one that may be used.
    """
    reader = reader or fastest(converter)
    arguments = (str(wanted.first), str(wanted.last), str(timeout_s), reader)
    found = await converter.convert(
        Path(pdf_text.__file__),
        arguments,
        fetched.body,
        timeout_s=timeout_s + pdf_text.GRACE_S,
        most_bytes=MAX_OUTPUT_BYTES,
    )
    document = _parsed(found.output)
    if found.end == "failed" and not document.pages:
        raise Refused(f"{fetched.asked} is a PDF that cannot be converted to text. {ELSEWHERE}")
    _check(fetched, document, wanted)
    count = int(document.about["pages"])
    text = "\n\n".join(
        f"## Page {number}\n\n{words.strip()}" for number, words in document.pages.items()
    )
    return PdfText(
        title=str(document.about.get("title", "")),
        published=str(document.about.get("published", "")),
        text=text[:MAX_CHARS],
        note=_note(document, wanted, count),
    )


def fastest(converter: Converter) -> str:
    """Return the library that reads a document: PDFium, if it is installed and its process is
    confined."""
    has_pdfium = converter.is_confined and find_spec("pypdfium2") is not None
    return pdf_text.PDFIUM if has_pdfium else pdf_text.PYPDF


def _parsed(output: bytes) -> _Document:
    """Parse the lines that the script printed; the last one may be cut off."""
    document = _Document()
    for raw in output.splitlines():
        try:
            line = orjson.loads(raw)
        except orjson.JSONDecodeError:
            break
        line = cast(dict[str, Any], line) if isinstance(line, dict) else {}
        if "page" in line:
            document.pages[int(line["page"])] = str(line["text"])
        elif "pages" in line:
            document.about = line
        document.error = str(line.get("error", document.error))
        document.end = str(line.get("end", document.end))
    return document


def _check(fetched: Fetched, document: _Document, wanted: PageRange) -> None:
    """Raise `Refused` for a document without text, with what is wrong with it."""
    url = fetched.asked
    if document.error == "locked":
        raise Refused(f"{url} is a PDF that is locked with a password. {ELSEWHERE}")
    count = int(document.about.get("pages", 0))
    if count and wanted.first > count:
        raise Refused(
            f"{url} is a PDF of {counted(count, 'page')}; there is no page {wanted.first}."
        )
    if any(text.strip() for text in document.pages.values()):
        return
    if document.error or (not count and document.end == "whole"):
        raise Refused(f"{url} is a broken PDF, of which nothing can be read. {ELSEWHERE}")
    if not document.pages:
        raise Refused(f"{url} is a PDF that takes too long or too much memory to read. {ELSEWHERE}")
    raise Refused(
        f"{url} is a PDF of {counted(count, 'page')} without text in the {len(document.pages)} "
        f"that were looked at: it is probably a scan, whose pages are pictures. {ELSEWHERE}"
    )


def _note(document: _Document, wanted: PageRange, count: int) -> str:
    """Return how much was read, and how to go on, if it was not the whole document."""
    if len(document.pages) == count:
        empty = sum(not text.strip() for text in document.pages.values())
        return f"{empty} of {count} pages hold no text; they may be pictures." if empty else ""
    last = max(document.pages)
    said = f"{len(document.pages)} of {count} pages were read ({wanted.first} to {last})."
    return said if last == count else f'{said} Go on with pages="{last + 1}-{count}".'
