"""Load: many clients at once. Some send messages, some watch events, and a few stop reading.

    python -m bench.load --seconds 60 --senders 100 --watchers 100 --stalled 5

The server runs in its own process, with paused teams. Measured: how soon a message is stored and
acknowledged, and whether every watcher gets every event once and in order.
"""

import argparse
import asyncio
import os
import random
import socket
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

TOKEN = "a-token-of-32-characters-for-bench"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
TOO_SLOW = 4008
# With the kernel's default buffer a stalled client would take megabytes before the server notices.
SMALL_BUFFER = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    seconds: float = 60.0
    senders: int = 100
    watchers: int = 100
    stalled: int = 5
    teams: int = 10
    size: int = 8_000
    """Characters of a message."""
    pause: float = 1.0
    """Seconds between two messages of one sender, on average."""
    least: int = 1
    """Messages that each sender sends at least, also if the time is over."""


@dataclass(slots=True, kw_only=True)
class Tally:
    errors: list[str] = field(default_factory=list[str])
    waits: list[float] = field(default_factory=list[float])
    wrong: list[str] = field(default_factory=list[str])
    """Event numbers that did not follow the number before."""
    heard: int = 0
    closed: int = 0
    """Connections that the server closed because their client was too slow."""
    resynced: int = 0


@dataclass(slots=True, kw_only=True)
class Watcher:
    """A WebSocket client that records the newest event number of each team."""

    origin: str
    http: aiohttp.ClientSession
    tally: Tally
    path: str
    got: dict[str, int]
    stalls: asyncio.Event | None = None
    """If given, the watcher reads nothing until this event is set."""

    async def run(self, heads: "asyncio.Future[dict[str, int]]") -> None:
        while not self._is_done(heads):
            try:
                async with self._connection() as line:
                    await self._follow(line, heads)
            except ConnectionClosed as error:
                code = error.rcvd.code if error.rcvd else 0
                # A full socket buffer has no room for the close frame either: code 0.
                is_expected = code == TOO_SLOW or (code == 0 and self.stalls is not None)
                self.tally.closed += is_expected
                if not is_expected:
                    self.tally.errors.append(f"a connection was closed with {code}")

    def _connection(self) -> connect:
        address = self.origin.replace("http", "ws") + self.path
        more: dict[str, Any] = {}
        if self.stalls is not None and not self.stalls.is_set():
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
            sock.connect(("127.0.0.1", int(self.origin.rsplit(":", 1)[1])))
            sock.setblocking(False)
            more = {"sock": sock, "max_queue": 1}
        if self.path != "/api/events":
            [after] = self.got.values()
            address += f"?after={after}"
        return connect(
            address, additional_headers=BEARER, compression=None, ping_interval=None, **more
        )

    async def _follow(
        self, line: ClientConnection, heads: "asyncio.Future[dict[str, int]]"
    ) -> None:
        if self.path == "/api/events":
            said = {"op": "subscribe", "cursors": self.got}
            await line.send(orjson.dumps(said).decode())
        if self.stalls is not None:
            await self.stalls.wait()
        while not self._is_done(heads):
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    frame = orjson.loads(await line.recv())
                    await self._handle(frame)

    async def _handle(self, frame: dict[str, Any]) -> None:
        if frame["op"] == "event":
            self._count(frame["event"])
        elif frame["op"] == "resync":
            self.tally.resynced += 1
            await self._read_missed(frame["team_id"], frame["head"])

    async def _read_missed(self, team: str, head: int) -> None:
        """Read the events that the connection skipped from the API, page by page."""
        while self.got[team] < head:
            address = f"{self.origin}/api/teams/{team}/events?after={self.got[team]}"
            async with self.http.get(address, headers=BEARER) as response:
                events = await response.json()
            for event in events:
                if event["seq"] <= head:
                    self._count(event)

    def _count(self, event: dict[str, Any]) -> None:
        team, seq = event["team_id"], event["seq"]
        if team in self.got:
            if seq != self.got[team] + 1:
                self.tally.wrong.append(f"{team}: {seq} after {self.got[team]}")
            self.got[team] = seq
            self.tally.heard += 1

    def _is_done(self, heads: "asyncio.Future[dict[str, int]]") -> bool:
        return heads.done() and all(seq >= heads.result()[team] for team, seq in self.got.items())


async def _send(
    http: aiohttp.ClientSession, origin: str, agent: str, place: int, plan: Plan, tally: Tally
) -> None:
    chance = random.Random(place)
    end = time.monotonic() + plan.seconds
    await asyncio.sleep(chance.uniform(0, plan.pause))
    number = 0
    while number < plan.least or time.monotonic() < end:
        text = f"{place}.{number} ".ljust(plan.size, "x")
        body = {"message": text, "mode": "nudge", "client_id": f"{place}.{number}"}
        begun = time.monotonic()
        error = await _post(http, f"{origin}/api/agents/{agent}/send", body)
        tally.waits.append(time.monotonic() - begun)
        tally.errors += [error] if error else []
        number += 1
        await asyncio.sleep(chance.uniform(0, 2 * plan.pause))


