"""agiraph as an MCP server: the SDK's client and the real Claude Code create, ask and answer."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from agiraph.client import Client
from agiraph.core.domain.provenance.labels import Label
from agiraph.features.mcp import server as mcp_server
from agiraph.location import Address, Location
from agiraph.testing import ModelServer, call, says
from agiraph.testing.model_server import Seen, Step
from mcp import Client as McpClient
from tests.api.serving import TOKEN, Served, serving
from tests.cli.shell import PROGRAM, Shell
from tests.scenarios import claude_code
from tests.up_process import up

pytestmark = pytest.mark.slow


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "home") as opened:
        yield opened


@asynccontextmanager
async def connected(served: Served) -> AsyncGenerator[McpClient]:
    """Connect the SDK's client to our server, in this process."""

    @asynccontextmanager
    async def clients(ctx: Any) -> AsyncGenerator[Client]:
        async with Client(served.origin, TOKEN, patience=5) as opened:
            yield opened

    async with McpClient(mcp_server.build(clients)) as client:
        yield client


async def ask(client: McpClient, tool: str, **given: Any) -> Any:
    result = await client.call_tool(tool, given)
    text = "".join(getattr(block, "text", "") for block in result.content)
    if result.is_error:
        return text
    found = result.structured_content
    return found["result"] if found is not None and set(found) == {"result"} else found


@asynccontextmanager
async def over_stdio(served: Served) -> AsyncGenerator[McpClient]:
    """Start `agiraph mcp serve`, and connect the SDK's client to it."""
    environment = {
        "PATH": os.environ["PATH"],
        "AGIRAPH_HOME": str(served.world.path),
        "AGIRAPH_PORT": str(served.port),
        "AGIRAPH_TOKEN": TOKEN,
    }
    program = StdioServerParameters(command=str(PROGRAM), args=["mcp", "serve"], env=environment)
    async with McpClient(stdio_client(program)) as client:
        yield client


