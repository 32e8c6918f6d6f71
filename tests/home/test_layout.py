"""Layout: a home has one runtime, its team folders keep their files, and no name leads out."""

import os
import signal
import stat
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import HomeInUse, Misconfigured, OutOfScope
from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.home import layout
from agiraph.core.home.layout import Home

TEAM = Team(
    id=TeamId("team_1"),
    name="Prices",
    goal="Find the price",
    created_at=datetime(2026, 2, 11, tzinfo=UTC),
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.open(tmp_path / "home")


def files_in(path: Path) -> dict[str, str]:
    return {str(p.relative_to(path)): p.read_text() for p in path.rglob("*") if p.is_file()}


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_home_is_private_to_its_owner(tmp_path: Path) -> None:
    home = Home.open(tmp_path / "deep" / "home")
    assert (home.config_path, home.token_path) == (
        tmp_path / "deep/home/agiraph.toml",
        tmp_path / "deep/home/token",
    )
    home.team(TEAM.id).prepare(TEAM)
    made = list((tmp_path / "deep" / "home").rglob("*"))
    assert {permissions(p) for p in made if p.is_dir()} == {0o700}
    assert {permissions(p) for p in made if p.is_file()} == {0o600}
    assert permissions(tmp_path / "deep" / "home") == 0o700


def test_an_existing_folder_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o755)
    Home.open(tmp_path / "mine")
    assert permissions(tmp_path / "mine") == 0o755


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Misconfigured, match="Set AGIRAPH_HOME to a folder that you may write to"):
        Home.open(tmp_path / "file")


@pytest.fixture
def holder(home: Home) -> Iterator[int]:
    """Another process that holds the lock of the home until it is killed."""
    held, telling = os.pipe()
    waiting, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            lock = home.lock()
            os.write(telling, b"held")
            os.close(end)
            os.read(waiting, 1)
            lock.release()
        finally:
            os._exit(0)
    assert os.read(held, 4) == b"held"
    yield pid
    for fd in (held, telling, waiting, end):
        os.close(fd)
    os.waitpid(pid, 0)


def test_a_second_runtime_is_refused_with_the_process_to_stop(home: Home, holder: int) -> None:
    with pytest.raises(HomeInUse) as refusal:
        home.lock()
    assert str(refusal.value) == (
        f"Process {holder} already works on {str(home.path)!r}. "
        "Stop it first, or set AGIRAPH_HOME to another folder."
    )


