"""Over HTTP: a server that is killed again and again, and clients who hold it to its word.

Whoever checks sees what any client sees, and a ledger into which the tool writes what it did.
"""

import asyncio
import contextlib
import os
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from agiraph.testing.model_server import ModelServer, Says, Seen, call, says

TOKEN = "a-token-of-32-characters-for-test"
STAMP = re.compile(r"<<stamp (\d+)>>")
ENDED = ("completed", "failed", "cancelled")
DONE = re.compile(r"^echo (\d+) >>")


def model(ledger: Path) -> Any:
    """Stamps each number it reads of once, whatever it is told became of the stamping."""

    def answer(seen: Seen) -> Says:
        if "bash" not in seen.tools:
            return says("I will see to it.")
        wanted = [n for m in seen.messages if m.role == "user" for n in STAMP.findall(m.text)]
        asked = {
            found[1]
            for message in seen.messages
            for made in message.calls
            if (found := DONE.match(str(made.arguments.get("command", ""))))
        }
        for number in wanted:
            if number not in asked:
                return says(call("bash", command=f"echo {number} >> {ledger}"))
        return says(call("finish", summary="stamped"))

    return answer


@dataclass(slots=True, kw_only=True)
class Host:
    """`agiraph up` in a process of its own, begun anew whenever it is killed."""

    home: Path
    port: int
    model_url: str
    process: asyncio.subprocess.Process | None = None
    kills: int = 0

    async def start(self) -> None:
        environ = {
            "PATH": os.environ["PATH"],
            "AGIRAPH_HOME": str(self.home),
            "AGIRAPH_PORT": str(self.port),
            "AGIRAPH_TOKEN": TOKEN,
            "AGIRAPH_MODEL": "openai/scripted",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": self.model_url,
        }
        with (self.home.parent / "log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "agiraph", "up"),
                env=environ,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        assert self.process.stdout is not None
        async with asyncio.timeout(120):
            said = await self.process.stdout.readline()
        assert b"is up" in said, (self.home.parent / "log").read_text()[-2000:]

    async def kill(self, number: int = signal.SIGKILL) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        await self.process.wait()
        self.kills += 1


@dataclass(slots=True, kw_only=True)
class Client:
    """Somebody who tries again until they are heard, under the same key."""

    http: aiohttp.ClientSession
    origin: str
    tries: int = 0

    async def ask(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        headers = {"Authorization": f"Bearer {TOKEN}"} | ({"Idempotency-Key": key} if key else {})
        while True:
            self.tries += 1
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, ConnectionError):
                request = self.http.request(method, self.origin + path, json=body, headers=headers)
                async with request as response:
                    is_json = "json" in response.content_type
                    said = await (response.json() if is_json else response.text())
                    if response.status == 429:
                        await asyncio.sleep(float(response.headers["Retry-After"]))
                    elif response.status < 500:
                        assert response.status < 400, (method, path, said)
                        return said
            await asyncio.sleep(0.05)

    async def pages(self, path: str, key: str) -> list[Any]:
        got: list[Any] = []
        while page := await self.ask("GET", f"{path}?after={got[-1][key] if got else 0}"):
            got += page
        return got


@dataclass(slots=True, kw_only=True)
class Trial:
    host: Host
    client: Client
    chance: random.Random
    ledger: Path
    teams: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    acknowledged: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    is_over: bool = False

    async def found(self, count: int) -> None:
        for number in range(count):
            body = {"goal": f"Stamp {number}", "mode": "infinite", "start": False, "learns": False}
            team = await self.client.ask("POST", "/api/teams", body, key=f"team {number}")
            self.teams.append(team)
            self.acknowledged[team["coordinator_id"]] = []

    async def talk(self, agent: str, place: int) -> None:
        """Say one thing after another, each until it is acknowledged; seldom to who is at work."""
        said = self.acknowledged[agent]
        while not self.is_over:
            now = await self.client.ask("GET", f"/api/agents/{agent}")
            if now["status"] != "idle" and self.chance.random() < 0.8:
                await asyncio.sleep(0.1)
                continue
            number = place * 1_000_000 + len(said)
            mode = "send" if self.chance.random() < 0.2 else "nudge"
            body = {"message": f"<<stamp {number}>>", "mode": mode, "client_id": f"c{number}"}
            got = await self.client.ask("POST", f"/api/agents/{agent}/send", body)
            said.append(got["text"])

    async def harm(self, kills: int) -> None:
        for _ in range(kills):
            await asyncio.sleep(self.chance.uniform(0.0, 1.5))  # anywhere in what it does
            await self.host.kill()
            await self.host.start()
            await self._answer()  # who was cut off too often would wait for the rest of the run
        self.is_over = True

    async def settle(self, seconds: float) -> None:
        """Until nothing is open, with a person who answers whoever was cut off too often."""
        async with asyncio.timeout(seconds):
            # It runs in another process: there is nothing to wait for but what it shows.
            while await self._answer() or await self._is_busy():  # noqa: ASYNC110
                await asyncio.sleep(0.2)

    async def _answer(self) -> bool:
        page = await self.client.ask("GET", "/api/inbox")
        asked = [item["message"]["id"] for item in page["items"] if item["needs_answer"]]
        for item in asked:
            answer = {"text": "Try again."}
            await self.client.ask("POST", f"/api/inbox/{item}/answer", answer, key=f"answer {item}")
        return bool(asked)

    async def _is_busy(self) -> bool:
        said = await self.client.ask("GET", "/api/metrics")
        counts = re.findall(r'agiraph_nodes\{.*status="(\w+)"\} (\d+)', said)
        return any(int(n) for status, n in counts if status not in ENDED)

    async def check(self) -> dict[str, int]:
        """What was promised; how much there was of it."""
        stamped = Counter(self.ledger.read_text().split())
        asked: Counter[str] = Counter()
        for team in self.teams:
            agent = team["coordinator_id"]
            said = await self._conversation(agent)
            mine = [m["text"] for m in said if m["kind"] in ("message", "nudge")]
            told = [text for text in mine if STAMP.fullmatch(text)]
            assert told == self.acknowledged[agent], (told, self.acknowledged[agent])
            replies = [m["in_reply_to"] for m in said if m["sender"] == agent and m["in_reply_to"]]
            assert len(replies) == len(set(replies)), team["id"]
            events = await self.client.pages(f"/api/teams/{team['id']}/events", "seq")
            assert [e["seq"] for e in events] == list(range(1, len(events) + 1)), team["id"]
            for thread in await self.client.pages(f"/api/agents/{agent}/threads", "id"):
                turns = await self.client.pages(f"/api/threads/{thread['id']}", "seq")
                commands = [str(c["arguments"].get("command")) for t in turns for c in t["calls"]]
                asked.update(found[1] for c in commands if (found := DONE.match(c)))
        wanted = [STAMP.findall(t)[0] for told in self.acknowledged.values() for t in told]
        assert set(stamped) <= set(wanted)
        assert {n: (stamped[n], asked[n]) for n in stamped if stamped[n] > asked[n]} == {}
        assert {n: asked[n] for n in wanted if asked[n] != 1} == {}
        return {
            "kills": self.host.kills,
            "acknowledged": len(wanted),
            "stamped": stamped.total(),
            "owned up to": len(wanted) - len(stamped),
        }

    async def _conversation(self, agent: str) -> list[Any]:
        got: list[Any] = []
        path = f"/api/agents/{agent}/conversation?limit=500&before="
        while page := await self.client.ask("GET", path + (got[0]["id"] if got else "")):
            got = page + got
        return got


@contextlib.asynccontextmanager
async def trial(folder: Path, port: int, seed: int) -> AsyncGenerator[Trial]:
    ledger = folder / "ledger"
    ledger.touch()
    timeout = aiohttp.ClientTimeout(total=20)
    async with (
        ModelServer(model(ledger)) as server,
        aiohttp.ClientSession(timeout=timeout) as http,
    ):
        host = Host(home=folder / "home", port=port, model_url=server.openai_url)
        await host.start()
        try:
            client = Client(http=http, origin=f"http://127.0.0.1:{port}")
            yield Trial(host=host, client=client, chance=random.Random(seed), ledger=ledger)
        finally:
            if host.process is not None and host.process.returncode is None:
                await host.kill()


ROUND = 250
"""Kills after which everything is looked at: whatever is wrong should not be found hours later."""


async def ordeal(folder: Path, port: int, *, kills: int, teams: int = 4, seed: int = 1) -> str:
    """Kill a server this often while clients talk; say what came of it, or fail."""
    async with trial(folder, port, seed) as tried:
        await tried.found(teams)
        counts: dict[str, int] = {}
        for done in range(0, kills, ROUND):
            tried.is_over = False
            talking = [
                asyncio.create_task(tried.talk(team["coordinator_id"], place))
                for place, team in enumerate(tried.teams)
            ]
            await tried.harm(min(ROUND, kills - done))
            await asyncio.gather(*talking)
            await tried.settle(300)
            counts = await tried.check()
            print(counts, flush=True)
        return ", ".join(f"{count} {name}" for name, count in counts.items())
