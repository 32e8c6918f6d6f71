"""Ground: what all parts of an attack share, and the error they raise."""

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


def demand(holds: bool, *about: object) -> None:
    """Raise `Violation` with everything that is known, unless the invariant holds."""
    if not holds:
        raise Violation(" ".join(str(part) for part in about))


@dataclass(frozen=True, slots=True)
class Ledger:
    """Files into which outside effects append a line each: what really happened, and how often."""

    folder: Path

    def file(self, name: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path

    def counts(self, name: str) -> Counter[str]:
        return Counter(self.file(name).read_text().split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    client: Client
    chance: random.Random
    ledger: Ledger
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    """Every message, task and call of an attack has a number of its own."""
    restarted_by_person: Counter[str] = field(default_factory=Counter[str])
    """How often the person told a node to try again, by node id."""

    async def found(self, name: str, **more: Any) -> dict[str, Any]:
        """Create a team that works only on what it is sent."""
        body = {"goal": f"Serve as {name}", "mode": "infinite", "start": False, "learns": False}
        return await self.client.ask("POST", "/api/teams", body | more, key=f"team {name}")
