"""Programs: run a command as a teammate, and follow its progress without sleeping."""

import asyncio
import contextlib
import os
import sys
import uuid
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from agiraph.core.domain.agents import Rule
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import teams as founding
from agiraph.core.services.members import roster
from agiraph.core.store import messages
from agiraph.core.store.tx import Aftermath, Tx
from agiraph.testing import World
from tests.cli.forked import fork, reading

STUBBORN = """
trap '' TERM
bash -c 'exec -a {mark} sleep 1000' &
setsid bash -c 'exec -a {mark} sleep 1000' &
( ( setsid bash -c 'exec -a {mark} sleep 1000' & ) & )
until [ $(pgrep -cf '^{mark}') = 3 ]; do :; done
echo ready > {pipe}
exec -a {mark} sleep 1000
"""
"""Four processes, most of them hard to kill; the pipe says when all of them run."""


def live() -> None:
    """Run a runtime in the folder that `sys.argv` names; print the type of each event."""
    asyncio.run(_live(Path(sys.argv[1])))


async def _live(home: Path) -> None:
    def tell(aftermath: Aftermath) -> None:
        for event in aftermath.events:
            print(event.type, flush=True)

    world = World(home, clock=SystemClock(), easy_endings=True)
    await world.start()
    world.store.subscribe(tell)
    await asyncio.get_running_loop().create_future()


@dataclass(frozen=True, slots=True)
class RuntimeProcess:
    stdout: asyncio.StreamReader

    async def wait_for(self, kind: str) -> None:
        """Wait for an event of this type."""
        while line := await self.stdout.readline():
            if line.decode().strip() == kind:
                return
        raise AssertionError(f"the runtime ended before {kind}")


@contextlib.asynccontextmanager
async def runtime_process(home: Path) -> AsyncGenerator[RuntimeProcess, None]:
    """Run a runtime in a subprocess; kill it at the end of the block."""
    stdout, theirs = os.pipe()
    with reading(stdout) as output:
        program = fork(
            Path(__file__),
            str(home),
            environment=dict(os.environ),
            streams=(os.open(os.devnull, os.O_RDONLY), theirs, os.dup(2)),
            function=f"{__name__}:live",
        )
        async with program:
            yield RuntimeProcess(output)


@dataclass(frozen=True, slots=True)
class NamedPipe:
    """A named pipe at which a program and its test wait for each other."""

    path: Path

    @classmethod
    def create(cls, path: Path) -> "NamedPipe":
        os.mkfifo(path)
        return cls(path)

    async def read(self) -> str:
        """Return what the program writes, once it has written."""
        return (await asyncio.to_thread(self.path.read_text)).strip()

    async def write(self, line: str) -> None:
        """Write a line to the program, once it reads."""
        await asyncio.to_thread(self.path.write_text, line + "\n")

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class MarkedProcesses:
    """The processes of a program, found by a mark in their command lines."""

    pipe: NamedPipe
    mark: str = field(default_factory=lambda: f"mark-{uuid.uuid4().hex}")

    @property
    def command(self) -> str:
        return STUBBORN.format(mark=self.mark, pipe=self.pipe)

    def alive(self) -> list[int]:
        found: list[int] = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
        return found


def create_program_task(
    tx: Tx, command: str, *, creator: str = OWNER, rules: tuple[Rule, ...] = (), **more: Any
) -> WorkNode:
    """Create a task for a program, in a new team."""
    founded = founding.create(
        tx,
        owner_id=OWNER,
        goal="Have it done",
        model="scripted/ada",
        start=False,
        permissions=rules,
    )
    team_id = founded.team.id
    creator = founded.coordinator.id if creator == "coordinator" else creator
    agent = roster.hire(
        tx, team_id, name="tool", role="worker", model="cli", kind="cli", command=command
    )
    return planning.create(
        tx,
        team_id=team_id,
        task="Do it.",
        title="Do it",
        source="user",
        creator_id=creator,
        assignee_id=agent.id,
        **more,
    )


async def start_program(world: World, command: str, **more: Any) -> WorkNode:
    """Create a task for a program; it starts at once."""
    return await world.store.write(create_program_task, command, **more)


async def run_program(world: World, command: str, **more: Any) -> WorkNode:
    """Run a program to its end; return its node."""
    node = await start_program(world, command, **more)
    await world.settle()
    return await world.node(node.id)


def folder_of(world: World, node: WorkNode) -> Path:
    return world.path / "teams" / node.team_id / "nodes" / node.id


def context_of(world: World, node: WorkNode) -> dict[str, Any]:
    """Return the content of `_context.json`. The node has ended."""
    return orjson.loads((folder_of(world, node) / "_context.json").read_bytes())


async def messages_from(world: World, node: WorkNode, *, to: str) -> list[str]:
    """Return the messages from the program to a recipient, oldest first, without its result."""
    found: list[Message] = await world.store.read(_between, node, to)
    return [message.text for message in found]


def _between(tx: Tx, node: WorkNode, to: str) -> list[Message]:
    where = "sender = :sender and recipient = :to and kind = 'message' order by seq"
    return messages.MESSAGES.select(tx, where, sender=node.assignee_id, to=to)


async def events_of(world: World, node: WorkNode, kind: str) -> list[dict[str, Any]]:
    events = await world.events(node.team_id)
    return [e.data for e in events if e.type == kind and e.data.get("node_id") == node.id]
