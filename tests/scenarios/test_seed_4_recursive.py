"""Seed scenario 4: a worker delegates parts of a large task to further agents."""

import asyncio
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from agiraph.core.domain.agents import Command
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.models.base import Request
from agiraph.testing import ModelServer, Says, World, call, says
from agiraph.testing.model_server import Seen, Step
from tests.doubts import doubts_of
from tests.fences import opened
from tests.scenarios import claude_code
from tests.scenarios.endings import ACCEPTS, OPENS, defines, finishes
from tests.scenarios.thread_queries import created_nodes, event_number, new_texts

GOAL = (
    "Create a full-stack todo app: REST API in Python (FastAPI) + frontend in React + Docker setup."
)
BACKEND = """\
#!/bin/sh
set -eu
mkdir -p backend
cat > backend/main.py <<'END'
from fastapi import FastAPI

app = FastAPI()
todos: list[str] = []


@app.get("/todos")
def every() -> list[str]:
    return todos
END
echo "GET /todos" > "$1"  # opens when the other one reads: both are at work at once
printf 'The backend answers GET /todos (%s).\\n' "$(sed -n 's/^Title: //p' _task.md)" > _result.md
"""
FRONTEND = """\
#!/bin/sh
set -eu
read -r verb path < "$1"
mkdir -p frontend/src
printf 'export const todos = () => fetch("%s");\\n' "$path" > frontend/src/App.jsx
printf '{"name": "todo", "private": true}\\n' > frontend/package.json
echo "The frontend asks $verb $path." > _result.md
"""
COMPILE = f"""{sys.executable} -c 'compile(open("backend/main.py").read(), "main.py", "exec")'"""
CLAUDE = {
    "backend": {
        "backend/main.py": "from fastapi import FastAPI\n\napp = FastAPI()\n",
        "_result.md": "The backend answers GET /todos (Build FastAPI backend).",
    },
    "frontend": {
        "frontend/package.json": '{"name": "todo", "private": true}\n',
        "frontend/src/App.jsx": 'export const todos = () => fetch("/todos");\n',
        "_result.md": "The frontend asks GET /todos.",
    },
}
"""The files that the model of Claude Code writes."""
DOCKERFILE = 'FROM python:3\nCOPY backend /app\nCMD ["fastapi", "run", "/app/main.py"]'


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def integrates(request: Request) -> Says:
    """Copy the published files of the programs, and write the Dockerfile of the third answer."""
    # What a program did has its title inside the fence.
    told = {re.findall("^Title: (.*)$", text, re.M)[0]: text for text in new_texts(request)}
    docker = told["Write Docker config"]
    assert "Status: completed (published)" in told["Build FastAPI backend"]
    assert "Status: completed (published)" in told["Build React frontend"]
    assert "Status: completed (answered)" in docker
    dockerfile = opened(docker).split("Status: completed (answered)\n ")[1]
    folders = " ".join(f"../../{node}/published/." for node in created_nodes(request)[:2])
    return says(
        call("bash", command=f"for each in {folders}; do cp -rf $each .; done && rm _*"),
        call("write_file", path="Dockerfile", content=f"{dockerfile}\n"),
        call("bash", command=COMPILE),
    )


async def test_a_worker_delegates_parts_of_its_task(world: World, tmp_path: Path) -> None:
    meeting = tmp_path / "meeting"
    os.mkfifo(meeting)
    backend = script(tmp_path / "backend-agent", BACKEND)
    frontend = script(tmp_path / "frontend-agent", FRONTEND)
    names = await build(world, f"cli:{backend} {meeting}", f"cli:{frontend} {meeting}")
    assert names == ["backend-agent", "frontend-agent"]


@pytest.fixture(scope="session")
def claude() -> Path:
    return claude_code.installed()


async def test_a_worker_delegates_parts_of_its_task_to_claude_code(
    tmp_path: Path, claude: Path
) -> None:
    """Two processes of the real program in parallel; only its model is scripted."""
    both = asyncio.Barrier(2)

    async def play(seen: Seen) -> Step:
        whole = " ".join(message.text for message in seen.messages)
        found = re.search(r"Primary working directory: (\S+)", whole + seen.system)
        assert found is not None
        files = CLAUDE["backend" if "Build FastAPI backend" in whole else "frontend"]
        done = sum(message.role == "tool" for message in seen.messages)
        if done == 0:
            await both.wait()  # both processes are running before either continues
        if done == len(files):
            return says("It is done.")
        name, text = list(files.items())[done]
        return says(call("Write", file_path=f"{found[1]}/{name}", content=text))

    async with ModelServer(play) as server:
        command = (
            f'{shlex.quote(str(claude))} -p "$(cat _task.md)" --model {claude_code.MODEL} '
            "--permission-mode acceptEdits --allowedTools Write,Read"
        )
        named = Command(command=command, environment=claude_code.environment(server.anthropic_url))
        async with World(tmp_path / "home", commands={"claude": named}) as world:
            assert await build(world, "cli:claude", "cli:claude") == ["claude", "claude-2"]
    assert server.refused == []


