"""Host: runs `agiraph up` in a process of its own, kills it and starts it again."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.cli.forked import ForkedProcess, fork, reading
from tests.faults.attack import processes
from tests.faults.attack.client import TOKEN
from tests.faults.attack.context import require
from tests.faults.attack.entry import ENTRY, PLANTED

REPOSITORY = Path(__file__).parents[3]
START_SECONDS = 120.0
"""The timeout for a start on a busy machine."""
STOP_SECONDS = 60.0
ORPHAN_SECONDS = 20.0
"""The time for the kernel and the supervisors to end the commands of a killed server."""


class Running(NamedTuple):
    process: ForkedProcess
    output: asyncio.StreamReader


@dataclass(slots=True, kw_only=True)
class Host:
    home: Path
    port: int
    environment: dict[str, str]
    planted: str = ""
    faults: Counter[str] = field(default_factory=Counter[str])
    _server: Running | None = None
    _ending: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def kills(self) -> int:
        """How often the server was ended; pauses do not count."""
        return self.faults.total() - self.faults["paused"]

    @property
    def log(self) -> Path:
        return self.home.parent / "log"

    def environ(self, home: Path) -> dict[str, str]:
        own = {
            "PATH": os.environ["PATH"],
            "AGIRAPH_HOME": str(home),
            "AGIRAPH_PORT": str(self.port),
            "AGIRAPH_TOKEN": TOKEN,
            PLANTED: self.planted,
        }
        return own | self.environment

    @asynccontextmanager
    async def run(self, *arguments: str, home: Path | None = None) -> AsyncGenerator[Running]:
        """Run an `agiraph` command; its errors go to the log. Kill it at the end of the block."""
        stdout, theirs = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with reading(stdout) as output:
            command = fork(
                Path("agiraph"),
                *arguments,
                environment=self.environ(home or self.home),
                streams=(nothing, theirs, log),
                function=ENTRY,
                folder=REPOSITORY,
            )
            async with command as process:
                yield Running(process, output)

    async def begin(self) -> None:
        """Start the server without waiting until it is ready."""
        self._server = await self._ending.enter_async_context(self.run("up"))

    async def start(self) -> None:
        """Start the server and wait until it is ready."""
        await self.begin()
        said = b""
        async with asyncio.timeout(START_SECONDS):
            while b"is up" not in said:
                line = await self._running.output.readline()
                require(bool(line), "the server did not start:", self.log.read_text()[-2000:])
                said += line

    @property
    def _running(self) -> Running:
        assert self._server is not None
        return self._server

    async def close(self) -> None:
        """Kill the server if it runs."""
        self._server = None
        await self._ending.aclose()

    async def kill(self) -> None:
        await self._end(signal.SIGKILL, "killed")

    async def terminate(self) -> None:
        code = await self._end(signal.SIGTERM, "terminated")
        require(code == 0, "after SIGTERM the server exited with", code)

    async def pause(self, seconds: float) -> None:
        """Suspend the process with SIGSTOP for a while, as a suspended machine does."""
        process = self._running.process
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        process.send_signal(signal.SIGCONT)
        self.faults["paused"] += 1

    async def _end(self, number: int, name: str) -> int:
        """End the server with this signal; return its exit code."""
        process = self._running.process
        process.send_signal(number)
        async with asyncio.timeout(STOP_SECONDS):
            code = await process.wait()
        await self.close()
        self.faults[name] += 1
        left = await processes.until_gone(str(self.home.parent), ORPHAN_SECONDS)
        require(not left, f"processes outlive the {name} server:", left)
        return code
