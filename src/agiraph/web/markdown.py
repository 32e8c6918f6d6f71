"""Markdown: converts HTML and feeds to Markdown. It runs as a script in a process of its own.

    python -I markdown.py URL html < page.html
    python -I markdown.py URL feed < feed.xml

It prints a line of JSON (`title`, `published`), then the text. It imports nothing of agiraph, and
it leaves out hidden elements, in which a page may address instructions to a model.

A page that is made by script has its words elsewhere: in JSON for search engines (JSON-LD), in the
data of its framework (`__NEXT_DATA__`), in its description, or in a feed. If hardly any text comes
of a long page, these are taken.
"""

import json
import re
import resource
import sys
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from typing import Any, cast
from urllib.parse import urljoin
from xml.etree import ElementTree

TIMEOUT_S = 20
MAX_MEMORY_BYTES = 2 * 2**30
LITTLE_TEXT, LONG_SOURCE = 200, 20_000
"""A page with less text than this, of more source than that, is made by script."""
MOST_DATA = 200_000
"""Characters of a script page's data that are kept."""
_FEED_TYPES = ("application/rss+xml", "application/atom+xml")
_DEEPEST = 40
_SHORTEST_TEXT = 2
_ENTRIES = 200


def main() -> None:
    # A hostile page may make the converter use unlimited memory or time; the kernel stops it.
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (TIMEOUT_S, TIMEOUT_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    url, kind = sys.argv[1:3]
    source = sys.stdin.buffer.read().decode(errors="replace")
    about, text = _feed(source, url) if kind == "feed" else _html(source, url)
    written = f"{json.dumps(about)}\n{text}"
    sys.stdout.buffer.write(written.encode(errors="replace"))


def _html(source: str, url: str) -> tuple[dict[str, str], str]:
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    options = ConversionOptions(
        base_url=url,
        extract_metadata=False,
        preprocessing=PreprocessingOptions(preset="standard"),
        max_depth=256,
    )
    text = convert(source, options).content or ""
    if len(text.strip()) < LITTLE_TEXT and len(source) > LONG_SOURCE:
        text = f"{text.strip()}\n\n{_script_data(source, url)}".strip()
    return {"title": _title(source), "published": published(source)}, text


def _title(source: str) -> str:
    low = source[:65536].lower()
    start = low.find(">", low.find("<title")) + 1 if "<title" in low else 0
    end = low.find("</title", start)
    return " ".join(unescape(source[start:end]).split()) if 0 < start < end else ""


_DATES = (
    re.compile(r'(?:article:published_time|datePublished|citation_publication_date)"\s+content="'
               r'([^"]{4,40})"', re.IGNORECASE),
    re.compile(r'content="([^"]{4,40})"\s+(?:property|name|itemprop)="(?:article:published_time|'
               r'datePublished|citation_publication_date)"', re.IGNORECASE),
    re.compile(r'"datePublished"\s*:\s*"([^"]{4,40})"'),
)  # fmt: skip


def published(source: str) -> str:
    """Return the day that a page says it was published on; "" if it says none."""
    head = source[:400_000]
    found = (pattern.search(head) for pattern in _DATES)
    said = next((match[1] for match in found if match), "")
    day = re.match(r"\d{4}(?:[-/]\d{1,2}(?:[-/]\d{1,2})?)?", said.strip())
    return day[0].replace("/", "-") if day else ""


class _Scripts(HTMLParser):
    """Collects the data in a page's scripts, its descriptions, and the links to its feeds."""

    def __init__(self) -> None:
        super().__init__()
        self.data: list[str] = []
        self.descriptions: list[str] = []
        self.feeds: list[tuple[str, str]] = []
        self._is_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        kind = given.get("type", "").lower()
        if tag == "script":
            is_json = kind in ("application/ld+json", "application/json")
            self._is_data = is_json or given.get("id") in ("__NEXT_DATA__", "__NUXT_DATA__")
        elif tag == "meta":
            name = (given.get("name") or given.get("property") or "").lower()
            if name in ("description", "og:description") and given.get("content"):
                self.descriptions.append(given["content"])
        elif tag == "link" and kind in _FEED_TYPES and "alternate" in given.get("rel", "").lower():
            self.feeds.append((given.get("title", ""), given.get("href", "")))

    def handle_data(self, data: str) -> None:
        if self._is_data:
            self.data.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._is_data = False if tag == "script" else self._is_data


def _script_data(source: str, url: str) -> str:
    """Return the text in the embedded data (JSON-LD, `__NEXT_DATA__`, descriptions) of a page whose
    visible content is rendered by JavaScript, one line for each value."""
    found = _Scripts()
    found.feed(source)
    lines = list(dict.fromkeys(" ".join(text.split()) for text in found.descriptions))
    for text in found.data:
        try:
            lines += _lines(json.loads(text), "", 0)
        except (ValueError, RecursionError):
            continue  # it is no JSON, or nested too deeply to mean anything
    shown = list(dict.fromkeys(lines))
    feeds = [f"- Feed {title}: {urljoin(url, address)}" for title, address in found.feeds[:20]]
    return "\n".join([*shown, *feeds])[:MOST_DATA]


def _lines(data: Any, name: str, depth: int) -> Iterator[str]:
    """Yield the texts and numbers in a value, each with the name that it has there."""
    if depth > _DEEPEST:
        return
    if isinstance(data, dict):
        for key, each in cast(dict[str, Any], data).items():
            yield from () if key.startswith("@") else _lines(each, key, depth + 1)
    elif isinstance(data, list):
        for each in cast(list[Any], data):
            yield from _lines(each, name, depth + 1)
    elif isinstance(data, str):
        text = _plain(data)
        if len(text) >= _SHORTEST_TEXT:
            yield f"- {name}: {text}" if name else f"- {text}"
    elif isinstance(data, (int, float)) and not isinstance(data, bool):
        yield f"- {name}: {data}"


def _plain(markup: str) -> str:
    """Return a text without its tags, on one line."""
    return " ".join(unescape(re.sub(r"<[^<>]{0,2000}>", " ", markup)).split())


def _feed(source: str, url: str) -> tuple[dict[str, str], str]:
    """Return a feed as a list of its entries. Entities that it declares are not read."""
    if "<!ENTITY" in source:
        raise SystemExit(1)
    root = ElementTree.fromstring(source.strip().encode())
    entries = [each for each in root.iter() if _name(each) in ("item", "entry")][:_ENTRIES]
    channel = next((each for each in root.iter() if _name(each) in ("channel", "feed")), root)
    title = _child(channel, "title")
    listed = [_entry(each, url) for each in entries]
    dates = [_child(each, "pubDate", "published", "updated", "date") for each in entries]
    published = next((date for date in dates if date), "")
    text = "\n\n".join([f"# {title or url}", _child(channel, "description", "subtitle"), *listed])
    return {"title": title, "published": published[:40]}, text


def _entry(entry: ElementTree.Element, url: str) -> str:
    link = _child(entry, "link") or next(
        (each.get("href", "") for each in entry if _name(each) == "link"), ""
    )
    date = _child(entry, "pubDate", "published", "updated", "date")
    said = _child(entry, "description", "summary", "content", "encoded")
    head = f"## {_child(entry, 'title') or 'Without a title'}"
    about = [date, urljoin(url, link) if link else ""]
    return "\n\n".join(part for part in (head, "\n".join(filter(None, about)), said) if part)


def _name(element: ElementTree.Element) -> str:
    # A comment's tag is a function.
    return str(element.tag).rpartition("}")[2]


def _child(element: ElementTree.Element, *names: str) -> str:
    """Return the text of the first child with one of these names, without tags."""
    for name in names:
        for child in element:
            if _name(child) == name and (text := _plain("".join(child.itertext()))):
                return text
    return ""


if __name__ == "__main__":
    main()
