"""Limits: a command over a limit is ended with its processes, and the result says why."""

import asyncio
import contextlib
import os
import shutil
import uuid
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.store.test_full_disk_and_locks import small_disk

from agiraph.sandbox import cgroups, levels
from agiraph.sandbox.commands import CommandResult, child_environment, run
from agiraph.sandbox.inside import warden
from agiraph.sandbox.inside.processes import OUT_OF_MEMORY, describe
from agiraph.sandbox.sandbox import Level, Limits, Mount, Spec

SMALL = Limits(processes=40, memory_mib=200, file_mib=8, free_disk_mib=1)
TOO_MUCH = "its processes used more than 200 MiB of memory"
RAN_OUT = describe(asdict(SMALL.for_machine()), OUT_OF_MEMORY)
"""What a command is told that grew faster than it was counted, where there are control groups."""


@pytest.fixture(params=["pid", "user", "plain"])
def isolation(request: pytest.FixtureRequest) -> str:
    if request.param == "pid" and os.geteuid() != 0:
        pytest.skip("only root gets a pid namespace without a user namespace")
    return request.param


async def run_command(
    home: Path, command: str, isolation: str = "", limits: Limits = SMALL
) -> CommandResult:
    env = child_environment(home, {warden.ISOLATION: isolation} if isolation else {})
    spool = home / f"spool-{uuid.uuid4().hex}"
    return await run(spool, command=command, cwd=home, timeout=60, env=env, limits=limits)


def marked_processes(mark: str) -> list[str]:
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
    return found


async def test_a_command_with_too_many_processes_is_ended(tmp_path: Path, isolation: str) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    many = f"for i in $(seq 100); do bash -c 'exec -a {mark} sleep 1000' & done; wait"
    result = await run_command(tmp_path, many, isolation)

    assert (result.ended, result.exit_code) == ("over_limit", None)
    assert result.limit == "it had more than 40 processes at a time"
    assert marked_processes(mark) == []


async def test_a_fork_bomb_is_ended_and_other_commands_continue(tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    bomb = f"exec -a {mark} bash -c ':(){{ :|:& }};:; wait; sleep 1000'"
    result, other = await asyncio.gather(
        run_command(tmp_path, bomb), run_command(tmp_path, "sleep 0.2; echo I live")
    )
    assert (result.ended, result.limit) == (
        "over_limit",
        "it had more than 40 processes at a time",
    )
    assert (other.exit_code, other.output) == (0, "I live\n")
    assert marked_processes(mark) == []


async def test_a_command_with_too_much_memory_in_one_process_is_ended(
    tmp_path: Path, isolation: str
) -> None:
    take = "python3 -c \"import time; x = [b'x' * 2**20 for _ in range(600)]; time.sleep(1000)\""
    result = await run_command(tmp_path, take, isolation)

    assert (result.ended, result.limit in (TOO_MUCH, RAN_OUT)) == ("over_limit", True)


async def test_a_command_with_too_much_memory_in_several_processes_is_ended(tmp_path: Path) -> None:
    take = "python3 -c \"import time; x = b'x' * 80 * 2**20; time.sleep(1000)\" &"
    result = await run_command(tmp_path, f"{take * 4} wait")

    assert (result.ended, result.limit in (TOO_MUCH, RAN_OUT)) == ("over_limit", True)


@pytest.mark.slow
async def test_memory_shared_by_forked_processes_counts_once(tmp_path: Path) -> None:
    share = (
        "import os, time\n"
        "x = b'x' * 90 * 2**20\n"
        "pids = [os.fork() for _ in range(2)]\n"
        "if all(pids): time.sleep(0.5); print('done', flush=True); os.kill(0, 9)\n"
        "time.sleep(1000)\n"
    )
    (tmp_path / "share.py").write_text(share)
    result = await run_command(tmp_path, "setsid -w python3 share.py")

    assert (result.ended, result.output.splitlines()[0]) == ("exited", "done")


async def test_a_file_cannot_grow_over_the_limit(tmp_path: Path, isolation: str) -> None:
    result = await run_command(tmp_path, "exec yes > f", isolation)

    assert (result.ended, result.exit_code) == ("exited", 153)
    assert result.limit == "a file of it would have had more than 8 MiB"
    assert (tmp_path / "f").stat().st_size == 8 * 2**20


async def test_a_confined_command_cannot_raise_its_limits(tmp_path: Path) -> None:
    scratch = tmp_path / "home" / "scratch"
    scratch.mkdir(parents=True)
    spec = Spec(mounts=(Mount(source=scratch, target=scratch, is_writable=True),))
    result = await run(
        tmp_path / "spool",
        command="ulimit -f unlimited; python3 -c 'import resource as r; r.setrlimit(1, (-1, -1))'",
        cwd=scratch,
        timeout=60,
        env=child_environment(tmp_path),
        spec=spec,
        limits=SMALL,
    )
    assert result.exit_code == 1
    assert "not allowed to raise maximum limit" in result.output


async def test_a_command_that_fills_the_disk_is_ended(tmp_path: Path) -> None:
    """The limit is 20 MiB below the free space, so a few files reach it."""
    free_mib = shutil.disk_usage(tmp_path).free // 2**20
    limits = Limits(free_disk_mib=free_mib - 20, file_mib=4096)
    fill = "for i in $(seq 1000); do head -c 8M /dev/urandom > f$i; done"
    result = await run_command(tmp_path, fill, limits=limits)

    assert (result.ended, result.limit) == (
        "over_limit",
        f"it left less than {free_mib - 20} MiB of the disk free",
    )


@pytest.mark.slow
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "landlock"])
async def test_a_confined_command_meets_a_full_disk_and_its_result_is_kept(
    tmp_path: Path, level: Level
) -> None:
    if levels.choose(level).reasons:
        pytest.skip(f"this machine has no {level}")
    fill = "for i in $(seq 100); do head -c 1M /dev/zero > f$i || exit 9; sleep 0.02; done"
    found: dict[int, tuple[str, int | None, str]] = {}
    with small_disk(tmp_path / "disk", kilobytes=32_768) as disk:
        spec = Spec(level=level, mounts=(Mount(source=disk, target=disk, is_writable=True),))
        for reserve in (16, 0):
            result = await run(
                disk / f"spool-{reserve}",
                command=fill,
                cwd=disk,
                timeout=60,
                env=child_environment(disk),
                spec=spec,
                limits=Limits(free_disk_mib=reserve, file_mib=64),
            )
            found[reserve] = (result.ended, result.exit_code, result.limit)
            for file in disk.glob("f*"):
                file.unlink()
    assert found == {
        16: ("over_limit", None, "it left less than 16 MiB of the disk free"),
        0: ("exited", 9, ""),
    }


