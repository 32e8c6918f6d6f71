"""Examination: all health checks of a running server, within a limited time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any

from agiraph.config import Settings
from agiraph.core.domain.errors import AgiraphError
from agiraph.core.domain.records.findings import Finding
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import Home
from agiraph.core.store.database import Store
from agiraph.doctor import checks, surroundings
from agiraph.doctor.checkup import Checkup
from agiraph.models.catalogue import Catalogue
from agiraph.redaction import redact
from agiraph.sandbox.levels import Confinement

LONGEST_S = 30.0
"""How long all checks together may take."""
RUNNER = "This server"


@dataclass(slots=True, kw_only=True)
class Examination:
    """Checks the home, the database and the models of a running server."""

    settings: Settings
    home: Home
    store: Store
    confinement: Confinement
    parts: Mapping[type, Any]
    models: Catalogue
    model: Callable[[], str]
    """Returns the default model, which a person may change while the server runs."""
    failing: Callable[[], list[str]]
    """Returns a sentence for each background task that fails now."""
    longest_s: float = LONGEST_S
    _running: asyncio.Task[list[Finding]] | None = field(default=None, init=False)

    async def __call__(self) -> list[Finding]:
        """Return the findings of all checks. Requests at the same time share one run."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._examine(), name="health checks")
        # Shielded: a client that hangs up must not end the run for the others.
        return await asyncio.shield(self._running)

    async def _examine(self) -> list[Finding]:
        checkup = Checkup(self.settings, online=False)
        checkup.runner, checkup.parts, checkup.models = RUNNER, self.parts, self.models
        try:
            async with asyncio.timeout(self.longest_s):
                for name, check in self._checks(checkup):
                    await _guarded(checkup, name, check)
        except TimeoutError:
            checkup.problem(
                "time",
                f"The checks took longer than {self.longest_s:.0f} s and were ended; some are "
                "missing. Run them all with: agiraph doctor",
            )
        # That this server is running is no news to somebody who asks it.
        return [finding for finding in checkup.findings if finding.name != checks.AT_WORK]

    def _checks(self, checkup: Checkup) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        async def home() -> None:
            await asyncio.to_thread(checks.check_home, checkup, self.home)
            checks.check_sandbox(checkup, self.confinement)

        async def background() -> None:
            checkup.list(
                "background work",
                self.failing(),
                good="Nothing fails.",
                bad="fail.",
                one_bad="fails.",
            )

        return [
            ("home", home),
            ("background work", background),
            ("model", lambda: checks.check_models(checkup, [self.model()])),
            ("surroundings", lambda: surroundings.check(checkup)),
            # Last: it may take long on a large database.
            ("database", lambda: checks.check_database(checkup, self.store)),
        ]


async def _guarded(checkup: Checkup, name: str, check: Callable[[], Awaitable[None]]) -> None:
    """Make one check. A check that fails is a finding and does not end the others."""
    try:
        await check()
    except (AgiraphError, OSError) as error:
        checkup.problem(name, redact(str(error)))
