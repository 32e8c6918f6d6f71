"""Database: the interface of both stores. A transaction is a plain function that gets a `Tx`.

`await store.write(verb, …)` runs the synchronous `def verb(tx, …)` and returns when its changes are
durable. A verb cannot await, so no model call and no subprocess can run inside a transaction.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from agiraph.core.domain.times.time import Clock
from agiraph.core.store.tx import Aftermath, Tx

log: logging.Logger = logging.getLogger("agiraph.core.store")

P = ParamSpec("P")
R = TypeVar("R")
Verb = Callable[Concatenate[Tx, P], R]


def name_of_verb(verb: Callable[..., Any]) -> str:
    """Return the name by which fault points know a verb; never fails, whatever can be called.

    A `functools.partial` and an object with `__call__` have no `__name__`.
    """
    while isinstance(verb, partial):
        verb = verb.func
    return getattr(verb, "__name__", type(verb).__name__)


UNANSWERABLE = (StopIteration, StopAsyncIteration, GeneratorExit, asyncio.CancelledError)
"""What a verb may raise and a future cannot hand over: asyncio refuses a StopIteration, so its
caller would wait for ever, and takes the others for the end of the caller itself."""


def answer_for(error: BaseException, verb: str) -> BaseException:
    """Return the exception that the caller of a verb gets for what the verb raised."""
    if not isinstance(error, UNANSWERABLE):
        return error
    found = RuntimeError(f"The verb {verb} raised {error!r}.")
    found.__cause__ = error
    return found


def tell(listeners: Iterable[Callable[[Aftermath], None]], aftermath: Aftermath) -> None:
    """Call each listener; one that fails is logged and keeps nobody else from being told."""
    for listener in listeners:
        try:
            listener(aftermath)
        except Exception:
            # The transaction is committed: its caller must get its answer.
            log.exception("A listener of the store failed.")


class Store(Protocol):
    clock: Clock

    async def write(self, verb: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the verb in a transaction. When this returns, its changes survive a crash."""
        ...

    async def write_first(self, verb: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the verb as `write` does, before all that still wait in `write`.

        For what a person waits for; the writes of agents' turns keep their order.
        """
        ...

    async def read(self, query: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a query that changes nothing."""
        ...

    async def look(self, query: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a query that changes nothing and reads few rows, at most some hundred, by an index.

        SQLite runs it on the event loop: handing it to a thread costs more than such a query, and
        beside a busy event loop much more.
        """
        ...

    def subscribe(self, listener: Callable[[Aftermath], None]) -> None:
        """Call the listener on the event loop after each transaction that this store commits."""
        ...

    async def close(self) -> None: ...
