"""Research: questions that an agent's researcher looks into on pages on loopback.

Every report, or the word that there is none, comes once to the inbox and once to the chat.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import orjson

from tests.faults.attack.ground import Ground, demand
from tests.faults.attack.model import order, orders
from tests.web.sites import Site, html, response, site


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
    ground: Ground
    name: str = "research"
    team: str = ""
    agent: str = ""
    numbers: list[int] = field(default_factory=list[int])

    async def found(self) -> None:
        team = await self.ground.found(self.name)
        self.team, self.agent = team["id"], team["coordinator_id"]

    async def act(self) -> None:
        """Ask for research, seldom enough for a team that may hire 30 in a minute."""
        team = await self.ground.client.ask("GET", f"/api/teams/{self.team}")
        if team["working"] < 2:
            number = next(self.ground.numbers)
            body = {"goal": f"Find out {order('research', number)}"}
            path = f"/api/agents/{self.agent}/research"
            await self.ground.client.ask("POST", path, body, key=f"research {number}")
            self.numbers.append(number)
        await asyncio.sleep(self.ground.chance.uniform(2.2, 4.0))

    async def glance(self) -> None:
        await self._deliveries(at_rest=False)

    async def check(self) -> Counter[str]:
        reports = await self._deliveries(at_rest=True)
        return Counter(research=len(self.numbers), reports=reports)

    async def _deliveries(self, *, at_rest: bool) -> int:
        items = [item["message"] for item in await self.ground.client.inbox()]
        reports = [m for m in items if m["kind"] in ("report", "failure")]
        said = await self.ground.client.conversation(self.agent)
        arrived = Counter(n for m in reports for n in orders(m["title"], "research"))
        told = Counter(n for m in said for n in orders(m["text"], "research"))
        for number in self.numbers:
            counts = arrived[number], told[number]
            about = "research", number, "came to the inbox and the chat", counts, "times"
            demand(max(counts) <= 1, *about)
            demand(not at_rest or counts == (1, 1), *about)
        return sum(m["kind"] == "report" for m in reports)
