"""Recall: the CPU time to choose the insights for a prompt among 10,000, on both databases.

`python bench/recall.py [DATABASE_URL]` prints it; without an address SQLite is measured.
"""

import asyncio
import random
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

# `python bench/recall.py` puts only bench/ itself on the path.
sys.path.insert(0, str(Path(__file__).parent.parent))

from agiraph.api.feature_views.known import Insight
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.ids import new_id
from agiraph.core.domain.provenance.labels import CLEAN, of_page
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import recall
from agiraph.features.knowledge.model import visible_to
from agiraph.features.knowledge.recall import Query
from agiraph.features.knowledge.verbs import changes
from agiraph.models.embeddings import embeddings
from agiraph.testing import World

INSIGHTS = 10_000
UNVERIFIED = 500
RUNS = 200
_random = random.Random(11)


def _word() -> str:
    return "".join(
        _random.choice("bcdfghklmnprstvw") + _random.choice("aeiou")
        for _ in range(_random.randint(2, 5))
    )


# Frequencies as in a language: the n-th word is n times rarer than the first.
WORDS = [_word() for _ in range(6000)]
_FREQUENCIES = [1 / (place + 3) for place in range(len(WORDS))]


def text(length: int) -> str:
    return " ".join(_random.choices(WORDS, _FREQUENCIES, k=length))


def _fill(tx: Tx, agent: Agent, number: int, foreign: bool) -> None:
    owners = visible_to(agent)
    for place in range(number):
        insight = Insight(
            id=new_id("insight"),
            team_id=agent.team_id,
            agent_id=agent.id,
            type="fact",
            content=text(16),
            created_at=tx.now - timedelta(hours=place),
            author=agent.id,
            confidence=_random.random(),
            owner=owners[place % len(owners)],
            status="unverified" if foreign else "active",
            label=of_page("https://example.org") if foreign else CLEAN,
        )
        changes.store(tx, insight, is_new=True)


def _timed(tx: Tx, agent: Agent, query: Query) -> tuple[float, float, int]:
    """Return the milliseconds of CPU and of the clock on the wall, and how many were chosen."""
    began, wall = time.thread_time(), time.perf_counter()
    found = recall.for_work(tx, agent.id, query)
    return (time.thread_time() - began) * 1000, (time.perf_counter() - wall) * 1000, len(found)


async def measure(database_url: str = "", *, insights: int = INSIGHTS) -> dict[str, Any]:
    """Return how long a recall takes, in milliseconds of CPU: the first of a process, the median
    and the 99th percentile of the others, and the first one after another insight was stored; and
    the median by the clock on the wall, which says little on a busy machine."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        async with World(home, database_url=database_url, validates_events=False) as world:
            agent = (await world.found("Know things", start=False)).coordinator
            for _ in range(insights // 1000):
                await world.store.write(_fill, agent, 1000, False)
            await world.store.write(_fill, agent, UNVERIFIED, True)
            embeddings()
            queries = [Query(text(40), text(15), text(12)) for _ in range(RUNS)]
            first, _, _ = await world.store.read(_timed, agent, queries[0])
            timed = [await world.store.read(_timed, agent, query) for query in queries[1:]]
            times = sorted(cpu for cpu, _, _ in timed)
            await world.store.write(_fill, agent, 1, False)
            changed, _, found = await world.store.read(_timed, agent, queries[0])
    return {
        "first ms": first,
        "p50 ms": statistics.median(times),
        "p99 ms": times[int(len(times) * 0.99) - 1],
        "after a change ms": changed,
        "wall p50 ms": statistics.median(wall for _, wall, _ in timed),
        "found": found,
    }


if __name__ == "__main__":
    found = asyncio.run(measure(sys.argv[1] if len(sys.argv) > 1 else ""))
    for name, value in found.items():
        print(f"  {name:<20}{value:>10.1f}")
