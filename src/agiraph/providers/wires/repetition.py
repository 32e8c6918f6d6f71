"""Repetition guard: notices a reply that repeats one piece without end."""

import re

from agiraph.domain.errors import ModelRepeats

CHECK_EVERY_CHARS = 2_000
"""New characters between two checks: a check costs microseconds, and a chunk has few characters."""
PROSE_CHARS = 6_000
"""So many characters of repeated words are a loop."""
LONG_UNIT_CHARS = 400
"""A repeated piece that is longer than this is a paragraph, which may come back a few times."""
LONG_CHARS = 16_000
MAX_UNIT_CHARS = 2_000
STRUCTURE_CHARS = 64_000
"""So many characters of repeated rows, code or drawings are a loop: fewer may be meant."""
MIN_SENTENCES = 60
MAX_DISTINCT_SHARE = 0.1
"""A loop in changing words: of this many sentences so few are different ones."""

_PROBE_CHARS = 48
_STRUCTURE = re.compile(r"[{}\[\]<>|`=\\/_#*\"]")
_WORDS = re.compile(r"[^\W\d_]{2,}")
_SENTENCE_END = re.compile(r"[.!?\n]+")


class RepetitionGuard:
    """Raises `ModelRepeats` when the end of a text is one piece over and over.

    Rows of a table, code, drawings and JSON may repeat much longer than words.
    """

    def __init__(self, *, is_structure: bool = False) -> None:
        self._is_structure = is_structure
        """Whether all of the text is data, such as the arguments of a call."""
        self._tail = ""
        self._new: list[str] = []
        self._new_chars = 0

    def feed(self, piece: str) -> None:
        self._new.append(piece)
        self._new_chars += len(piece)
        if self._new_chars >= CHECK_EVERY_CHARS:
            self._tail = (self._tail + "".join(self._new))[-STRUCTURE_CHARS:]
            self._new.clear()
            self._new_chars = 0
            self._check()

    def _check(self) -> None:
        tail = self._tail
        if self._is_structure:
            is_loop = _repeats(tail, STRUCTURE_CHARS)
        elif _is_prose(tail):
            is_loop = _repeats(tail, PROSE_CHARS, LONG_UNIT_CHARS) or _repeats(tail, LONG_CHARS)
            is_loop = is_loop or _circles(tail[-PROSE_CHARS:])
        else:
            is_loop = _repeats(tail, STRUCTURE_CHARS)
        if is_loop:
            shown = tail[-_PROBE_CHARS:].strip()
            raise ModelRepeats(
                f"The model repeats itself without end (…{shown!r}). The reply was cut off. If "
                "this happens again, choose another model or a lower temperature."
            )


def _is_prose(tail: str) -> bool:
    """Whether the end of the text is words, or one sign over and over, and not a structure."""
    end = tail[-PROSE_CHARS:]
    if tail.count("```") % 2:  # in an open code block
        return False
    return bool(_WORDS.search(end)) and len(_STRUCTURE.findall(end)) * 50 < len(end)


def _repeats(tail: str, length: int, max_unit: int = MAX_UNIT_CHARS) -> bool:
    """Whether the last `length` characters are one piece of at most `max_unit` repeated."""
    if len(tail) < length:
        return False
    end = tail[-length:]
    # The period is the distance between the last characters and the same characters before them.
    earlier = end.rfind(end[-_PROBE_CHARS:], 0, length - 1)
    period = length - _PROBE_CHARS - earlier
    return earlier >= 0 and period <= max_unit and end[period:] == end[:-period]


def _circles(end: str) -> bool:
    """Whether a few sentences come back in changing order."""
    if len(end) < PROSE_CHARS:
        return False
    sentences = [s for s in (each.strip() for each in _SENTENCE_END.split(end)) if " " in s]
    return len(sentences) >= MIN_SENTENCES and len(set(sentences)) <= MAX_DISTINCT_SHARE * len(
        sentences
    )
