"""Attack: kill the server at random moments, start it again, and hold it to its invariants."""

import asyncio
import contextlib
import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import aiohttp

from agiraph.testing.model_server import ModelServer
from tests.faults.attack import processes, programs, research
from tests.faults.attack.backups import Backups, check_database
from tests.faults.attack.chat import chats
from tests.faults.attack.client import Client
from tests.faults.attack.ground import Ground, Ledger, demand
from tests.faults.attack.host import Host
from tests.faults.attack.model import model
from tests.faults.attack.person import Person
from tests.faults.attack.programs import Programs
from tests.faults.attack.research import Research
from tests.faults.attack.wakings import Wakings

ENDED = ("completed", "failed", "cancelled")
SETTLE_SECONDS = 300.0
ROUND = 50
PARTS = ("chat", "wakings", "programs", "research", "backups")


class Part(Protocol):
    """One thing that clients do with the server."""

    name: str

    async def found(self) -> None:
        """Create what it needs; the server is not killed yet."""
        ...

    async def act(self) -> None:
        """Do it once, or wait a little."""
        ...

    async def glance(self) -> None:
        """Check what can be checked cheaply while everything goes on."""
        ...

    async def check(self) -> Counter[str]:
        """Check everything, while nothing goes on; return how much there was of it."""
        ...


@dataclass(slots=True, kw_only=True)
class Attack:
    host: Host
    ground: Ground
    server: ModelServer
    parts: list[Part]
    person: Person
    seen: dict[str, int] = field(default_factory=dict[str, int])
    """The number of the last event of each team that was looked at."""
    _is_over: bool = False

    async def run(self, go_on: Callable[[int], bool], *, every: int = ROUND) -> Counter[str]:
        """Attack for as long as `go_on` says of the number of kills; return what there was.

        After every so many kills everything comes to rest and is checked as a whole.
        """
        for part in self.parts:
            await part.found()
        counts: Counter[str] = Counter()
        while go_on(self.host.kills):
            end = self.host.kills + every
            await self._round(lambda kills, end=end: kills < end and go_on(kills))
            counts = await self.check()
            print(dict(counts), flush=True)
        return counts

    async def _round(self, go_on: Callable[[int], bool]) -> None:
        """Kill, restart and look, while every part goes on; then let everything come to rest."""
        self._is_over = False
        try:
            async with asyncio.TaskGroup() as group:
                for part in self.parts:
                    group.create_task(self._repeat(part), name=part.name)
                group.create_task(self._answer(), name="person")
                while go_on(self.host.kills):
                    await self._harm()
                    await self.glance()
                self._is_over = True
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        await self.settle()

    async def _repeat(self, part: Part) -> None:
        while not self._is_over:
            await part.act()

    async def _answer(self) -> None:
        while not self._is_over:
            await self.person.act()
            await asyncio.sleep(self.ground.chance.uniform(0.0, 0.5))

    async def _harm(self) -> None:
        chance = self.ground.chance
        await asyncio.sleep(chance.uniform(0.0, 1.5))  # anywhere in what it does
        match chance.choices(("kill", "terminate", "pause", "twice"), (16, 2, 2, 2))[0]:
            case "pause":
                return await self.host.pause(chance.uniform(0.1, 1.0))
            case "terminate":
                await self.host.terminate()
            case "twice":  # the second falls into the start, where the first is recovered from
                await self.host.kill()
                await self.host.begin()
                await asyncio.sleep(chance.uniform(0.0, 1.5))
                await self.host.kill()
            case _:
                await self.host.kill()
        if chance.random() < 0.2:
            self._check_database()
        await self.host.start()

    def _check_database(self) -> None:
        """On a copy: opening the file itself would change what the next start finds."""
        with tempfile.TemporaryDirectory() as folder:
            for file in self.host.home.glob("agiraph.db*"):
                shutil.copy(file, folder)
            check_database(Path(folder) / "agiraph.db")

    async def glance(self) -> None:
        """Check after each restart: no gap in the events, nothing twice."""
        for team in await self.ground.client.ask("GET", "/api/teams"):
            last = self.seen.get(team["id"], 0)
            new = [e["seq"] for e in await self.ground.client.events(team["id"], last)]
            dense = new == list(range(last + 1, last + 1 + len(new)))
            demand(dense, "events of", team["name"], "after", last, "are", new)
            self.seen[team["id"]] = last + len(new)
        for part in self.parts:
            await part.glance()

    async def settle(self) -> None:
        """Wait until nothing is open; the person answers what is asked."""
        loop = asyncio.get_running_loop()
        end = loop.time() + SETTLE_SECONDS
        # The work goes on in another process: there is nothing to wait for but what it shows.
        while await self.person.act() or await self._open():
            demand(loop.time() < end, "work is stuck:", await self._open())
            await asyncio.sleep(0.2)

    async def _open(self) -> list[str]:
        """What is not over: work in any state, and delayed triggers that are not due yet."""
        said = await self.ground.client.ask("GET", "/api/metrics")
        counts = re.findall(r'agiraph_nodes(\{.*status="(\w+)"\}) (\d+)', said)
        found = [f"{about} {n}" for about, status, n in counts if status not in ENDED and int(n)]
        for team in await self.ground.client.ask("GET", "/api/teams"):
            triggers = await self.ground.client.ask("GET", f"/api/teams/{team['id']}/triggers")
            waiting = [t for t in triggers if (t["type"], t["status"]) == ("delayed", "active")]
            found += [f"{t['id']} due at {t['due_at']}" for t in waiting]
        return found

    async def check(self) -> Counter[str]:
        await self.glance()
        counts: Counter[str] = Counter(self.host.harm)
        for part in self.parts:
            counts += await part.check()
        await self._check_costs()
        demand(not self.server.refused, "requests no vendor takes:", self.server.refused[:3])
        return Counter(kills=self.host.kills) + counts

    async def _check_costs(self) -> None:
        """Every request that reached the model is booked: as a call, or as a lost one."""
        booked = 0
        for team in await self.ground.client.ask("GET", "/api/teams"):
            cost = await self.ground.client.ask("GET", f"/api/teams/{team['id']}/cost")
            booked += cost["total"]["calls"] + cost["total"]["lost"]
        made = len(self.server.requests)
        demand(booked >= made, made, "calls reached the model,", booked, "are booked")

    async def close(self) -> None:
        """End the server in good order; its database is whole."""
        await self.host.terminate()
        check_database(self.host.home / "agiraph.db")


