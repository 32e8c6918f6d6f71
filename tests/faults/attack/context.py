"""Context: what all parts of an attack share, and the error they raise."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tests.faults.attack.client import Client


class Violation(AssertionError):
    """An invariant does not hold."""


def require(holds: bool, *about: object) -> None:
    """Raise `Violation` with these details, unless the invariant holds."""
    if not holds:
        raise Violation(" ".join(str(part) for part in about))


@dataclass(frozen=True, slots=True)
class Ledger:
    """Files to which each outside effect appends a line: what really happened, and how often.

    Commands append to a file in their own folder: they can write nowhere else.
    """

    folder: Path
    home: Path

    def file(self, name: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path

    def counts(self, name: str) -> Counter[str]:
        written = self.home.glob(f"teams/*/nodes/*/scratch/{own_file(name)}")
        return Counter(word for file in written for word in file.read_text().split())


def own_file(name: str) -> str:
    """Return the name of the file in a command's folder to which it appends its effects."""
    return f".{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    client: Client
    chance: random.Random
    ledger: Ledger
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    """The numbers of messages, tasks and calls; each is used once in an attack."""
    restarted_by_person: Counter[str] = field(default_factory=Counter[str])
    """How often the person told a node to try again, by node id."""

    async def create_team(self, name: str, **more: Any) -> dict[str, Any]:
        """Create a team that works only on messages and triggers."""
        body = {"goal": f"Serve as {name}", "mode": "infinite", "start": False, "learns": False}
        return await self.client.ask("POST", "/api/teams", body | more, key=f"team {name}")
