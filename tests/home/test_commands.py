"""Commands: results, output, timeouts and kills; no process is left behind."""

import asyncio
import contextlib
import os
import select
import shlex
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agiraph.core.domain.errors import Conflict, Refused
from agiraph.sandbox import commands
from agiraph.sandbox.commands import CommandResult, child_environment, resolve, run
from agiraph.sandbox.inside import supervisor, warden

LONG_S = 20.0
"""Seconds in which processes end that would run for a quarter of an hour. Long: a busy machine
may stand still for seconds."""

RUNTIME = """
import asyncio, os, signal, sys
from pathlib import Path
from agiraph import faultpoints
from agiraph.sandbox.commands import child_environment, run

def die(point):
    if point == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

faultpoints.armed = die
home = Path(sys.argv[1])
env = child_environment(home, {"AGIRAPH_ISOLATION": sys.argv[2]})
todo = {"command": (home / "command").read_text(), "cwd": home, "timeout": 60, "env": env}
asyncio.run(run(home / "spool", **todo, on_output=lambda piece: os.write(1, piece)))
"""


class OutputListener:
    """A listener for output, with an event for each of the given words."""

    def __init__(self, *words: bytes) -> None:
        self.events = {word: asyncio.Event() for word in words}
        self.bytes = b""

    def __call__(self, piece: bytes) -> None:
        self.bytes = self.bytes[-1000:] + piece
        for word, event in self.events.items():
            if word in self.bytes:
                event.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A home, a way of isolation, and a mark by which a test finds its processes."""

    home: Path
    isolation: str
    mark: str = field(default_factory=lambda: f"mark-{uuid.uuid4().hex}")

    @property
    def endless(self) -> str:
        """A command of four processes, most of them detached; the shell ignores SIGTERM."""
        return f"""
        trap '' TERM
        bash -c 'exec -a {self.mark} sleep 1000' &
        setsid bash -c 'exec -a {self.mark} sleep 1000' &
        ( ( setsid bash -c 'exec -a {self.mark} sleep 1000' & ) & )
        until [ $(pgrep -cf '^{self.mark}') = 3 ]; do :; done
        echo ready
        exec -a {self.mark} sleep 1000
        """

    def marked_processes(self) -> list[int]:
        """Return the processes with the mark on their command line, the supervisor included."""
        found: list[int] = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
        return found


@pytest.fixture(params=["pid", "user", "plain"])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return Case(home=tmp_path, isolation=request.param)


async def run_command(
    home: Path, command: str, isolation: str = "", **options: Any
) -> CommandResult:
    extra = {warden.ISOLATION: isolation} if isolation else {}
    given: dict[str, Any] = {"cwd": home, "timeout": 60, "env": child_environment(home, extra)}
    return await run(home / "spool", command=command, **(given | options))


@contextlib.asynccontextmanager
async def runtime(
    home: Path, command: str, isolation: str = "", die_at: str = "never"
) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """Run the command in another process, which is killed at the end of the block."""
    (home / "command").write_text(command)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUNTIME, str(home), isolation, die_at),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(commands.__file__).parents[2])},
    )
    assert process.stdout is not None
    try:
        if die_at == "never":
            assert await process.stdout.readline() == b"ready\n"
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


@contextlib.contextmanager
def assert_all_end_within(seconds: float, pids: list[int]) -> Generator[None, None, None]:
    """Check that the block makes all these processes end in time."""
    assert pids
    waiting = [os.pidfd_open(pid) for pid in pids]
    deadline = time.monotonic() + seconds
    yield
    for process in waiting:
        left = max(0.0, deadline - time.monotonic())
        assert select.select([process], [], [], left)[0], "a process is still running"
        os.close(process)


def spooled(home: Path, name: str, field: str) -> int:
    return orjson.loads((home / "spool" / name).read_bytes())[field]


def outcome(result: CommandResult | None) -> tuple[str, int | None, str] | None:
    return (result.ended, result.exit_code, result.output) if result else None


def memory_kib(pid: int, field: str) -> int:
    """Return a size from /proc/PID/status, in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


