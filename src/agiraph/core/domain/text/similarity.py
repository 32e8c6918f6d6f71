"""Similarity: find the known statements that a text may repeat, change or contradict.

It only narrows the choice: a model decides how two statements relate. Statements are compared by
their words and by groups of three letters, so it needs no list of words and works in any language,
with inflected words and with scripts that put no spaces between words.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from agiraph.core.domain.text.passages import words

MOST_SEGMENTS = 400
"""Sentences of a text that are compared; of a longer text every second, third … is left out."""
SEGMENT_CHARACTERS = 400
_COMMON = 0.2
"""A feature in more than this share of all statements tells nothing about any of them."""
_FEW = 20
"""Up to this many statements each feature counts, because none can be called common."""
_BREAK = re.compile(r"(?<=[.!?;])\s+|[\n\r]+|(?<=[\u3002\uff01\uff1f\uff1b])")
_ENDS = " .!?\u3002"


def normalised(text: str) -> str:
    """Return a statement without what makes no difference: case, width, spaces, the full stop."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(plain.split()).strip(_ENDS)


def is_repetition(one: str, other: str) -> bool:
    """Tell whether two statements are the same, but for case, spaces and the full stop."""
    return normalised(one) == normalised(other)


def segments(text: str) -> list[str]:
    """Split a text into sentences, at most MOST_SEGMENTS of them, spread over the whole text."""
    found = [part.strip()[:SEGMENT_CHARACTERS] for part in _BREAK.split(text)]
    found = [part for part in dict.fromkeys(found) if part]
    if len(found) <= MOST_SEGMENTS:
        return found
    step = len(found) / MOST_SEGMENTS
    return [found[int(place * step)] for place in range(MOST_SEGMENTS)]


def features(text: str) -> frozenset[str]:
    """Return what a statement is compared by: its words, and three letters in a row of each.

    Words of scripts without spaces are pairs of characters already (`domain.passages.words`).
    """
    found: set[str] = set()
    for word in words(text):
        found.add(word)
        if len(word) > 3:
            padded = f" {word} "
            found.update(padded[i : i + 3] for i in range(len(padded) - 2))
    return frozenset(found)


class Statements:
    """Known statements, prepared for many comparisons."""

    def __init__(self, statements: Mapping[str, str]) -> None:
        self._ids = list(statements)
        said = [features(text) for text in statements.values()]
        counts = Counter(feature for each in said for feature in each)
        total = len(said)
        most = total if total <= _FEW else max(_FEW, int(total * _COMMON))
        # The rarer a feature, the more it tells. One that every statement has tells a little.
        self._weights = {
            feature: math.log(1 + total / count)
            for feature, count in counts.items()
            if count <= most
        }
        self._holders: dict[str, list[int]] = {}
        self._lengths: list[float] = []
        for place, each in enumerate(said):
            known = [feature for feature in each if feature in self._weights]
            self._lengths.append(math.sqrt(sum(self._weights[f] ** 2 for f in known)) or 1.0)
            for feature in known:
                self._holders.setdefault(feature, []).append(place)

    def nearest(self, text: str, *, limit: int) -> list[tuple[str, float]]:
        """Return the ids of the statements nearest to this one, with their cosines, best first."""
        asked = [(feature, self._weights.get(feature, 0.0)) for feature in features(text)]
        scores: dict[int, float] = {}
        for feature, weight in asked:
            for place in self._holders.get(feature, ()):
                scores[place] = scores.get(place, 0.0) + weight * weight
        length = math.sqrt(sum(weight * weight for _, weight in asked)) or 1.0
        ranked = sorted(
            ((score / length / self._lengths[place], place) for place, score in scores.items()),
            key=lambda found: (-found[0], found[1]),
        )
        return [(self._ids[place], score) for score, place in ranked[:limit]]

    def nearest_to_any(self, texts: Iterable[str], *, each: int, limit: int) -> list[str]:
        """Return the ids of the statements that are nearest to any of the texts, best first.

        Of every text the `each` nearest are taken, so that one long theme does not push out all
        others.
        """
        best: dict[str, float] = {}
        for text in texts:
            for id, score in self.nearest(text, limit=each):
                best[id] = max(best.get(id, 0.0), score)
        return sorted(best, key=lambda id: -best[id])[:limit]


def interleave(*rankings: Sequence[str], limit: int) -> list[str]:
    """Return the ids of several rankings, in turn the best of each, without repetition."""
    found: dict[str, None] = {}
    longest = max((len(ranking) for ranking in rankings), default=0)
    for place in range(longest):
        for ranking in rankings:
            if place < len(ranking):
                found[ranking[place]] = None
    return list(found)[:limit]
