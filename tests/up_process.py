"""Up process: `agiraph up` in a process of its own, and a client that talks to it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import orjson

from agiraph.testing import ModelServer
from tests.cli.shell import Process, Shell

TOKEN = "a-token-of-32-characters-for-test"


class Client:
    """A client that is signed in to a server."""

    def __init__(self, origin: str, http: aiohttp.ClientSession) -> None:
        self.origin = origin
        self.http = http

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        async with self.http.request(method, f"{self.origin}/api{path}", json=body) as response:
            assert response.status < 300, await response.text()
            return await response.json()

    async def wait_for_event(self, team: str, type: str) -> None:
        """Wait for the team's first event of this type, old or new."""
        async with (
            asyncio.timeout(60),
            self.http.ws_connect(f"{self.origin}/api/teams/{team}/events") as line,
        ):
            async for message in line:
                frame = orjson.loads(message.data)
                if frame["op"] == "event" and frame["event"]["type"] == type:
                    return
        raise AssertionError(f"the WebSocket was closed before a {type} event came")


class Up(Client):
    """`agiraph up`, with a client."""

    def __init__(self, process: Process, http: aiohttp.ClientSession) -> None:
        found = re.search(r"is up at (http://\S+)", process.seen)
        assert found is not None
        super().__init__(found[1], http)
        self.process = process


@asynccontextmanager
async def up(agiraph: Shell) -> AsyncIterator[Up]:
    agiraph.prepared().environment |= {"AGIRAPH_PORT": "0", "AGIRAPH_TOKEN": TOKEN}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(agiraph.start("up"))
        await process.says("is up at")
        http = await stack.enter_async_context(aiohttp.ClientSession(headers=headers))
        yield Up(process, http)


def use_model_server(agiraph: Shell, server: ModelServer) -> Shell:
    """Let the commands of this shell use the scripted model server; return the shell."""
    agiraph.environment |= {
        "OPENAI_API_KEY": "sk-canary-canary",
        "OPENAI_BASE_URL": server.openai_url,
        "AGIRAPH_MODEL": "openai/test",
    }
    return agiraph
