"""Sandbox: where commands cannot be confined, `doctor` and the log say so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agiraph.home import sandbox

NO_NAMESPACES = "echo 0 > /proc/sys/user/max_pid_namespaces && exec "
"""Run by root of a user namespace: its processes can create no pid namespace."""

WARN_TWICE = """
import logging
from agiraph.home import sandbox
logging.basicConfig(format="%(name)s %(levelname)s %(message)s")
sandbox.warn_if_impossible()
sandbox.warn_if_impossible()
print(sandbox.is_possible(), sandbox.why_not())
"""

pytestmark = pytest.mark.skipif(
    not sandbox.is_possible(), reason="commands cannot be confined on this kernel"
)


def without_namespaces(*command: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    shell = ["unshare", "--user", "--map-root-user", "sh", "-c", f'{NO_NAMESPACES}"$@"', "sh"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if home is not None:
        env["AGIRAPH_HOME"] = str(home)
    return subprocess.run(
        [*shell, *command], capture_output=True, text=True, check=False, env=env, timeout=120
    )


def test_a_process_warns_once_where_commands_cannot_be_confined() -> None:
    done = without_namespaces(sys.executable, "-c", WARN_TWICE)

    assert done.stdout == "False the kernel allows no namespaces\n", done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith(
        "agiraph.commands WARNING Commands cannot be confined on this machine (the kernel allows "
        "no namespaces): every command can read the token and the database of agiraph"
    )


@pytest.mark.slow
def test_doctor_reports_a_problem_where_commands_cannot_be_confined(tmp_path: Path) -> None:
    agiraph = str(Path(sys.executable).parent / "agiraph")
    done = without_namespaces(agiraph, "doctor", home=tmp_path / "home")

    assert done.returncode == 1
    assert "✗ sandbox Commands cannot be confined on this machine" in done.stdout