async def test_a_command_within_its_limits_reports_no_limit(tmp_path: Path) -> None:
    result = await run_command(tmp_path, "for i in $(seq 20); do sleep 0.1 & done; wait; echo done")
    assert (result.ended, result.exit_code, result.output, result.limit) == (
        "exited",
        0,
        "done\n",
        "",
    )


IN_MEMORY = {
    "shared mapping": "import mmap, time\nm = mmap.mmap(-1, 300 * 2**20)\n"
    "for n in range(300): m[n * 2**20 : (n + 1) * 2**20] = b'x' * 2**20\ntime.sleep(1000)\n",
    "file in memory": "import os, time\nf = os.memfd_create('x')\n"
    "for n in range(300): os.write(f, b'x' * 2**20)\ntime.sleep(1000)\n",
    "System V": "import ctypes, time\nc = ctypes.CDLL(None)\nc.shmat.restype = ctypes.c_void_p\n"
    "i = c.shmget(0, 300 * 2**20, 0o1600)\na = c.shmat(i, None, 0)\n"
    "ctypes.memset(a, 1, 300 * 2**20)\nc.shmdt(ctypes.c_void_p(a))\ntime.sleep(1000)\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("way", IN_MEMORY)
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "landlock"])
async def test_memory_that_no_process_has_alone_counts_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: Level, way: str
) -> None:
    if levels.choose(level).reasons:
        pytest.skip(f"this machine has no {level}")
    # As for an ordinary user, who may make no control groups: they would hold the limit.
    monkeypatch.setitem(cgroups._found, os.getpid(), None)
    (tmp_path / "take.py").write_text(IN_MEMORY[way])
    # A longer limit for files, which a file in memory would meet first.
    limits = Limits(processes=40, memory_mib=200, file_mib=4096, free_disk_mib=1)
    spec = Spec(level=level, mounts=(Mount(source=tmp_path, target=tmp_path, is_writable=True),))
    result = await run(
        tmp_path / "spool",
        command="python3 take.py",
        cwd=tmp_path,
        timeout=60,
        env=child_environment(tmp_path),
        spec=spec,
        limits=limits,
    )
    is_refused = result.ended == "exited" and result.exit_code != 0
    assert is_refused or result.limit in (TOO_MUCH, RAN_OUT)


@pytest.mark.slow
async def test_a_command_that_makes_too_many_files_is_ended(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=100_000, inodes=20_000) as disk:
        fill = "mkdir d; cd d; for n in $(seq 100); do touch $(seq $((n*200)) $((n*200+199))); done"
        result = await run(
            disk / "spool",
            command=f"{fill}; sleep 50",
            cwd=disk,
            timeout=60,
            env=child_environment(disk),
            spec=Spec(mounts=(Mount(source=disk, target=disk, is_writable=True),)),
            limits=SMALL,
        )
    assert result.ended == "over_limit"
    assert result.limit == "it left room for fewer than 10,000 more files on the disk"
