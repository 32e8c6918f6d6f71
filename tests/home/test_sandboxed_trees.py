"""Sandboxed trees: at each level no process outlives its command or its runtime."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.home.sandbox_probes import confined_run
from tests.home.sandbox_probes.confined_run import marked, run
from tests.home.test_commands import trees

from agiraph.sandbox import levels
from agiraph.sandbox.sandbox import Level

LEVELS: tuple[Level, ...] = ("namespaces", "bubblewrap", "landlock")


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=int(os.environ.get("AGIRAPH_TREES", "4")))
@given(tree=trees)
def test_no_process_of_a_tree_outlives_its_confined_command(
    level: Level, tree: tuple[str, int]
) -> None:
    if levels.choose(level).reasons:
        pytest.skip(f"this machine has no {level}")
    script, size = tree
    mark = f"mark-{uuid.uuid4().hex}"
    count = f"for ((i = 0; i < {size}; i++)); do read -r -u 9; done; echo $i"
    command = f"mkfifo up; exec 9<>up\n{script.replace('MARK', mark)}\n{count}"
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(run(Path(folder).resolve(), level, command))

    assert marked(mark) == []
    assert (result.ended, result.exit_code, result.output) == ("exited", 0, f"{size}\n")


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_after_the_runtime_was_killed_no_process_is_left(tmp_path: Path, level: Level) -> None:
    if levels.choose(level).reasons:
        pytest.skip(f"this machine has no {level}")
    mark = f"mark-{uuid.uuid4().hex}"
    sleeper = f"bash -c \"trap '' TERM; exec -a {mark} sleep 1000\""
    command = f"setsid {sleeper} & (setsid {sleeper} &) ; echo > begun; exec -a {mark} sleep 1000"
    (tmp_path / "scratch").mkdir()
    begun = tmp_path / "scratch" / "begun"
    os.mkfifo(begun)
    runtime = subprocess.Popen(
        [sys.executable, "-m", confined_run.__name__, str(tmp_path), level, command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2],
    )
    begun.read_text()
    runtime.send_signal(signal.SIGKILL)
    runtime.wait()
    deadline = time.monotonic() + 20.0
    while (left := marked(mark)) and time.monotonic() < deadline:
        os.sched_yield()
    assert left == []
