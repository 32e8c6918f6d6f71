"""Database: the one way in. A transaction is a plain function that is handed a `Tx`.

`await store.write(verb, …)` runs the synchronous `def verb(tx, …)` and returns when what it did
is durable. No model call and no subprocess can sit inside one: there is nothing to await.
"""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from agiraph.domain.time import Clock
from agiraph.store.tx import Aftermath, Tx

P = ParamSpec("P")
R = TypeVar("R")
Verb = Callable[Concatenate[Tx, P], R]


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
