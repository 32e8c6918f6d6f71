"""Pieces: the text of a reply as it arrives, and what its content means."""

from dataclasses import dataclass, field
from typing import Any, cast

from agiraph.providers.wires.repetition import RepetitionGuard

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

    guard: RepetitionGuard | None = field(default_factory=RepetitionGuard)
    is_expected_whole: bool = False
    """Whether this server has sent all the text so far in each piece before."""
    _pieces: list[str] = field(default_factory=list[str])
    _whole: str | None = ""
    """The text if each piece contains all of it; None once a piece did not."""
    _growths: int = 0

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
        if self.guard is not None:
            self.guard.feed(new)
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
