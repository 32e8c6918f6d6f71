"""Sandbox probes: what each level holds, as root and as an ordinary user, against live targets."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.home.sandbox_probes import matrix

from agiraph.home import levels, sandbox
from agiraph.home.sandbox import Level

GIVEN = "unix: in a given folder"
KNOWN: dict[tuple[Level, bool], list[str]] = {
    ("namespaces", True): [GIVEN],
    ("namespaces", False): [],
    ("bubblewrap", True): [GIVEN],
    ("bubblewrap", False): [],
    ("landlock", False): ["signal: pidfd"],
}
"""The attacks that succeed, by level and whether Unix sockets are allowed. docs/sandbox.md says the
same in words."""
ORDINARY = 65_534
SYSTEM_PYTHON = "/usr/bin/python3"
"""An ordinary user may be unable to run the tests' own Python, if it lies in root's home."""


def is_here(level: Level) -> bool:
    return not levels.choose(level).reasons


@pytest.mark.parametrize(("level", "unix"), KNOWN)
async def test_each_level_holds_what_its_table_says(
    tmp_path: Path, level: Level, unix: bool
) -> None:
    if not is_here(level):
        pytest.skip(f"this machine has no {level}")
    assert await matrix.probe(tmp_path, level, unix=unix) == KNOWN[level, unix]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run commands as another user")
async def test_a_spare_user_holds_the_same(tmp_path: Path) -> None:
    found = await matrix.probe(tmp_path, "namespaces", unix=False, user=sandbox.FIRST_SPARE_USER)
    assert found == []


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests run as an ordinary user already")
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "landlock"])
def test_each_level_holds_the_same_for_an_ordinary_user(tmp_path: Path, level: Level) -> None:
    if not is_here(level):
        pytest.skip(f"this machine has no {level}")
    assert run_as_ordinary(tmp_path, level) == KNOWN[level, False]


def run_as_ordinary(folder: Path, level: Level) -> list[str]:
    """Run the probes in a process of a user without any privilege."""
    own = folder / "own"
    own.mkdir()
    os.chown(own, ORDINARY, ORDINARY)
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o011)
    done = subprocess.run(
        [SYSTEM_PYTHON, "-m", "tests.home.sandbox_probes.matrix", str(own), level, "no-unix"],
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
