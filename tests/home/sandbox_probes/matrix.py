"""Matrix: runs all probes at one level, as whoever runs this; prints what was open.

python -m tests.home.sandbox_probes.matrix FOLDER LEVEL unix|no-unix
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import cast

from tests.home.sandbox_probes import attack, targets

from agiraph.sandbox import commands
from agiraph.sandbox.inside import warden
from agiraph.sandbox.sandbox import Level, Mount, Spec

PYTHON = "/usr/bin/python3"


async def probe(folder: Path, level: Level, *, unix: bool = True, user: int = 0) -> list[str]:
    """Return the names of the attacks that succeed at this level."""
    scratch, shared = folder / "scratch", folder / "shared"
    for made in (scratch, shared):
        made.mkdir(parents=True, exist_ok=True)
    (scratch / "attack.py").write_text(Path(attack.__file__).read_text())
    (scratch / "attack.py").chmod(0o644)
    spec = None
    if level != "none":
        given = (Mount(source=path, target=path, is_writable=True) for path in (scratch, shared))
        spec = Spec(level=level, mounts=tuple(given), unix=unix, user=user)
    with subprocess.Popen(  # noqa: ASYNC220 - nothing else runs on this loop
        [sys.executable, targets.__file__, folder / "outside", shared],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"SECRET": targets.CANARY},
        text=True,
    ) as outside:
        assert outside.stdout is not None
        assert outside.stdin is not None
        found = outside.stdout.readline().strip()
        result = await commands.run(
            folder / "spool",
            command=f"{PYTHON} attack.py '{found}'",
            cwd=scratch,
            timeout=60,
            # Landlock is for machines that allow no namespaces at all.
            env=commands.child_environment(
                scratch, {warden.ISOLATION: "plain"} if level in ("landlock", "none") else {}
            ),
            spec=spec,
        )
        outside.stdin.close()
    assert result.exit_code == 0, result.output
    return cast(list[str], json.loads(result.output.splitlines()[-1]))


def main() -> None:
    where, level, unix = sys.argv[1:]
    found = asyncio.run(probe(Path(where), cast(Level, level), unix=unix == "unix"))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