async def build(world: World, backend: str, frontend: str) -> list[str]:
    """Run the scenario with these two programs; return the names of their agents."""
    world.script(
        "ada",
        says(
            defines(
                "`backend/main.py` is the API",
                "`frontend/src/App.jsx` shows the todos",
                "`Dockerfile` starts it",
                "the backend compiles",
            ),
            call(
                "create_work_node",
                title="Build the todo app",
                task="All of it, in one folder.",
                acceptance=["`backend/main.py` compiles", "`Dockerfile` is there"],
                kinds=["ran", "file"],
                assigned_to="new:scripted/builder",
            ),
        ),
        lambda request: says(call("task_output", id=created_nodes(request)[0], blocking=True)),
        lambda request: says(
            call(
                "bash",
                command=f"cp -r ../../{created_nodes(request)[0]}/published/. . "
                f"&& rm _manifest.json && {COMPILE}",
            )
        ),
        finishes(
            "The app is there: backend/, frontend/ and a Dockerfile.",
            "file:backend/main.py",
            "file:frontend/src/App.jsx",
            "file:Dockerfile",
            f"ran:{COMPILE}",
        ),
        OPENS,
        ACCEPTS,
    )
    world.script(
        "builder",
        says(
            "This is big.",
            call(
                "create_work_node",
                title="Build FastAPI backend",
                task="GET /todos",
                assigned_to=backend,
            ),
            call(
                "create_work_node",
                title="Build React frontend",
                task="It shows what the backend has.",
                assigned_to=frontend,
            ),
            call(
                "create_work_node",
                title="Write Docker config",
                task="A Dockerfile for the backend; answer with nothing else.",
                assigned_to="new:scripted/docker",
                max_turns=1,
            ),
        ),
        lambda request: says(
            *(call("task_output", id=node, blocking=True) for node in created_nodes(request))
        ),
        integrates,
        says(
            call(
                "publish",
                summary="Built from three parts.",
                evidence=[f"ran:{COMPILE}", "file:Dockerfile"],
            )
        ),
    )
    docker = world.script("docker", says(DOCKERFILE))

    founded = await world.found(GOAL)
    await world.settle()

    board = await world.board(founded.team.id)
    goal, app, *parts, review = board
    events = await world.events(founded.team.id)
    assert {n.status for n in board} == {NodeStatus.COMPLETED}
    assert (goal.stop_reason, doubts_of(goal)) == (StopReason.FINISHED, None)
    assert (review.parent_id, review.stop_reason) == (goal.id, StopReason.ACCEPTED)
    assert (app.stop_reason, doubts_of(app)) == (StopReason.PUBLISHED, None)

    # The tree is two levels deep below the goal.
    assert (app.parent_id, app.depth) == (goal.id, 1)
    assert [(n.title, n.parent_id, n.depth, n.creator_id) for n in parts] == [
        (title, app.id, 2, app.assignee_id)
        for title in ("Build FastAPI backend", "Build React frontend", "Write Docker config")
    ]

    # Two programs ran in parallel; a model gave a single answer.
    workers = [await world.agent(n.assignee_id) for n in parts]
    assert [a.kind for a in workers] == ["cli", "cli", "llm"]
    begun = [event_number(events, "node.started", node_id=n.id) for n in parts[:2]]
    ended = [event_number(events, "node.completed", node_id=n.id) for n in parts[:2]]
    assert max(begun) < min(ended)
    assert [n.result for n in parts] == [
        "The backend answers GET /todos (Build FastAPI backend).",
        "The frontend asks GET /todos.",
        DOCKERFILE,
    ]
    assert (parts[2].budget.turns, parts[2].stop_reason) == (1, StopReason.ANSWERED)
    assert [asked.tools for asked in docker.requests] == [()]
    assert "You have no tools and no second turn." in docker.requests[0].system

    # The result has all parts.
    result = world.published(goal)
    assert result.keys() == {
        "backend/main.py",
        "frontend/package.json",
        "frontend/src/App.jsx",
        "Dockerfile",
    }
    assert result["frontend/src/App.jsx"] == 'export const todos = () => fetch("/todos");\n'
    assert result["Dockerfile"] == f"{DOCKERFILE}\n"
    return [worker.name for worker in workers[:2]]
