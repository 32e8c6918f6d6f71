"""Conversion: runs a script in a process of its own that turns a document of a stranger into text.

The scripts (`markdown.py`, `pdf_text.py`) limit their own memory and time. What one of them has
printed before it was stopped is kept.
"""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MAX_OUTPUT_BYTES = 32 * 2**20
"""A script that prints more is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What a script printed, and how it ended."""

    output: bytes
    end: Literal["whole", "failed", "timeout"]


async def convert(
    script: str, arguments: Sequence[str], source: bytes, *, timeout_s: float
) -> Conversion:
    """Run a script on a document, and return what it printed."""
    # `-I` and an empty environment: the process that reads hostile bytes gets no keys, and imports
    # nothing from the current folder.
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        script,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    output = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.gather(_feed(process.stdin, source), _take(process.stdout, output))
            await process.wait()
    except TimeoutError:
        return Conversion(output=bytes(output), end="timeout")
    finally:
        # Cancellation passes here too: a converter must not outlive the call that started it.
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Conversion(output=bytes(output), end="failed" if process.returncode else "whole")


async def _feed(pipe: asyncio.StreamWriter, source: bytes) -> None:
    # A script that ends early does not read all of it.
    with contextlib.suppress(ConnectionError):
        pipe.write(source)
        await pipe.drain()
        pipe.close()
        await pipe.wait_closed()


async def _take(pipe: asyncio.StreamReader, output: bytearray) -> None:
    while len(output) < MAX_OUTPUT_BYTES and (piece := await pipe.read(2**16)):
        output += piece
