"""Gate channel: the listener on a command's own loopback comes out to the runtime."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from agiraph.sandbox import commands, levels, sandbox
from agiraph.sandbox.sandbox import Level, Mount, Spec

ASK = """
exec 3<>/dev/tcp/127.0.0.1/{port}; echo "to the gate" >&3; cat <&3; exec 3>&-
(echo > /dev/tcp/127.0.0.1/{other}) 2>&1 | tail -c 20
ls /proc/self/fd | wc -l
"""


@pytest.mark.parametrize("level", ["namespaces", "bubblewrap"])
async def test_the_runtime_serves_a_listener_in_the_network_of_the_command(
    tmp_path: Path, level: Level
) -> None:
    if levels.choose(level).reasons:
        pytest.skip(f"this machine has no {level}")
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readline())
        writer.write(b"from outside\n")
        writer.close()

    started: list[asyncio.Task[asyncio.Server]] = []

    def serve(listener: socket.socket) -> None:
        started.append(asyncio.create_task(asyncio.start_server(answer, sock=listener)))

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as machine:
        other = machine.getsockname()[1]
        result = await commands.run(
            tmp_path / "spool",
            command=ASK.format(port=sandbox.GATE_PORT, other=other),
            cwd=scratch,
            timeout=20,
            env={"PATH": os.environ["PATH"]},
            spec=Spec(
                level=level,
                mounts=(Mount(source=scratch, target=scratch, is_writable=True),),
                network="gate",
            ),
            serve=serve,
        )
    (await started[0]).close()
    assert heard == [b"to the gate\n"]
    lines = result.output.splitlines()
    assert lines[0] == "from outside"
    assert lines[1].endswith("Connection refused")
    # Of the descriptors only standard input, output and error, and the one of `ls`, are left.
    assert lines[2] == "4"
