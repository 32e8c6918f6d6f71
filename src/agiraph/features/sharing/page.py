"""Page: a report as one HTML page without scripts, which loads nothing and leads nowhere by itself.

Agents have written the report, and pages of strangers what it quotes. So HTML in it is shown as
text, images are named, and only web and mail addresses are links.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from operator import attrgetter
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pydantic import BaseModel, TypeAdapter, ValidationError

from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.text.visible import visible
from agiraph.core.services.board import texts
from agiraph.features.sharing.rows import SharedReport
from agiraph.late_patterns import late
from agiraph.redaction import redact

_SOURCES, _EVIDENCE = "sources.json", "evidence.jsonl"
QUOTATION_FILES: frozenset[str] = frozenset({_SOURCES, _EVIDENCE})
"""The published files of research that say what each mark `[1]` of its report stands for."""
_SHOWN = QUOTATION_FILES | {"report.md"}
"""The published files of research, whose content the page has."""
_MARK = late(r"\[(\d{1,3})\]")
_REL = "noreferrer noopener nofollow"
_LINK = late(r"(https?://|mailto:)", re.IGNORECASE)
_TURNS = {code: visible(chr(code)) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
"""Characters that turn the order of the text around them, so that it reads as something else."""

STYLE: Final = """
:root{color-scheme:light dark;--ink:#1d1c1a;--soft:#5f5c57;--line:#dedad3;--ground:#fcfbf9;
--sunk:#f3f1ed}
@media (prefers-color-scheme:dark){:root{--ink:#ededee;--soft:#a9a9b0;--line:#3a3a40;
--ground:#161618;--sunk:#242428}}
@media print{:root{--ink:#000;--soft:#444;--line:#bbb;--ground:#fff;--sunk:#f3f3f3}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.65 Inter,system-ui,sans-serif;
overflow-wrap:break-word}
main{max-width:44rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
.soft{color:var(--soft);font-size:.875rem}
h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0}
h2{font-size:1.2rem;margin:2rem 0 .5rem}
h3,h4,h5,h6{font-size:1rem;margin:1.5rem 0 .5rem}
a{color:inherit;text-underline-offset:2px}
sup a{padding:0 .2em;font-size:.8em;text-decoration:none;background:var(--sunk);border-radius:3px}
pre,code{font-family:ui-monospace,monospace;font-size:.875em;background:var(--sunk);border-radius:4px}
code{padding:.1em .3em}
pre{padding:.75rem 1rem;overflow-x:auto}
pre code{padding:0}
blockquote{margin:.5rem 0;padding-left:.9rem;border-left:3px solid var(--line);color:var(--soft)}
.table{overflow-x:auto}
table{border-collapse:collapse;font-size:.9375rem}
th,td{border:1px solid var(--line);padding:.35rem .6rem;text-align:start;vertical-align:top}
.right{text-align:right}
.center{text-align:center}
hr{border:0;border-top:1px solid var(--line);margin:2rem 0}
header,footer{border-color:var(--line);border-style:solid;border-width:0}
header{border-bottom-width:1px;margin-bottom:1.5rem;padding-bottom:1rem}
footer{border-top-width:1px;margin-top:2.5rem;padding-top:1rem}
li:target{background:var(--sunk)}
"""
STYLE_HASH: Final[str] = f"sha256-{b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}"


class _Source(BaseModel):
    number: int
    title: str
    site: str
    url: str
    published: str = ""
    read: str = ""
    evidence: list[str]


class _Sources(BaseModel):
    sources: list[_Source]


class _Quotation(BaseModel):
    id: str
    quote: str
    checked: str = ""


def message(said: str) -> str:
    """Return a page that says one thing, in words of our own; names stand in backticks."""
    words = re.sub("`(.*?)`", r"<code>\1</code>", escape(said))
    return _whole("Shared report", f"<h1>Shared report</h1><p>{words}</p>")


def of_report(found: SharedReport, files: Mapping[str, bytes]) -> str:
    """Return the page of a report. `files` are its `QUOTATION_FILES`, as they are now."""
    node, share = found.node, found.share
    title, known = texts.subject_of(node), _quotations(node.manifest, files)
    byline = [_begun(found.author), _day(node.ended_at or share.created_at)]
    parts = [
        "<header><p class=soft>Shared report, read-only</p>",
        f"<h1 dir=auto>{_text(title)}</h1>",
        f"<p class=soft dir=auto>{_text(' · '.join(filter(None, byline)))}",
        "</header><article dir=auto>",
        _rendered(node.result or "", known, breaks=not known),
        "</article>",
        _section(
            f"{counted(len(node.doubts), 'point')} not confirmed",
            [_item(_begun(f"{doubt.title} {doubt.words}".strip())) for doubt in node.doubts],
        ),
        _section("What the sources say", [_source(*each) for each in known], tag="ol"),
        _section(
            "Files that are not included",
            [_item(name) for name in sorted(node.manifest.keys() - (_SHOWN if known else set()))],
        ),
        "<footer class=soft>Agents wrote this report, and may be wrong. The link shows this report",
        f" alone, until {_day(share.expires_at)}.</footer>",
    ]
    return _whole(title, "".join(parts))


def _rendered(text: str, known: Sequence[tuple[_Source, Any]], *, breaks: bool) -> str:
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": breaks}, renderer_cls=_Safe)
    markdown.enable(["table", "strikethrough"])
    numbers = frozenset(source.number for source, _ in known)
    return markdown.render(redact(text).translate(_TURNS), {"numbers": numbers})


class _Safe(RendererHTML):
    """Writes no image, no link but to web and mail addresses, and each mark as a link to its
    quotations."""

    @staticmethod
    def renderAttrs(token: Token) -> str:
        """Write the attributes of a tag, with a class for the style of a column of a table: the
        page's policy forbids styles."""
        if style := token.attrs.pop("style", ""):
            token.attrs["class"] = str(style).removeprefix("text-align:")
        return RendererHTML.renderAttrs(token)

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        said = tokens[idx].content or str(tokens[idx].attrGet("src") or "")
        return f"<em>[image, not included: {escape(said)}]</em>"

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        to = str(tokens[idx].attrGet("href") or "")
        env["link"] = "a" if _LINK.match(to) else "span"
        return f'<a href="{escape(to)}" rel="{_REL}">' if env["link"] == "a" else "<span>"

    def link_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"</{env.pop('link')}>"

    def text(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        def mark(match: re.Match[str]) -> str:
            number = int(match[1])
            if number not in env["numbers"]:
                return match[0]
            label = f'aria-label="Source {number}"'
            return f'<sup><a href="#source-{number}" {label}>{number}</a></sup>'

        said = escape(tokens[idx].content)
        return said if "link" in env else _MARK.sub(mark, said)

    def table_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return "<div class=table tabindex=0 role=group aria-label=Table><table>"

    def table_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return "</table></div>"


def _quotations(
    manifest: Mapping[str, str], files: Mapping[str, bytes]
) -> list[tuple[_Source, list[_Quotation]]]:
    """Return the sources of a report with their quotations, by number; none if a file lacks, or is
    not as it was published."""
    if any(
        hashlib.sha256(files.get(name, b"")).hexdigest() != manifest.get(name)
        for name in QUOTATION_FILES
    ):
        return []
    try:
        sources = _Sources.model_validate_json(files[_SOURCES]).sources
        lines = b",".join(filter(None, files[_EVIDENCE].split(b"\n")))
        quotations = TypeAdapter(list[_Quotation]).validate_json(b"[%s]" % lines)
    except ValidationError:
        return []
    by_id = {each.id: each for each in quotations}
    ordered = sorted(sources, key=attrgetter("number"))
    return [(one, [by_id[id] for id in one.evidence if id in by_id]) for one in ordered]


def _source(source: _Source, quotations: Sequence[_Quotation]) -> str:
    title = _text(source.title or source.site)
    if _LINK.match(source.url):
        title = f'<a href="{escape(source.url)}" rel="{_REL}">{title}</a>'
    published = source.published and f"published {source.published}"
    facts = [source.site, published, source.read and f"read {source.read}"]
    quoted = "".join(
        f"<blockquote dir=auto>{_text(each.quote)}</blockquote>"
        + ("<p class=soft>This quotation could not be checked.</p>" * (each.checked == "unchecked"))
        for each in quotations
    )
    about = _text(" · ".join(filter(None, facts)))
    # The value too: numbers may lack, and a list counts by itself.
    place = f"value={source.number} id=source-{source.number}"
    return f"<li {place}>{title} <span class=soft>{about}</span>{quoted}</li>"


def _section(heading: str, items: Sequence[str], *, tag: str = "ul") -> str:
    """Return a list below a heading; nothing if it is empty."""
    return f"<section><h2>{heading}</h2><{tag}>{''.join(items)}</{tag}></section>" * bool(items)


def _item(said: str) -> str:
    return f"<li dir=auto>{_text(said)}</li>"


def _text(said: str) -> str:
    return escape(redact(said).translate(_TURNS))


def _begun(said: str) -> str:
    """Return a name or a sentence as it begins a line."""
    return said[:1].upper() + said[1:]


def _day(moment: datetime) -> str:
    return f"{moment:%d %B %Y, %H:%M} UTC"


def _whole(title: str, body: str) -> str:
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width'><meta name=robots content=noindex>"
        f"<title>{_text(title)}</title><style>{STYLE}</style></head><body><main>{body}</main></body>"
        "</html>"
    )
