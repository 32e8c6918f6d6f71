"""PDF: text page by page, or an honest sentence, within limits."""

import asyncio

import pytest

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import TeamId
from agiraph.sandbox import levels
from agiraph.sandbox.parsing import Parser
from agiraph.web.fetch import Fetched, is_pdf
from agiraph.web.page import WebPage
from agiraph.web.pdf_page import ALL, PageRange, PdfText, fastest, read_pdf
from agiraph.web.pdf_text import PDFIUM, PYPDF
from tests import pdf_files
from tests.web.reading import parser, read

URL = "https://example.com/report.pdf"
REPORT = pdf_files.pdf(
    [f"Page {n} of the report\nIt has the figure {1000 + n}." for n in range(1, 133)],
    title="A report (of 132 pages)",
)
SHORT = pdf_files.pdf(["Words"])
LONGEST_S = 25
"""What a document may take from its bytes to its text or its refusal."""


def fetched(body: bytes, kind: str = "application/pdf") -> Fetched:
    return Fetched(asked=URL, url=URL, media_type=kind, charset=None, body=body)


@pytest.mark.parametrize("reader", [PYPDF, PDFIUM])
async def test_a_document_of_132_pages_has_a_heading_for_each_page(reader: str) -> None:
    page = await read_pdf(fetched(REPORT), parser(), reader=reader)
    title = "A report (of 132 pages)"
    assert page == PdfText(title=title, published="", text=page.text, note="")
    assert page.text.startswith(
        "## Page 1\n\nPage 1 of the report\nIt has the figure 1001.\n\n## Page 2\n\n"
    )
    assert page.text.endswith("## Page 132\n\nPage 132 of the report\nIt has the figure 1132.")
    assert page.text.count("## Page ") == 132


async def test_a_range_of_pages_is_read_and_the_rest_is_named() -> None:
    page = await read(fetched(REPORT), PageRange.parse("40-41"))
    assert page == WebPage(
        url=URL,
        title="A report (of 132 pages)",
        text="## Page 40\n\nPage 40 of the report\nIt has the figure 1040.\n\n"
        "## Page 41\n\nPage 41 of the report\nIt has the figure 1041.",
        is_pdf=True,
        note='2 of 132 pages were read (40 to 41). Go on with pages="42-132".',
    )


async def test_a_page_behind_the_end_is_refused_with_the_number_of_pages() -> None:
    with pytest.raises(Refused, match=r"is a PDF of 1 page; there is no page 200\."):
        await read(fetched(SHORT), PageRange.parse("200-300"))


async def test_at_the_time_limit_what_was_read_is_kept_and_the_rest_named() -> None:
    slow = pdf_files.heavy(3)
    assert await read_pdf(fetched(slow), parser(), timeout_s=1, reader=PYPDF) == PdfText(
        title="",
        published="",
        text="## Page 1\n\nThe first page is short.",
        note='1 of 3 pages were read (1 to 1). Go on with pages="2-3".',
    )


UNREADABLE = {
    "broken": (b"%PDF-1.7\nnothing of a document\n%%EOF", "is a broken PDF"),
    "cut": (REPORT[: len(REPORT) // 2], "is a broken PDF"),
    "looping": (pdf_files.looping(), "is a broken PDF|without text"),
    "locked": (pdf_files.encrypted(SHORT, "secret"), "is locked with a password"),
    "scanned": (
        pdf_files.scanned(3),
        "is a PDF of 3 pages without text in the 3 that were looked at: it is probably a scan",
    ),
}


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        *((name, PYPDF) for name in UNREADABLE),
        *((name, PDFIUM) for name in ("looping", "locked", "scanned")),
    ],
)
async def test_a_document_without_text_says_why_within_the_limit(name: str, reader: str) -> None:
    body, says = UNREADABLE[name]
    async with asyncio.timeout(LONGEST_S):
        with pytest.raises(Refused, match=says):
            await read_pdf(fetched(body), parser(), reader=reader)


def test_c_code_reads_a_document_only_where_it_is_confined() -> None:
    confined, free = parser(), Parser(confinement=levels.choose("none"), team_id=TeamId("t_reader"))
    assert (confined.is_confined, fastest(confined)) == (True, PDFIUM)
    assert (free.is_confined, fastest(free)) == (False, PYPDF)


async def test_a_document_whose_table_of_objects_is_lost_is_read_all_the_same() -> None:
    page = await read(fetched(pdf_files.misplaced(SHORT)))
    assert page.text == "## Page 1\n\nWords"


async def test_a_document_with_an_empty_password_is_read() -> None:
    locked = pdf_files.encrypted(pdf_files.pdf(["Open to all"]), "")
    assert (await read(fetched(locked))).text == "## Page 1\n\nOpen to all"


async def test_pictures_among_pages_of_text_are_counted() -> None:
    mixed = pdf_files.pdf(["Words", "", "More words"])
    page = await read(fetched(mixed))
    assert page.note == "1 of 3 pages hold no text; they may be pictures."


@pytest.mark.parametrize(
    ("body", "kind", "is_one"),
    [
        (b"%PDF-1.7", "text/plain", True),
        (b"\n%PDF-1.7", "application/octet-stream", True),
        (b"<html>Sorry</html>", "application/pdf", True),
        (b"<p>A file begins with %PDF-1.7</p>", "text/html", False),
    ],
)
def test_a_pdf_is_known_by_its_bytes_or_its_type(body: bytes, kind: str, is_one: bool) -> None:
    assert is_pdf(fetched(body, kind)) is is_one


@pytest.mark.parametrize(
    ("text", "means"),
    [("7", PageRange(7, 7)), (" 40 - 80 ", PageRange(40, 80)), ("40-", PageRange(40, ALL.last))],
)
def test_a_range_is_a_page_or_two_numbers(text: str, means: PageRange) -> None:
    assert PageRange.parse(text) == means


@pytest.mark.parametrize("text", ["", "0", "x", "80-40", "1,2", "-5", "1-2-3"])
def test_any_other_range_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Refused, match='such as "7" or "40-80"'):
        PageRange.parse(text)
