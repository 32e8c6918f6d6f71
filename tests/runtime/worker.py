"""Worker: a runtime in a subprocess that a test controls by lines on stdin and stdout.

Its arguments are `HOME URL LEDGER [FLAG…]`, with at most one of --hold, --slow, --busy and
--deadly: then its model calls a tool that kills the process, unless `calm` lies beside the ledger.
It prints `ready`, `asked STEP` before each model reply (with --hold the reply waits for a line on
stdin), `ended NODE`, `idle` whenever no node runs any more, and its log. With --quick it declares a
hanging worker dead after seconds; with --busy each reply blocks its event loop for longer than
that; with --ahead its clock is hours ahead; with --unlocked it releases its locks on the home and
the database. It ends at the end of its stdin. Each model call is a line in the ledger.
"""

import asyncio
import contextlib
import logging
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agiraph.core.domain.errors import StoreUnavailable
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.run_context import RunContext
from agiraph.core.store.engine import presence
from agiraph.core.store.tx import Aftermath
from agiraph.core.tools.base import Tool, tool
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import as_reply
from tests.cli.forked import ForkedProcess, fork, reading

SECONDS = 30
"""The timeout for each line that a test expects; far more than a worker needs."""


BUSY_SECONDS = 6.0
"""Longer than a worker may be silent with --quick."""
AHEAD = timedelta(hours=3)


NOTES = re.compile(r"notes: (\d+)", re.IGNORECASE)


def steps(texts: Iterable[str]) -> int:
    """Return the number of notes that the first task in a thread asks for.

    Notices of the runtime may come before or after it, such as that of a run that was cut off.
    """
    return next(int(found[-1]) for text in texts if (found := NOTES.findall(text)))


def react(request: Request) -> Says:
    """Write one note per reply, as many as were asked for, then finish."""
    turns = request.transcript.turns
    done = sum(turn.role == "assistant" for turn in turns)
    tools = {tool.name for tool in request.tools}
    if done < steps(turn.text for turn in turns[1:]):
        return says(call("checkpoint", summary=f"note {done}"))
    return says(call("finish" if "finish" in tools else "publish", summary=f"{done} notes"))


def react_to_death(request: Request) -> Says:
    """Call the deadly tool once, then finish with its answer."""
    answers = [turn.text for turn in request.transcript.turns if turn.role == "tool"]
    return says(call("finish", summary=answers[0]) if answers else call("perish"))


def deadly_tool(ledger: Path) -> Tool:
    @tool(effect="repeatable")
    async def perish(ctx: RunContext) -> Answer:
        """Kill the process."""
        with ledger.open("a") as file:
            file.write(f"perish {os.getpid()}\n")
        if not ledger.with_name("calm").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return Done("Survived.")

    return perish


class WrongClock(SystemClock):
    """A system clock that is set wrong."""

    def __init__(self, by: timedelta = AHEAD) -> None:
        self.by = by

    def now(self) -> datetime:
        return super().now() + self.by


class Commands:
    """The commands on a worker's stdin: each line releases one reply, the end stops the process."""

    def __init__(self) -> None:
        self.go_on = asyncio.Semaphore(0)
        self.over = asyncio.Event()

    async def listen(self) -> None:
        words = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
        while await words.readline():
            self.go_on.release()
        self.over.set()


@dataclass(slots=True)
class ReportingModel:
    """A model that prints each request, and with `hold` waits for a command before it replies."""

    name: str
    ledger: Path
    commands: Commands
    hold: bool
    busy: bool
    seconds: float
    react: Callable[[Request], Says] = react

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        turns = request.transcript.turns
        step = sum(turn.role == "assistant" for turn in turns)
        file = os.open(self.ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, f"{turns[0].thread_id} {step} {os.getpid()}\n".encode())
        os.close(file)
        print("asked", step, flush=True)
        if self.hold:
            await self.commands.go_on.acquire()
        if self.busy:
            end = time.monotonic() + BUSY_SECONDS
            while time.monotonic() < end:
                pass  # pure Python: the event loop is blocked
        await asyncio.sleep(random.random() * self.seconds)
        return as_reply(self.react(request))


