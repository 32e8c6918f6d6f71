"""Programs: giving a command work as a teammate, and knowing where it stands without waiting."""

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

from agiraph.domain.agents import Rule
from agiraph.domain.messages import Message
from agiraph.domain.persons import OWNER
from agiraph.domain.work import WorkNode
from agiraph.services.board import planning
from agiraph.services.lifecycle import teams as founding
from agiraph.services.members import roster
from agiraph.store import messages
from agiraph.store.tx import Tx
from agiraph.testing import World

STUBBORN = """
trap '' TERM
bash -c 'exec -a {mark} sleep 1000' &
setsid bash -c 'exec -a {mark} sleep 1000' &
( ( setsid bash -c 'exec -a {mark} sleep 1000' & ) & )
until [ $(pgrep -cf '^{mark}') = 3 ]; do :; done
echo ready > {gate}
exec -a {mark} sleep 1000
"""
"""Four processes, most of them hard to get rid of, that say when they are all there."""


RUNTIME = """
import asyncio, sys
from pathlib import Path
from agiraph.domain.time import SystemClock
from agiraph.testing import World

def tell(aftermath):
    for event in aftermath.events:
        print(event.type, flush=True)

async def live():
    world = World(Path(sys.argv[1]), clock=SystemClock())
    await world.start()
    world.store.subscribe(tell)
    await asyncio.get_running_loop().create_future()

asyncio.run(live())
"""


@dataclass(frozen=True, slots=True)
class Runtime:
    process: asyncio.subprocess.Process

    async def tells(self, kind: str) -> None:
        """Return when there is an event of this kind."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            if line.decode().strip() == kind:
                return
        raise AssertionError(f"the runtime ended before {kind}")


@contextlib.asynccontextmanager
async def runtime(home: Path) -> AsyncGenerator[Runtime, None]:
    """A runtime in a process of its own; in the end it is killed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUNTIME, str(home)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        yield Runtime(process)
    finally:
        process.kill()
        await process.communicate()


@dataclass(frozen=True, slots=True)
class Gate:
    """A pipe at which a program and its test wait for each other."""

    path: Path

    @classmethod
    def at(cls, path: Path) -> "Gate":
        os.mkfifo(path)
        return cls(path)

    async def heard(self) -> str:
        """What the program says here, as soon as it does."""
        return (await asyncio.to_thread(self.path.read_text)).strip()

    async def say(self, word: str) -> None:
        """Give the program a word, as soon as it reads."""
        await asyncio.to_thread(self.path.write_text, word + "\n")

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Crowd:
    """The processes of a program, found by the mark that all of them carry."""

    gate: Gate
    mark: str = field(default_factory=lambda: f"mark-{uuid.uuid4().hex}")

    @property
    def command(self) -> str:
        return STUBBORN.format(mark=self.mark, gate=self.gate)

    def alive(self) -> list[int]:
        found: list[int] = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
        return found


def give(
    tx: Tx, command: str, *, creator: str = OWNER, rules: tuple[Rule, ...] = (), **more: Any
) -> WorkNode:
    """A piece of work for a program, on a team of its own."""
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


async def given(world: World, command: str, **more: Any) -> WorkNode:
    return await world.store.write(give, command, **more)


async def done(world: World, command: str, **more: Any) -> WorkNode:
    """The node after the program has run."""
    node = await given(world, command, **more)
    await world.settle()
    return await world.node(node.id)


def folder_of(world: World, node: WorkNode) -> Path:
    return world.path / "teams" / node.team_id / "nodes" / node.id


def context_of(world: World, node: WorkNode) -> dict[str, Any]:
    """What the program was told about itself; for a node that has ended."""
    return orjson.loads((folder_of(world, node) / "_context.json").read_bytes())


async def said_by(world: World, node: WorkNode, *, to: str) -> list[str]:
    """What the program said to somebody, oldest first; not what it handed in."""
    found: list[Message] = await world.store.read(_between, node, to)
    return [message.text for message in found]


def _between(tx: Tx, node: WorkNode, to: str) -> list[Message]:
    where = "sender = :sender and recipient = :to and kind = 'message' order by seq"
    return messages.MESSAGES.select(tx, where, sender=node.assignee_id, to=to)


async def events_of(world: World, node: WorkNode, kind: str) -> list[dict[str, Any]]:
    events = await world.events(node.team_id)
    return [e.data for e in events if e.type == kind and e.data.get("node_id") == node.id]
