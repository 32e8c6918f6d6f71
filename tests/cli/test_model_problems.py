"""Problems of a model: each says what to do, in `run`, `up`, `doctor`, `models` and the API."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from tests.cli.shell import Shell
from tests.providers.local_server import LLAMACPP, OLLAMA, VLLM, LocalServer
from tests.up_process import up

pytestmark = pytest.mark.slow
SMALL: Mapping[str, Any] = {
    "/v1/models": {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 2048}]}
}
TOO_LONG = "request (3000 tokens) exceeds the available context size (2048 tokens)"
DOWN = "Start the server, or correct base_url of [servers.house] in agiraph.toml."


def use(agiraph: Shell, base_url: str, model: str) -> Shell:
    """Name a server in this shell's home, and a model on it."""
    agiraph.home.mkdir(parents=True, exist_ok=True)
    (agiraph.home / "agiraph.toml").write_text(
        f'model = "{model}"\n[servers.house]\nbase_url = "{base_url}"\nkey_env = "HOUSE_KEY"\n'
    )
    agiraph.environment |= {"HOUSE_KEY": "canary-4711"}
    return agiraph


async def finding(agiraph: Shell, name: str, *arguments: str) -> tuple[str, str]:
    """Return verdict and text of one finding of the doctor."""
    told = orjson.loads((await agiraph("doctor", "--json", *arguments)).out)
    [found] = [f for f in told["findings"] if f["name"] == name]
    return found["verdict"], found["what"]


async def test_a_wrong_key_names_its_variable(agiraph: Shell) -> None:
    async with LocalServer(VLLM, refuses=(401, "no")) as server:
        use(agiraph, server.base_url, "house/qwen")
        run = await agiraph("run", "Try", "--accept", "answer")
        doctor = await finding(agiraph, "answer of house/qwen", "--online")
    advice = "Check the key in HOUSE_KEY: "
    assert (run.code, advice in run.out) == (1, True)
    assert (doctor[0], advice in doctor[1]) == ("problem", True)


@pytest.mark.parametrize(
    ("paths", "model", "advice"),
    [
        (OLLAMA, "house/llama9", "has no model 'llama9'. Check the model's name. It has: house/qw"),
        (LLAMACPP, "house/smollm2", "Use it as 'text/house/smollm2', where calls are written as"),
    ],
    ids=["unknown", "no-tools"],
)
async def test_a_model_that_cannot_do_the_work_is_refused_before_it_starts(
    agiraph: Shell, paths: Mapping[str, Any], model: str, advice: str
) -> None:
    async with LocalServer(paths) as server:
        use(agiraph, server.base_url, model)
        run = await agiraph("run", "Try", "--accept", "answer")
        verdict, what = await finding(agiraph, f"model {model}")
        listed = orjson.loads((await agiraph("models", "--json")).out)
    assert (run.code, run.out) == (1, "")
    assert advice in run.err
    assert (verdict, advice in what) == ("problem", True)
    assert advice in listed["default_problem"]


async def test_a_small_window_is_named_with_how_to_make_it_larger(agiraph: Shell) -> None:
    async with LocalServer(SMALL, refuses=(400, TOO_LONG)) as server:
        use(agiraph, server.base_url, "house/m")
        run = await agiraph("run", "Try", "--accept", "answer")
        doctor = await finding(agiraph, "model house/m")
    assert run.code == 1
    assert TOO_LONG in run.out
    assert (
        "The window of house/m is 2,048 tokens (server): start vLLM with a larger "
        "--max-model-len, or use a model with a larger window." in run.out
    )
    assert doctor == (
        "note",
        "Its window of 2,048 tokens is small for an agent's work: start vLLM with a larger "
        "--max-model-len.",
    )


async def test_a_server_that_is_down_is_no_fine_one(agiraph: Shell) -> None:
    use(agiraph, "http://127.0.0.1:9/v1", "house/m")
    verdict, what = await finding(agiraph, "model house/m")
    tested = await agiraph("models", "--test")
    async with up(agiraph) as server:
        await server.process.says("The model cannot be used yet: Nothing answers at 127.0.0.1:9 (")
        told = await server.ask("GET", "/models")
        checked = await server.ask("POST", "/models/test", {"model": "house/m"})
    assert (verdict, DOWN in what) == ("problem", True)
    assert (tested.code, DOWN in tested.out) == (1, True)
    [house] = [provider for provider in told["providers"] if provider["name"] == "house"]
    assert (told["default"], house["state"], DOWN in house["advice"]) == ("house/m", "down", True)
    assert [(c["name"], c["verdict"], c["advice"]) for c in checked["checks"]] == [
        ("words", "failed", DOWN)
    ]


async def test_a_local_server_is_offered_before_the_demo(agiraph: Shell) -> None:
    async with LocalServer(OLLAMA) as server:
        agiraph.home.mkdir(parents=True, exist_ok=True)
        (agiraph.home / "agiraph.toml").write_text(
            f'[servers.ollama]\nbase_url = "{server.base_url}"\n'
        )
        run = await agiraph("run", "Show me", "--review", "never")
    host = server.url.removeprefix("http://")
    first = run.out.splitlines()[0]
    assert first == (
        f"No model is set: the scripted demo answers. Found ollama/qwen3:8b at {host}, window "
        "16,384 tokens: use it with AGIRAPH_MODEL=ollama/qwen3:8b."
    )
    assert run.code == 0
