"""Ordinary user: runs a module of the tests as a user without any privilege."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ORDINARY = 65_534
SYSTEM_PYTHON = "/usr/bin/python3"
"""An ordinary user may be unable to run the tests' own Python, if it lies in root's home."""


def run_as_ordinary(module: str, *arguments: str) -> Any:
    """Run `python -m module FOLDER ARGUMENTS` in a new folder of the user; return its last line,
    which is JSON. The caller is root."""
    done = _run(lambda own: [module, own, *arguments])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def check_as_ordinary(*files: str) -> "subprocess.CompletedProcess[str]":
    """Run the tests of these files, without PostgreSQL and browsers. The caller is root."""
    plain = ("-q", "-p", "no:schemathesis", "-p", "no:cacheprovider", "--quick")
    return _run(lambda own: ["pytest", *plain, f"--basetemp={own}/tests", *files])


def _run(arguments: Callable[[str], list[str]]) -> "subprocess.CompletedProcess[str]":
    # Not in pytest's folder, which every start of pytest closes to other users.
    with tempfile.TemporaryDirectory(prefix="agiraph-ordinary-", dir="/tmp") as own:
        os.chown(own, ORDINARY, ORDINARY)
        path = os.pathsep.join(sys.path)
        return subprocess.run(
            [SYSTEM_PYTHON, "-m", *arguments(own)],
            capture_output=True,
            text=True,
            check=False,
            user=ORDINARY,
            group=ORDINARY,
            extra_groups=[],
            env={
                "PATH": os.environ["PATH"],
                "HOME": own,
                "PYTHONPATH": path,
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            cwd=Path(__file__).parents[2],
        )
