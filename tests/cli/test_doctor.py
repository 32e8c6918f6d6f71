"""`agiraph doctor`: shows settings and problems, and repairs what is safe to repair."""

import asyncio
import os
import sqlite3
import sys
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import psycopg
import pytest

from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import NodeStatus, WaitingOn
from agiraph.core.services import health
from agiraph.core.services.mail import bus
from agiraph.core.store import channels, deliveries, waits
from agiraph.core.store.deliveries import DELIVERIES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.core.store.waits import WAITS
from agiraph.sandbox import commands
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.script import Status
from tests.cli.shell import Shell
from tests.postgres_server import free_port
from tests.runtime.waiting import until
from tests.up_process import up, use_model_server

ASKS = says(call("ask_human", question="Which one?"))


async def run_doctor(agiraph: Shell, *arguments: str) -> tuple[int, dict[str, Any]]:
    ended = await agiraph("doctor", "--json", *arguments)
    assert ended.err == ""
    return ended.code, orjson.loads(ended.out)


def problems(report: dict[str, Any]) -> dict[str, list[str]]:
    return {f["name"]: f["details"] for f in report["findings"] if f["verdict"] == "problem"}


async def team_waiting_for_a_person(
    world: World, goal: str = "Try", *, heartbeat: float | None = None
) -> Any:
    """Create a team whose only node waits for a person."""
    world.script(goal.split()[-1].lower(), ASKS)
    founded = await world.found(
        goal, model=f"scripted/{goal.split()[-1].lower()}", heartbeat=heartbeat
    )
    await world.settle()
    return founded


def lose_waits(tx: Tx, node_id: NodeId) -> None:
    waits.drop(tx, node_id)


def wait_for(tx: Tx, node_id: NodeId, waiting_on: WaitingOn) -> None:
    """Replace the wait of a parked node."""
    [wait] = waits.of_node(tx, node_id)
    tx.run("delete from waits where node_id = :id", id=node_id)
    WAITS.insert(
        tx,
        waits.Wait(
            kind=waiting_on.kind,
            subject=waiting_on.id,
            node_id=node_id,
            thread_id=wait.thread_id,
            call_id=wait.call_id,
            reason="planted",
            created_at=tx.now,
        ),
    )


def lose_timers(tx: Tx) -> None:
    tx.run("delete from timers")


def fail_delivery(tx: Tx, team_id: Any, node_id: NodeId) -> str:
    channels.add(tx, {"mail": frozenset({"report"})}, person_id=OWNER)
    node = NODES.get(tx, node_id)
    message = bus.send(
        tx, Draft( team_id=team_id, sender=node.assignee_id or "", recipient="human", kind="report",
        title="News", text="It is done.", node_id=node_id,),)  # fmt: skip
    [delivery] = deliveries.of_message(tx, message.id)
    DELIVERIES.update(tx, delivery.id, status="failed", error="no such host", tries=10)
    return delivery.id


@pytest.mark.slow
async def test_a_new_home_has_no_problems_and_settings_are_shown_without_secrets(
    either: Shell,
) -> None:
    either.environment |= {"OPENAI_API_KEY": "sk-secret-secret", "AGIRAPH_TOKEN": "t" * 40}
    before = await either("doctor")
    assert (before.code, either.home.exists()) == (0, False)
    assert "does not exist yet" in before.out
    await either("teams")
    code, report = await run_doctor(either)
    assert (code, report["well"], problems(report)) == (0, True, {})
    assert report["settings"]["OPENAI_API_KEY"] == {"value": "set", "origin": "environment"}
    assert report["settings"]["AGIRAPH_PORT"] == {"value": "8717", "origin": "default"}
    assert "sk-secret" not in before.out + str(report)
    assert "t" * 40 not in before.out + str(report)


