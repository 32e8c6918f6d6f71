"""Processes: find and kill the processes that an attack's server started."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path


def alive(mark: str) -> list[str]:
    """Return command lines with the mark, without those of the test's own children.

    The mark is the attack's folder: every command of its agents names a file in it.
    """
    return [line for _, line in _alive(mark)]


def kill(mark: str) -> None:
    """Kill the processes that a failed attack left behind."""
    for pid, _ in _alive(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _alive(mark: str) -> list[tuple[int, str]]:
    return [
        (pid, line)
        for pid, line in _command_lines()
        if mark in line and _parent(pid) != os.getpid()
    ]


def _command_lines() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            raw = (entry / "cmdline").read_bytes()
        except OSError:  # the process has ended
            continue
        yield int(entry.name), raw.replace(b"\0", b" ").decode(errors="replace").strip()


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


async def until_gone(mark: str, seconds: float) -> list[str]:
    """Wait until none is alive; after the timeout return those that still are."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while (left := alive(mark)) and loop.time() < end:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return left
