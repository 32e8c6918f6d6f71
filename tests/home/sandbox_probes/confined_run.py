"""Confined run: a command in a sandbox, in this process or as a runtime of its own.

    python -m tests.home.sandbox_probes.confined_run FOLDER LEVEL COMMAND [CHANGES]

CHANGES is a JSON list of planted faults: file, code, and what stands there instead.
"""

import asyncio
import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from agiraph.sandbox import commands, sandbox
from agiraph.sandbox.inside import supervisor, warden
from agiraph.sandbox.sandbox import Level, Mount, Spec


async def run(folder: Path, level: Level, command: str) -> commands.CommandResult:
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    spare = os.geteuid() == 0 and level == "namespaces"
    spec = Spec(
        level=level,
        mounts=(Mount(source=scratch, target=scratch, is_writable=True),),
        user=sandbox.FIRST_SPARE_USER if spare else 0,
    )
    # Landlock is for machines that allow no namespaces at all.
    isolation = {warden.ISOLATION: "plain"} if level == "landlock" else {}
    env = commands.child_environment(scratch, isolation)
    return await commands.run(
        folder / "spool", command=command, cwd=scratch, timeout=60, env=env, spec=spec
    )


def marked(mark: str) -> list[int]:
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def plant(folder: Path, changes: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Copy the supervisor's files with these changes; return the attributes of `supervisor` that
    have commands run by the copy."""
    shutil.copytree(Path(supervisor.__file__).parent, folder)
    for file, code, instead in changes:
        before = (folder / file).read_text()
        assert code in before
        (folder / file).write_text(before.replace(code, instead))
    return {"__file__": str(folder / "supervisor.py"), "__cached__": str(folder / "none.pyc")}


def main() -> None:
    folder, level, command, *more = sys.argv[1:]
    changes = [tuple(change) for given in more for change in json.loads(given)]
    if changes:
        for name, value in plant(Path(folder) / "mutant", cast(Any, changes)).items():
            setattr(supervisor, name, value)
    asyncio.run(run(Path(folder), cast(Level, level), command))


if __name__ == "__main__":
    main()