async def test_stuck_work_and_failed_deliveries_are_reported_and_repaired(
    tmp_path: Path, database_url: str
) -> None:
    agiraph = Shell(tmp_path / "home", {"AGIRAPH_DATABASE_URL": database_url})
    async with World(
        tmp_path / "home", database_url=database_url, clock=SystemClock(), easy_endings=True
    ) as world:
        empty, ended, sleeping, well = [
            await team_waiting_for_a_person(world, f"Goal {n}", heartbeat=3600.0) for n in range(4)
        ]
        gone = await world.found("Done", start=False)
        await world.store.write(lose_waits, empty.node.id)
        await world.store.write(wait_for, ended.node.id, WaitingOn("node", gone.team.id))
        await world.store.write(wait_for, sleeping.node.id, WaitingOn("time", "timer_lost"))
        await world.store.write(lose_timers)
        delivery_id = await world.store.write(fail_delivery, well.team.id, well.node.id)

    code, report = await run_doctor(agiraph)
    found = problems(report)
    assert code == 1
    assert set(found) >= {"work", "messages"}
    assert {
        f"{empty.node.id} is waiting, but it waits for nothing.",
        f"{ended.node.id} waits for node:{gone.team.id}, which has ended or does not exist.",
        f"{sleeping.node.id} is sleeping, but it has no timer.",
    } <= set(found["work"])
    assert found["messages"] == [f"{delivery_id} was given up on mail: no such host"]

    _, fixed = await run_doctor(agiraph, "--fix")
    assert {
        f"{empty.node.id} is back in its queue.",
        f"{ended.node.id} no longer waits for node:{gone.team.id}.",
        f"{sleeping.node.id} wakes now.",
        f"{delivery_id} goes out again.",
    } <= set(fixed["done"])
    assert not {"work", "messages"} & set(problems(fixed))

    async with World(
        tmp_path / "home", database_url=database_url, clock=SystemClock(), easy_endings=True
    ) as world:
        for number in range(4):
            world.script(str(number), says(call("finish", summary="done")))

        async def is_woken() -> bool:
            [node] = await world.board(sleeping.team.id)
            return node.status is NodeStatus.COMPLETED

        await until(world, is_woken)  # its timer may fire after everything else has settled
        await world.settle()
        asked = [
            {wait.waiting_on for wait in await world.store.read(waits.of_node, founded.node.id)}
            for founded in (empty, ended, well)
        ]
        questions = [await world.questions(f.team.id) for f in (empty, ended, well)]
    # The calls of the other nodes were repeated: each waits for a question that is open.
    for waiting_on, open_questions in zip(asked, questions, strict=True):
        assert len(waiting_on) == 1
        assert waiting_on <= {WaitingOn("answer", question.id) for question in open_questions}
    code, report = await run_doctor(agiraph)
    assert "work" not in problems(report)


async def test_nodes_of_an_ended_process_are_reported_and_freed(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'home' / 'agiraph.db'}"
    async with World(
        tmp_path / "home", database_url=url, clock=SystemClock(), easy_endings=True
    ) as world:
        founded = await team_waiting_for_a_person(world)

        def cut_off(tx: Tx) -> None:
            waits.drop(tx, founded.node.id)
            NODES.update(tx, founded.node.id, status="running", owner="run_dead")

        await world.store.write(cut_off)
    agiraph = Shell(tmp_path / "home")
    code, report = await run_doctor(agiraph)
    notes = {f["name"]: f["what"] for f in report["findings"] if f["verdict"] == "note"}
    assert code == (1 if problems(report) else 0)
    assert notes["cut off"] == "Interrupted tasks that continue at the next start: 1."
    _, fixed = await run_doctor(agiraph, "--fix")
    assert "Freed 1 node whose process has ended." in fixed["done"]


async def test_loose_permissions_unfinished_copies_and_leftover_processes_are_repaired(
    agiraph: Shell, tmp_path: Path
) -> None:
    await agiraph("teams")
    home = agiraph.home
    mark = uuid.uuid4().hex
    (home / "token").write_text("secret\n")
    (home / "token").chmod(0o644)
    home.chmod(0o755)
    stage = home / "teams" / "team_1" / "nodes" / "node_1" / "_stage"
    stage.mkdir(parents=True)
    (stage / "half.md").write_text("half")
    spool = home / "spool" / "call_1"
    spool.mkdir(parents=True)
    pipe = tmp_path / "begun"
    os.mkfifo(pipe)
    left = await _start_leftover_command(
        spool, f"echo begun > {pipe}; exec -a {mark} sleep 600", tmp_path
    )
    try:
        assert await asyncio.to_thread(pipe.read_text) == "begun\n"
        code, report = await run_doctor(agiraph)
        found = problems(report)
        assert code == 1
        assert found["permissions"] == [
            "the home itself has mode 755; it should be 700.",
            "token has mode 644; it should be 600.",
        ]
        assert found["unfinished copies"] == ["teams/team_1/nodes/node_1/_stage"]
        assert found["processes"] == ["A process of call_1 is running."]
        code, fixed = await run_doctor(agiraph, "--fix")
        assert (code, len(fixed["done"])) == (0, 4)
        assert (home.stat().st_mode & 0o777, (home / "token").stat().st_mode & 0o777) == (
            0o700,
            0o600,
        )
        assert (stage.exists(), stage.parent.exists()) == (False, True)
        assert commands.is_alive(spool) is False
    finally:
        if left.returncode is None:
            left.kill()
        await left.wait()


