"""Nearest lines: shows a model the lines of a file that are most like a text it did not find."""

import re
from collections import Counter
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import accumulate

EXAMINED_CHARACTERS = 128 * 1024
"""The part of a file that is compared; the rest is left to the model's own search."""
MOST_LINES = 12
"""Lines that are shown."""
_LINE_CHARACTERS = 200
_CANDIDATES = 4
_ALIKE = 0.5
"""How much of two texts must agree, from 0 to 1, for one to be shown as near the other."""
_SHORTEST_NEW = 8
"""A shorter text may stand in any file by chance."""
_BY_CHARACTER, _TOKENS = 120, 120
"""Up to how many characters texts are compared letter by letter; of longer ones, so many words."""
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"\w+")


def explain_miss(text: str, old: str, new: str, name: str) -> str:
    """Return why an edit cannot be made, with the lines that it may mean, and what to do."""
    parts = [f"{old[:80]!r} does not stand in {name}, so nothing was changed."]
    if (line := _line_of(text, new)) is not None:
        parts.append(
            f"The new text stands there already, at line {line}: the edit may have been made "
            "before. Then go on."
        )
    start, ratio = _nearest(text, old)
    if ratio < _ALIKE:
        parts.append("Nothing in it is much like it. Read the file and copy the piece.")
        return " ".join(parts)
    if ratio == 1:
        parts.append("It stands there with other white space.")
    shown = numbered(text, start, old.count("\n") + 1)
    parts.append(f"The nearest lines are these; copy from them what is behind the bar:\n{shown}")
    return " ".join(parts)


def explain_several(text: str, old: str, name: str) -> str:
    """Return that a text stands in a file more than once, with the lines, and what to do."""
    found, at = list[int](), text.find(old)
    while at >= 0 and len(found) < MOST_LINES:
        found.append(text.count("\n", 0, at))
        at = text.find(old, at + len(old))
    count = text.count(old)
    lines = ", ".join(str(line + 1) for line in found)
    more = " and further" if count > len(found) else ""
    first = found[0] if found else 0
    return (
        f"{old[:80]!r} stands {count} times in {name}, at lines {lines}{more}, so nothing was "
        "changed. Take more of the lines around the one that you mean, so that it is the only one. "
        f"Around the first:\n{numbered(text, first, old.count(chr(10)) + 1)}"
    )


def numbered(text: str, start: int, count: int) -> str:
    """Return lines of a text with their numbers, and two lines before and behind them."""
    first = max(start - 2, 0)
    lines = text.split("\n", first + MOST_LINES)[: first + MOST_LINES]
    shown = lines[first : min(start + count + 2, first + MOST_LINES)]
    return "\n".join(
        f"{first + index + 1:>5} | {line[:_LINE_CHARACTERS]}{'…' * (len(line) > _LINE_CHARACTERS)}"
        for index, line in enumerate(shown)
    )


def _line_of(text: str, new: str) -> int | None:
    if len(new.strip()) < _SHORTEST_NEW or (at := text.find(new)) < 0:
        return None
    return text.count("\n", 0, at) + 1


def _nearest(text: str, old: str) -> tuple[int, float]:
    """Return the first of the lines that are most like a text, and how much they agree.

    A count of common words chooses a few places in linear time, and only they are compared.
    """
    lines = text[:EXAMINED_CHARACTERS].split("\n")
    wanted = old[: MOST_LINES * _LINE_CHARACTERS].strip("\n")
    height = min(wanted.count("\n") + 1, len(lines), MOST_LINES)
    words = Counter(_WORD.findall(wanted))
    scores = [_score(line, words) for line in lines]
    sums = [0.0, *accumulate(scores)]
    starts = nlargest(
        _CANDIDATES,
        range(len(lines) - height + 1),
        key=lambda start: (sums[start + height] - sums[start], -start),
    )
    compared = [(_agreement(lines[s : s + height], wanted), -s) for s in starts]
    ratio, start = max(compared, default=(0.0, 0))
    return -start, ratio


def _score(line: str, words: Counter[str]) -> float:
    found = _WORD.findall(line[:_LINE_CHARACTERS])
    if not found:
        return 0.0
    common = sum(1 for word in set(found) if word in words)
    return common - 0.1 * (len(set(found)) - common)


def _agreement(lines: list[str], wanted: str) -> float:
    here = "\n".join(line[:_LINE_CHARACTERS] for line in lines)
    if here.split() == wanted.split():
        return 1.0
    # The time for the comparison grows with the cube of the length in the worst case.
    by_character = max(len(here), len(wanted)) <= _BY_CHARACTER
    first, second = (
        (here, wanted)
        if by_character
        else (_TOKEN.findall(here)[:_TOKENS], _TOKEN.findall(wanted)[:_TOKENS])
    )
    return min(SequenceMatcher(None, first, second, autojunk=False).ratio(), 0.99)
