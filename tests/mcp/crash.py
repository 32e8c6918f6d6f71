"""Crash: a runtime that calls a tool of the rude server and is killed at a fault point."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from agiraph import faultpoints
from agiraph.testing import World, call, says
from tests.mcp.kit import rude

CALL = call("call_tool", name="mcp__rude__note", arguments={"text": "once"})


def main() -> None:
    """Work in the home of the environment; end by SIGKILL at the point that is the argument."""

    def kill(point: str) -> None:
        if point == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGKILL)

    faultpoints.armed = kill
    asyncio.run(_live(Path(os.environ["AGIRAPH_HOME"])))


async def _live(home: Path) -> None:
    async with World(home, features={"mcp": {"rude": rude()}}, easy_endings=True) as world:
        world.script("ada", says(CALL), says(call("finish", summary="done")))
        await world.found("Write it down")
        await world.settle()
