"""Problems of a model: each says what to do, in `run`, `up`, `doctor`, `models` and the API."""

import io
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agiraph import config
from agiraph.api.model_presenters import models_view
from agiraph.cli.models import opened
from agiraph.cli.run import opened as running_in
from agiraph.cli.run import refuse_unfit
from agiraph.cli.session import Local
from agiraph.cli.up import model_problem
from agiraph.config import Settings
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.home.layout import Home
from agiraph.core.store.engine.connect import open_store
from agiraph.doctor import checks
from agiraph.doctor.checkup import Checkup
from tests.cli.shell import Shell
from tests.providers.local_server import LLAMACPP, OLLAMA, VLLM, LocalServer
from tests.up_process import up

SMALL: Mapping[str, Any] = {
    "/v1/models": {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 2048}]}
}
TOO_LONG = "request (3000 tokens) exceeds the available context size (2048 tokens)"
DOWN = "Start the server, or correct base_url of [servers.house] in agiraph.toml."


@dataclass(frozen=True)
class Problem:
    """A server, a model on it, and what each place says of it."""

    model: str
    paths: Mapping[str, Any] = field(default_factory=dict[str, Any])
    refuses: tuple[int, str] | None = None
    is_locked: bool = False
    run: str = ""
    doctor: str = ""
    up: str = ""
    ui: str = ""


KEY = "Check the key in HOUSE_KEY: {host} does not accept it."
UNKNOWN = (
    "{host} has no model 'llama9'. Check the model's name. It has: house/qwen3:8b. `agiraph models`"
    " lists what there is."
)
NO_TOOLS = (
    "house/smollm2: This model cannot call tools through its server. Use it as 'text/house/smollm2'"
    ", where calls are written as text, or choose a model with tools; llama-server needs --jinja "
    "for tools."
)
WINDOW = "The window of house/m is 2,048 tokens, as its server says"
WIDEN = "start vLLM with a larger --max-model-len"
SMALL_WINDOW = f"Its window of 2,048 tokens is small for an agent's work: {WIDEN}."
OVERFLOW = f"{TOO_LONG}. {WINDOW}: {WIDEN}, or use a model with a larger window."
PROBLEMS = {
    "key": Problem(
        "house/qwen",
        refuses=(401, "no"),
        is_locked=True,
        run=f"{{host}} answered 401: no. {KEY}",
        doctor=f"{{host}} answered 401. {KEY}",
        up=f"{{host}} answered 401. {KEY}",
        ui=f"{{host}} answered 401. {KEY}",
    ),
    "unknown": Problem("house/llama9", OLLAMA, run=UNKNOWN, doctor=UNKNOWN, up=UNKNOWN, ui=UNKNOWN),
    "tools": Problem(
        "house/smollm2", LLAMACPP, run=NO_TOOLS, doctor=NO_TOOLS, up=NO_TOOLS, ui=NO_TOOLS
    ),
    "refused tools": Problem(
        "house/qwen",
        VLLM,
        refuses=(400, "qwen does not support tools"),
        run="where calls are written as text, or choose a model with tools; vLLM needs --enable-",
        doctor="where calls are written as text, or choose a model with tools; vLLM needs --enable",
    ),
    "window": Problem(
        "house/m",
        SMALL,
        refuses=(400, TOO_LONG),
        run=f"{{host}} answered 400: {OVERFLOW}",
        doctor=SMALL_WINDOW,
        up=SMALL_WINDOW,
    ),
    "down": Problem(
        "house/m",
        run=f"Nothing answers at 127.0.0.1:9 (connection refused). {DOWN}",
        doctor=f"Nothing answers at 127.0.0.1:9 (connection refused). {DOWN}",
        up=f"Nothing answers at 127.0.0.1:9 (connection refused). {DOWN}",
        ui=f"Nothing answers at 127.0.0.1:9 (connection refused). {DOWN}",
    ),
}


@asynccontextmanager
async def house(problem: Problem, tmp_path: Path) -> AsyncGenerator[tuple[Settings, str]]:
    """Yield the settings of a home that names the problem's server, and that server's host."""
    async with AsyncExitStack() as stack:
        if problem.paths or problem.refuses:
            server = await stack.enter_async_context(
                LocalServer(problem.paths, refuses=problem.refuses, is_locked=problem.is_locked)
            )
            base_url = server.base_url
        else:
            base_url = "http://127.0.0.1:9/v1"
        (tmp_path / "agiraph.toml").write_text(
            f'model = "{problem.model}"\n[servers.house]\nbase_url = "{base_url}"\n'
            'key_env = "HOUSE_KEY"\n'
        )
        variables = {"AGIRAPH_HOME": str(tmp_path), "HOUSE_KEY": "canary-4711"}
        yield config.load(variables), base_url.removeprefix("http://").removesuffix("/v1")


@pytest.mark.parametrize("name", PROBLEMS)
async def test_doctor_says_what_to_do(tmp_path: Path, name: str) -> None:
    problem = PROBLEMS[name]
    async with house(problem, tmp_path) as (settings, host):
        checkup = Checkup(settings, online=True)
        await checks.check_models(checkup, [problem.model])
        await checks.ask_each(checkup)
    said = [finding.what for finding in checkup.findings if finding.verdict != "fine"]
    assert any(problem.doctor.format(host=host) in what for what in said), said
    assert not checkup.is_well


