"""Host: `agiraph up` in a process of its own, started again whenever it is killed."""

import asyncio
import os
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.attack import processes
from tests.faults.attack.client import TOKEN
from tests.faults.attack.entry import MODULE, PLANTED
from tests.faults.attack.ground import demand

REPOSITORY = Path(__file__).parents[3]
START_SECONDS = 120.0
"""For a start on a busy machine; a server that takes longer hangs."""
STOP_SECONDS = 60.0
ORPHAN_SECONDS = 20.0
"""For the kernel and the supervisors to end what a killed server had started."""


@dataclass(slots=True, kw_only=True)
class Host:
    home: Path
    port: int
    environment: dict[str, str]
    planted: str = ""
    process: asyncio.subprocess.Process | None = None
    harm: Counter[str] = field(default_factory=Counter[str])

    @property
    def kills(self) -> int:
        """How often the server was ended; pauses do not count."""
        return self.harm.total() - self.harm["paused"]

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
        """Start the server and do not wait for it."""
        self.process = await self.run("up")

    async def start(self) -> None:
        """Start the server and wait until it serves."""
        await self.begin()
        assert self.process is not None
        assert self.process.stdout is not None
        said = b""
        async with asyncio.timeout(START_SECONDS):
            while b"is up" not in said:
                line = await self.process.stdout.readline()
                demand(bool(line), "the server did not start:", self.log.read_text()[-2000:])
                said += line

    async def kill(self) -> None:
        await self._end(signal.SIGKILL, "killed")

    async def terminate(self) -> None:
        await self._end(signal.SIGTERM, "terminated")
        assert self.process is not None
        demand(self.process.returncode == 0, "SIGTERM ended it with", self.process.returncode)

    async def pause(self, seconds: float) -> None:
        """Stop the process as a suspended machine would, and let it go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)
        self.harm["paused"] += 1

    async def _end(self, number: int, name: str) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        async with asyncio.timeout(STOP_SECONDS):
            await self.process.wait()
        self.harm[name] += 1
        left = await processes.until_gone(str(self.home.parent), ORPHAN_SECONDS)
        demand(not left, f"processes outlive the {name} server:", left)
