"""Own threads: runs the code of a person's file so that it cannot hold up the runtime, and turns
what it returned or raised into text for a model.

Each call gets a thread of its own, and an async function an event loop of its own in it: code that
blocks, never returns or raises anything at all harms nothing but its own call. Python cannot kill a
thread. So one that outlasts its time limit gets an exception at its next line, and the threads
that still run are counted.
"""

import asyncio
import contextlib
import ctypes
import dataclasses
import inspect
import threading
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Any, cast

import orjson
from pydantic import BaseModel

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.value import dataclass
from agiraph.core.tools.base import NO_TEXT
from agiraph.redaction import redact

MOST_PER_NAME = 8
"""Calls of one function that may run at the same time, those that were given up included."""
MOST = 64
MOST_BYTES = 256 * 1024
"""Bytes of a result that are kept; the runtime shows a model the beginning of them and keeps the
rest in a file."""
LONGEST_ERROR = 2000
NOTHING = "(It returned nothing.)"


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


def as_text(name: str, value: Any) -> str:
    """Return a result as text, without secrets and cut to a bound.

    Secrets are replaced before the cut, which could leave the beginning of one. Raise `Refused` for
    a value that is neither text nor JSON.
    """
    match value:
        case None:
            return NOTHING
        case str():
            text, size = value, f"{len(value):,} characters"
        case bytes() | bytearray():
            text, size = _of_bytes(name, bytes(value)), f"{len(value):,} bytes"
        case _:
            data = _as_json(name, value)
            text, size = data.decode(), f"{len(data):,} bytes of JSON"
    text = redact(text.encode(errors="replace").decode().replace("\0", NO_TEXT))
    kept = text[:MOST_BYTES]
    if not isinstance(value, str):
        # The cut may go through a character.
        kept = kept.encode()[:MOST_BYTES].decode(errors="ignore")
    return f"{kept}\n(Cut here: {name} returned {size}.)" if kept != text else text or NOTHING


def _of_bytes(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused(
            f"{name} returned {len(data):,} bytes that are not text. A tool returns text or JSON."
        ) from None


def _as_json(name: str, value: Any) -> bytes:
    options = orjson.OPT_NON_STR_KEYS | orjson.OPT_INDENT_2
    try:
        return orjson.dumps(value, default=_plain, option=options)
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(
            f"{name} returned a {type(value).__name__}, which is neither text nor JSON ({error})."
        ) from error


def _plain(value: Any) -> Any:
    match value:
        case BaseModel():
            return value.model_dump(mode="json")
        case set() | frozenset():
            return list(cast(set[Any], value))
        case bytes() | bytearray():
            return bytes(value).decode(errors="replace")
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return dataclasses.asdict(value)
        case _:
            raise TypeError(f"no form for {type(value).__name__}")


def error_text(error: BaseException) -> str:
    """Return the type and message of an exception, cut to a length and without secrets."""
    try:
        said = str(error)
    except Exception:  # an exception's own __str__ is foreign code
        said = ""
    said = said.encode(errors="replace").decode().replace("\0", NO_TEXT)
    said = redact(said)[:LONGEST_ERROR]
    kind = type(error).__name__
    return redact(f"{kind}: {said}" if said.strip() else kind)