@pytest.mark.parametrize("name", [name for name in PROBLEMS if PROBLEMS[name].up])
async def test_up_says_what_to_do(tmp_path: Path, name: str) -> None:
    problem = PROBLEMS[name]
    async with house(problem, tmp_path) as (settings, host), opened(settings) as models:
        said = await model_problem(models, problem.model)
        said = said or checks.small_window(models, problem.model)
    assert said == problem.up.format(host=host)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if PROBLEMS[name].ui])
async def test_the_list_of_models_says_what_to_do(tmp_path: Path, name: str) -> None:
    problem = PROBLEMS[name]
    async with house(problem, tmp_path) as (settings, host), opened(settings) as models:
        told = await models_view(models, problem.model, {})
    assert told.default_problem == problem.ui.format(host=host)


@pytest.mark.parametrize("name", ["unknown", "tools"])
async def test_run_refuses_a_model_that_cannot_do_the_work(tmp_path: Path, name: str) -> None:
    problem = PROBLEMS[name]
    async with house(problem, tmp_path) as (settings, host), opened(settings) as models:
        with pytest.raises(Misconfigured) as refused:
            await refuse_unfit(models, problem.model)
    assert str(refused.value) == problem.run.format(host=host)


async def test_run_goes_on_with_a_server_that_is_down_and_says_so(tmp_path: Path) -> None:
    problem = PROBLEMS["down"]
    async with house(problem, tmp_path) as (settings, _), opened(settings) as models:
        assert await refuse_unfit(models, problem.model) == problem.run


@pytest.mark.slow
@pytest.mark.parametrize("name", ["key", "refused tools", "window"])
async def test_a_run_that_a_model_stops_asks_once_and_says_what_to_do(
    tmp_path: Path, name: str
) -> None:
    problem = PROBLEMS[name]
    output = io.StringIO()
    async with house(problem, tmp_path) as (settings, host):
        console = Console(file=output, soft_wrap=True, highlight=False)
        async with running_in(settings, console) as running:
            code = await running.begin(
                "Try",
                {
                    "model": problem.model,
                    "budget": {"turns": 5},
                    "acceptance": ["answer"],
                    "review": "never",
                },
            )
        store = await open_store(settings.database_url, SystemClock())
        [asked] = (await Local(store, Home.open(settings.home)).inbox()).items
        await store.close()
    advice, said = problem.run.format(host=host), output.getvalue()
    # Once as it happens, and once as the question.
    assert (code, said.count(advice)) == (1, 2), said
    assert asked.needs_answer
    assert advice in asked.message.text
    assert "Continue with: agiraph run --resume " in said


async def test_a_model_that_calls_tools_works_however_few_tokens_its_server_counts(
    tmp_path: Path,
) -> None:
    """Ollama and proxies with a cache count only the part of a prompt that was not in the cache."""
    output = io.StringIO()
    async with LocalServer(OLLAMA, finishes="Blue.", prompt_tokens=900) as server:
        (tmp_path / "agiraph.toml").write_text(
            f'[servers.ollama]\nbase_url = "{server.base_url}"\n'
        )
        settings = config.load({"AGIRAPH_HOME": str(tmp_path)})
        console = Console(file=output, soft_wrap=True, highlight=False)
        async with running_in(settings, console) as running:
            code = await running.begin(
                "Say a colour",
                {"model": "ollama/qwen3:8b", "budget": {"turns": 5}, "review": "never"},
            )
    assert (code, "→ finish Blue." in output.getvalue()) == (3, True), output.getvalue()


@pytest.mark.slow
async def test_a_server_that_is_down_is_no_fine_one(agiraph: Shell) -> None:
    agiraph.home.mkdir(parents=True, exist_ok=True)
    (agiraph.home / "agiraph.toml").write_text(
        'model = "house/m"\n[servers.house]\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    tested = await agiraph("models", "--test")
    async with up(agiraph) as server:
        await server.process.says("The model cannot be used yet: Nothing answers at 127.0.0.1:9 (")
        told = await server.ask("GET", "/models")
        checked = await server.ask("POST", "/models/test", {"model": "house/m"})
    assert (tested.code, DOWN in tested.out) == (1, True)
    [house] = [provider for provider in told["providers"] if provider["name"] == "house"]
    assert (told["default"], house["state"], DOWN in house["advice"]) == ("house/m", "down", True)
    last_test = house["models"][0]["last_test"]
    assert (last_test["model"], last_test["checks"][0]["advice"]) == ("house/m", DOWN)
    assert [(c["name"], c["verdict"], c["advice"]) for c in checked["checks"]] == [
        ("words", "failed", DOWN)
    ]


@pytest.mark.slow
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


@pytest.mark.slow
async def test_the_terminal_offers_the_models_of_local_servers(agiraph: Shell) -> None:
    async with LocalServer(OLLAMA) as server:
        agiraph.home.mkdir(parents=True, exist_ok=True)
        (agiraph.home / "agiraph.toml").write_text(
            f'[servers.ollama]\nbase_url = "{server.base_url}"\n'
        )
        agiraph.environment |= {"AGIRAPH_PORT": "0"}
        async with agiraph.start_at_terminal("up") as starting:
            await starting.says("No model is set. These run on this machine:")
            await starting.says("  1. ollama/qwen3:8b at 127.0.0.1:")
            await starting.says("  2. the scripted demo, which shows how agiraph works")
            await starting.says("Which one? [1]: ")
            starting.types(b"9\n")
            await starting.says("9 is not in the range 1<=x<=2.")
            starting.types(b"\n")
            await starting.says(
                'To keep this choice, write model = "ollama/qwen3:8b" into agiraph.toml.'
            )
            await starting.says("Model: ollama/qwen3:8b. Token for programs: ")
