"""Own threads: runs the code of a person's file so that it cannot hold up the runtime.

Each call gets a thread of its own, and an async function an event loop of its own in it: code that
blocks, never returns or raises anything at all harms nothing but its own call. Python cannot kill a
thread. So one that outlasts its time limit gets an exception at its next line, and the threads
that still run are counted.
"""

import asyncio
import contextlib
import ctypes
import inspect
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from agiraph.core.domain.errors import Refused

MOST_PER_NAME = 8
"""Calls of one function that may run at the same time, those that were given up included."""
MOST = 64


class Raised(Exception):
    """A person's code raised `error`, which may be any exception, such as SystemExit."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class TookTooLong(Exception):
    """A person's code did not return in time."""


class _Stopped(BaseException):
    """Raised in the thread of code that ran out of time. It is not an `Exception`, which code often
    catches."""


@dataclass(slots=True)
class OwnThreads:
    """The threads that run persons' own code."""

    most_per_name: int = MOST_PER_NAME
    most: int = MOST
    _running: list[threading.Thread] = field(default_factory=list[threading.Thread])

    async def call(
        self,
        name: str,
        act: Callable[[], Any],
        *,
        timeout_s: float,
        finish: Callable[[Any], Any] = lambda value: value,
    ) -> Any:
        """Call `act` in a thread of its own, await the result if it is async, and return
        `finish(result)`.

        Raise `Raised` with the code's exception, `TookTooLong` after the time limit, or `Refused`
        if too many earlier calls under this name still run.
        """
        self._running = [thread for thread in self._running if thread.is_alive()]
        of_name = sum(thread.name == f"own {name}" for thread in self._running)
        if of_name >= self.most_per_name or len(self._running) >= self.most:
            raise Refused(
                f"{name} was not called: {of_name} earlier calls of it still run, and have not "
                "ended in time. Go on without it."
            )
        call = _Call(act, finish, asyncio.get_running_loop())
        # A daemon: the process does not wait for code that never returns.
        thread = threading.Thread(target=call.run, name=f"own {name}", daemon=True)
        self._running.append(thread)
        thread.start()
        try:
            async with asyncio.timeout(timeout_s):
                return await call.outcome
        except TimeoutError:  # an own TimeoutError of the code comes as `Raised`
            raise TookTooLong from None
        finally:
            call.stop(thread)


class _Call:
    """One call in its thread."""

    def __init__(
        self,
        act: Callable[[], Any],
        finish: Callable[[Any], Any],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._act = act
        self._finish = finish
        self._loop = loop
        self.outcome: asyncio.Future[Any] = loop.create_future()
        self._lock = threading.Lock()
        self._is_over = False

    def run(self) -> None:
        with contextlib.suppress(_Stopped):
            try:
                found = self._act()
                found = asyncio.run(_awaited(found)) if inspect.isawaitable(found) else found
                value, error = self._finish(found), None
            except BaseException as raised:
                value, error = None, Raised(raised)
            with self._lock:
                self._is_over = True
            # RuntimeError: the runtime has ended meanwhile, and its loop is closed.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._settle, value, error)

    def _settle(self, value: Any, error: Raised | None) -> None:
        if self.outcome.done():
            return
        if error is None:
            self.outcome.set_result(value)
        else:
            self.outcome.set_exception(error)

    def stop(self, thread: threading.Thread) -> None:
        """Raise `_Stopped` in the thread if its code still runs; Python delivers it at the next
        line."""
        with self._lock:
            if not self._is_over and thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread.ident), ctypes.py_object(_Stopped)
                )


async def _awaited(found: Awaitable[Any]) -> Any:
    return await found