async def _start_leftover_command(
    spool: Path, command: str, cwd: Path
) -> asyncio.subprocess.Process:
    """Start a supervised command in a process that does not hold the lock of the home."""
    script = (
        "import asyncio, sys; from pathlib import Path; from agiraph.sandbox import commands\n"
        "spool, command, cwd = sys.argv[1:]\n"
        "env = commands.child_environment(Path(cwd))\n"
        "asyncio.run(commands.run(Path(spool), command=command, cwd=Path(cwd), timeout=900,"
        " env=env))"
    )
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(spool), command, str(cwd)
    )


async def test_beside_a_running_server_doctor_reports_but_refuses_to_repair(agiraph: Shell) -> None:
    async with up(agiraph) as running:
        code, report = await run_doctor(agiraph)
        pid = running.process.process.pid
        assert (code, report["at_work"]) == (0, f"Process {pid}")
        agiraph.home.chmod(0o755)
        refused = await agiraph("doctor", "--fix")
        assert (refused.code, refused.out) == (1, "")
        assert refused.err.startswith(f"agiraph: Process {pid} is running; nothing was changed.")
        assert agiraph.home.stat().st_mode & 0o777 == 0o755


async def test_beside_processes_on_postgresql_doctor_refuses_to_repair(
    tmp_path: Path, postgres: Any
) -> None:
    agiraph = Shell(tmp_path / "home", {"AGIRAPH_DATABASE_URL": postgres.fresh()})
    async with agiraph.start("work") as working:
        await working.says("At work.")
        code, report = await run_doctor(agiraph)
        assert (code, "connections to the database" in report["at_work"]) == (0, True)
        refused = await agiraph("doctor", "--fix")
        assert (refused.code, "is running; nothing was changed" in refused.err) == (1, True)


async def test_a_model_without_its_key_is_reported_with_the_variable_to_set(agiraph: Shell) -> None:
    async with World(agiraph.home, clock=SystemClock(), easy_endings=True) as world:
        await world.found("Try", model="anthropic/claude-x", start=False)
    code, report = await run_doctor(agiraph)
    [finding] = [f for f in report["findings"] if f["name"] == "model anthropic/claude-x"]
    assert (code, finding["verdict"]) == (1, "problem")
    assert "ANTHROPIC_API_KEY" in finding["what"]


async def test_models_are_called_only_with_the_option_online(agiraph: Shell) -> None:
    steps = [
        says("well"),
        says(call("get_weather", city="Paris")),
        Status(401, "bad key sk-canary-canary"),
    ]
    async with ModelServer(steps) as server:
        use_model_server(agiraph, server)
        await agiraph("teams")
        assert (await run_doctor(agiraph))[0] == 0
        assert server.requests == []
        code, report = await run_doctor(agiraph, "--online")
        assert (code, len(server.requests)) == (0, 2)
        code, report = await run_doctor(agiraph, "--online")
    assert code == 1
    assert list(problems(report)) == ["answer of openai/test"]
    assert "sk-canary" not in str(report)


async def test_a_damaged_database_is_reported_and_not_changed(agiraph: Shell) -> None:
    await agiraph("teams")
    path = agiraph.home / "agiraph.db"
    data = bytearray(path.read_bytes())
    data[:16] = b"not a database!!"
    path.write_bytes(data)
    code, report = await run_doctor(agiraph)
    [finding] = [f for f in report["findings"] if f["name"] == "database"]
    assert (code, finding["verdict"]) == (1, "problem")
    assert "is damaged" in finding["what"]
    assert path.read_bytes() == bytes(data)


