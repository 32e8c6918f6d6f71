"""Similarity: tell whether two statements say the same, contradict each other, or neither.

The words are compared without a model: it costs nothing and gives the same result every time. In
doubt the verdict is neither, so that nothing is merged that a reader would keep apart.
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from agiraph.domain.passages import STOP_WORDS, words

Verdict = Literal["same", "less", "opposed", "other"]
"""How the new statement relates to the old one. less: the old one says all of it, and more."""

CLOSE, CLOSER, CLOSEST = 0.5, 0.6, 0.8
"""Shares of common words: from CLOSE on, two statements are about one subject; from CLOSER on, one
may contain the other; from CLOSEST on, they are two wordings of one statement."""

_NEGATING = "no not never none nor neither cannot without nothing nobody"
_RELATING = "than over before after from to by above below under instead"
_COUNTING = (
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday zero one two three four five "
    "six seven eight nine ten eleven twelve first second third last"
)
_OPPOSING = (
    "always/rarely more/less more/fewer higher/lower high/low increase/decrease rise/fall "
    "up/down before/after faster/slower fast/slow early/late good/bad better/worse best/worst "
    "enabled/disabled enable/disable on/off true/false allowed/forbidden open/closed like/hate "
    "like/dislike love/hate with/without short/long small/large accept/reject safe/dangerous "
    "public/private sync/async required/optional cheap/expensive morning/evening"
)
_NEGATIONS, _RELATIONS = frozenset(_NEGATING.split()), frozenset(_RELATING.split())
_FIGURES = frozenset(_COUNTING.split())
_OPPOSITES = frozenset(frozenset(pair.split("/")) for pair in _OPPOSING.split())


class _Claim(NamedTuple):
    order: tuple[str, ...]
    """The stems of its content words, in their order."""
    figures: frozenset[str]
    negated: bool
    plain: str
    relates: bool
    """It compares or orders two things, so that the order of its words matters."""


@lru_cache(maxsize=8192)
def _claim(text: str) -> _Claim:
    said = words(re.sub(r"n['\u2019]t\b", " not", text))
    order: dict[str, None] = {}
    for word in said:
        little = word in STOP_WORDS or word in _NEGATIONS or (len(word) == 1 and word.isascii())
        if not little and not _is_figure(word):
            order[_stem(word)] = None
    return _Claim(
        tuple(order),
        frozenset(word for word in said if _is_figure(word)),
        # Two negations cancel each other: "not without" affirms.
        sum(word in _NEGATIONS for word in said) % 2 == 1,
        " ".join(text.split()).rstrip(".!").casefold(),
        any(word in _RELATIONS for word in said),
    )


def _is_figure(word: str) -> bool:
    return word in _FIGURES or any(character.isdigit() for character in word)


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def compare(new: str, old: str) -> Verdict:
    """Return how a new statement relates to an old one."""
    a, b = _claim(new), _claim(old)
    if a.plain == b.plain:
        return "less"
    mine, theirs = set(a.order), set(b.order)
    both = mine & theirs
    if not both:
        return "other"
    share = len(both) / len(mine | theirs)
    if share >= CLOSE and len(both) >= 2 and _same_subject(a, b) and _oppose(a, b):
        return "opposed"
    if a.negated != b.negated:
        return "other"
    if mine <= theirs and a.figures <= b.figures and share >= CLOSER:
        return "same" if (mine, a.figures) == (theirs, b.figures) else "less"
    if mine >= theirs and a.figures >= b.figures and share >= CLOSER:
        return "same"
    # One word in place of another is probably another name, and so another statement.
    replaced = len(mine - theirs) == len(theirs - mine) == 1
    is_wording = share >= CLOSEST and not replaced and a.figures == b.figures
    return "same" if is_wording and _same_subject(a, b) else "other"


def _same_subject(a: _Claim, b: _Claim) -> bool:
    """Tell whether the first content word of one statement, its subject, occurs in the other."""
    return a.order[0] in b.order or b.order[0] in a.order


def _oppose(a: _Claim, b: _Claim) -> bool:
    mine, theirs = set(a.order), set(b.order)
    only, lacking = mine - theirs, theirs - mine
    if a.negated != b.negated or (a.figures - b.figures and b.figures - a.figures):
        return True
    if any(_are_opposites(x, y) for x in only for y in lacking):
        return True
    if not only and not lacking:
        return a.relates and b.relates and a.order != b.order
    return len(only) == len(lacking) == 1 and a.figures == b.figures and _is_value(a, b)


def _are_opposites(x: str, y: str) -> bool:
    if frozenset((x, y)) in _OPPOSITES:
        return True
    short, long = sorted((x, y), key=len)
    return any(long == prefix + short for prefix in ("un", "in", "im", "dis", "non", "ir"))


def _is_value(a: _Claim, b: _Claim) -> bool:
    """Tell whether the statements agree but for their ends: another value of the same thing."""
    same = 0
    for x, y in zip(a.order, b.order, strict=False):
        if x != y:
            break
        same += 1
    return same >= 2 and same * 2 >= len(a.order)
