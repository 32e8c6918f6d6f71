"""Findings: the results of health checks."""

from dataclasses import field
from typing import Literal

from agiraph.core.domain.value import dataclass

Verdict = Literal["fine", "note", "problem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check."""

    name: str
    verdict: Verdict
    what: str
    """What was found and, if it is a problem, what to do."""
    details: list[str] = field(default_factory=list[str])
    can_fix: bool = False
    """Whether `agiraph doctor --fix` repairs it."""
