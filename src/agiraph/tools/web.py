"""Web tools: search the web and read pages. Their text is framed as data for the model."""

import asyncio
import hashlib
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from agiraph.domain.chat import ToolCall
from agiraph.domain.errors import Refused
from agiraph.domain.fence import enclose_foreign
from agiraph.domain.labels import SEARCH, of_page
from agiraph.domain.outcomes import Answer, Done
from agiraph.domain.sinks import Sink, WayOut
from agiraph.run_context import RunContext
from agiraph.store import passages
from agiraph.store.tx import Tx
from agiraph.tools import addresses
from agiraph.tools.base import tool
from agiraph.tools.files import PAGES
from agiraph.web import page as pages
from agiraph.web.page import WebPage
from agiraph.web.search import NO_ENGINE, Hit

MAX_HITS = 8
SNIPPET_CHARACTERS = 500
PAGE_CHARACTERS = 12_000
"""Characters of a page that the answer holds; the rest is in a file."""
INDEXED_CHARACTERS = 120_000
"""Characters of a page that the full-text search finds."""


@tool(
    effect="repeatable",
    gives_addresses=True,
)
async def web_search(
    ctx: RunContext, query: Annotated[str, Field(min_length=1, max_length=400)]
) -> Answer:
    """Search the web: titles, addresses and a few words of each page. Use few plain words, then
    read the best pages with web_fetch.
    """
    engine = ctx.web.engine
    if engine is None:
        raise Refused(NO_ENGINE)
    found = await engine.search(query, limit=MAX_HITS)
    if not found:
        return Done("Nothing was found. Try fewer or other words.")
    listed = "\n\n".join(_line(number, hit) for number, hit in enumerate(found, start=1))
    said = enclose_foreign(listed, thread=ctx.lease.thread_id, source=str(SEARCH))
    return Done(said, label=SEARCH, is_fenced=True)


def _line(number: int, hit: Hit) -> str:
    title, snippet = hit.title[:200], hit.snippet[:SNIPPET_CHARACTERS]
    return f"{number}. {title}\n   {hit.url}\n   {snippet}".rstrip()


async def _way_out(ctx: RunContext, call: ToolCall) -> WayOut | None:
    address = addresses.of_call(call)
    if address in addresses.known_in(ctx):
        return None
    return WayOut(
        sink=Sink.MADE_UP_ADDRESS,
        target=urlsplit(address).hostname or "",
        why="the address stands in nothing that it was given or found",
    )


@tool(
    effect="repeatable",
    opens_address=True,
    gives_addresses=True,
    way_out=_way_out,
)
async def web_fetch(ctx: RunContext, url: Annotated[str, Field(min_length=1)]) -> Answer:
    """Read a web page as Markdown. Use a whole address that a search, a page or a person gave. Of a
    long page you get the beginning, and the file with the rest.
    """
    page = await pages.read(await ctx.web.fetcher.fetch(url))
    # Saved whole: the answer holds only the beginning, and a page may have changed when it is read
    # again.
    path = await asyncio.to_thread(_save, ctx, page)
    await ctx.store.write(_index, ctx, page)
    about = [f"Title: {page.title}" if page.title else "", f"Address: {page.url}"]
    about += [f"Read: {ctx.clock.now():%Y-%m-%d}"]
    about += [f"Changed: {page.modified}"] if page.modified else []
    body = "\n".join(line for line in about if line) + f"\n\n{page.text[:PAGE_CHARACTERS]}"
    label = of_page(page.url)
    said = enclose_foreign(body, thread=ctx.lease.thread_id, source=str(label))
    return Done(said + _file_hint(page, path), label=label, is_fenced=True)


def _file_hint(page: WebPage, path: str) -> str:
    """Return where the rest of a long page is."""
    left = len(page.text) - PAGE_CHARACTERS
    more = f"\n{left:,} characters more are in {path}: read_file shows them." if left > 0 else ""
    cut = "\nThe page is longer than what was taken of it." if page.is_cut else ""
    return more + cut


def _save(ctx: RunContext, page: WebPage) -> str:
    """Save the whole page on the agent's desk, and return its path."""
    digest = hashlib.sha256(page.url.encode()).hexdigest()[:16]
    path = f"agents/{ctx.agent.name}/{PAGES}/{digest}.md"
    folder, name = ctx.scope.resolve(path, "w")
    with folder:
        text = f"# {page.title or page.url}\n\n{page.url}\n\n{page.text}"
        folder.write(name, text.encode(errors="replace"))
    return path


def _index(tx: Tx, ctx: RunContext, page: WebPage) -> None:
    passages.put(
        tx,
        team_id=ctx.team.id,
        kind="page",
        ref=page.url,
        text=page.text[:INDEXED_CHARACTERS],
        title=page.title,
        label=of_page(page.url),
    )