@pytest.mark.parametrize("home", ["/proc", "/proc/home", "/dev/null", "/dev/null/home"])
async def test_a_home_that_is_not_writable_is_reported(home: str) -> None:
    """Paths that even root cannot write to: existing or not, a file or a path below a file."""
    agiraph = Shell(Path(home))
    told = await agiraph("doctor")
    assert (told.code, f"{home} cannot be written to (/" in " ".join(told.out.split())) == (1, True)
    tried = await agiraph("run", "Try")
    assert (tried.code, f"'{home}' cannot be the home" in tried.err) == (1, True)


STUCK_WORK: dict[str, tuple[dict[str, Any], str]] = {
    "no owner": ({"owner": None}, "is running, but no process owns it."),
    "crashes": ({"crashes": 2}, "was restarted 2 times without completing a step"),
    "cancelled": ({"cancel_requested": True}, "was cancelled and has not stopped"),
    "silent": ({}, "is running, but has done nothing since"),
}


@pytest.mark.parametrize("how", STUCK_WORK)
async def test_running_nodes_that_are_stuck_are_reported(
    tmp_path: Path, database_url: str, how: str
) -> None:
    agiraph = Shell(tmp_path / "home", {"AGIRAPH_DATABASE_URL": database_url})
    changes, told = STUCK_WORK[how]
    async with World(
        tmp_path / "home", database_url=database_url, easy_endings=True
    ) as world:  # with a test clock
        founded = await team_waiting_for_a_person(world)

        def plant(tx: Tx) -> list[str]:
            known: dict[str, Any] = {"status": NodeStatus.RUNNING, "owner": "run_gone"}
            before = NODES.get(tx, founded.node.id)
            NODES.update(tx, founded.node.id, **{**known, **changes})
            # A timer of the team may be late, too, until the engine sees the new time.
            found = [one for one in health.stuck(tx, is_running=True) if before.id in one]
            if tx.dialect == "postgres":  # the engine would repair it before doctor looks
                NODES.update(tx, before.id, status=before.status, owner=None)
            return found

        world.clock.advance(seconds=3600)
        [found] = await world.store.write(plant)
        orphaned = "is running, but its process has ended."
        by_job = database_url.startswith("postgres") and how != "no owner"
        assert found.startswith(f"{founded.node.id} {orphaned if by_job else told}")
        if not by_job and not database_url.startswith("postgres"):
            code, report = await run_doctor(agiraph)
            [line] = problems(report)["work"]
            assert (code, line.startswith(f"{founded.node.id} {told}")) == (1, True)


def rename_table(url: str, table: str, to: str) -> None:
    statement = f"alter table {table} rename to {to}"
    if url.startswith("sqlite:///"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)) as connection:
            connection.execute(statement)
        return
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


async def test_failing_background_work_is_reported_until_it_works_again(
    agiraph: Shell, database_url: str
) -> None:
    port = free_port()
    agiraph.environment |= {"AGIRAPH_PORT": str(port), "AGIRAPH_DATABASE_URL": database_url}
    address = f"http://127.0.0.1:{port}/api/readyz"
    async with agiraph.start("up") as process, aiohttp.ClientSession() as http:
        await process.says("Sign in once")
        _, report = await run_doctor(agiraph)
        assert "background work" not in problems(report)
        rename_table(database_url, "errands", "elsewhere")
        assert (await agiraph("new", "Look")).code == 0
        await process.says("triggers failed: ")
        async with http.get(address) as response:
            problem = await response.json(content_type=None)
        assert (response.status, problem["title"]) == (503, "Background work fails")
        assert problem["detail"].startswith("triggers has failed ")
        assert "errands" in problem["detail"]

        async def failing_background_work() -> list[str]:
            _, report = await run_doctor(agiraph)
            return problems(report).get("background work", [])

        async with asyncio.timeout(60):
            while not (details := await failing_background_work()):
                pass
        assert "triggers has failed " in details[0]
        rename_table(database_url, "elsewhere", "errands")
        await process.says("triggers works again")
        failures = [line for line in process.seen.splitlines() if "triggers failed: " in line]
        assert sum("Traceback" in line for line in failures) == 1, process.seen
        async with http.get(address) as response:
            assert response.status == 200
