"""Dialogues: the runtime talks with a confined process, which ends with the conversation."""

import os
import socket
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.home.sandbox_probes.confined_run import marked

from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.text.conversion import Conversion
from agiraph.sandbox import levels, sandbox
from agiraph.sandbox.commands import child_environment
from agiraph.sandbox.dialogue import Dialogue, talking
from agiraph.sandbox.parsing import Parser
from agiraph.sandbox.sandbox import Level, Mount, Spec

LEVELS: tuple[Level, ...] = ("namespaces", "bubblewrap", "landlock")
TEAM = TeamId("t_parsing")


def spec_for(level: Level, scratch: Path) -> Spec:
    found = levels.choose(level)
    if found.reasons:
        pytest.skip(f"this machine has no {level}")
    return Spec(
        level=level,
        mounts=(Mount(source=scratch, target=scratch, is_writable=True),),
        user=sandbox.FIRST_SPARE_USER if found.has_spare_user else 0,
    )


def talk(folder: Path, level: Level, command: str) -> AbstractAsyncContextManager[Dialogue]:
    scratch = folder / "scratch"
    scratch.mkdir()
    return talking(
        folder / "spool",
        command=command,
        cwd=scratch,
        env=child_environment(scratch),
        spec=spec_for(level, scratch),
    )


@pytest.mark.parametrize("level", LEVELS)
async def test_a_confined_process_answers_line_by_line_and_ends_with_the_block(
    tmp_path: Path, level: Level
) -> None:
    mark = f"mark-{os.urandom(8).hex()}"
    detached = f"setsid bash -c 'exec -a {mark} sleep 1000' &"
    answering = 'while read -r line; do echo "heard $line" >&2; echo "got $line"; done'
    async with talk(tmp_path, level, f"{detached} {answering}") as process:
        answers: list[bytes] = []
        for line in (b"one\n", b"two\n"):
            process.stdin.write(line)
            answers.append(await process.stdout.readline())
        assert len(marked(mark)) > 0
    assert answers == [b"got one\n", b"got two\n"]
    assert (tmp_path / "spool" / "output").read_bytes() == b"heard one\nheard two\n"
    assert marked(mark) == []


@pytest.mark.parametrize("level", LEVELS)
async def test_the_end_of_the_process_is_the_end_of_its_output(
    tmp_path: Path, level: Level
) -> None:
    async with talk(tmp_path, level, "read -r line; exit 3") as process:
        process.stdin.write(b"go\n")
        assert await process.stdout.read() == b""
        assert (await process.ended).exit_code == 3
        process.stdin.write(b"more\n")
        with pytest.raises(ConnectionError):
            await process.stdin.drain()


async def test_a_process_that_does_not_start_ends_its_output(tmp_path: Path) -> None:
    async with talking(
        tmp_path / "spool",
        command="cat",
        cwd=tmp_path,
        env={},
        spec=Spec(mounts=(Mount(source=tmp_path / "no", target=tmp_path, is_writable=True),)),
    ) as process:
        assert await process.stdout.read() == b""
        assert "could not be started" in (await process.ended).output


SPY = """
import os, socket, sys
asked = sys.stdin.read()
seen = []
for path in sys.argv[1:]:
    try:
        os.listdir(path) if os.path.isdir(path) else open(path)
        seen.append(path)
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", int(asked)), 1)
    seen.append("the loopback")
except OSError:
    pass
print(seen, dict(os.environ).keys() & {"SECRET"})
"""


@pytest.mark.parametrize("level", LEVELS)
async def test_a_parser_that_was_taken_over_sees_no_file_and_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: Level
) -> None:
    monkeypatch.setenv("SECRET", "a key")
    spec_for(level, tmp_path)
    script, secret = tmp_path / "spy.py", tmp_path / "token"
    script.write_text(SPY)
    secret.write_text("a token")
    parser = Parser(confinement=levels.choose(level), team_id=TEAM)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1]).encode()
        made = await parser.convert(
            script,
            [str(secret), "/etc/shadow", "/sys/kernel"],
            port,
            timeout_s=20,
            most_bytes=1000,
        )
    assert made == Conversion(output=b"[] set()\n", end="whole")


@pytest.mark.parametrize(
    ("code", "made"),
    [
        (
            "import time; print('half', flush=True); time.sleep(1000)",
            Conversion(output=b"half\n", end="timeout"),
        ),
        ("print('half'); raise SystemExit(1)", Conversion(output=b"half\n", end="failed")),
        ("while True: print('x' * 999)", Conversion(output=b"x" * 500, end="failed")),
    ],
)
async def test_a_parser_that_hangs_fails_or_floods_is_ended(
    tmp_path: Path, code: str, made: Conversion
) -> None:
    script = tmp_path / "parser.py"
    script.write_text(code)
    parser = Parser(confinement=levels.choose(), team_id=TEAM)
    # Most of it is not read: the parser ends, or waits, before.
    source = b"x" * 2**20
    assert await parser.convert(script, [], source, timeout_s=1, most_bytes=500) == made
