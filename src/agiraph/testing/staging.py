"""Staging: lets a test change what scripted models say, and examine each world before it closes.

A test that runs whole scenarios of others cannot pass them models of its own. Within `directed_by`,
every `World` and `ModelServer` asks the director instead.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from agiraph.models.base import Model
from agiraph.testing.script import Script

if TYPE_CHECKING:
    from agiraph.testing.world import World


class Director(Protocol):
    def direct(self, model: Model) -> Model:
        """Return the model to use instead of this scripted one."""
        ...

    def rewrite(self, script: Script) -> Script:
        """Return the script to use instead of this one of a model server."""
        ...

    async def before_close(self, world: "World") -> None:
        """Called with each world that is about to close, while its runtime still runs."""
        ...


_director: ContextVar[Director | None] = ContextVar("director", default=None)


def director() -> Director | None:
    """Return the director of the current test, if it has one."""
    return _director.get()


@contextmanager
def directed_by(director: Director) -> Generator[None]:
    """Give all worlds and model servers made in this context a director."""
    token = _director.set(director)
    try:
        yield
    finally:
        _director.reset(token)
