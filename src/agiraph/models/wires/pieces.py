"""Pieces: the text of a reply as it arrives, and what its content means."""

from dataclasses import field
from typing import Any, cast

from agiraph.core.domain.errors import ModelRepeats
from agiraph.core.domain.value import dataclass
from agiraph.late_patterns import late

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
_STRUCTURE = late(r"[{}\[\]<>|`=\\/_#*\"]")
_WORDS = late(r"[^\W\d_]{2,}")
_SENTENCE_END = late(r"[.!?\n]+")


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


MIN_GROWTHS = 2
"""So often a piece must begin with all that came before it until the server is believed to repeat
it: twice, and once from a server that did so before."""
MIN_CHARS = 8
"""A shorter text such as `1`, `10`, `100` may be three pieces."""


@dataclass(slots=True)
class Pieces:
    """Text that arrives in pieces.

    Some servers (DashScope and others) send all the text so far in each piece. That is believed
    only if every piece of the text began with the whole piece before it.
    """

    is_structure: bool | None = False
    """Whether the text is data, which may repeat itself longer; None: it may repeat for ever."""
    is_expected_whole: bool = False
    """Whether this server has sent all the text so far in each piece before."""
    _pieces: list[str] = field(default_factory=list[str])
    _whole: str | None = ""
    """The text if each piece contains all of it; None once a piece did not."""
    _growths: int = 0
    _guard: RepetitionGuard | None = None

    def append(self, piece: str) -> str:
        """Add a piece and return what is new in it."""
        if not piece:
            return ""
        new, before = piece, self._whole
        if before is not None:
            if piece.startswith(before):
                self._growths += bool(before) and len(piece) > len(before)
                self._whole, new = piece, piece[len(before) :]
            else:
                self._whole = None
        if self.is_structure is not None:
            if self._guard is None:  # made late, as most texts of a reply stay empty
                self._guard = RepetitionGuard(is_structure=self.is_structure)
            self._guard.feed(new)
        self._pieces.append(piece)
        return new if self.is_expected_whole else piece

    @property
    def is_cumulative(self) -> bool:
        """Whether each piece contained all the text so far."""
        if self._whole is None:
            return False
        if self.is_expected_whole:
            return self._growths > 0
        return self._growths >= MIN_GROWTHS and len(self._whole) >= MIN_CHARS

    def __str__(self) -> str:
        return (self._whole or "") if self.is_cumulative else "".join(self._pieces)

    def __bool__(self) -> bool:
        return bool(self._pieces)


def text_of(value: Any) -> str:
    """Return the text in a field, "" if the field is missing; raise TypeError for another type."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is not text")
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}")  # PostgreSQL stores no NUL in text


def content_of(value: Any) -> tuple[str, str]:
    """Return the text and the thoughts of a content, which is text or a list of parts."""
    if not isinstance(value, list):
        return text_of(value), ""
    text, thoughts = list[str](), list[str]()
    for part in cast(list[Any], value):
        if isinstance(part, str):
            text.append(text_of(part))
            continue
        known: dict[str, Any] = part
        match known.get("type", "text"):
            case "text" | "output_text":
                text.append(text_of(known.get("text")))
            case "thinking" | "reasoning":
                thoughts.append(_thought(known.get("thinking") or known.get("text")))
            case _:
                pass  # references and pictures
    return "".join(text), "".join(thoughts)


def _thought(value: Any) -> str:
    """Return a thought, which Mistral sends as a list of text parts."""
    if not isinstance(value, list):
        return text_of(value)
    parts = cast(list[Any], value)
    return "".join(p if isinstance(p, str) else text_of(p.get("text")) for p in parts)
