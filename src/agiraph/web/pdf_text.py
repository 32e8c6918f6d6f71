"""PDF text: reads the text of a PDF, page by page. It runs as a script in a process of its own.

    python -I pdf_text.py FIRST LAST SECONDS READER < document.pdf

READER is `pypdf` or `pdfium`.

It prints JSON, one object a line: first the document (`pages`, `title`, `published`), then each
page from FIRST to LAST (`page`, `text`), last `end`: "whole", or why it stopped ("time", "memory").
A document that cannot be read gives `error`: "locked" or "broken". It imports nothing of agiraph.
"""

import json
import re
import resource
import signal
import sys
from io import BytesIO
from types import FrameType
from typing import Any

MAX_MEMORY_BYTES = 2 * 2**30
TIMEOUT_S = 20
GRACE_S = 2
"""How long the process may take to say that its time is over."""
LAST_PAGE = 100_000
PYPDF, PDFIUM = "pypdf", "pdfium"


class _OutOfTime(BaseException):
    """The time for reading this document is over. Not an `Exception`: pypdf catches every one of
    those, and would go on reading."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise _OutOfTime


def main() -> None:
    first, last, seconds = (int(argument) for argument in sys.argv[1:4])
    # A hostile document may make the reader use unlimited memory or time; the kernel stops it.
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + GRACE_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXCPU, _stop)
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(seconds)
    try:
        read = _read_by_pdfium if sys.argv[4] == PDFIUM else _read
        read(sys.stdin.buffer.read(), first, last)
        _print(end="whole")
    except _OutOfTime:
        _print(end="time")
    except MemoryError:
        _print(end="memory")
    # A page that hangs in C code gets no signal; the parent then kills the process, and what was
    # printed is kept.


def _read(body: bytes, first: int, last: int) -> None:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, WrongPasswordError

    try:
        reader = PdfReader(BytesIO(body), strict=False)
        # Many documents are encrypted with an empty password, against changes only.
        if reader.is_encrypted and not reader.decrypt(""):
            return _print(error="locked")
        count = len(reader.pages)
    except (DependencyError, WrongPasswordError):
        return _print(error="locked")
    except MemoryError:
        raise
    # A broken document makes pypdf fail in any way, also with too deep a recursion.
    except Exception:
        return _print(error="broken")
    _print(pages=count, **_about(reader))
    for number in range(first, min(last, count) + 1):
        _print(page=number, text=_text(reader, number))
    return None


def _read_by_pdfium(body: bytes, first: int, last: int) -> None:
    """Read as `_read` does, ten times as fast. PDFium is written in C++, so it reads untrusted
    documents only in a confined process."""
    import pypdfium2  # pyright: ignore[reportMissingTypeStubs]

    try:
        document = pypdfium2.PdfDocument(body)
        count = len(document)
    except pypdfium2.PdfiumError as error:
        return _print(error="locked" if "assword" in str(error) else "broken")
    about = document.get_metadata_dict()
    made = re.match(r"D:(\d{4})(\d\d)(\d\d)", about.get("CreationDate", ""))
    day = "-".join(made.groups()) if made else ""
    _print(pages=count, title=about.get("Title", ""), published=day)
    for number in range(first, min(last, count) + 1):
        try:
            page = document[number - 1]
            text = page.get_textpage().get_text_range().replace("\r\n", "\n")
        except pypdfium2.PdfiumError:  # one broken page must not cost the others
            text = ""
        _print(page=number, text=text)
    return None


def _about(reader: Any) -> dict[str, str]:
    try:
        about = reader.metadata
        made = about and about.creation_date
        day = f"{made:%Y-%m-%d}" if made else ""
        return {"title": str((about and about.title) or ""), "published": day}
    except MemoryError:
        raise
    except Exception:  # nothing depends on it
        return {"title": "", "published": ""}


def _text(reader: Any, number: int) -> str:
    try:
        return reader.pages[number - 1].extract_text()
    except MemoryError:
        raise
    except Exception:  # one broken page must not cost the others
        return ""


def _print(**line: Any) -> None:
    clean = {
        name: value.encode(errors="replace").decode() if isinstance(value, str) else value
        for name, value in line.items()
    }
    print(json.dumps(clean), flush=True)


if __name__ == "__main__":
    main()
