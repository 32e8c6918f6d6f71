"""PDF files: small documents that tests make by hand, sound and unsound."""

import io
import zlib
from collections.abc import Sequence

_HEAVY = b"BT /F1 11 Tf 14 TL 50 780 Td " + b"(x) Tj " * 300_000 + b"ET"


def pdf(pages: Sequence[str], *, title: str = "") -> bytes:
    """Return a document with this text on its pages, one line of a page for each line."""
    return _document([_content(text) for text in pages], title=title)


def scanned(pages: int) -> bytes:
    """Return a document whose pages are pictures, as a scanner makes them."""
    picture = b"q 500 0 0 700 50 50 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q"
    return _document([picture] * pages)


def looping() -> bytes:
    """Return a document whose tree of pages contains itself."""
    return pdf(["A page"]).replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]")


def heavy(pages: int) -> bytes:
    """Return a document whose first page is short; each other one has 300,000 steps to read."""
    return _document([_content("The first page is short."), *[_HEAVY] * (pages - 1)])


def misplaced(sound: bytes) -> bytes:
    """Return the document with a table of objects that is not where it says."""
    return sound.replace(b"startxref\n", b"startxref\n9")


def encrypted(sound: bytes, password: str) -> bytes:
    """Return the document locked with a password."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(sound)))
    writer.encrypt(password, algorithm="RC4-128")
    locked = io.BytesIO()
    writer.write(locked)
    return locked.getvalue()


def _content(text: str) -> bytes:
    shown = [_escaped(line) for line in text.splitlines()]
    drawn = b" T* ".join(b"(" + line + b") Tj" for line in shown)
    return b"BT /F1 11 Tf 14 TL 50 780 Td " + drawn + b" ET"


def _escaped(line: str) -> bytes:
    raw = line.encode("cp1252", errors="replace")
    return raw.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def _document(contents: Sequence[bytes], title: str = "") -> bytes:
    """Return a document with one page for each content stream. Object 1 is the catalogue, 2 the
    tree of pages, 3 the font; then come the pages and their contents in turn."""
    first = 4
    kids = b" ".join(b"%d 0 R" % (first + 2 * index) for index in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(contents), kids),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for index, content in enumerate(contents):
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R"
            b" >> >> /Contents %d 0 R >>" % (first + 2 * index + 1),
            _stream(content),
        ]
    objects.append(b"<< /Title (" + _escaped(title) + b") >>")
    return _written(objects)


def _stream(content: bytes) -> bytes:
    if len(content) < 10_000:
        return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)
    packed = zlib.compress(content)
    head = b"<< /Length %d /Filter /FlateDecode >>" % len(packed)
    return head + b"\nstream\n" + packed + b"\nendstream"


def _written(objects: Sequence[bytes]) -> bytes:
    """Return the file: the objects, the table of their places, and the trailer. The last object
    is the document's information."""
    made, places = b"%PDF-1.4\n", list[int]()
    for number, each in enumerate(objects, start=1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return made + (
        b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
        + b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\n" % (size, size - 1)
        + b"startxref\n%d\n%%%%EOF\n" % len(made)
    )
