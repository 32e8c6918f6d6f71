"""Checkup: the findings of one run of all health checks."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from agiraph.config import Settings
from agiraph.core.domain.records.findings import Finding
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.value import dataclass
from agiraph.models.catalogue import Catalogue


@dataclass(slots=True)
class Checkup:
    """One run of all checks."""

    settings: Settings
    online: bool
    findings: list[Finding] = field(default_factory=list[Finding])
    usable_models: dict[str, bool] = field(default_factory=dict[str, bool])
    """The models that were checked, and whether a request can be sent to them."""
    done: list[str] = field(default_factory=list[str])
    runner: str = ""
    """The process that uses the home or the database now; empty if none does."""
    parts: Mapping[type, Any] = field(default_factory=dict[type, Any])
    """What the features of this process keep (`Runtime.parts`); empty: what is checked is opened
    for the check."""
    models: Catalogue | None = None
    """The models that this process uses; None: those of the settings."""

    def fine(self, name: str, what: str, *details: str) -> None:
        self.findings.append(Finding(name=name, verdict="fine", what=what, details=[*details]))

    def note(self, name: str, what: str) -> None:
        self.findings.append(Finding(name=name, verdict="note", what=what))

    def problem(self, name: str, what: str, *details: str, can_fix: bool = False) -> None:
        self.findings.append(
            Finding(name=name, verdict="problem", what=what, details=[*details], can_fix=can_fix)
        )

    def list(
        self,
        name: str,
        found: list[str],
        *,
        good: str,
        bad: str,
        one_bad: str = "",
        can_fix: bool = False,
    ) -> None:
        """Add a problem if the list has items, else a good finding. `one_bad` is said of one item
        where it differs from `bad`."""
        if found:
            what = counted(len(found), one_bad or bad, bad)
            self.problem(name, what, *found[:20], can_fix=can_fix)
        else:
            self.fine(name, good)

    @property
    def is_well(self) -> bool:
        return all(finding.verdict != "problem" for finding in self.findings)

    @property
    def is_running(self) -> bool:
        return bool(self.runner)
