"""Piped commands: long-lived programs with which the runtime talks, each with a spool of its own.

The spool of such a program lasts as long as the program runs. Those that a crash left behind are
removed at the next start.
"""

import asyncio
import contextlib
import secrets
import shlex
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import Home
from agiraph.sandbox import commands
from agiraph.sandbox.dialogue import Dialogue, talking
from agiraph.sandbox.gate_channel import Serve
from agiraph.sandbox.sandbox import DEFAULT_LIMITS, Limits, Spec

MOST_LOG_BYTES = 8 * 2**20
"""Bytes on standard error after which a program is ended."""
SPOOL = "mcp-"
"""The prefix of the names of these spools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A program to run, and what it sees."""

    name: str
    """A part of the spool's name: letters, digits, '-' and '_'."""
    words: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    spec: Spec | None
    limits: Limits = DEFAULT_LIMITS
    serve: Serve | None = None


@contextlib.asynccontextmanager
async def running(home: Home, launch: Launch) -> AsyncGenerator[Dialogue]:
    """Run the program for the time of the block; at its end no process of it is left."""
    spool = await asyncio.to_thread(home.spool, f"{SPOOL}{launch.name}-{secrets.token_hex(6)}")
    logged, dialogue = 0, None

    def count(piece: bytes) -> None:
        nonlocal logged
        logged += len(piece)
        if logged > MOST_LOG_BYTES and dialogue is not None:
            dialogue.ended.cancel()

    try:
        async with talking(
            spool,
            command=f"exec {shlex.join(launch.words)}",
            cwd=launch.cwd,
            env=launch.env,
            spec=launch.spec,
            limits=launch.limits,
            team=f"mcp:{launch.name}",
            serve=launch.serve,
            on_output=count,
        ) as dialogue:
            yield dialogue
    finally:
        await asyncio.to_thread(shutil.rmtree, spool, ignore_errors=True)


def remove_spools(home: Home) -> None:
    """Remove the spools of piped commands that a crash left; those that run are left alone."""
    for spool in (home.path / "spool").glob(f"{SPOOL}*"):
        if not commands.is_alive(spool):
            shutil.rmtree(spool, ignore_errors=True)
