"""agiraph: each agent is a team of its own; durable in each workload, as it always is."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import Budget
from agiraph.core.run_context import RunContext
from agiraph.core.tools.base import tool
from agiraph.models.registry import Account, Keys
from agiraph.testing.world import World
from bench.peers.noting import MODEL, noted


@tool(effect="repeatable")
async def note(ctx: RunContext, text: Annotated[str, Field()]) -> Answer:
    """Note a finding."""
    return Done(noted())


class Peer:
    async def open(self, url: str, folder: Path, *, is_durable: bool) -> None:
        self._world = World(
            folder / "home",
            clock=SystemClock(),
            keys=Keys({"openai": Account(key="k", base_url=url)}),
            tools=(note,),
            validates_events=False,
            easy_endings=True,
        )
        await self._world.start()

    async def run(self, name: str, turns: int) -> None:
        budget = Budget(turns=turns + 10)
        await self._world.found(name, model=f"openai/{MODEL}", budget=budget)
        await self._world.settle()

    async def close(self) -> None:
        await self._world.stop()
