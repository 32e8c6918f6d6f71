"""Late patterns: regular expressions that are compiled when they are first used.

Large ones take milliseconds, and a command that only starts or asks uses few of them.
"""

import re
from typing import Any, cast


class LatePattern:
    """Stands for a pattern; its methods are those of the compiled one, each kept once used."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source, self._flags = pattern, flags

    def compiled(self) -> re.Pattern[str]:
        return re.compile(self._source, self._flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.compiled(), name)
        setattr(self, name, found)
        return found


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled at its first use. Call its methods, as in
    `pattern.search(text)`: functions such as `re.search` do not accept it."""
    return cast("re.Pattern[str]", LatePattern(pattern, flags))
