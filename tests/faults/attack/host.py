"""Host: runs `agiraph up` in a subprocess, kills it and starts it again."""

import asyncio
import os
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.attack import processes
from tests.faults.attack.client import TOKEN
from tests.faults.attack.context import require
from tests.faults.attack.entry import MODULE, PLANTED

REPOSITORY = Path(__file__).parents[3]
START_SECONDS = 120.0
"""The timeout for a start on a busy machine."""
STOP_SECONDS = 60.0
ORPHAN_SECONDS = 20.0
"""The time for the kernel and the supervisors to end the commands of a killed server."""


@dataclass(slots=True, kw_only=True)
class Host:
    home: Path
    port: int
    environment: dict[str, str]
    planted: str = ""
    process: asyncio.subprocess.Process | None = None
    faults: Counter[str] = field(default_factory=Counter[str])

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

    async def run(self, *arguments: str, home: Path | None = None) -> asyncio.subprocess.Process:
        """Start an `agiraph` command; its errors go to the log."""
        with self.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", MODULE, *arguments),
                env=self.environ(home or self.home),
                cwd=REPOSITORY,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )

    async def begin(self) -> None:
        """Start the server without waiting until it is ready."""
        self.process = await self.run("up")

    async def start(self) -> None:
        """Start the server and wait until it is ready."""
        await self.begin()
        assert self.process is not None
        assert self.process.stdout is not None
        said = b""
        async with asyncio.timeout(START_SECONDS):
            while b"is up" not in said:
                line = await self.process.stdout.readline()
                require(bool(line), "the server did not start:", self.log.read_text()[-2000:])
                said += line

    async def kill(self) -> None:
        await self._end(signal.SIGKILL, "killed")

    async def terminate(self) -> None:
        await self._end(signal.SIGTERM, "terminated")
        assert self.process is not None
        require(
            self.process.returncode == 0,
            "after SIGTERM the server exited with",
            self.process.returncode,
        )

    async def pause(self, seconds: float) -> None:
        """Suspend the process with SIGSTOP for a while, as a suspended machine does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)
        self.faults["paused"] += 1

    async def _end(self, number: int, name: str) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        async with asyncio.timeout(STOP_SECONDS):
            await self.process.wait()
        self.faults[name] += 1
        left = await processes.until_gone(str(self.home.parent), ORPHAN_SECONDS)
        require(not left, f"processes outlive the {name} server:", left)
