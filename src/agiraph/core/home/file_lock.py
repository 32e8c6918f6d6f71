"""File lock: lets one writer at a time change the kept files of a team together with their labels.

The label of a file is a row and its words are on the disk, so a change of both is two writes. A
run that has lost its lease may stall between the two. If a clean thread wrote the same file and
took its label away in that moment, the stalled run would then write untrusted text into a file that
counts as clean. So both hold this lock from the first write to the second. The kernel releases it
when the process ends, however it ends.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import ParamSpec, TypeVar

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import TeamId
from agiraph.core.home.layout import Home

P = ParamSpec("P")
R = TypeVar("R")

WAIT_S = 10.0
"""How long a writer waits for another one; a write takes milliseconds."""
PAUSE_S = 0.01
BUSY = (
    "Not written: another process has been writing a file of this team for {seconds:.0f} seconds. "
    "Nothing was changed. Go on, and make this call again later."
)


@asynccontextmanager
async def hold(home: Home, team_id: TeamId) -> AsyncGenerator[None]:
    """Hold the lock of a team's kept files; raise `Refused` if another writer does not release it
    in time."""
    # The folder itself: a command sees another folder in its place, so it cannot take the lock.
    folder = os.open(home.path / "teams" / team_id, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        await _take(folder)
        yield
    finally:
        os.close(folder)


async def _take(folder: int) -> None:
    begun = monotonic()
    while True:
        try:
            return fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if (waited := monotonic() - begun) >= WAIT_S:
                raise Refused(BUSY.format(seconds=waited)) from None
        await asyncio.sleep(PAUSE_S)


async def to_the_end(act: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in a thread and return its result; if the caller is cancelled, wait for the
    thread first: it must not write after its caller has released the lock."""
    made = asyncio.ensure_future(asyncio.to_thread(act, *args, **kwargs))
    try:
        return await asyncio.shield(made)
    except asyncio.CancelledError:
        await asyncio.wait([made])
        raise
