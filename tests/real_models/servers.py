"""Servers: a real model's server and a proxy before it, in an environment of their own."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from agiraph.models.http.lookup import LookupFailed, look_up
from agiraph.models.servers import Server
from tests.programs import folder_of, pypi

MODEL = "smollm2"
PROXY_KEY = "sk-local-test"
STARTED_WITHIN_S = 300.0


@asynccontextmanager
async def llama(window: int) -> AsyncGenerator[Server]:
    """Start llama.cpp's server with SmolLM2 and a context of this size."""
    port = _free_port()
    program = Path(__file__).with_name("llama_server.py")
    python, weights = pypi("model", "python"), folder_of("model") / "smollm2-wide.gguf"
    async with _started(str(python), str(program), str(weights), str(port), str(window)):
        server = Server(base_url=f"http://127.0.0.1:{port}/v1")
        await _until_it_answers(f"{server.base_url}/models")
        yield server


@asynccontextmanager
async def litellm(behind: Server, folder: Path) -> AsyncGenerator[dict[str, Server]]:
    """Start a LiteLLM proxy before a server; yield it as OpenAI, Anthropic and Gemini."""
    port = _free_port()
    told = {"model": f"openai/{MODEL}", "api_base": behind.base_url, "api_key": "none"}
    config = folder / "litellm.json"  # JSON is YAML
    config.write_text(json.dumps({"model_list": [{"model_name": MODEL, "litellm_params": told}]}))
    python, program = str(pypi("proxy", "python")), str(pypi("proxy", "litellm"))
    arguments = ("--config", str(config), "--host", "127.0.0.1", "--port", str(port))
    environ = {"LITELLM_MASTER_KEY": PROXY_KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    async with _started(python, program, *arguments, environ=environ):
        url = f"http://127.0.0.1:{port}"
        await _until_it_answers(f"{url}/v1/models")
        window = 4096
        yield {
            "as-openai": Server(base_url=f"{url}/v1", key=PROXY_KEY, window=window),
            "as-anthropic": Server(base_url=url, key=PROXY_KEY, wire="anthropic", window=window),
            "as-gemini": Server(base_url=url, key=PROXY_KEY, wire="gemini", window=window),
        }


@asynccontextmanager
async def _started(
    *command: str, environ: dict[str, str] | None = None
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Start a program that ends with the test run, and end it."""
    kept = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/")}
    process = await asyncio.create_subprocess_exec(
        # Killed with the test run: a proxy does not notice that its standard input is closed.
        *("setpriv", "--pdeathsig", "KILL"),
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={**kept, **(environ or {})},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


async def _until_it_answers(url: str) -> None:
    async with asyncio.timeout(STARTED_WITHIN_S):
        while True:
            try:
                await look_up(url, headers={"authorization": f"Bearer {PROXY_KEY}"})
            except LookupFailed:
                await asyncio.sleep(0.2)  # a foreign program says nothing when it is ready
            else:
                return


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