def _parts(names: tuple[str, ...], ground: Ground, host: Host) -> list[Part]:
    talking = chats(ground, 2) if "chat" in names else []
    made: dict[str, list[Part]] = {
        "chat": [*talking],
        "wakings": [Wakings(ground=ground)],
        "programs": [Programs(ground=ground)],
        "research": [Research(ground=ground)],
        "backups": [Backups(ground=ground, host=host, chats=talking)],
    }
    return [part for name in names for part in made[name]]


@contextlib.asynccontextmanager
async def attack(
    folder: Path, port: int, *, seed: int, planted: str = "", parts: tuple[str, ...] = PARTS
) -> AsyncGenerator[Attack]:
    """A server in this folder, and everybody who uses it."""
    ledger = Ledger(folder / "ledger")
    home = folder / "home"
    home.mkdir()
    ledger.file("stamp")
    (home / "agiraph.toml").write_text(programs.settings(ledger))
    async with (
        ModelServer(model(ledger)) as server,
        research.library() as library,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as http,
    ):
        environment = {
            "AGIRAPH_MODEL": "openai/scripted",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": server.openai_url,
            "SEARXNG_URL": library.url(""),
        }
        host = Host(home=home, port=port, environment=environment, planted=planted)
        client = Client(http=http, origin=f"http://127.0.0.1:{port}")
        ground = Ground(client=client, chance=random.Random(seed), ledger=ledger)
        await host.start()
        try:
            yield Attack(
                host=host,
                ground=ground,
                server=server,
                parts=_parts(parts, ground, host),
                person=Person(ground=ground),
            )
        finally:
            if host.process is not None and host.process.returncode is None:
                host.process.kill()
                await host.process.wait()
            processes.kill(str(folder))
