"""Effort: how much a model thinks before it answers, in words that hold for every vendor."""

from typing import Literal, get_args

from agiraph.core.domain.errors import Refused

Effort = Literal["none", "low", "medium", "high", "max"]
"""`none` switches thinking off, for models that can answer without it."""
EFFORTS: tuple[Effort, ...] = get_args(Effort)
_BY_NAME: dict[str, Effort] = {effort: effort for effort in EFFORTS}


def parse_effort(text: str) -> Effort | None:
    """Return the effort that the text names, None for an empty text; refuse any other one."""
    word = text.strip().lower()
    if word and word not in _BY_NAME:
        raise Refused(f"{text!r} is not an effort; write one of {', '.join(EFFORTS)}.")
    return _BY_NAME.get(word)


def first_effort(*efforts: Effort | None) -> Effort | None:
    """Return the first effort that is set: the most specific one, if given in that order."""
    return next((effort for effort in efforts if effort is not None), None)
