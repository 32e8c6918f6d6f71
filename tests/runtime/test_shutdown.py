"""Shutdown: SIGTERM parks the work; the emergency stop ends all work and all processes."""

import asyncio
import os
import signal
import time
import uuid
from pathlib import Path

import orjson
import pytest

from agiraph.app import open_store
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import NodeStatus
from agiraph.core.store import events, nodes, teams
from agiraph.testing import ModelServer, call, says
from agiraph.testing.script import Says, Seen
from tests.cli.shell import Shell
from tests.conftest import SweepLog
from tests.up_process import up, use_model_server


@pytest.fixture
def agiraph(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "home").prepared()


def processes_with(mark: str) -> list[str]:
    """Return the command lines of all processes on this machine that contain the mark."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in line and int(process.name) != os.getpid():
            found.append(line.decode(errors="replace"))
    return found


@pytest.mark.slow
async def test_an_emergency_stop_leaves_no_process_behind(agiraph: Shell, tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    goals = ["Sleep 0", "Sleep 1"]
    # One pipe per goal: a single read of a shared pipe could return both lines.
    pipes = {goal: tmp_path / goal.replace(" ", "-") for goal in goals}
    for pipe in pipes.values():
        os.mkfifo(pipe)
    # Detached children in sessions of their own, which ignore SIGTERM.
    child = f"trap '' TERM HUP INT; exec -a {mark} sleep 600"
    begin = f'setsid bash -c "{child}" & (setsid bash -c "{child}" &) ; '

    def script(seen: Seen) -> Says:
        if any(message.role == "tool" for message in seen.messages):
            return says(call("finish", summary="It ended."))
        pipe = next(pipes[goal] for goal in goals if goal in seen.messages[0].text)
        command = f"{begin}echo begun > {pipe}; exec -a {mark} sleep 600"
        return says(call("bash", command=command, timeout=900))

    async with ModelServer(script) as server, up(use_model_server(agiraph, server)) as running:
        made = [
            await running.ask("POST", "/teams", {"goal": goal, "learns": False}) for goal in goals
        ]
        for pipe in pipes.values():
            await asyncio.to_thread(pipe.read_text)
        agiraph.environment["AGIRAPH_PORT"] = running.origin.rpartition(":")[2]
        stopped = await agiraph("stop", "--all")
        for team in made:
            await running.wait_for_event(team["id"], "node.cancelled")
        said = "Stopped 2 teams and cancelled 2 tasks.\n"
        assert (stopped.code, stopped.out, stopped.err) == (0, said, "")
        assert processes_with(mark) == []
        after = await running.ask("GET", f"/teams/{made[0]['id']}")
        assert after["status"] == "stopped"
        assert await running.ask("POST", "/stop") == {"teams": 0, "nodes": 0}
        for wrong in (("stop",), ("stop", "--all", made[0]["id"])):
            refused = await agiraph(*wrong)
            assert (refused.code, "Name one team, or give --all." in refused.err) == (2, True)


async def test_sigterm_parks_the_work_and_the_next_start_continues_it(
    agiraph: Shell, sweep_log: SweepLog, tmp_path: Path
) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    pipe = tmp_path / "begun"
    os.mkfifo(pipe)
    stubborn = (
        f"trap '' TERM; echo begun > {pipe}; bash -c \"trap '' TERM; exec -a {mark} sleep 600\""
    )
    has_asked = asyncio.Event()
    may_go_on = asyncio.Event()

    async def script(seen: Seen) -> Says:
        if seen.messages[0].text.find("Run it") >= 0:
            if any(message.role == "tool" for message in seen.messages):
                return says(call("finish", summary=seen.messages[-1].text[:60]))
            return says(call("bash", command=stubborn, timeout=900))
        has_asked.set()
        await may_go_on.wait()
        return says(call("finish", summary="Thought of it."))

    async with ModelServer(script) as server:
        async with up(use_model_server(agiraph, server)) as running:
            thinks = await running.ask("POST", "/teams", {"goal": "Think", "learns": False})
            runs = await running.ask("POST", "/teams", {"goal": "Run it", "learns": False})
            await has_asked.wait()
            await asyncio.to_thread(pipe.read_text)
            async with running.http.ws_connect(f"{running.origin}/api/events") as line:
                await line.send_json({"op": "subscribe", "cursors": {}})
                await line.receive()  # hello: from here on events are sent
                began = time.monotonic()
                running.process.signal(signal.SIGTERM)
                frames = [orjson.loads(message.data)["op"] async for message in line]
                assert (line.close_code, set(frames) <= {"event", "delta", "draft"}) == (1012, True)
            ended = await running.process.ends()
            sweep_log.append(f"SIGTERM with work under way: {time.monotonic() - began:.2f} s")
        assert ended.code == 0
        assert processes_with(mark) == []

        store = await open_store(f"sqlite:///{agiraph.home / 'agiraph.db'}", SystemClock())
        rows = [
            node for team in (thinks, runs) for node in await store.read(nodes.board, team["id"])
        ]
        told = await store.read(events.after, runs["id"], 0)
        assert [(n.status, n.owner, n.crashes) for n in rows] == [
            (NodeStatus.ASSIGNED, None, 0)
        ] * 2
        assert [event.seq for event in told] == list(range(1, len(told) + 1))
        await store.close()

        may_go_on.set()
        async with up(agiraph) as running:
            for team in (thinks, runs):
                await running.wait_for_event(team["id"], "node.completed")
            running.process.signal(signal.SIGTERM)
            assert (await running.process.ends()).code == 0

    store = await open_store(f"sqlite:///{agiraph.home / 'agiraph.db'}", SystemClock())
    found = await store.read(teams.page)
    assert [team.status for team in found] == ["completed"] * 2
    await store.close()
