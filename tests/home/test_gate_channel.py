"""The gate's channel: the listener on a command's own loopback comes out to the runtime."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from agiraph.home import commands, sandbox
from agiraph.home.sandbox import View

pytestmark = pytest.mark.skipif(
    not sandbox.has_gate(), reason="commands have no network namespace of their own here"
)
ASK = """
exec 3<>/dev/tcp/127.0.0.1/{port}; echo "to the gate" >&3; cat <&3; exec 3>&-
(echo > /dev/tcp/127.0.0.1/{other}) 2>&1 | tail -c 20
ls /proc/self/fd | wc -l
"""


async def test_the_runtime_serves_a_listener_in_the_network_of_the_command(tmp_path: Path) -> None:
    heard: list[bytes] = []
    servers: list[asyncio.Server] = []
    tasks: list[asyncio.Task[None]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readline())
        writer.write(b"from outside\n")
        writer.close()

    async def start(listener: socket.socket) -> None:
        servers.append(await asyncio.start_server(answer, sock=listener))

    def serve(listener: socket.socket) -> None:
        tasks.append(asyncio.ensure_future(start(listener)))

    home, scratch = tmp_path / "home", tmp_path / "home" / "scratch"
    scratch.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as machine:
        other = machine.getsockname()[1]
        result = await commands.run(
            tmp_path / "home" / "spool",
            command=ASK.format(port=sandbox.GATE_PORT, other=other),
            cwd=scratch,
            timeout=20,
            env={"PATH": os.environ["PATH"]},
            view=View(home=home, writable=(scratch,)),
            serve=serve,
        )
    for server in servers:
        server.close()
    assert heard == [b"to the gate\n"]
    lines = result.output.splitlines()
    assert lines[0] == "from outside"
    assert lines[1].endswith("Connection refused")
    # Of the descriptors only standard input, output and error, and the one of `ls`, are left.
    assert lines[2] == "4"