@asynccontextmanager
async def over_network(served: Served) -> AsyncGenerator[McpClient]:
    """Connect the SDK's client to our server over streamable HTTP."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        over_http(served) as url,
        httpx2.AsyncClient(headers=headers) as http,
        McpClient(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


@pytest.mark.parametrize("connect", [over_stdio, over_network], ids=["stdio", "http"])
async def test_a_client_creates_a_team_answers_its_question_and_reads_its_result(
    served: Served, connect: Callable[[Served], AbstractAsyncContextManager[McpClient]]
) -> None:
    served.world.script(
        "ada",
        says(call("ask_human", question="Which colour?")),
        says(call("finish", summary="It is blue.")),
    )
    async with connect(served) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        made = await ask(
            client, "create_team", goal="Choose a colour", name="colours", acceptance=["answer"]
        )
        await served.world.settle()
        [asked] = await ask(client, "inbox")
        assert (asked["text"], asked["decided_by"]) == ("Which colour?", "you")
        answered = await ask(client, "answer", item=asked["id"], text="Blue.")
        assert answered["needs_answer"] is False
        await served.world.settle()
        # A program wrote these words for the person.
        [work] = await served.world.board(made["team"])
        assert (await served.world.thread(work.id)).label == Label(("client:mcp",))
        [node] = await ask(client, "board", team="colours")
        found = await ask(client, "result", team="colours")
        listed = await ask(client, "files", team="colours")
        goal = await ask(client, "read_file", team="colours", path="GOAL.md")
        [team] = await ask(client, "teams")
    assert tools == {
        *("create_team", "teams", "board", "talk", "conversation", "inbox", "answer"),
        *("result", "files", "read_file"),
    }
    assert (team["team"], team["goal"]) == (made["team"], "Choose a colour")
    assert node["status"] == "completed"
    assert (found["result"], found["doubts"]) == ("It is blue.", [])
    assert "GOAL.md" in [one["path"] for one in listed]
    assert goal == {"text": "# Goal\n\nChoose a colour\n", "next_offset": None}


async def test_a_client_talks_to_a_team_and_gets_the_reply(served: Served) -> None:
    served.world.script("ada", says("Hello to you.", call("no_work_needed")))
    async with connected(served) as client:
        await served.world.found("Wait", name="waiting", start=False)
        said = await ask(client, "talk", team="waiting", message="Hello", wait_s=20)
        both = await ask(client, "conversation", team="waiting")
    assert said["reply"]["text"] == "Hello to you."
    assert [one["text"] for one in both] == ["Hello", "Hello to you."]


async def test_an_approval_is_shown_complete_and_not_decided_here(served: Served) -> None:
    served.world.script("ada", says(call("bash", command="rm -rf x")), says("never"))
    async with connected(served) as client:
        rule = {"tool": "bash", "pattern": "*", "action": "ask"}
        async with Client(served.origin, TOKEN) as own:
            await own.create_team("Tidy up", permissions=[rule])
        await served.world.settle()
        [asked] = await ask(client, "inbox")
        refused = await ask(client, "answer", item=asked["id"], text="approve")
        [again] = await ask(client, "inbox")
    assert "rm -rf x" in asked["call"]
    assert "This is an approval: a person decides on it" in refused
    assert again == asked


async def test_a_file_that_is_not_text_is_read_to_its_end(served: Served) -> None:
    founded = await served.world.found("Wait", name="waiting", start=False)
    data = b"\xff\xfe" * 60_000 + b"the end"
    served.world.runtime.home.team(founded.team.id).folder.write("data.bin", data)
    parts: list[str] = []
    offset: int | None = 0
    async with connected(served) as client:
        while offset is not None:
            given = {"team": "waiting", "path": "data.bin", "offset": offset}
            part = await ask(client, "read_file", **given)
            parts.append(part["text"])
            offset = part["next_offset"]
    assert "".join(parts) == "\ufffd" * 120_000 + "the end"


async def test_what_the_api_refuses_is_told_as_it_is(served: Served) -> None:
    async with connected(served) as client:
        said = await ask(client, "board", team="nobody")
    assert "nobody" in said


# ---- over HTTP --------------------------------------------------------------------------------


@asynccontextmanager
async def over_http(served: Served) -> AsyncGenerator[str]:
    """Serve our MCP server on a port; yield its address."""
    from agiraph.api.server import bind

    sock = bind("127.0.0.1", 0)
    port = sock.getsockname()[1]
    where = Location(
        home=served.world.path, database_url="", address=Address(port=served.port), token="unused"
    )
    config = uvicorn.Config(mcp_server.http_app(where, port), log_level="error")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        await task


async def test_over_http_each_client_has_the_rights_of_its_own_token(served: Served) -> None:
    async with Client(served.origin, TOKEN) as own:
        reader = await own.create_token("reader", scope="read")
    async with over_http(served) as url:
        tools = await _drive(url, TOKEN, "teams")
        assert tools == []
        refused = await _drive(url, reader.secret, "create_team", goal="Rob a bank")
        assert "This needs the scope 'operate'; the token has 'read'." in refused
        async with httpx2.AsyncClient() as http:
            for headers in ({}, {"Authorization": "Bearer guessed"}):
                answer = await http.post(url, json={}, headers=headers)
                assert answer.status_code == 401
            named = {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}
            answer = await http.post(url, json={}, headers=named)
            assert answer.status_code in (403, 421)


async def _drive(url: str, token: str, tool: str, **given: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        McpClient(streamable_http_client(url, http_client=http)) as client,
    ):
        return await ask(client, tool, **given)


# ---- the real Claude Code ---------------------------------------------------------------------


CLAUDE_S = 150
"""Seconds for a session of Claude Code. Long: a busy machine may stand still for seconds."""


@pytest.fixture(scope="session")
def claude() -> Path:
    return claude_code.installed()


def plays_claude(seen: Seen) -> Step:
    """The model of Claude Code: it creates a team through our server, and reads the list."""
    match sum(message.role == "tool" for message in seen.messages):
        case 0:
            given = {"goal": "Show it", "name": "from-claude"}
            return says(call("mcp__agiraph__create_team", **given))
        case 1:
            return says(call("mcp__agiraph__teams"))
        case _:
            assert "from-claude" in seen.messages[-1].text
            return says("The team is there.")


async def test_claude_code_creates_a_team_over_stdio(tmp_path: Path, claude: Path) -> None:
    agiraph = Shell(tmp_path / "home", {"AGIRAPH_MODEL": "demo"})
    async with ModelServer(plays_claude) as models, up(agiraph) as served:
        port = served.origin.rpartition(":")[2]
        own = {"AGIRAPH_HOME": str(agiraph.home), "AGIRAPH_PORT": port, "AGIRAPH_TOKEN": TOKEN}
        entry = {"command": str(PROGRAM), "args": ["mcp", "serve"], "env": own}
        config = tmp_path / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"agiraph": entry}}))
        process = await asyncio.create_subprocess_exec(
            *(str(claude), "-p", "Create a team.", "--model", claude_code.MODEL),
            *("--mcp-config", str(config), "--strict-mcp-config"),
            *("--allowedTools", "mcp__agiraph__create_team,mcp__agiraph__teams"),
            env={
                "PATH": str(Path(sys.executable).parent) + ":/usr/bin:/bin",
                "HOME": str(tmp_path),
                **claude_code.environment(models.anthropic_url),
                # By default it goes on without a server that takes 30 s to start.
                "MCP_TIMEOUT": str(CLAUDE_S * 1000),
                "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": str(CLAUDE_S * 1000),
            },
            cwd=tmp_path,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(CLAUDE_S):
            out, err = await process.communicate()
        teams = await served.ask("GET", "/teams")
    assert out.decode().strip() == "The team is there.", err.decode()
    assert [team["name"] for team in teams] == ["from-claude"]
    assert models.refused == []
