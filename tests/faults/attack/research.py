"""Research: questions that a researcher answers from pages on loopback.

Every report or failure arrives once in the inbox and once in the chat.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import orjson

from tests.faults.attack.context import Context, require
from tests.faults.attack.model import order, orders
from tests.web.sites import Site, html, response, site

JOBS_A_MINUTE = 14


@contextlib.asynccontextmanager
async def library() -> AsyncIterator[Site]:
    """A search engine and the page that it finds."""
    async with site(page=html("<h1>Heat pumps</h1><p>Three units for one.</p>")) as opened:
        hit = {"title": "Heat pumps", "url": opened.url("/page"), "content": "heat and power"}
        found = orjson.dumps({"results": [hit]})
        opened.pages["/search"] = response(found, kind="application/json")
        yield opened


@dataclass(slots=True, kw_only=True)
class Research:
    context: Context
    name: str = "research"
    team: str = ""
    agent: str = ""
    numbers: list[int] = field(default_factory=list[int])
    begun: list[float] = field(default_factory=list[float])
    """When the jobs of the last minute were asked for."""

    async def set_up(self) -> None:
        team = await self.context.create_team(self.name)
        self.team, self.agent = team["id"], team["coordinator_id"]

    async def act(self) -> None:
        """Ask for research, within the limit of 30 hires a minute: each job hires two."""
        team = await self.context.client.ask("GET", f"/api/teams/{self.team}")
        now = time.monotonic()
        self.begun = [at for at in self.begun if at > now - 60]
        if team["working"] < 2 and len(self.begun) < JOBS_A_MINUTE:
            self.begun.append(now)
            number = next(self.context.numbers)
            body = {"goal": f"Find out {order('research', number)}"}
            path = f"/api/agents/{self.agent}/research"
            await self.context.client.ask("POST", path, body, key=f"research {number}")
            self.numbers.append(number)
        await asyncio.sleep(self.context.chance.uniform(2.2, 4.0))

    async def quick_check(self) -> None:
        await self._deliveries(at_rest=False)

    async def check(self) -> Counter[str]:
        reports = await self._deliveries(at_rest=True)
        return Counter(research=len(self.numbers), reports=reports)

    async def _deliveries(self, *, at_rest: bool) -> int:
        items = [item["message"] for item in await self.context.client.inbox()]
        reports = [m for m in items if m["kind"] in ("report", "failure")]
        said = await self.context.client.conversation(self.agent)
        arrived = Counter(n for m in reports for n in orders(m["title"], "research"))
        told = Counter(n for m in said for n in orders(m["text"], "research"))
        for number in self.numbers:
            counts = arrived[number], told[number]
            about = "research", number, "came to the inbox and the chat", counts, "times"
            require(max(counts) <= 1, *about)
            require(not at_rest or counts == (1, 1), *about)
        return sum(m["kind"] == "report" for m in reports)
