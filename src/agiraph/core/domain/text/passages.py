"""Passages: sections of texts for the search index, and the words they are indexed by."""

import re
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from typing import Literal, NamedTuple

from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.value import value
from agiraph.late_patterns import late

PassageKind = Literal["note", "page", "insight", "report"]

EVERYONE = "everyone"
"""The owner of passages that the whole team may find; any other owner is one agent."""

MAX_CHARS = 6000
"""Characters of a passage; a longer section is split between paragraphs."""

MOST_SECTIONS = 200
"""Headings of a text that begin a section. A page of nothing but headings would else be tens of
thousands of rows."""

Owner = str


@value
class Passage:
    """One section of a note, a page or a report, or one insight."""

    id: int
    team_id: TeamId
    owner: Owner
    kind: PassageKind
    ref: str
    """Its source: a path, a URL, or the id of an insight or a node."""
    part: int
    """The number of the section within the source, from zero."""
    title: str
    text: str
    label: Label
    """Where its words came from."""
    hash: str
    """The hash of the whole source."""
    created_at: datetime


class Section(NamedTuple):
    title: str
    text: str
    """The text of the section with its heading."""


_FENCE = late(r" {0,3}(```+|~~~+)")


def sections(text: str) -> list[Section]:
    """Split Markdown into sections: each heading with the text up to the next heading."""
    found: list[Section] = []
    title, lines, fence = "", list[str](), ""
    for line in text.splitlines():
        if mark := _FENCE.match(line):
            fence = mark[1] if not fence else "" if line.strip().startswith(fence) else fence
        heading = None if fence or len(found) >= MOST_SECTIONS else _heading(line)
        if heading is not None:
            found += _split(title, lines)
            title, lines = heading, []
        lines.append(line)
    return found + _split(title, lines)


def _heading(line: str) -> str | None:
    """Return the words of a heading; None if the line is none."""
    bare = line.lstrip(" ")
    rest = bare.lstrip("#")
    marks = len(bare) - len(rest)
    is_heading = len(line) - len(bare) <= 3 and 1 <= marks <= 6 and rest[:1] in ("", " ", "\t")
    return rest.strip().rstrip("#").strip() if is_heading else None


def _split(title: str, lines: list[str]) -> list[Section]:
    whole = "\n".join(lines).strip()
    if len(whole) <= MAX_CHARS:
        return [Section(title, whole)] if whole else []
    pieces = [""]
    for paragraph in _slices(whole):
        if pieces[-1] and len(pieces[-1]) + len(paragraph) + 2 > MAX_CHARS:
            pieces.append("")
        pieces[-1] += ("\n\n" if pieces[-1] else "") + paragraph
    return [Section(title, piece) for piece in pieces if piece.strip()]


def _slices(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text; a paragraph that is too long is cut into slices."""
    for paragraph in re.split(r"\n\s*\n", text):
        for start in range(0, len(paragraph), MAX_CHARS):
            yield paragraph[start : start + MAX_CHARS]


# Scripts without spaces between words: every two neighbouring characters are indexed as a word.
_UNSPACED = late(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3040-\u30ff\u3130-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def is_unspaced(character: str) -> bool:
    """Whether the character belongs to a script without spaces between words."""
    return _UNSPACED.fullmatch(character) is not None


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents and in the singular."""
    # These words are indexed, not those of a database's own tokenizer: SQLite and PostgreSQL split
    # and stem differently, and a search must find the same in both.
    if text.isascii():
        return [_singular(run) for run in re.findall(r"[a-z0-9]+", text.lower())]
    found: list[str] = []
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = unicodedata.normalize("NFC", "".join(c for c in plain if not _is_accent(c)))
    for run in re.findall(r"[^\W_]+|[^\w\s]", plain):
        if run.isascii():
            if run[0].isalnum():
                found.append(_singular(run))
        elif run[0].isalnum():
            found += _split_unspaced(run)
        elif unicodedata.category(run) == "So":  # an emoji counts as a word
            found.append(run)
    return found


def _is_accent(character: str) -> bool:
    return "\u0300" <= character <= "\u036f"


def _singular(word: str) -> str:
    if not word.endswith("s"):
        return word
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _split_unspaced(run: str) -> list[str]:
    found: list[str] = []
    end = 0
    for unspaced in _UNSPACED.finditer(run):
        if before := run[end : unspaced.start()]:
            found.append(before)
        characters = unspaced[0]
        found += [characters[i : i + 2] for i in range(max(1, len(characters) - 1))]
        end = unspaced.end()
    if after := run[end:]:
        found.append(after)
    return found


_STOP_WORDS = (
    "a an and are as at be been but by can could did do does for from had has have how i if in "
    "into is it its me my of on or our shall should so than that the their them then there these "
    "they this those to was we were what when where which who why will with would you your"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())


def search_words(query: str, *, limit: int = 24) -> list[str]:
    """Return the words of a query without stop words; all words if there are only stop words."""
    found = list(dict.fromkeys(words(query)))
    significant = [word for word in found if word not in STOP_WORDS]
    return (significant or found)[:limit]
