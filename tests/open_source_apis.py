"""Open source APIs: Wikipedia, Crossref and arXiv as they answer, over the pages of a test's web.

The hosts `wikipedia.example`, `doi.example` and `arxiv.example` hold their pages.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

from aiohttp import web

from agiraph.web.open_sources import SOURCES, OpenEngine


@dataclass(frozen=True, slots=True)
class Found:
    """A page that fits a query."""

    path: str
    title: str
    text: str


Search = Callable[[str, str], list[Found]]
"""Returns the pages of a host that share words with a query, best first."""
HOSTS = {
    "Wikipedia": ("/w/api.php", "http://wikipedia.example/wiki", "wikipedia.example"),
    "Crossref": ("/works", "http://doi.example", "doi.example"),
    "arXiv": ("/api/query", "http://arxiv.example", "arxiv.example"),
}
"""The path of each API, where the pages of its hits are, and their host."""


def engine(address: str, contact: str = "") -> OpenEngine:
    """Return the product's engine, which asks the sources of a test, without pauses."""
    sources = tuple(
        replace(source, url=address + HOSTS[source.name][0], site=HOSTS[source.name][1], pause_s=0)
        for source in SOURCES
    )
    return OpenEngine(contact=contact, sources=sources)


def answer(request: web.Request, search: Search) -> web.Response | None:
    """Answer a request to one of the APIs; None if it is to none of them."""
    given = request.query
    if request.path == "/w/api.php":
        wanted = {"action": "query", "list": "search", "format": "json"}
        assert wanted.items() <= dict(given).items()
        return _wikipedia(search("wikipedia.example", given["srsearch"])[: int(given["srlimit"])])
    if request.path == "/works":
        found = search("doi.example", given["query.bibliographic"])
        return _crossref(found[: int(given["rows"])])
    if request.path == "/api/query":
        words = given["search_query"].replace("all:", "").replace(" AND ", " ")
        return _arxiv(search("arxiv.example", words)[: int(given["max_results"])])
    return None


def _wikipedia(found: Iterable[Found]) -> web.Response:
    listed = [
        {
            "ns": 0,
            "title": each.title,
            "pageid": number,
            "snippet": f'<span class="searchmatch">{escape(each.text)}</span>',
        }
        for number, each in enumerate(found, start=1)
    ]
    return web.json_response({"batchcomplete": True, "query": {"search": listed}})


def _crossref(found: Iterable[Found]) -> web.Response:
    items = [
        {
            "DOI": each.path.removeprefix("/"),
            "title": [each.title],
            "abstract": f"<jats:p>{escape(each.text)}</jats:p>",
        }
        for each in found
    ]
    return web.json_response({"status": "ok", "message": {"items": items}})


def _arxiv(found: Iterable[Found]) -> web.Response:
    entries = "".join(
        f"<entry><id>http://arxiv.org{each.path}</id><title>{escape(each.title)}</title>"
        f"<summary>\n  {escape(each.text)}\n</summary></entry>"
        for each in found
    )
    feed = f'<feed xmlns="http://www.w3.org/2005/Atom"><title>ArXiv Query</title>{entries}</feed>'
    return web.Response(text=feed, content_type="application/atom+xml")
