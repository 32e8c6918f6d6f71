"""Thoughts: takes apart the thinking that a server left in the text of a reply.

DeepSeek R1, Qwen, GLM and others begin their text with `<think>…</think>` when their server does
not separate it; some templates write the first mark themselves, so that only the second arrives.
"""

from agiraph.domain.json_text import without_surrogates
from agiraph.providers.base import OnDelta

_MARKS = (("<think>", "</think>"), ("<thinking>", "</thinking>"))


def apart(text: str) -> tuple[str, str]:
    """Return the text without its thoughts, and the thoughts. Later marks are quotations."""
    if "think" not in text:
        return text, ""
    thoughts: list[str] = []
    rest = text
    while (mark := _mark_at(rest)) is not None:
        inner, _, rest = rest.lstrip()[len(mark[0]) :].partition(mark[1])
        rest = rest.lstrip()
        thoughts.append(inner.strip())
    if not thoughts and "</think>" in text and "<think>" not in text:
        before, _, after = text.partition("</think>")
        if not after.startswith("`"):
            return after.lstrip(), before.strip()
    return (rest, "\n".join(thoughts)) if thoughts else (text, "")


def _mark_at(text: str) -> tuple[str, str] | None:
    start = text.lstrip()
    return next((mark for mark in _MARKS if start.startswith(mark[0])), None)


class ThoughtFilter:
    """Passes on the pieces of a streamed reply, without the thoughts that it begins with."""

    def __init__(self, on_delta: OnDelta) -> None:
        self._on_delta = on_delta
        self._held = self._half = ""
        self._has_thought = False
        self._is_text = False
        """Whether the text has begun; from there on every piece is passed on at once."""

    def feed(self, piece: str) -> None:
        """Take a piece. The half of a character that it may end with waits for the other half."""
        piece = self._half + piece
        self._half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        self._feed(without_surrogates(piece.removesuffix(self._half)))

    def _feed(self, piece: str) -> None:
        if self._is_text:
            return self._on_delta(piece)
        self._held += piece
        start = self._held.lstrip()
        if (mark := _mark_at(start)) is not None:
            _, closed, rest = start.partition(mark[1])
            if closed:
                self._held, self._has_thought = "", True
                self._feed(rest)
        elif start and not any(opening.startswith(start) for opening, _ in _MARKS):
            self._pass_on()
        return None

    def end(self) -> None:
        """Pass on what was held back and turned out to be text."""
        if self._held and _mark_at(self._held) is None:
            self._pass_on()

    def _pass_on(self) -> None:
        held, self._held, self._is_text = self._held, "", True
        self._on_delta(held.lstrip() if self._has_thought else held)
