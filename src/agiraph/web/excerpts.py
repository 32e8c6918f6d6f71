"""Excerpts: the places of a long page where given words stand."""

import re
from collections.abc import Iterator
from unicodedata import normalize

from agiraph.core.domain.value import dataclass

MOST_EXCERPTS = 6
LONGEST = 700
"""Characters of an excerpt."""
_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"^#{1,6} .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A piece of a page, as it stands there."""

    offset: int
    """Where it begins on the page, in characters."""
    heading: str
    """The nearest heading before it; empty if there is none."""
    text: str


def find(text: str, words: str, *, most: int = MOST_EXCERPTS) -> list[Excerpt]:
    """Return the pieces of a text that hold the most of the words, in the order of the page.

    A piece that holds the words one after the other comes before all others.
    """
    wanted = {_folded(word) for word in _WORD.findall(words)}
    phrase = " ".join(_folded(word) for word in _WORD.findall(words))
    if not wanted:
        return []
    ranked: list[tuple[int, int, str]] = []
    for offset, piece in _pieces(text):
        held = [_folded(word) for word in _WORD.findall(piece)]
        score = len(wanted.intersection(held))
        if score:
            bonus = len(wanted) * (f" {phrase} " in f" {' '.join(held)} ")
            ranked.append((-score - bonus, offset, piece))
    best = sorted(ranked)[:most]
    # Pieces with far fewer of the words than the best one have nothing to say about them.
    enough = [each for each in best if 2 * each[0] <= best[0][0]]
    headings = [(match.start(), match[0]) for match in _HEADING.finditer(text)]
    return [
        Excerpt(offset=offset, heading=_heading(headings, offset), text=piece)
        for _, offset, piece in sorted(enough, key=lambda each: each[1])
    ]


def _pieces(text: str) -> list[tuple[int, str]]:
    """Return the paragraphs of a text with their offsets; long ones are cut between words."""
    pieces: list[tuple[int, str]] = []
    for start, end in _paragraphs(text):
        while end - start > LONGEST:
            cut = text.rfind(" ", start + LONGEST // 2, start + LONGEST)
            cut = cut if cut > 0 else start + LONGEST
            pieces.append((start, text[start:cut].rstrip()))
            start = cut
            while start < end and text[start].isspace():
                start += 1
        pieces.append((start, text[start:end].rstrip()))
    return pieces


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each paragraph begins and ends.

    Line by line: one pattern would hold the interpreter while it reads a paragraph of megabytes.
    """
    start, at = -1, 0
    for line in text.split("\n"):
        if start < 0 and (bare := line.lstrip()):
            start = at + len(line) - len(bare)
        elif start >= 0 and not line.strip():
            yield start, at - 1
            start = -1
        at += len(line) + 1
    if start >= 0:
        yield start, len(text)


def _heading(headings: list[tuple[int, str]], offset: int) -> str:
    before = [text for start, text in headings if start <= offset]
    return before[-1].lstrip("# ").strip()[:120] if before else ""


def _folded(word: str) -> str:
    return normalize("NFKC", word).casefold()
