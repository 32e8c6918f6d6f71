"""Database: the one way in. A transaction is a plain function that is handed a `Tx`.

`await store.write(verb, …)` runs the synchronous `def verb(tx, …)` and returns when what it did
is durable. No model call and no subprocess can sit inside one: there is nothing to await.
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
        """Run the verb in a transaction of its own; acknowledged means durable."""
        ...

    async def read(self, query: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a query that changes nothing."""
        ...

    def subscribe(self, listener: Callable[[Aftermath], None]) -> None:
        """Be told, on the event loop, what each committed transaction brought about here."""
        ...

    async def close(self) -> None: ...
