"""`agiraph up` on a full disk, without its lock file, and without its database file."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.work import NodeStatus
from agiraph.testing import World, call, says
from tests.cli.shell import Shell
from tests.runtime.waiting import Gate, PatientClock
from tests.store.test_full_disk_and_locks import fill_disk, small_disk
from tests.store.test_removed_database import rescued_files, stored_messages
from tests.up_process import Up, up

GOAL = {"goal": "Wait for me", "learns": False, "start": False}


async def response_to(running: Up, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    async with running.http.request(method, f"{running.origin}/api{path}", json=body) as response:
        return response.status, await response.json()


# ---- a full disk --------------------------------------------------------------------------------


@pytest.mark.parametrize("is_new", [True, False], ids=["a new home", "a home with work in it"])
async def test_up_waits_while_the_disk_is_full_and_then_starts(
    tmp_path: Path, is_new: bool
) -> None:
    with small_disk(tmp_path / "disk", kilobytes=4096) as disk:
        agiraph = Shell(disk / "home", {"AGIRAPH_PORT": "0"})
        if not is_new:
            assert (await agiraph("run", "Show it")).code == 0
        ballast = fill_disk(disk)
        async with agiraph.start("up") as process:
            await process.says("opening the database failed")
            await process.says("No room left")
            assert process.has_said("is up at") == 0
            ballast.unlink()
            await process.says("Sign in once")
            assert len((agiraph.home / "token").read_text().strip()) > 30
            process.signal(signal.SIGTERM)
            assert (await process.ends()).code == 0


async def test_up_can_be_stopped_while_it_waits_for_disk_space(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=1024) as disk:
        fill_disk(disk)
        async with Shell(disk / "home", {"AGIRAPH_PORT": "0"}).start("up") as process:
            await process.says("opening the database failed")
            process.signal(signal.SIGTERM)
            assert (await process.ends()).code == 0


async def test_a_command_on_a_full_disk_fails_in_one_line(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=1024) as disk:
        fill_disk(disk)
        ended = await Shell(disk / "home")("run", "Show it")
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert "No room left" in ended.err


async def test_up_continues_when_its_log_cannot_be_written(tmp_path: Path) -> None:
    agiraph = Shell(tmp_path / "home", {"AGIRAPH_PORT": "0", "AGIRAPH_LOG": "debug"})
    log = os.open("/dev/full", os.O_WRONLY)
    async with agiraph.start("up", errors=log) as process:
        os.close(log)
        await process.says("Sign in once")
        process.signal(signal.SIGTERM)
        ended = await process.ends()
    assert (ended.code, "Stopping" in ended.out) == (0, True)


async def test_an_agents_command_waits_while_there_is_no_room_for_its_spool(
    tmp_path: Path,
) -> None:
    clock = PatientClock()
    with small_disk(tmp_path / "disk", kilobytes=1024) as disk:
        url = f"sqlite:///{tmp_path / 'agiraph.db'}"
        async with World(disk / "home", database_url=url, clock=clock, easy_endings=True) as world:
            ada = world.script(
                "ada",
                says(call("bash", command="echo hello")),
                # The first call is answered with "It did not run".
                says(call("bash", command="echo hello")),
                says(call("finish", summary="done")),
            )
            ada.gate = gate = Gate()
            founded = await world.found("Run it")
            await gate.reached()
            ballast = fill_disk(disk)
            gate.set()
            settled = asyncio.create_task(world.settle())
            paused = asyncio.create_task(clock.paused.wait())
            await asyncio.wait({settled, paused}, return_when=asyncio.FIRST_COMPLETED)
            ballast.unlink()
            clock.over.set()
            await settled
            [node] = await world.board(founded.team.id)
            turns = await world.turns(node.id)
            assert (node.status, paused.done()) == (NodeStatus.COMPLETED, True)
            said = [turn.text for turn in turns if turn.role == "tool"]
            assert "It did not run" in said[0]
            assert said[1:] == ["[exit code 0]\nhello", "Published: no files."]


# ---- the lock file ------------------------------------------------------------------------------


async def test_a_second_up_is_refused_even_if_the_lock_file_was_removed(tmp_path: Path) -> None:
    first = Shell(tmp_path / "home")
    async with up(first) as running:
        (first.home / "lock").unlink()
        second = await Shell(first.home, {"AGIRAPH_PORT": "0"})("up")
        assert (second.code, second.out) == (1, "")
        assert "already works on" in second.err
        await running.process.says("was removed or replaced while agiraph works on this home")
        assert (first.home / "lock").read_text() == f"{running.process.process.pid}\n"
        assert (await response_to(running, "POST", "/teams", GOAL))[0] == 201


async def test_a_second_home_on_the_same_database_file_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    async with up(Shell(tmp_path / "one", {"AGIRAPH_DATABASE_URL": url})):
        other = Shell(tmp_path / "two", {"AGIRAPH_DATABASE_URL": url, "AGIRAPH_PORT": "0"})
        second = await other("up")
    assert (second.code, second.out) == (1, "")
    assert "Another agiraph, with another home, already works on" in second.err


# ---- the database file --------------------------------------------------------------------------


async def test_up_refuses_writes_after_its_database_was_removed_and_saves_its_rows(
    tmp_path: Path,
) -> None:
    agiraph = Shell(tmp_path / "home")
    async with up(agiraph) as running:
        made = await running.ask("POST", "/teams", GOAL)
        (agiraph.home / "agiraph.db").unlink()
        status, problem = await response_to(running, "POST", "/teams", GOAL)
        assert (status, problem["title"]) == (503, "The database file is gone")
        [saved] = rescued_files(agiraph.home)
        assert f"All that was acknowledged is in {str(saved)!r}" in problem["detail"]
        assert (await response_to(running, "GET", "/readyz"))[0] == 503
        assert (await response_to(running, "GET", "/healthz"))[0] == 200
        await running.process.says("was removed or replaced while agiraph was running")
        running.process.signal(signal.SIGTERM)
        assert (await running.process.ends()).code == 0
    stored_messages(saved)
    for name in ("agiraph.db-wal", "agiraph.db-shm"):
        (agiraph.home / name).unlink(missing_ok=True)
    saved.rename(agiraph.home / "agiraph.db")
    async with up(agiraph) as running:
        assert [team["id"] for team in await running.ask("GET", "/teams")] == [made["id"]]


async def test_up_refuses_writes_while_its_home_is_moved_away_and_then_continues(
    tmp_path: Path,
) -> None:
    agiraph, moved = Shell(tmp_path / "home"), tmp_path / "moved"
    async with up(agiraph) as running:
        agiraph.home.rename(moved)
        status, problem = await response_to(running, "POST", "/teams", GOAL)
        assert (status, str(moved) in problem["detail"]) == (503, True)
        assert (await response_to(running, "GET", "/readyz"))[0] == 503
        moved.rename(agiraph.home)
        # A background task that failed meanwhile is tried again after at most ten seconds.
        async with asyncio.timeout(60):
            while (await response_to(running, "GET", "/readyz"))[0] != 200:
                pass
        assert (await response_to(running, "POST", "/teams", GOAL))[0] == 201


async def test_up_is_not_ready_while_its_disk_takes_no_more_files(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=100_000, inodes=2_000) as disk:
        agiraph = Shell(disk / "home")
        async with up(agiraph) as running:
            assert (await response_to(running, "GET", "/readyz"))[0] == 200
            made: list[Path] = []
            with contextlib.suppress(OSError):
                while True:
                    made.append(disk / str(len(made)))
                    made[-1].touch()
            status, problem = await response_to(running, "GET", "/readyz")
            assert (status, "No file can be made in the home." in problem["detail"]) == (503, True)
            for path in made[:-1]:
                path.unlink()
            async with asyncio.timeout(60):  # a background task may have failed meanwhile
                while (await response_to(running, "GET", "/readyz"))[0] != 200:
                    pass
