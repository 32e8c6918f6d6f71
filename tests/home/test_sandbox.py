"""Levels: the runtime chooses how commands are confined, and `doctor` says what does not hold."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agiraph.sandbox import levels
from agiraph.sandbox.levels import Confinement
from agiraph.sandbox.sandbox import Level, Limits
from agiraph.testing import World, call, says

NO_NAMESPACES = "echo 0 > /proc/sys/user/max_pid_namespaces && exec "
"""Run by root of a user namespace: its processes can create no pid namespace."""
CHOOSE = """
import sys
from agiraph.sandbox import levels
print(levels.choose(sys.argv[1]))
"""

pytestmark = pytest.mark.skipif(
    not levels.choose().has_gate, reason="this machine has no namespaces to take away"
)


def without_namespaces(*command: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    shell = ["unshare", "--user", "--map-root-user", "sh", "-c", f'{NO_NAMESPACES}"$@"', "sh"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if home is not None:
        env["AGIRAPH_HOME"] = str(home)
    return subprocess.run(
        [*shell, *command], capture_output=True, text=True, check=False, env=env, timeout=120
    )


@pytest.mark.slow
def test_where_there_are_no_namespaces_landlock_is_chosen() -> None:
    done = without_namespaces(sys.executable, "-c", CHOOSE, "")

    assert done.stdout.startswith("Confinement(level='landlock'"), done.stderr + done.stdout
    assert "namespaces: " in done.stdout


@pytest.mark.slow
def test_a_named_level_that_does_not_work_is_kept_and_its_commands_fail() -> None:
    done = without_namespaces(sys.executable, "-c", CHOOSE, "namespaces")

    assert done.stdout.startswith("Confinement(level='namespaces'"), done.stderr + done.stdout


@pytest.mark.parametrize("number", [*levels.PASSING, None])
def test_a_passing_failure_of_the_probe_never_lowers_the_level(number: int | None) -> None:
    said = f"[Errno {number}] it failed"
    tries: list[Level] = []

    def attempt(level: Level, has_spare_user: bool) -> tuple[int | None, str]:
        tries.append(level)
        return (None if number is None else 127), said

    best = levels.candidate_levels()[0]
    assert levels.choose_by(attempt) == Confinement(
        level=best[0], has_spare_user=best[1], reasons=(f"{best[0]}: {said}",)
    )
    assert tries == [best[0]] * levels.TRIES


def test_a_refusal_of_the_kernel_makes_the_next_level_be_tried() -> None:
    refused = f"[Errno {errno.EPERM}] unshare"

    def attempt(level: Level, has_spare_user: bool) -> tuple[int | None, str]:
        return (0, "") if level == "landlock" else (127, refused)

    assert levels.choose_by(attempt).level == "landlock"
    assert levels.choose_by(lambda *_: (127, refused)).level == "none"
    named = levels.choose_by(lambda *_: (127, refused), "bubblewrap")
    assert (named.level, named.reasons) == ("bubblewrap", (f"bubblewrap: {refused}",))


def test_none_is_described_with_who_chose_it() -> None:
    named = levels.choose("none")
    only = Confinement(level="none", reasons=("landlock: the kernel has version 0 of it",))

    assert "(agiraph.toml names it)" in named.describe()
    assert "(landlock: the kernel has version 0 of it)" in only.describe()


@pytest.mark.slow
def test_doctor_names_the_level_and_what_it_does_not_hold(tmp_path: Path) -> None:
    agiraph = str(Path(sys.executable).parent / "agiraph")
    here = {**os.environ, "AGIRAPH_HOME": str(tmp_path / "home")}
    said = {
        level: subprocess.run(
            [agiraph, "doctor"],
            capture_output=True,
            text=True,
            check=False,
            env=here | {"AGIRAPH_SANDBOX": level},
        ).stdout
        for level in ("landlock", "none")
    }

    assert "✓ sandbox Commands are confined by landlock" in said["landlock"]
    assert "There is no gate" in said["landlock"]
    assert "✗ sandbox Commands are not confined (agiraph.toml names it)" in said["none"]


@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "landlock"])
async def test_a_readable_folder_below_a_temporary_one_can_be_read_at_each_level(
    tmp_path: Path, level: Level
) -> None:
    """Folders of tests lie in /tmp or in memory, where a command has folders of its own."""
    assert str(tmp_path).startswith(("/tmp/", "/dev/shm/", "/var/tmp/"))
    if levels.choose(level).reasons:
        pytest.skip(f"this machine has no {level}")
    data = tmp_path / "data"
    data.mkdir()
    (data / "file").write_text("read")
    command = f"cat {data}/file; echo > {data}/new"
    options: dict[str, Any] = {"sandbox_readable": (data,), "easy_endings": True}
    async with World(tmp_path / "home", sandbox_level=level, **options) as world:
        world.script("m", says(call("bash", command=command)), says(call("finish", summary="x")))
        founded = await world.found("Read", model="scripted/m")
        await world.settle()
        [goal, *_] = await world.board(founded.team.id)
        [told, *_] = [turn.text for turn in await world.turns(goal.id) if turn.role == "tool"]
    assert told.splitlines()[1].startswith("read")
    assert sorted(path.name for path in data.iterdir()) == ["file"]


@pytest.mark.parametrize("folder", ["/tmp", "/var"])
async def test_what_lies_in_a_readable_folder_is_not_the_memory_of_a_command(
    tmp_path: Path, folder: str
) -> None:
    """Such a folder lies over one that commands have in memory."""
    if levels.choose("namespaces").reasons:
        pytest.skip("this machine has no namespaces")
    options: dict[str, Any] = {"sandbox_readable": (Path(folder),), "easy_endings": True}
    options |= {"sandbox_level": "namespaces", "limits": Limits(memory_mib=256)}
    async with World(tmp_path / "home", **options) as world:
        world.script(
            "m", says(call("bash", command="echo read")), says(call("finish", summary="x"))
        )
        founded = await world.found("Read", model="scripted/m")
        await world.settle()
        [goal, *_] = await world.board(founded.team.id)
        [told, *_] = [turn.text for turn in await world.turns(goal.id) if turn.role == "tool"]
    assert told.startswith("[exit code 0]")
