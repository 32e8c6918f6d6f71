"""Watchdog: ends commands of a team, or of all teams, that use too much together.

The warden of each command counts its processes and its memory, and ends it at the limits of one
command (`processes.Guard`). One thread of the runtime adds the counts up. If they exceed the limits
of a team or of all, it ends the command that uses most of it.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field

from agiraph.sandbox.inside.processes import (
    ALL_MEMORY,
    ALL_PROCESSES,
    COUNT_BYTES,
    MIB,
    TEAM_MEMORY,
    TEAM_PROCESSES,
)
from agiraph.sandbox.sandbox import Limits

PAUSE_S = 0.05
"""Seconds between two looks at all counts."""
IDLE_S = 5.0
"""Seconds after the last command until the thread ends."""


@dataclass(slots=True, eq=False)
class Usage:
    """A running command, its file of counts and the pipe by which it is ended."""

    counts: int
    control: int
    team: str
    limits: Limits
    processes: int = field(default=0, init=False)
    memory: int = field(default=0, init=False)
    is_ended: bool = field(default=False, init=False)

    def read(self) -> None:
        found = os.pread(self.counts, COUNT_BYTES, 0)
        self.processes = int.from_bytes(found[:8], "little")
        self.memory = int.from_bytes(found[8:], "little")

    def end(self, limit: int) -> None:
        """Have the supervisor end the command for this limit."""
        self.is_ended = True
        with contextlib.suppress(OSError):  # it has ended by itself
            os.write(self.control, bytes([limit]))


class Watchdog:
    """Watches all running commands of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Usage] = set()
        self._thread: threading.Thread | None = None
        self._changed = threading.Event()

    def add(self, usage: Usage) -> None:
        with self._lock:
            self._running.add(usage)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch, name="watchdog of commands", daemon=True
                )
                self._thread.start()
        self._changed.set()

    def remove(self, usage: Usage) -> None:
        """Forget a command. Afterwards its descriptors are not used any more."""
        with self._lock:
            self._running.discard(usage)

    def _watch(self) -> None:
        while True:
            with self._lock:
                is_idle = not self._running
                check(self._running)
            if not is_idle:
                self._changed.clear()
                # Nothing sets the event of a busy watchdog: this is a pause.
                threading.Event().wait(PAUSE_S)
            elif self._changed.wait(IDLE_S):
                # Also here: a short command may have come and gone since the last look, and with
                # the event still set this loop would never wait again.
                self._changed.clear()
            elif self._may_end():
                return

    def _may_end(self) -> bool:
        with self._lock:
            if not self._running:
                self._thread = None
            return self._thread is None


def check(running: Iterable[Usage]) -> None:
    """Read all counts and end what uses most where a limit is exceeded."""
    live = [usage for usage in running if not usage.is_ended]
    for usage in live:
        usage.read()
    for team in {usage.team for usage in live}:
        mates = [usage for usage in live if usage.team == team]
        _end_largest(mates, lambda u: u.processes, lambda m: m.team_processes, TEAM_PROCESSES)
        _end_largest(mates, lambda u: u.memory, lambda m: m.team_memory_mib * MIB, TEAM_MEMORY)
    live = [usage for usage in live if not usage.is_ended]
    _end_largest(live, lambda u: u.processes, lambda m: m.all_processes, ALL_PROCESSES)
    _end_largest(live, lambda u: u.memory, lambda m: m.all_memory_mib * MIB, ALL_MEMORY)


def _end_largest(
    running: list[Usage],
    used: Callable[[Usage], int],
    most: Callable[[Limits], int],
    limit: int,
) -> None:
    """End the largest command if all together exceed the lowest limit among theirs.

    A single command is left to its own limit.
    """
    live = [usage for usage in running if not usage.is_ended]
    if len(live) > 1 and sum(map(used, live)) > min(most(usage.limits) for usage in live):
        max(live, key=used).end(limit)


_watchdog = Watchdog()


@contextmanager
def watching(usage: Usage) -> Generator[None]:
    """Watch a command for the time of the block."""
    _watchdog.add(usage)
    try:
        yield
    finally:
        _watchdog.remove(usage)
