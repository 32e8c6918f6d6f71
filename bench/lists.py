"""Lists: a page of the board and of the costs of a team with 10,000 nodes."""

import statistics
import tempfile
import time
from pathlib import Path

from agiraph.cli.session import Local
from agiraph.core.domain.ids import NodeId, new_id
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store.nodes import NODES
from agiraph.core.store.spend import SPEND, Spend, day_of
from agiraph.core.store.tx import Tx
from agiraph.testing.world import World

NODES_OF_A_TEAM = 10_000
AT_ONCE = 500
ROUNDS = 15
PAGES = {"board": "/teams/{team}/board", "costs": "/teams/{team}/cost"}


def _add(tx: Tx, founded: NewTeam, task: str, above: NodeId | None = None) -> NodeId:
    node = WorkNode(
        id=NodeId(new_id("node")),
        team_id=founded.team.id,
        task=task,
        source="delegation" if above else "system",
        created_at=tx.now,
        creator_id=founded.coordinator.id,
        assignee_id=founded.coordinator.id,
        parent_id=above,
        status=NodeStatus.COMPLETED,
        depth=1 if above else 0,
    )
    NODES.insert(tx, node)
    return node.id


def _fill(tx: Tx, founded: NewTeam, goal: NodeId, count: int) -> None:
    """Add tasks below the goal that are done, each with what two kinds of calls have cost."""
    team, agent = founded.team.id, founded.coordinator.id
    for number in range(count):
        node = _add(tx, founded, f"Count what lies on shelf {number}", goal)
        for purpose in ("work", "summary"):
            spend = Spend(
                node_id=node, agent_id=agent, purpose=purpose, model="openai/gpt-4.1",
                day=day_of(tx.now), team_id=team, calls=3, lost=0, input_tokens=900,
                output_tokens=90, cached_tokens=0, cache_write_tokens=0, thinking_tokens=0,
                usd=0.01, unpriced=0, estimated=0, outermost_id=goal,
            )  # fmt: skip
            SPEND.insert(tx, spend)


async def measure() -> dict[str, float]:
    """Return the milliseconds of a page: the median, each answered in this process."""
    with tempfile.TemporaryDirectory(prefix="agiraph-bench-") as home:
        async with World(Path(home), validates_events=False, easy_endings=True) as world:
            founded = await world.found("Count everything", start=False)
            goal = await world.store.write(_add, founded, "Count everything")
            for _ in range(NODES_OF_A_TEAM // AT_ONCE):
                await world.store.write(_fill, founded, goal, AT_ONCE)
            async with Local(world.store, world.runtime.home) as client:
                return {
                    what: await _median(client, path.format(team=founded.team.id))
                    for what, path in PAGES.items()
                }


async def _median(client: Local, path: str) -> float:
    times: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        await client.ask("GET", path)
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    import asyncio

    for what, ms in asyncio.run(measure()).items():
        print(f"{what:<10} {ms:8.1f} ms")
