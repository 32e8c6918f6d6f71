"""Fault points: named places in production code where a test may kill the process.

`agiraph.testing` sets `armed`; production code never does. Unarmed, a fault point costs one
attribute check.
"""

from collections.abc import Callable

armed: Callable[[str], None] | None = None
"""Called with the name of each fault point that is passed; it may kill the process."""


def fault(point: str) -> None:
    """Mark a fault point: a place where a crash must lose nothing and repeat nothing."""
    if armed is not None:
        armed(point)
