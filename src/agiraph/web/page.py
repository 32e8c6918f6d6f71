"""Web page: a fetched body as Markdown text.

A subprocess converts HTML: hostile HTML can crash or exhaust only that subprocess, and the runtime
goes on meanwhile.
"""

import asyncio
import codecs
import contextlib
import sys
from dataclasses import dataclass

from agiraph.domain.errors import Refused
from agiraph.web import markdown
from agiraph.web.fetch import Fetched

MAX_SOURCE_CHARS = 4 * 2**20
"""How much of a page's source is converted: its beginning says what it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    url: str
    title: str
    text: str
    modified: str = ""
    is_cut: bool = False


async def read(fetched: Fetched) -> WebPage:
    """Return the page as text, or raise `Refused` if it contains none."""
    kind = fetched.media_type
    source = _decoded(fetched)
    is_cut = fetched.is_cut or len(source) > MAX_SOURCE_CHARS
    source = source[:MAX_SOURCE_CHARS]
    title, text = "", source
    if kind in ("text/html", "application/xhtml+xml") or _looks_like_html(fetched, source):
        title, text = await _converted(source, fetched.url)
    if not text.strip():
        raise Refused(
            f"There is no text on {fetched.url}; it may need a browser. Try another source."
        )
    return WebPage(
        url=fetched.url,
        title=" ".join(title.split())[:300],
        text=text.strip(),
        modified=fetched.modified[:80],
        is_cut=is_cut,
    )


def _decoded(fetched: Fetched) -> str:
    body = fetched.body
    if b"\0" in body[:4096] and not body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Refused(f"{fetched.url} is binary data, not text. Try another source.")
    for charset in (fetched.charset, _declared(body), "utf-8"):
        with contextlib.suppress(LookupError, UnicodeError, ValueError):
            # The page chooses the name, and Python has codecs, such as zlib, that are no character
            # sets.
            if charset and codecs.lookup(charset)._is_text_encoding:  # pyright: ignore
                return body.decode(charset, errors="strict" if charset == "utf-8" else "replace")
    return body.decode("latin-1")


def _declared(body: bytes) -> str | None:
    """Return the character set that an HTML page declares in its head; None if there is none."""
    head = body[:2048].lower()
    _, found, rest = head.partition(b"charset=")
    if not found:
        return None
    name = rest.lstrip(b"\"'").split(b'"')[0].split(b"'")[0].split(b">")[0].split(b";")[0]
    return name.strip(b" /").decode("ascii", errors="replace")[:40] or None


def _looks_like_html(fetched: Fetched, source: str) -> bool:
    start = source[:512].lstrip().lower()
    is_unknown = fetched.media_type in ("", "application/octet-stream", "text/plain")
    return is_unknown and start.startswith(("<!doctype html", "<html"))


async def _converted(source: str, url: str) -> tuple[str, str]:
    # `-I` and an empty environment: the process that reads hostile HTML gets no keys, and imports
    # nothing from the current folder.
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        markdown.__file__,
        url,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    try:
        async with asyncio.timeout(markdown.TIMEOUT_S):
            output, _ = await process.communicate(source.encode(errors="replace"))
    except TimeoutError:
        raise Refused(f"{url} takes too long to convert to text. Try another source.") from None
    finally:
        # Cancellation passes here too: a converter must not outlive the call that started it.
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise Refused(f"{url} cannot be converted to text. Try another source.")
    title, _, text = output.decode(errors="replace").partition("\n")
    return title, text