@pytest.mark.parametrize(
    ("command", "code", "killed_by"),
    [
        ("exit 7", 7, None),
        ("kill -SEGV $$", 139, 11),
        ("read pid rest < /proc/self/stat; exit $(( pid - $$ ))", 0, None),
    ],
)
async def test_the_exit_code_is_that_of_a_shell(
    case: Case, command: str, code: int, killed_by: int | None
) -> None:
    assert outcome(await run_command(case.home, command, case.isolation)) == ("exited", code, "")
    assert spooled(case.home, "result.json", "signal") == killed_by


async def test_stdout_and_stderr_are_kept_in_the_order_of_writing(tmp_path: Path) -> None:
    heard = OutputListener()
    command = "for i in 1 2 3; do echo out$i; echo err$i >&2; done"
    result = await run_command(tmp_path, command, on_output=heard)

    assert result.output == "out1\nerr1\nout2\nerr2\nout3\nerr3\n"
    assert heard.bytes == result.output.encode() == result.output_path.read_bytes()


async def test_of_a_long_output_head_and_tail_are_shown(tmp_path: Path) -> None:
    result = await run_command(tmp_path, "echo first; printf 'x%.0s' {1..100000}; echo; echo last")

    head, tail = "first\n" + "x" * 7994, "x" * 7994 + "\nlast\n"
    note = f"\n… 84012 bytes left out; the whole output is in {result.output_path} …\n"
    assert (result.output, result.output_bytes) == (head + note + tail, 100012)


async def test_at_most_16_kib_of_output_are_shown_even_of_binary_data(tmp_path: Path) -> None:
    result = await run_command(tmp_path, "head -c 16000 /dev/urandom")

    assert 15_000 < len(result.output.encode()) <= 16 * 1024
    assert "bytes left out" in result.output


async def test_output_over_the_cap_is_counted_and_its_end_is_kept(tmp_path: Path) -> None:
    result = await run_command(tmp_path, "head -c 300000000 /dev/zero; echo the end")

    assert (result.output_bytes, result.output[-8:]) == (300_000_008, "the end\n")
    assert -20_000 < result.output_path.stat().st_size - supervisor.OUTPUT_CAP <= 0
    result.output_path.unlink()


async def test_a_hundred_megabytes_of_output_take_no_memory(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    heard = OutputListener(b"ready", b"done")
    command = "echo ready; read < go; head -c 100000000 /dev/zero; echo done; read < go"
    task = asyncio.create_task(run_command(tmp_path, command, on_output=heard))
    await heard.events[b"ready"].wait()
    pid = spooled(tmp_path, "started.json", "pid")
    before = memory_kib(os.getpid(), "VmRSS"), memory_kib(pid, "VmHWM")
    (tmp_path / "go").write_text("\n")
    await heard.events[b"done"].wait()
    after = memory_kib(os.getpid(), "VmRSS"), memory_kib(pid, "VmHWM")
    (tmp_path / "go").write_text("\n")

    assert (await task).output_bytes == 100_000_011
    assert max(after[0] - before[0], after[1] - before[1]) < 16 * 1024


async def test_a_command_gets_only_the_allowed_environment_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "LD_CANARY", "BASH_ENV"):
        monkeypatch.setenv(name, "canary")
    env = child_environment(tmp_path, {"DECLARED": "yes"})
    result = await run_command(tmp_path, "env", env=env)

    assert set(env) <= {*commands.INHERITED, "HOME", "DECLARED"}
    seen = dict(line.split("=", 1) for line in result.output.splitlines())
    assert env.items() <= seen.items()
    assert set(seen) <= {*env, "PWD", "SHLVL", "_"}


