"""Parsing: runs a script that reads a hostile file, in a sandbox where it can do no harm.

The script gets the file as its standard input and prints what it found. It has no network and sees
no file but Python and itself, so a parser that a file took over can only print something else.
"""

import asyncio
import contextlib
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.text.conversion import Conversion
from agiraph.core.domain.value import dataclass
from agiraph.sandbox.dialogue import Dialogue, talking
from agiraph.sandbox.levels import CommandRules, Confinement
from agiraph.sandbox.sandbox import DEFAULT_LIMITS, Limits, Mount, Spec, spare_user

IN_MEMORY = Path("/dev/shm")
"""Where the spool lies, if there is such a folder: what it holds need not survive a crash."""
PROCESSES, MEMORY_MIB, FILE_MIB = 64, 2048, 64
"""What a parser may use at most; it counts for its team like a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parser:
    """Runs parsers as commands of one team."""

    confinement: Confinement
    team_id: TeamId
    limits: Limits = DEFAULT_LIMITS
    """The limits of commands, of which those of the team and of all hold for parsers, too."""

    @classmethod
    def of_team(cls, rules: CommandRules, team_id: TeamId) -> "Parser":
        return cls(confinement=rules.confinement, team_id=team_id, limits=rules.limits)

    @property
    def is_confined(self) -> bool:
        return self.confinement.is_confined

    async def convert(
        self,
        script: Path,
        arguments: Sequence[str],
        source: bytes | Path,
        *,
        timeout_s: float,
        most_bytes: int,
    ) -> Conversion:
        """Run the script on the source: bytes are its input, a file is shown to it; return what it
        printed."""
        given, shown = (b"", (source,)) if isinstance(source, Path) else (source, ())
        place = IN_MEMORY if IN_MEMORY.is_dir() else None
        with tempfile.TemporaryDirectory(prefix="agiraph-parsing-", dir=place) as made:
            folder = Path(made).resolve()
            (folder / "work").mkdir()
            line = shlex.join([sys.executable, "-I", str(script.resolve()), *arguments])
            async with talking(
                folder / "spool",
                command=f"exec {line} 2>/dev/null",
                cwd=folder / "work",
                env={"PATH": "/usr/bin:/bin"},
                spec=self._spec(script.resolve(), folder / "work", *shown),
                limits=self._limits(),
                team=self.team_id,
                timeout=timeout_s,
            ) as process:
                _, printed = await asyncio.gather(
                    _give(process, given), _printed(process, most_bytes)
                )
                if len(printed) > most_bytes:  # leaving the block ends it
                    return Conversion(output=printed[:most_bytes], end="failed")
                result = await process.ended
        if result.ended == "timed_out":
            return Conversion(output=printed, end="timeout")
        return Conversion(output=printed, end="whole" if result.exit_code == 0 else "failed")

    def _limits(self) -> Limits:
        return replace(
            self.limits,
            processes=min(self.limits.processes, PROCESSES),
            memory_mib=min(self.limits.memory_mib, MEMORY_MIB),
            file_mib=min(self.limits.file_mib, FILE_MIB),
        )

    def _spec(self, *seen: Path) -> Spec | None:
        """Return what a parser sees; None (all) if commands are not confined here."""
        if not self.confinement.is_confined:
            return None
        return Spec(
            level=self.confinement.level,
            mounts=tuple(Mount(source=path, target=path) for path in seen),
            unix=False,
            user=spare_user(self.team_id) if self.confinement.has_spare_user else 0,
        )


async def _give(process: Dialogue, source: bytes) -> None:
    with contextlib.suppress(ConnectionError):  # it ended before it had read all
        process.stdin.write(source)
        await process.stdin.drain()
    process.stdin.close()


async def _printed(process: Dialogue, most_bytes: int) -> bytes:
    """Return what the process prints, up to a little more than the limit."""
    found = bytearray()
    while len(found) <= most_bytes and (piece := await process.stdout.read(65_536)):
        found += piece
    return bytes(found)
