"""Attack: kill the server at random moments, restart it, and check its invariants."""

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
from tests.conftest import reserved_port
from tests.faults.attack import processes, programs, research
from tests.faults.attack.backups import Backups, check_database
from tests.faults.attack.chat import chats
from tests.faults.attack.client import Client
from tests.faults.attack.context import Context, Ledger, require
from tests.faults.attack.host import Host
from tests.faults.attack.model import model
from tests.faults.attack.person import Person
from tests.faults.attack.programs import Programs
from tests.faults.attack.research import Research
from tests.faults.attack.triggers import Triggers

ENDED = ("completed", "failed", "cancelled")
SETTLE_SECONDS = 300.0
ROUND = 50
PARTS = ("chat", "triggers", "programs", "research", "backups")


class Part(Protocol):
    """One thing that clients do with the server."""

    name: str

    async def set_up(self) -> None:
        """Create the teams and triggers it needs, before the first kill."""
        ...

    async def act(self) -> None:
        """Make one request, or wait a little."""
        ...

    async def quick_check(self) -> None:
        """Make the cheap checks, while requests and kills go on."""
        ...

    async def check(self) -> Counter[str]:
        """Check everything, while no work is open; return how much was checked, by kind."""
        ...


@dataclass(slots=True, kw_only=True)
class Attack:
    host: Host
    context: Context
    server: ModelServer
    parts: list[Part]
    person: Person
    seen: dict[str, int] = field(default_factory=dict[str, int])
    """The number of the last checked event of each team."""
    _is_over: bool = False

    async def run(self, go_on: Callable[[int], bool], *, every: int = ROUND) -> Counter[str]:
        """Attack as long as `go_on(kills)` is true; return how much was checked, by kind.

        After every `every` kills all work is finished, and everything is checked.
        """
        for part in self.parts:
            await part.set_up()
        counts: Counter[str] = Counter()
        while go_on(self.host.kills):
            end = self.host.kills + every
            await self._round(lambda kills, end=end: kills < end and go_on(kills))
            counts = await self.check()
            print(dict(counts), flush=True)
        return counts

    async def _round(self, go_on: Callable[[int], bool]) -> None:
        """Kill, restart and check, while every part makes requests; then finish all work."""
        self._is_over = False
        try:
            async with asyncio.TaskGroup() as group:
                for part in self.parts:
                    group.create_task(self._repeat(part), name=part.name)
                group.create_task(self._answer(), name="person")
                while go_on(self.host.kills):
                    await self._inject_fault()
                    await self.quick_check()
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
            await asyncio.sleep(self.context.chance.uniform(0.0, 0.5))

    async def _inject_fault(self) -> None:
        chance = self.context.chance
        await asyncio.sleep(chance.uniform(0.0, 1.5))  # a random moment of its work
        match chance.choices(("kill", "terminate", "pause", "twice"), (16, 2, 2, 2))[0]:
            case "pause":
                return await self.host.pause(chance.uniform(0.1, 1.0))
            case "terminate":
                await self.host.terminate()
            case "twice":  # the second kill falls into the recovery from the first
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
        """Check a copy: opening the file itself would change what the next start finds."""
        with tempfile.TemporaryDirectory() as folder:
            for file in self.host.home.glob("agiraph.db*"):
                shutil.copy(file, folder)
            check_database(Path(folder) / "agiraph.db")

    async def quick_check(self) -> None:
        """Check after each restart that event numbers have no gap, and what the parts check."""
        for team in await self.context.client.ask("GET", "/api/teams"):
            last = self.seen.get(team["id"], 0)
            new = [e["seq"] for e in await self.context.client.events(team["id"], last)]
            dense = new == list(range(last + 1, last + 1 + len(new)))
            require(dense, "events of", team["name"], "after", last, "are", new)
            self.seen[team["id"]] = last + len(new)
        for part in self.parts:
            await part.quick_check()

    async def settle(self) -> None:
        """Wait until no work is open; the person answers all questions."""
        loop = asyncio.get_running_loop()
        end = loop.time() + SETTLE_SECONDS
        # The work is in another process, so only its API shows that it is done.
        while await self.person.act() or await self._open():
            require(loop.time() < end, "work is stuck:", await self._open())
            await asyncio.sleep(0.2)

    async def _open(self) -> list[str]:
        """Return what is open: unfinished nodes, and delayed triggers that are not due yet."""
        said = await self.context.client.ask("GET", "/api/metrics")
        counts = re.findall(r'agiraph_nodes(\{.*status="(\w+)"\}) (\d+)', said)
        found = [f"{about} {n}" for about, status, n in counts if status not in ENDED and int(n)]
        for team in await self.context.client.ask("GET", "/api/teams"):
            triggers = await self.context.client.ask("GET", f"/api/teams/{team['id']}/triggers")
            waiting = [t for t in triggers if (t["type"], t["status"]) == ("delayed", "active")]
            found += [f"{t['id']} due at {t['due_at']}" for t in waiting]
        return found

    async def check(self) -> Counter[str]:
        await self.quick_check()
        counts: Counter[str] = Counter(self.host.faults)
        for part in self.parts:
            counts += await part.check()
        await self._check_costs()
        require(
            not self.server.refused, "requests that a vendor would refuse:", self.server.refused[:3]
        )
        return Counter(kills=self.host.kills) + counts

    async def _check_costs(self) -> None:
        """Check that each request that reached the model is booked, as a call or a lost call."""
        booked = 0
        for team in await self.context.client.ask("GET", "/api/teams"):
            cost = await self.context.client.ask("GET", f"/api/teams/{team['id']}/cost")
            booked += cost["total"]["calls"] + cost["total"]["lost"]
        made = len(self.server.requests)
        require(booked >= made, made, "calls reached the model,", booked, "are booked")

    async def close(self) -> None:
        """Stop the server with SIGTERM; check its database."""
        await self.host.terminate()
        check_database(self.host.home / "agiraph.db")


def _parts(names: tuple[str, ...], context: Context, host: Host) -> list[Part]:
    talking = chats(context, 2) if "chat" in names else []
    made: dict[str, list[Part]] = {
        "chat": [*talking],
        "triggers": [Triggers(context=context)],
        "programs": [Programs(context=context)],
        "research": [Research(context=context)],
        "backups": [Backups(context=context, host=host, chats=talking)],
    }
    return [part for name in names for part in made[name]]


@contextlib.asynccontextmanager
async def attack(
    folder: Path, *, seed: int, planted: str = "", parts: tuple[str, ...] = PARTS
) -> AsyncGenerator[Attack]:
    """Start a server in this folder, with its model, person and clients."""
    home = folder / "home"
    ledger = Ledger(folder / "ledger", home)
    home.mkdir()
    ledger.file("stamp")
    (home / "agiraph.toml").write_text(programs.settings(ledger))
    async with (
        contextlib.AsyncExitStack() as stack,
        ModelServer(model(ledger)) as server,
        research.library() as library,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as http,
    ):
        environment = {
            "AGIRAPH_MODEL": "openai/scripted",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": server.openai_url,
            "SEARXNG_URL": library.url(""),
            "AGIRAPH_SANDBOX_READ": str(folder),
        }
        port = stack.enter_context(reserved_port())
        host = Host(home=home, port=port, environment=environment, planted=planted)
        client = Client(http=http, origin=f"http://127.0.0.1:{port}")
        context = Context(client=client, chance=random.Random(seed), ledger=ledger)
        try:
            await host.start()
            yield Attack(
                host=host,
                context=context,
                server=server,
                parts=_parts(parts, context, host),
                person=Person(context=context),
            )
        finally:
            await host.close()
            processes.kill(str(folder))