def test_the_lock_of_a_killed_runtime_is_released(home: Home, holder: int) -> None:
    os.kill(holder, signal.SIGKILL)
    os.waitid(os.P_PID, holder, os.WEXITED | os.WNOWAIT)
    with home.lock():
        assert (home.path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_released_lock_can_be_taken_again(home: Home) -> None:
    with home.lock() as lock, pytest.raises(HomeInUse):
        home.lock()
    lock.release()
    home.lock().release()


@pytest.mark.slow
def test_of_eight_processes_one_gets_the_lock(home: Home) -> None:
    """Each child keeps the lock until all have tried: the pipe closes when the last has tried."""
    tried, trying = os.pipe()
    children: list[int] = []
    for _ in range(8):
        pid = os.fork()
        if pid == 0:
            try:
                lock = home.lock()
            except HomeInUse:
                os._exit(1)
            os.close(trying)
            os.read(tried, 1)
            lock.release()
            os._exit(0)
        children.append(pid)
    os.close(trying)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    os.close(tried)
    assert sorted(codes) == [0, 1, 1, 1, 1, 1, 1, 1]


def test_a_program_that_outlives_a_killed_runtime_does_not_keep_the_lock(home: Home) -> None:
    started, telling = os.pipe()
    waiting, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            home.lock()
            streams = [(os.POSIX_SPAWN_DUP2, waiting, 0), (os.POSIX_SPAWN_DUP2, telling, 1)]
            os.posix_spawn("/bin/sh", ["sh", "-c", "echo on; read _"], {}, file_actions=streams)
            signal.pause()
        finally:
            os._exit(1)
    assert os.read(started, 2) == b"on"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    home.lock().release()

    for fd in (started, telling, waiting, end):
        os.close(fd)


def test_any_call_id_gets_its_own_spool_folder(home: Home) -> None:
    spool = home.path / "spool"
    plain = home.spool("toolu_01-A")
    odd = [
        home.spool(call) for call in ("../../etc", "a/b", "", ".", "x" * 300, "call:1", "\ud800")
    ]

    assert plain == spool / "toolu_01-A"
    assert home.spool("toolu_01-A") == plain
    assert len(set(odd)) == len(odd)
    assert sorted(spool.iterdir()) == sorted([plain, *odd])
    assert {len(path.name) for path in odd} == {64}


def test_a_new_team_folder_has_its_files(home: Home) -> None:
    home.team(TEAM.id).prepare(TEAM)
    assert files_in(home.path / "teams" / "team_1") == {
        "SOUL.md": layout.SOUL,
        "GOAL.md": "# Goal\n\nFind the price\n",
        "MEMORY.md": layout.MEMORY,
        "PLAN.md": layout.PLAN,
        "memory/index.md": layout.INDEX,
    }
    folders = {p.name for p in (home.path / "teams/team_1/memory").iterdir() if p.is_dir()}
    assert folders == {"knowledge", "experiences", "preferences"}


def test_a_new_goal_changes_only_the_goal_file(home: Home) -> None:
    team = home.team(TEAM.id)
    team.prepare(TEAM)
    for name in ("SOUL.md", "MEMORY.md", "PLAN.md", "memory/index.md"):
        team.folder.write(name, b"ours")

    team.prepare(replace(TEAM, goal="Find the size"))

    assert files_in(home.path / "teams" / "team_1") == {
        "SOUL.md": "ours",
        "GOAL.md": "# Goal\n\nFind the size\n",
        "MEMORY.md": "ours",
        "PLAN.md": "ours",
        "memory/index.md": "ours",
    }


def test_an_agents_folder_keeps_its_files(home: Home) -> None:
    team = home.team(TEAM.id)
    with team.agent("ada") as desk:
        desk.write("NOTEBOOK.md", b"mine")
    with team.agent("ada") as desk:
        assert desk.name == "agents/ada"
    assert files_in(home.path / "teams/team_1/agents") == {
        "ada/IDENTITY.md": "# ada\n",
        "ada/MEMORY.md": layout.MEMORY,
        "ada/NOTEBOOK.md": "mine",
    }


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a/", "../a", "a\0", "x" * 256])
def test_a_name_that_is_a_path_is_refused(home: Home, name: str) -> None:
    team = home.team(TEAM.id)
    with pytest.raises(OutOfScope):
        team.agent(name)
    with pytest.raises(OutOfScope):
        team.node(NodeId(name))
    with pytest.raises(OutOfScope):
        home.team(TeamId(name))
    assert list((home.path / "teams").rglob("*")) == [home.path / "teams" / "team_1"]


# ---- the lock, after its file or the home was moved --------------------------------------------


def test_a_second_runtime_is_refused_when_the_lock_file_was_removed(
    home: Home, holder: int
) -> None:
    (home.path / "lock").unlink()
    with pytest.raises(HomeInUse, match="already works on"):
        home.lock()
    assert not (home.path / "lock").exists()


def test_a_second_runtime_is_refused_when_the_home_was_renamed(home: Home, holder: int) -> None:
    moved = home.path.rename(home.path.with_name("moved"))
    with pytest.raises(HomeInUse, match=f"Process {holder} already works on"):
        Home.open(moved).lock()


def test_a_removed_lock_file_is_noticed_and_written_again(home: Home) -> None:
    with home.lock() as lock:
        assert lock.tampering() == ""
        (home.path / "lock").unlink()
        assert "was removed or replaced" in lock.tampering()
        assert (home.path / "lock").read_text() == f"{os.getpid()}\n"
        assert lock.tampering() == ""
    home.lock().release()


def test_a_moved_home_is_noticed_by_the_lock(home: Home) -> None:
    with home.lock() as lock:
        moved = home.path.rename(home.path.with_name("moved"))
        home.path.mkdir()
        said = lock.tampering()
        assert "was moved, removed or replaced" in said
        assert str(moved) in said
        home.path.rmdir()
        moved.rename(home.path)
        assert lock.tampering() == ""


def test_an_empty_token_file_is_replaced(home: Home) -> None:
    home.token_path.touch(mode=0o600)
    made = home.token()
    assert len(made) > 30
    assert (home.token(), permissions(home.token_path)) == (made, 0o600)
    assert [p.name for p in home.path.iterdir()] == ["token"]
