"""Sandboxed commands: what `bash` of a clean thread cannot reach, and which limits end it."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from agiraph.sandbox import levels
from agiraph.sandbox.sandbox import Level
from agiraph.testing import World, call
from tests.home.ordinary_user import ORDINARY, run_as_ordinary
from tests.home.sandbox_probes import attack, targets
from tests.tools import command_attacks
from tests.tools.command_attacks import SECRET, SMALL, plant_secrets, steals
from tests.tools.tool_calls import run_calls

pytestmark = pytest.mark.skipif(
    not levels.choose().has_gate, reason="commands have no namespaces on this machine"
)


@contextlib.contextmanager
def live_targets(folder: Path) -> Generator[dict[str, Any]]:
    """Keep sockets, shared memory, keys and a process outside of the sandbox."""
    shared = folder / "shared"
    shared.mkdir(parents=True)
    with subprocess.Popen(
        [sys.executable, targets.__file__, folder / "outside", shared],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"SECRET": targets.CANARY},
        text=True,
    ) as outside:
        assert outside.stdout is not None
        assert outside.stdin is not None
        yield json.loads(outside.stdout.readline())
        outside.stdin.close()


async def test_a_command_of_a_clean_thread_reaches_nothing_outside(tmp_path: Path) -> None:
    source = Path(attack.__file__).read_text()
    async with World(tmp_path / "home", sandbox_readable=(), easy_endings=True) as world:
        home = world.path
        plant_secrets(home)
        thefts = steals(home)
        with live_targets(tmp_path / "probes") as found:
            _, told = await run_calls(
                world,
                call("write_file", path="attack.py", content=source),
                call("bash", command=f"/usr/bin/python3 attack.py '{json.dumps(found)}'"),
                *(call("bash", command=command) for command in thefts),
            )
        _, probes, *stolen = told
        assert not (home / "agiraph.toml").exists()
    known = ["unix: in a given folder"]  # the folder is not given here
    assert [name for name in json.loads(probes.text.splitlines()[1]) if name not in known] == []
    assert [answer.text for answer in stolen if SECRET in answer.text] == []
    assert [answer.failed for answer in stolen] == [True] * len(thefts)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (":(){ :|:& };:; wait; sleep 100", r"it had more than 40 processes at a time"),
        (
            "python3 -c \"x = [b'x' * 2**20 for _ in range(8000)]\"",
            # Whichever comes first: the count of the warden, or the limit of the kernel.
            r"its processes used more than 200 MiB of memory|memory ran out: it may use 200 MiB",
        ),
        ("exec yes > file", "a file of it would have had more than 8 MiB"),
    ],
)
async def test_a_command_over_a_limit_is_ended_and_the_model_is_told(
    tmp_path: Path, command: str, said: str
) -> None:
    async with World(tmp_path / "home", limits=SMALL, easy_endings=True) as world:
        _, [told] = await run_calls(world, call("bash", command=command))
    assert re.search(said, told.text), told.text


async def test_the_tmp_folder_of_a_command_has_a_size(tmp_path: Path) -> None:
    async with World(tmp_path / "home", easy_endings=True) as world:
        _, [told] = await run_calls(world, call("bash", command="yes > /tmp/file"))
    assert "No space left on device" in told.text


SAID = {
    "fork bomb": "it had more than 40 processes at a time",
    "8 GB": "memory",
    "full tmp": "a file of it would have had more than 8 MiB",
    "endless file": "a file of it would have had more than 8 MiB",
    "double fork": "done",
}


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests run as an ordinary user already")
@pytest.mark.parametrize(
    "level",
    [
        "bubblewrap",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("namespaces", "landlock")),
    ],
)
def test_the_same_attacks_of_an_ordinary_user_are_contained(level: Level) -> None:
    if levels.choose(level).reasons:
        pytest.skip(f"this machine has no {level}")
    found = run_as_ordinary(command_attacks.__name__, level)

    assert (found["level"], found["user"]) == (level, ORDINARY)
    assert (found["stolen"], found["left"]) == ([], [])
    told: dict[str, str] = found["told"]
    # Where a command has no /tmp of its own, it cannot write to that of the machine.
    said = SAID | ({"full tmp": "Permission denied"} if level == "landlock" else {})
    assert {name: text for name, text in told.items() if said[name] not in text} == {}
