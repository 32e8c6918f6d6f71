"""Real MCP servers from npm and PyPI, over stdio and HTTP, confined as on this machine."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agiraph.features.mcp.connection import ServerFailed
from agiraph.features.mcp.settings import Kind, McpServer
from agiraph.testing import ManualClock
from tests import programs
from tests.local_web import Page, local_web
from tests.mcp.kit import call, opened
from tests.postgres_server import free_port

pytestmark = pytest.mark.slow
_IS_UP = re.compile(rb"listening|running on port")


async def test_files_of_a_given_folder_are_read_and_written_and_no_others(tmp_path: Path) -> None:
    given, home = tmp_path / "given", tmp_path / "home"
    given.mkdir()
    (given / "a.txt").write_text("one")
    (tmp_path / "secret.txt").write_text("secret")
    server = McpServer(
        name="files",
        command=(str(programs.npm("mcp-npm", "mcp-server-filesystem")), str(given)),
        folders=(f"{given}:rw",),
    )
    async with opened(home, server) as servers:
        read = await call(servers, "read_text_file", "files", path=str(given / "a.txt"))
        await call(servers, "write_file", "files", path=str(given / "b.txt"), content="two")
        outside = await call(servers, "read_text_file", "files", path=str(tmp_path / "secret.txt"))
        tools = (await servers.look("files")).usable
    assert read == "one"
    assert (given / "b.txt").read_text() == "two"
    assert "secret" not in outside.replace("secret.txt", "")
    assert tools["read_text_file"].says_it_reads
    assert not tools["write_file"].says_it_reads


async def test_servers_from_pypi_tell_the_time_and_read_a_repository(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), (*who, "commit", "-qm", "First", "--allow-empty")):
        made = await asyncio.create_subprocess_exec("git", *words, cwd=repository)
        assert await made.wait() == 0
    clock = McpServer(
        name="clock",
        command=(str(programs.pypi("mcp-pypi", "mcp-server-time")), "--local-timezone", "UTC"),
    )
    git = McpServer(
        name="git",
        command=(str(programs.pypi("mcp-pypi", "mcp-server-git")), "--repository", str(repository)),
        folders=(f"{repository}:ro",),
    )
    async with opened(tmp_path / "home", clock, git) as servers:
        hour, log = await asyncio.gather(
            call(
                servers,
                "convert_time",
                "clock",
                source_timezone="Europe/Berlin",
                time="12:00",
                target_timezone="Asia/Tokyo",
            ),
            call(servers, "git_log", "git", repo_path=str(repository)),
        )
    assert re.search(r"Asia/Tokyo", hour)
    assert "First" in log


async def test_a_server_that_fetches_pages_reaches_the_hosts_that_a_person_named(
    tmp_path: Path,
) -> None:
    pages = {host: {"/": Page(f"# Of {host}")} for host in ("allowed.example", "denied.example")}
    server = McpServer(
        name="fetch",
        command=(str(programs.pypi("mcp-pypi", "mcp-server-fetch")),),
        network="hosts",
        hosts=("allowed.example",),
    )
    async with (
        local_web(ManualClock(), pages) as served,
        opened(tmp_path, server, web=served.access) as servers,
    ):
        page = await call(servers, "fetch", "fetch", url="http://allowed.example/")
        denied = await call(servers, "fetch", "fetch", url="http://denied.example/")
        visited = {visit.host for visit in served.visits}
    assert "# Of allowed.example" in page
    assert "Of denied.example" not in denied
    assert visited == {"allowed.example"}


@asynccontextmanager
async def everything_over_http(
    port: int, transport: str = "streamableHttp"
) -> AsyncGenerator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        str(programs.npm("mcp-npm", "mcp-server-everything")),
        transport,
        env={"PORT": str(port), "PATH": os.environ["PATH"]},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            while not _IS_UP.search(line := await process.stdout.readline()):
                assert line, "the server ended"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize(
    ("kind", "transport", "path"), [("http", "streamableHttp", "/mcp"), ("sse", "sse", "/sse")]
)
async def test_a_server_over_http_is_killed_and_back(
    tmp_path: Path, kind: Kind, transport: str, path: str
) -> None:
    port = free_port()
    server = McpServer(name="every", kind=kind, url=f"http://127.0.0.1:{port}{path}")
    async with opened(tmp_path, server) as servers:
        async with everything_over_http(port, transport) as process:
            assert await call(servers, "echo", "every", message="hi") == "Echo: hi"
            process.send_signal(signal.SIGKILL)
            await process.wait()
            with pytest.raises(ServerFailed, match="'every'"):
                await call(servers, "echo", "every", message="lost")
        async with everything_over_http(port, transport):
            assert await call(servers, "echo", "every", message="back") == "Echo: back"
