"""Database: the interface of both stores. A transaction is a plain function that gets a `Tx`.

`await store.write(verb, …)` runs the synchronous `def verb(tx, …)` and returns when its changes are
durable. A verb cannot await, so no model call and no subprocess can run inside a transaction.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from agiraph.domain.time import Clock
from agiraph.store.tx import Aftermath, Tx

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


class Store(Protocol):
    clock: Clock

    async def write(self, verb: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the verb in a transaction. When this returns, its changes survive a crash."""
        ...

    async def read(self, query: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a query that changes nothing."""
        ...

    def subscribe(self, listener: Callable[[Aftermath], None]) -> None:
        """Call the listener on the event loop after each transaction that this store commits."""
        ...

    async def close(self) -> None: ...
