"""Lanes: how much runs at once, so that talking never waits for work and work not for chores."""

import asyncio
from dataclasses import dataclass, field

WORK = 200
INTERACTIVE = 32
MAINTENANCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Places of their own for replies to people, for work, and for harvest and housekeeping."""

    interactive: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(INTERACTIVE))
    work: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WORK))
    maintenance: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAINTENANCE))
