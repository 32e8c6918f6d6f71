"""Saved pages: files with the whole text of each page that a thread has read."""

import hashlib

from agiraph.core.domain.chat import ToolCall
from agiraph.core.run_context import RunContext
from agiraph.core.tools.files.file_labels import PAGES
from agiraph.web import links
from agiraph.web.page import WebPage
from agiraph.web.pdf_page import ALL, PageRange

MAX_BYTES = 32 * 2**20
"""The most bytes that are read of a saved page."""


def path_of(ctx: RunContext, url: str, of_pdf: PageRange | None = None) -> str:
    """Return the path of the file for a page, or for these pages of a PDF: in the agent's own
    folder, or in scratch/ for a public reader, which has no such folder."""
    part = "" if of_pdf is None else f"#{of_pdf.first}-{of_pdf.last}"
    digest = hashlib.sha256(f"{links.requested(url)}{part}".encode()).hexdigest()[:16]
    desk = f"agents/{ctx.agent.name}" if ctx.node.kind.sees_team else "scratch"
    return f"{desk}/{PAGES}/{digest}.md"


def save(ctx: RunContext, page: WebPage, path: str) -> None:
    """Save the whole page, with its title and address before it."""
    folder, name = ctx.scope.resolve(path, "w")
    with folder:
        text = f"# {page.title or page.url}\n\n{page.url}\n\n{page.text}"
        folder.write(name, text.encode(errors="replace"))


def readings(ctx: RunContext, tool: str, url: str) -> list[WebPage]:
    """Return what calls of this tool in this thread have read at an address, each text once."""
    found: dict[str, WebPage] = {}
    for wanted in _ranges(ctx, tool, links.requested(url)):
        for path in (path_of(ctx, url), path_of(ctx, url, wanted)):
            if path not in found and (page := _load(ctx, path)) is not None:
                found[path] = page
    return list(found.values())


def whole(ctx: RunContext, tool: str, url: str) -> WebPage | None:
    """Return the page at an address as this thread has read it in one call; None if it has not.

    Returns None for a PDF: `web_fetch` reads its pages from the document again.
    """
    if ALL not in _ranges(ctx, tool, links.requested(url)):
        return None
    return _load(ctx, path_of(ctx, url))


def _ranges(ctx: RunContext, tool: str, wanted: str | None) -> list[PageRange]:
    """Return which pages the answered calls of this thread have read at an address."""
    done = {turn.ref for turn in ctx.transcript.turns if turn.role == "tool" and not turn.failed}
    calls = [call for turn in ctx.transcript.turns for call in turn.calls if call.id in done]
    return [
        _range(call)
        for call in calls
        if wanted is not None
        and call.name == tool
        and not call.arguments.get("save_as")
        and links.requested(str(call.arguments.get("url"))) == wanted
    ]


def _range(call: ToolCall) -> PageRange:
    pages = call.arguments.get("pages")
    return PageRange.parse(str(pages)) if pages else ALL


def _load(ctx: RunContext, path: str) -> WebPage | None:
    folder, name = ctx.scope.resolve(path, "r")
    with folder:
        if not folder.exists(name):
            return None  # the file was deleted
        raw = folder.read(name, limit=MAX_BYTES).decode(errors="replace")
    title, _, rest = raw.partition("\n\n")
    address, _, text = rest.partition("\n\n")
    return WebPage(url=address, title=title.removeprefix("# "), text=text)
