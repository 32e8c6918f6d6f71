"""Lanes: limits on how many nodes run at once, one limit for each lane.

A reply to a person never waits for a slot that work or a reflection takes.
"""

import asyncio

from agiraph.core.domain.work import Lane

# A run mostly waits for its model, so many fit into one process. Nobody waits for a reflection.
MAX_RUNNING: dict[Lane, int] = {"reply": 32, "work": 200, "reflection": 4}

LaneLimits = dict[Lane, asyncio.Semaphore]


def lane_limits() -> LaneLimits:
    """Return a semaphore for each lane."""
    return {lane: asyncio.Semaphore(limit) for lane, limit in MAX_RUNNING.items()}
