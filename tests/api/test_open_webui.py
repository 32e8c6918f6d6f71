"""Open WebUI, as it comes from PyPI, talks to an agent through `/v1`."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agiraph.testing import call, says
from tests.api.serving import TOKEN, Served, serving
from tests.habits.kit import OVER_NOTHING
from tests.postgres_server import free_port
from tests.programs import pypi

START_S = 400.0
"""It imports two gigabytes of packages and migrates its database: 80 s on two idle cores."""
HEADERS = {"X-Agiraph-Task": "{{TASK}}"}
"""The headers of the connection: Open WebUI puts the name of each side call into the braces."""
pytestmark = pytest.mark.long


@dataclass(frozen=True, slots=True)
class OpenWebUi:
    """A running Open WebUI, and the session of its only user."""

    http: aiohttp.ClientSession
    url: str
    token: str

    async def ask(self, method: str, path: str, body: Any = None) -> str:
        """Return the body of a response; fail if the request is refused."""
        headers = {"Authorization": f"Bearer {self.token}"}
        request = self.http.request(method, self.url + path, json=body, headers=headers)
        async with request as response:
            text = await response.text()
            assert response.status == 200, text
            return text


@contextlib.asynccontextmanager
async def open_webui(folder: Path, served: Served) -> AsyncIterator[OpenWebUi]:
    """Run Open WebUI with agiraph as its only connection, set up as docs/chat-clients.md says."""
    folder.mkdir()
    settings = {
        "OPENAI_API_BASE_URL": f"{served.origin}/v1",
        "OPENAI_API_KEY": TOKEN,
        "OPENAI_API_CONFIGS": json.dumps({"0": {"headers": HEADERS}}),
        "ENABLE_FORWARD_USER_INFO_HEADERS": "true",
        "ENABLE_OLLAMA_API": "False",
        "ENABLE_PERSISTENT_CONFIG": "False",
        "RAG_EMBEDDING_ENGINE": "openai",
        "OFFLINE_MODE": "true",
        "HF_HUB_OFFLINE": "1",
        "WEBUI_AUTH": "False",
        "WEBUI_SECRET_KEY": "of-a-test",
        "DATA_DIR": str(folder),
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(
                pypi("open-webui", "open-webui"),
                "serve",
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
            ),
            env=settings,
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        async with aiohttp.ClientSession() as http:
            url = f"http://127.0.0.1:{port}"
            await ready(http, url, process, folder / "log")
            nobody = {"email": "", "password": ""}  # without accounts there is one user
            async with http.post(f"{url}/api/v1/auths/signin", json=nobody) as response:
                token = (await response.json())["token"]
            yield OpenWebUi(http, url, token)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def ready(
    http: aiohttp.ClientSession, url: str, process: asyncio.subprocess.Process, log: Path
) -> None:
    """Wait until Open WebUI answers; fail with its log if it ends."""
    async with asyncio.timeout(START_S):
        while True:
            assert process.returncode is None, log.read_text()[-2000:]
            with contextlib.suppress(aiohttp.ClientError):
                async with http.get(f"{url}/health") as response:
                    if response.status == 200:
                        return
            await asyncio.sleep(1)


def streamed(text: str) -> str:
    """Return the words of a stream of chunks."""
    data = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"] for one in data for choice in json.loads(one).get("choices", [])]
    return "".join(delta.get("content") or "" for delta in deltas)


async def test_open_webui_streams_a_reply_gets_the_report_and_its_titles_are_no_work(
    tmp_path: Path,
) -> None:
    async with (
        serving(tmp_path / "home", reply_model="scripted/mouth") as served,
        open_webui(tmp_path / "webui", served) as webui,
    ):
        served.world.script(
            "mouth",
            says("I look into it."),
            says('{"title": "Stock News"}'),
            says('{"tags": ["Stocks"]}'),
            says("You have it above.", call("no_work_needed")),
        )
        served.world.script("ada", says(call("finish", summary="NVIDIA is up 3 %.")))
        team = await served.world.found("Track stocks", name="Stocks", start=False)
        listed = json.loads(await webui.ask("GET", "/api/models?refresh=true"))
        assert [one["id"] for one in listed["data"]] == ["Stocks", "Stocks/coordinator"]

        said: list[dict[str, str]] = [{"role": "user", "content": "Research NVIDIA"}]
        chat = {"model": "Stocks", "chat_id": "temporary:chat-1", "messages": said}
        text = streamed(await webui.ask("POST", "/api/chat/completions", {**chat, "stream": True}))
        assert text == "I look into it.\n\n→ Started: Research NVIDIA"
        await served.world.settle()
        board = await served.world.board(team.team.id)

        said.append({"role": "assistant", "content": text})
        title = await webui.ask("POST", "/api/v1/tasks/title/completions", chat)
        tags = await webui.ask("POST", "/api/v1/tasks/tags/completions", chat)
        assert ("Stock News" in title, "Stocks" in tags) == (True, True)
        assert await served.world.board(team.team.id) == board

        said.append({"role": "user", "content": "And?"})
        whole = await webui.ask("POST", "/api/chat/completions", {**chat, "stream": False})
        shown = json.loads(whole)["choices"][0]["message"]["content"]
        assert "**Result**" in shown
        assert shown.endswith(f"NVIDIA is up 3 %.{OVER_NOTHING}\n\n---\n\nYou have it above.")
        conversation = await served.world.conversation(team.coordinator)
        assert [one.text for one in conversation] == [
            "Research NVIDIA",
            "I look into it.",
            "NVIDIA is up 3 %.",
            "And?",
            "You have it above.",
        ]
