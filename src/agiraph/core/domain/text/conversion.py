"""Conversion: what a script made of a hostile file, and the interface by which it is run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from agiraph.core.domain.value import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What a script printed, and how it ended."""

    output: bytes
    """All that it printed before its end."""
    end: Literal["whole", "failed", "timeout"]
    """Failed: it ended with an error, or printed more than it may."""


class Converter(Protocol):
    """Runs one of agiraph's scripts on untrusted data, confined where the machine can confine
    it."""

    @property
    def is_confined(self) -> bool:
        """Whether the script sees no file and no network. If not, only the limits on its resources
        hold."""
        ...

    async def convert(
        self,
        script: Path,
        arguments: Sequence[str],
        source: bytes | Path,
        *,
        timeout_s: float,
        most_bytes: int,
    ) -> Conversion:
        """Run the script with these arguments and the source: bytes are its input, a file is shown
        to it at its own path, which contains no symbolic link."""
        ...
