"""Control groups: the kernel holds the limits of a command, its team and all commands."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agiraph.sandbox import cgroups, levels
from agiraph.sandbox.cgroups import Groups, Tree
from agiraph.sandbox.commands import child_environment, run
from agiraph.sandbox.inside.processes import MIB
from agiraph.sandbox.sandbox import Level, Limits, Mount, Spec

LIMITS = Limits(
    processes=10,
    memory_mib=64,
    team_processes=20,
    team_memory_mib=80,
    all_processes=30,
    all_memory_mib=96,
)
ONE = """\
30 24 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
31 30 0:27 /box /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""
OWN = "9:name=systemd:/\n8:pids:/user\n4:memory:/box/own\n0::/\n"

is_available = pytest.mark.skipif(
    cgroups.find() is None, reason="this process cannot create control groups here"
)


def test_trees_of_version_1_are_found_at_their_own_groups() -> None:
    assert cgroups.trees(ONE, OWN) == (
        1,
        (
            Tree(folder=Path("/sys/fs/cgroup/memory/own"), controllers=("memory",)),
            Tree(folder=Path("/sys/fs/cgroup/pids/user"), controllers=("pids",)),
        ),
    )
    assert cgroups.trees(ONE.replace("rw,pids", "rw,cpu"), OWN) is None
    assert cgroups.trees("", "") is None


def test_a_tree_of_version_2_is_taken_if_it_has_both_controllers(tmp_path: Path) -> None:
    mounted = f"33 30 0:29 / {tmp_path} rw - cgroup2 cgroup2 rw\n"
    own = tmp_path / "user.slice" / "agiraph.scope"
    own.mkdir(parents=True)
    (own / "cgroup.controllers").write_text("cpu memory pids\n")
    found = cgroups.trees(mounted, "0::/user.slice/agiraph.scope\n")
    assert found == (2, (Tree(folder=own, controllers=("pids", "memory")),))
    # Not delegated: the processes in it are not ours to move.
    assert cgroups._create(found) is None
    assert [path.name for path in own.iterdir()] == ["cgroup.controllers"]
    (own / "cgroup.controllers").write_text("hugetlb\n")
    assert cgroups.trees(mounted, "0::/user.slice/agiraph.scope\n") is None


def test_groups_of_version_2_have_limits_at_each_step(tmp_path: Path) -> None:
    base = tmp_path / "agiraph-1-1"
    groups = Groups(version=2, bases={base: ("pids", "memory")})
    with groups.command("t", LIMITS) as placed:
        [group] = (base / "team-t").glob("command-*")
        assert placed.procs == (str(group / "cgroup.procs"),)
        assert placed.events == str(group / "memory.events")
        written = {
            str(path.relative_to(base)).replace(group.name, "command"): path.read_text()
            for path in base.rglob("*")
            if path.is_file()
        }
    assert written == {
        "cgroup.subtree_control": "+pids +memory",
        "pids.max": "120",
        "memory.max": str(108 * MIB),
        "team-t/cgroup.subtree_control": "+pids +memory",
        "team-t/pids.max": "80",
        "team-t/memory.max": str(90 * MIB),
        "team-t/command/pids.max": "40",
        "team-t/command/memory.max": str(72 * MIB),
    }


def in_child(procs: tuple[str, ...], code: str) -> int:
    """Run code in a child process that has joined the groups; return its wait status."""
    if pid := os.fork():
        return os.waitpid(pid, 0)[1]
    try:
        for path in procs:
            Path(path).write_text("0")
        exec(code, {"os": os})
        os._exit(0)
    finally:
        os._exit(70)


@is_available
def test_the_kernel_ends_a_process_over_the_memory_of_its_command() -> None:
    found = cgroups.find()
    assert found is not None
    with found.command("t_memory", LIMITS) as placed:
        within = in_child(placed.procs, "b'x' * (30 * 2**20)")
        over = in_child(placed.procs, "b'x' * (200 * 2**20)")
        events = Path(placed.events).read_text()
    assert (within, os.WTERMSIG(over)) == (0, signal.SIGKILL)
    assert "oom_kill 1" in events
    assert not Path(placed.events).parent.parent.exists()


FORK = """
pids = []
try:
    while len(pids) < 200:
        pids.append(os.posix_spawn("/bin/sleep", ["sleep", "5"], {}))
except BlockingIOError:
    pass
for pid in pids:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
os._exit(len(pids))
"""


@is_available
def test_commands_of_a_team_cannot_have_more_processes_than_the_team() -> None:
    """The limits are in threads, of which a process may have four on average."""
    found = cgroups.find()
    assert found is not None
    wide = replace(LIMITS, processes=1000)
    with found.command("t_pids", wide) as placed:
        status = in_child(placed.procs, FORK)
    assert os.waitstatus_to_exitcode(status) == 79


@is_available
def test_groups_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    found = cgroups.find()
    assert found is not None
    for base in found.bases:
        stale = base.parent / "agiraph-999999999-1" / "team-x" / "command-0"
        stale.mkdir(parents=True)
        with found.command("t_alive", LIMITS):
            cgroups._sweep(base.parent)
            assert (stale.parents[1].exists(), base.exists()) == (False, True)
        assert not base.exists()


@is_available
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "landlock", "none"])
async def test_a_command_that_outruns_the_count_is_ended_with_its_reason(
    tmp_path: Path, level: Level
) -> None:
    confinement = levels.choose(level)
    if confinement.reasons:
        pytest.skip(f"this machine has no {level}")
    spec = Spec(level=level, mounts=(Mount(source=tmp_path, target=tmp_path, is_writable=True),))
    result = await run(
        tmp_path / "spool",
        command=f"{sys.executable} -c \"x = b'x' * (2 << 30)\"; echo went on; sleep 100",
        cwd=tmp_path,
        timeout=60,
        env=child_environment(tmp_path),
        spec=None if level == "none" else spec,
        limits=LIMITS,
        team="t_fast",
    )
    assert (result.ended, result.exit_code) == ("over_limit", None)
    assert result.limit in (
        "memory ran out: it may use 64 MiB, all commands of this team 80 MiB, all together 96 MiB",
        "its processes used more than 64 MiB of memory",
    )