async def test_without_bash_a_command_runs_in_sh_with_empty_stdin(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    result = await run_command(tmp_path, "read line || echo ${0##*/}", env={"PATH": str(tmp_path)})

    assert result.output == "sh\n"


async def test_a_timeout_kills_processes_that_ignore_sigterm(case: Case) -> None:
    result = await run_command(case.home, case.endless, case.isolation, timeout=2)

    assert case.marked_processes() == []
    assert outcome(result) == ("timed_out", None, "ready\n")
    assert 2.0 + supervisor.GRACE <= result.seconds < 5.0 + supervisor.GRACE


async def test_a_cancelled_command_may_clean_up_before_it_is_killed(case: Case) -> None:
    heard = OutputListener(b"ready", b"tidied up")
    stubborn = f"trap '' TERM; echo ready; exec -a {case.mark} sleep 1000"
    command = f'trap "echo tidied up; exit" TERM; setsid bash -c "{stubborn}" & wait'
    task = asyncio.create_task(run_command(case.home, command, case.isolation, on_output=heard))
    await heard.events[b"ready"].wait()
    task.cancel()
    await heard.events[b"tidied up"].wait()
    task.cancel()  # a second cancellation changes nothing
    with pytest.raises(asyncio.CancelledError):
        await task

    assert case.marked_processes() == []
    assert outcome(resolve(case.home / "spool")) == ("cancelled", None, "ready\ntidied up\n")


def process_tree(how: str, is_stubborn: bool, below: list[tuple[str, int]]) -> tuple[str, int]:
    """Return a line of bash that starts a tree of processes, and their number."""
    lines = ["trap '' TERM HUP"] if is_stubborn else []
    lines += [line for line, _ in below] + ["echo up >&9", "exec -a MARK sleep 1000"]
    return how.format("bash -c " + shlex.quote("\n".join(lines))), 1 + sum(
        size for _, size in below
    )


ways_to_start = st.sampled_from(["{} &", "setsid {} &", "( {} & ) &", "( setsid {} & ) &"])
trees = st.recursive(
    st.builds(process_tree, ways_to_start, st.booleans(), st.just([])),
    lambda below: st.builds(
        process_tree, ways_to_start, st.booleans(), st.lists(below, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("isolation", ["pid", "user", "plain"])
@settings(max_examples=int(os.environ.get("AGIRAPH_TREES", "8")))
@given(tree=trees)
def test_no_process_of_a_tree_outlives_its_command(isolation: str, tree: tuple[str, int]) -> None:
    script, size = tree
    count = f"for ((i = 0; i < {size}; i++)); do read -r -u 9; done; echo $i"
    with tempfile.TemporaryDirectory() as home:
        case = Case(home=Path(home), isolation=isolation)
        command = f"mkfifo up; exec 9<>up\n{script.replace('MARK', case.mark)}\n{count}"
        result = asyncio.run(run_command(case.home, command, isolation))

    assert case.marked_processes() == []
    assert outcome(result) == ("exited", 0, f"{size}\n")


async def test_a_process_that_keeps_the_output_pipe_open_does_not_block_the_result(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "go")
    heard = OutputListener(b"ready")
    task = asyncio.create_task(run_command(tmp_path, "echo ready; read < go", on_output=heard))
    await heard.events[b"ready"].wait()
    [shell] = supervisor.descendants(spooled(tmp_path, "started.json", "warden"))
    held = os.open(f"/proc/{shell}/fd/1", os.O_WRONLY)
    (tmp_path / "go").write_text("\n")

    assert outcome(await task) == ("exited", 0, "ready\n")
    os.close(held)


async def test_the_command_of_a_killed_runtime_ends_by_itself(case: Case) -> None:
    async with runtime(case.home, case.endless, case.isolation) as process:
        with assert_all_end_within(LONG_S, case.marked_processes()):
            process.kill()

    assert outcome(resolve(case.home / "spool")) == ("interrupted", None, "ready\n")
    assert spooled(case.home, "result.json", "output_bytes") == 6


async def test_the_result_of_a_command_that_ended_before_the_runtime_was_killed_is_known(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "go")
    async with runtime(tmp_path, "echo ready; read word < go; echo $word; exit 7") as process:
        process.send_signal(signal.SIGSTOP)
        with assert_all_end_within(LONG_S, [spooled(tmp_path, "started.json", "pid")]):
            (tmp_path / "go").write_text("really\n")

    assert outcome(resolve(tmp_path / "spool")) == ("exited", 7, "ready\nreally\n")


@pytest.mark.parametrize("point", ["fx:before:spawn", "fx:after:spawn", "fx:after:command"])
async def test_after_a_kill_at_any_fault_point_the_command_runs_at_most_once(
    tmp_path: Path, point: str
) -> None:
    command = "echo once >> effect; exit 7"
    async with runtime(tmp_path, command, die_at=point) as process:
        await process.wait()
    known, again = resolve(tmp_path / "spool"), await run_command(tmp_path, command)

    possible = {"fx:before:spawn": [None], "fx:after:command": [again]}
    assert known in possible.get(point, [None, again])
    assert again.ended == "interrupted" or (tmp_path / "effect").read_text() == "once\n"


async def test_a_killed_supervisor_is_an_interrupted_command(case: Case) -> None:
    heard = OutputListener(b"ready")
    task = asyncio.create_task(
        run_command(case.home, case.endless, case.isolation, on_output=heard)
    )
    await heard.events[b"ready"].wait()
    with assert_all_end_within(LONG_S, case.marked_processes()):
        os.kill(spooled(case.home, "started.json", "pid"), signal.SIGKILL)
        result = await task

    assert outcome(result) == ("interrupted", None, "ready\n")
    assert await run_command(case.home, case.endless) == result


async def test_a_stopped_supervisor_is_killed_when_the_spool_is_resolved(case: Case) -> None:
    async with runtime(case.home, case.endless, case.isolation):
        os.kill(spooled(case.home, "started.json", "pid"), signal.SIGSTOP)
    with assert_all_end_within(LONG_S, case.marked_processes()):
        result = resolve(case.home / "spool")

    assert outcome(result) == ("interrupted", None, "ready\n")


async def test_a_stopped_supervisor_is_killed_also_after_the_machine_stood_still(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "RESOLVE_MAX", 0.0)  # as if the time had passed meanwhile
    async with runtime(case.home, case.endless, case.isolation):
        os.kill(spooled(case.home, "started.json", "pid"), signal.SIGSTOP)
    with assert_all_end_within(LONG_S, case.marked_processes()):
        result = resolve(case.home / "spool")

    assert outcome(result) == ("interrupted", None, "ready\n")


async def test_a_supervisor_and_its_runtime_may_be_killed_together(case: Case) -> None:
    async with runtime(case.home, case.endless, case.isolation) as process:
        process.send_signal(signal.SIGSTOP)  # it cannot clean up
        pid = spooled(case.home, "started.json", "pid")
        # Without a namespace the other processes end only when the spool is resolved.
        with assert_all_end_within(
            LONG_S, [pid] if case.isolation == "plain" else case.marked_processes()
        ):
            os.kill(pid, signal.SIGKILL)

    assert outcome(resolve(case.home / "spool")) == ("interrupted", None, "ready\n")
    assert case.marked_processes() == []


async def test_a_command_that_was_run_is_not_run_again(tmp_path: Path) -> None:
    first = await run_command(tmp_path, "echo once | tee -a effect")

    assert await run_command(tmp_path, "echo once | tee -a effect") == first
    assert (tmp_path / "effect").read_text() == "once\n"
    with pytest.raises(Conflict, match="Another command was run in"):
        await run_command(tmp_path, "echo twice")


@pytest.mark.parametrize(
    ("command", "why"),
    [("a\0b", "NUL"), ("#" * 131_072, "from a file"), ("\ud800", "text"), ("true", "no folder")],
)
async def test_an_invalid_command_or_folder_is_refused(
    tmp_path: Path, command: str, why: str
) -> None:
    cwd = tmp_path / "nowhere" if why == "no folder" else tmp_path
    with pytest.raises(Refused, match=why):
        await run_command(tmp_path, command, cwd=cwd)
    assert not (tmp_path / "spool").exists()


async def test_a_supervisor_that_cannot_start_is_an_interrupted_command(tmp_path: Path) -> None:
    result = await run_command(tmp_path, "true", env={"TOO_LONG": "x" * 200_000})

    assert (result.ended, result.exit_code, result.output_bytes) == ("interrupted", None, 0)
    assert "Argument list too long" in result.output
    assert (resolve(tmp_path / "spool"), resolve(tmp_path / "nowhere")) == (None, None)


async def test_a_command_whose_start_cannot_be_recorded_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "spool" / "started.json.tmp").mkdir(parents=True)
    result = await run_command(tmp_path, "touch effect")

    assert (result.ended, (tmp_path / "effect").exists()) == ("interrupted", False)