async def serve(home: Path, url: str, ledger: Path, flags: list[str]) -> None:
    if "--quick" in flags:
        presence.HUNG_CHECKS = 4
    commands = Commands()
    listening = asyncio.create_task(commands.listen())
    world = World(
        home,
        database_url=url,
        clock=WrongClock() if "--ahead" in flags else SystemClock(),
        easy_endings=True,
        tools=[deadly_tool(ledger)] if "--deadly" in flags else [],
    )
    model = ReportingModel(
        name="scripted/ada",
        ledger=ledger,
        commands=commands,
        hold="--hold" in flags,
        busy="--busy" in flags,
        seconds=0.8 if "--slow" in flags else 0.0,
        react=react_to_death if "--deadly" in flags else react,
    )
    world.model("ada", model)
    await world.start()
    if "--unlocked" in flags:
        _lose_locks(world)
    print("ready", flush=True)
    telling = asyncio.create_task(_report_events(world))
    await commands.over.wait()
    telling.cancel()
    await world.stop()
    await listening


def _lose_locks(world: World) -> None:
    """Release the runtime's locks, as a file system that loses them does."""
    runtime: Any = world.runtime
    runtime.lock.release()
    runtime.store._files.disown()


async def _report_events(world: World) -> None:
    happened = asyncio.Event()

    def notice(aftermath: Aftermath) -> None:
        happened.set()
        for event in aftermath.events:
            if event.type in ("node.completed", "node.partial", "node.failed", "node.cancelled"):
                print("ended", event.data["node_id"], flush=True)

    world.store.subscribe(notice)
    while True:
        await happened.wait()
        happened.clear()
        with contextlib.suppress(StoreUnavailable):
            await world.settle()
            print("idle", flush=True)


@dataclass(slots=True, kw_only=True)
class Worker:
    """The test's side: the subprocess of a worker."""

    process: ForkedProcess
    stdin: int
    stdout: asyncio.StreamReader
    _ending: AsyncExitStack
    said: list[str] = field(default_factory=list[str])
    listening: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, home: Path, url: str, ledger: Path, *flags: str) -> "Worker":
        (theirs_in, stdin), (stdout, theirs_out) = os.pipe(), os.pipe()
        ending = AsyncExitStack()
        output = ending.enter_context(reading(stdout))
        program = fork(
            Path(__file__),
            *(str(home), url, str(ledger), *flags),
            environment=dict(os.environ),
            streams=(theirs_in, theirs_out, os.dup(2)),
            function=f"{__name__}:main",
        )
        process = await ending.enter_async_context(program)
        worker = cls(process=process, stdin=stdin, stdout=output, _ending=ending)
        await worker.says("ready")
        return worker

    async def says(self, *beginnings: str) -> str:
        """Wait for its next line that starts with one of these; return that line."""
        async with asyncio.timeout(SECONDS):
            while raw := await self.stdout.readline():  # a traceback has empty lines
                line = raw.decode().strip()
                self.said.append(line)
                if line.startswith(beginnings):
                    return line
        raise AssertionError(f"the worker ended without printing {beginnings}: {self.said[-20:]}")

    async def listen(self) -> None:
        """Read its output to the end, so that it never blocks on a full pipe."""
        while line := await self.stdout.readline():
            self.said.append(line.decode().strip())

    def go_on(self) -> None:
        os.write(self.stdin, b"go on\n")

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        os.close(self.stdin)
        await self._read_to_end()

    async def dies(self) -> None:
        """Wait until it has killed itself."""
        async with asyncio.timeout(SECONDS):
            await self._read_to_end()
        assert self.process.returncode == -signal.SIGKILL, self.said[-20:]
        os.close(self.stdin)

    async def stop(self) -> None:
        """Close its stdin, and wait for a clean exit."""
        os.close(self.stdin)
        async with asyncio.timeout(SECONDS):
            await self._read_to_end()
        assert self.process.returncode == 0, self.said[-20:]

    async def _read_to_end(self) -> None:
        await (self.listening or self.listen())
        await self.process.wait()
        await self._ending.aclose()


def main() -> None:
    home, url, ledger, *flags = sys.argv[1:]
    logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="log %(message)s")
    asyncio.run(serve(Path(home), url, Path(ledger), flags))
