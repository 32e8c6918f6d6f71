"""Fault points: named places in production code where a test may pull the plug.

Off, a point costs one attribute check. `agiraph.testing` arms them; nothing else does.
"""

from collections.abc import Callable

armed: Callable[[str], None] | None = None


def fault(point: str) -> None:
    if armed is not None:
        armed(point)
