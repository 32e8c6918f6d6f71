"""Lanes: how much runs at once, so that talking never waits for work and work not for chores."""

import asyncio

from agiraph.domain.work import Lane

PLACES: dict[Lane, int] = {"reply": 32, "work": 200, "reflection": 4}

Lanes = dict[Lane, asyncio.Semaphore]


def lanes() -> Lanes:
    """Places of their own for answers to people, for work, and for looking back on it."""
    return {lane: asyncio.Semaphore(places) for lane, places in PLACES.items()}
