"""Ordinary user: runs a module of the tests as a user without any privilege."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ORDINARY = 65_534
SYSTEM_PYTHON = "/usr/bin/python3"
"""An ordinary user may be unable to run the tests' own Python, if it lies in root's home."""


def run_as_ordinary(folder: Path, module: str, *arguments: str) -> Any:
    """Run `python -m module FOLDER ARGUMENTS` in a folder of the user; return its last line, which
    is JSON. The caller is root."""
    own = folder / "own"
    own.mkdir()
    os.chown(own, ORDINARY, ORDINARY)
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o011)
    done = subprocess.run(
        [SYSTEM_PYTHON, "-m", module, str(own), *arguments],
        capture_output=True,
        text=True,
        check=False,
        user=ORDINARY,
        group=ORDINARY,
        extra_groups=[],
        env={"PATH": os.environ["PATH"], "HOME": str(own), "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
