"""Notices: what a person is told of an extension or skill that they enabled and that is off now."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A change that a person has to look at."""

    id: str
    sha256: str
    text: str


@dataclass(slots=True)
class Notices:
    """Notices for a person that were not sent yet. Each change is added once."""

    untold: list[Notice] = field(default_factory=list[Notice])
    _known: set[Notice] = field(default_factory=set[Notice])

    def add(self, notice: Notice) -> None:
        if notice not in self._known:
            self._known.add(notice)
            self.untold.append(notice)

    def take(self) -> list[Notice]:
        """Return the notices that were not sent yet, and clear the list."""
        taken, self.untold = self.untold, []
        return taken


def changed(identity: str, sha256: str, *, command: Literal["tools", "skills"]) -> Notice:
    """Return the notice that an enabled file or skill has changed."""
    text = (
        f"{identity} has changed since you enabled it, so agents no longer have it. Look at it, "
        f"and enable it again if you want: agiraph {command} enable {identity}"
    )
    return Notice(id=identity, sha256=sha256, text=text)


def faulty(identity: str, sha256: str, problem: str) -> Notice:
    """Return the notice of an enabled extension that cannot be used."""
    text = f"{identity} cannot be used: {problem} Agents do without it; nothing else is affected."
    return Notice(id=identity, sha256=sha256, text=text)
