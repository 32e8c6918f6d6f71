"""Programs of vendors: the real Codex, Gemini CLI and OpenCode work confined, by their presets."""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from agiraph.core.domain.agents import Command
from agiraph.core.domain.work import StopReason
from agiraph.models.registry import Account, Keys
from agiraph.sandbox import levels
from agiraph.testing import Call, ModelServer, World, call, says
from agiraph.testing.model_server import Seen, Step
from tests.programs import npm
from tests.scenarios.endings import ACCEPTS, OPENS, defines, finishes
from tests.scenarios.thread_queries import reply_count

GOAL = "Write the word of the day"
RESULT = "The word is pump."
MODEL = "gemini-2.5-pro"
CANARY = "sk-canary-of-a-program"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not levels.choose().has_gate, reason="commands have no network here"),
]
OPENCODE = {
    "autoupdate": False,
    "share": "disabled",
    "model": f"stub/{MODEL}",
    "small_model": f"stub/{MODEL}",
    "permission": {"edit": "allow", "bash": "allow"},
    "provider": {
        "stub": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{env:OPENAI_BASE_URL}", "apiKey": "{env:OPENAI_API_KEY}"},
            "models": {MODEL: {"limit": {"context": 200_000, "output": 8000}}},
        }
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A program, the words that start it, and the call by which its model writes a file."""

    package: str
    executable: str
    arguments: str
    environment: Callable[[ModelServer], Mapping[str, str]]
    writes: Callable[[str, str], Call]


CASES = {
    "codex": Case(
        package="codex",
        executable="codex",
        # Its own sandbox cannot start inside of ours.
        arguments=f"exec --json --skip-git-repo-check --sandbox danger-full-access -m {MODEL} "
        "-c model_provider=stub -c model_providers.stub.name=stub "
        "-c model_providers.stub.env_key=OPENAI_API_KEY "
        "-c model_providers.stub.wire_api=responses "
        '-c model_providers.stub.base_url="$OPENAI_BASE_URL" '
        '-c features.plugins=false "$(cat _task.md)"',
        environment=lambda server: {
            "OPENAI_BASE_URL": server.openai_url,
            "OPENAI_API_KEY": CANARY,
        },
        writes=lambda path, text: call("exec_command", cmd=f"echo {shlex.quote(text)} > {path}"),
    ),
    "gemini": Case(
        package="gemini-cli",
        executable="gemini",
        arguments=f'-p "$(cat _task.md)" -m {MODEL} -o stream-json --approval-mode yolo',
        environment=lambda server: {
            "GOOGLE_GEMINI_BASE_URL": server.gemini_url,
            "GEMINI_API_KEY": CANARY,
        },
        writes=lambda path, text: call("write_file", file_path=path, content=text),
    ),
    "opencode": Case(
        package="opencode",
        executable="opencode",
        arguments="run --format json < _task.md",
        environment=lambda server: {
            "OPENAI_BASE_URL": server.openai_url,
            "OPENAI_API_KEY": CANARY,
            "OPENCODE_CONFIG_CONTENT": json.dumps(OPENCODE),
        },
        writes=lambda path, text: call("write", filePath=path, content=text),
    ),
}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", CASES)
async def test_the_program_answers_its_task_in_the_sandbox(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    program = npm(case.package, case.executable)
    folder: list[Path] = []

    def play(seen: Seen) -> Step:
        if seen.model != "test":
            return plays_the_program(seen)
        if "give_verdict" in seen.tools:
            return OPENS if reply_count(seen) == 0 else ACCEPTS
        if reply_count(seen) == 0:
            task = call("assign_task", agent=f"cli:{name}", task=GOAL, description="A word")
            return says(defines("the word is known"), task)
        return finishes(seen.messages[-1].text, "the program's answer")

    def plays_the_program(seen: Seen) -> Step:
        writing = {"exec_command", "write_file", "write"} & set(seen.tools)
        if not writing or any(message.role == "tool" for message in seen.messages):
            return says("It is done.")
        assert GOAL in " ".join(message.text for message in seen.messages)
        [node] = list(folder[0].glob("teams/*/nodes/*/scratch/_task.md"))
        return says(case.writes(str(node.with_name("_result.md")), RESULT))

    async with ModelServer(play) as server:
        named = Command(
            command=f"{shlex.quote(str(program))} {case.arguments}",
            environment=case.environment(server),
        )
        keys = Keys({"openai": Account(key="sk-test", base_url=server.openai_url)})
        home = tmp_path / "home"
        folder.append(home)
        async with World(home, keys=keys, commands={name: named}) as world:
            founded = await world.found(GOAL, model="openai/test")
            await world.settle()
            goal, task, *reviews = await world.board(founded.team.id)
            events = await world.events(founded.team.id)
    output = [e.data["text"] for e in events if e.type == "node.output"]
    assert (task.status, RESULT in (goal.result or "")) == ("completed", True), output
    assert goal.status == "completed"
    assert [review.stop_reason for review in reviews] == [StopReason.ACCEPTED]
    assert server.refused == []