async def _post(http: aiohttp.ClientSession, address: str, body: dict[str, Any]) -> str:
    """Post the body; return the error, empty if the message was accepted."""
    try:
        async with http.post(address, json=body, headers=BEARER) as response:
            text = await response.text()
            return "" if response.status == 202 else f"{response.status} {text[:200]}"
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return repr(error)


async def _server(home: Path) -> tuple[asyncio.subprocess.Process, str]:
    environ = {
        "PATH": os.environ["PATH"],
        "AGIRAPH_HOME": str(home),
        "AGIRAPH_PORT": "0",
        "AGIRAPH_TOKEN": TOKEN,
        "AGIRAPH_MODEL": "demo",
    }
    with (home / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agiraph", "up"),
            env=environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    assert process.stdout is not None
    return process, await origin_of(process.stdout)


async def origin_of(output: asyncio.StreamReader) -> str:
    """Return the address of the server from the lines that `agiraph up` prints."""
    while line := (await output.readline()).decode():
        if "is up at " in line:
            return line.split()[-1]
    raise RuntimeError("the server did not start; its log is in its home")


async def _teams(http: aiohttp.ClientSession, origin: str, count: int) -> dict[str, str]:
    """Create paused teams; return the coordinator's id by team id."""
    made: dict[str, str] = {}
    for number in range(count):
        body = {"goal": f"Listen {number}", "start": False, "learns": False}
        async with http.post(f"{origin}/api/teams", json=body, headers=BEARER) as response:
            team = await response.json()
        made[team["id"]] = team["coordinator_id"]
        async with http.post(f"{origin}/api/teams/{team['id']}/pause", headers=BEARER) as response:
            await response.read()
    return made


async def measure(plan: Plan) -> dict[str, Any]:
    home = Path(tempfile.mkdtemp(prefix="agiraph-bench-"))
    process, origin = await _server(home)
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            return await _measure(plan, http, origin)
    finally:
        process.terminate()
        await process.communicate()


async def _measure(plan: Plan, http: aiohttp.ClientSession, origin: str) -> dict[str, Any]:
    tally, awake = Tally(), asyncio.Event()
    teams = await _teams(http, origin, plan.teams)
    heads: asyncio.Future[dict[str, int]] = asyncio.get_running_loop().create_future()

    def watcher(place: int) -> Watcher:
        is_stalled = place < plan.stalled
        one = list(teams)[place % len(teams)]
        of_all = is_stalled or place % 5 == 0
        return Watcher(
            origin=origin,
            http=http,
            tally=tally,
            path="/api/events" if of_all else f"/api/teams/{one}/events",
            got=dict.fromkeys(teams, 0) if of_all else {one: 0},
            stalls=awake if is_stalled else None,
        )

    watchers = [watcher(place) for place in range(plan.watchers)]
    watching = [asyncio.create_task(watcher.run(heads)) for watcher in watchers]
    agents = list(teams.values())
    await asyncio.gather(
        *(
            _send(http, origin, agents[place % len(agents)], place, plan, tally)
            for place in range(plan.senders)
        )
    )
    awake.set()
    async with http.get(f"{origin}/api/teams", headers=BEARER) as response:
        heads.set_result({team["id"]: team["head"] for team in await response.json()})
    async with asyncio.timeout(120 + plan.seconds):
        await asyncio.gather(*watching)
    return _results(tally, heads.result(), watchers)


def _results(tally: Tally, heads: dict[str, int], watchers: list[Watcher]) -> dict[str, Any]:
    waits = sorted(tally.waits)
    return {
        "sent": len(waits),
        "events": sum(heads.values()),
        "heard": tally.heard,
        "errors": tally.errors,
        "wrong": tally.wrong,
        "closed": tally.closed,
        "resynced": tally.resynced,
        "p50_ms": 1000 * waits[len(waits) // 2],
        "p99_ms": 1000 * waits[int(len(waits) * 0.99)],
        "got": [watcher.got for watcher in watchers],
        "heads": heads,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, kind in (("seconds", float), ("senders", int), ("watchers", int), ("stalled", int)):
        parser.add_argument(f"--{name}", type=kind, default=getattr(Plan(), name))
    found = asyncio.run(measure(Plan(**vars(parser.parse_args()))))
    print(f"{found['sent']} messages, {len(found['errors'])} errors")
    print(f"acknowledged after {found['p50_ms']:.0f} ms (p50), {found['p99_ms']:.0f} ms (p99)")
    print(f"{found['events']} events, received {found['heard']} times, {len(found['wrong'])} wrong")
    print(
        f"{found['closed']} slow connections closed and opened again, {found['resynced']} resyncs"
    )
    for line in (*found["errors"][:5], *found["wrong"][:5]):
        print(" ", line)
    sys.exit(bool(found["errors"] or found["wrong"]))


if __name__ == "__main__":
    main()
