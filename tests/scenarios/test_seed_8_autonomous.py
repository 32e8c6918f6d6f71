"""Seed scenario 8: a command-line agent writes a tool, and the coordinator runs it."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from agiraph.core.domain.agents import Command
from agiraph.core.domain.events import Event
from agiraph.core.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.model_server import Seen, Step
from tests.doubts import doubts_of
from tests.fences import opened
from tests.scenarios import claude_code
from tests.scenarios.endings import defines, finishes

GOAL = "Write a Python CLI tool that converts CSV to JSON."
TOOL = """\
import csv, json, sys

with open(sys.argv[1], newline="") as file:
    print(json.dumps(list(csv.DictReader(file))))
"""
SAMPLE = "a,b\\n1,2\\n"
CONVERTED = '[{"a": "1", "b": "2"}]'
DONE = defines("the tool was run on a CSV file and printed JSON")
PUBLISHED_TOOL = "published/csv2json.py given.csv"
RESULT = "csv2json.py converts CSV to JSON; tried with two columns."
AGENT = f'''
import pathlib, subprocess, sys

assert "converts CSV to JSON" in pathlib.Path("_task.md").read_text()
print("Reading the task.", flush=True)
with open("_outbox.md", "a") as outbox:
    print("@coordinator: I begin.", file=outbox)
pathlib.Path("csv2json.py").write_text({TOOL!r})
pathlib.Path("sample.csv").write_text("{SAMPLE}")
made = subprocess.run([sys.executable, "csv2json.py", "sample.csv"], capture_output=True, text=True)
assert made.stdout.strip() == {CONVERTED!r}, made.stderr
pathlib.Path("_result.md").write_text({RESULT!r})
'''


def runs_published_tool(notice: str) -> Step:
    """Run the published tool at the path that the notice of completion names."""
    assert RESULT in notice
    path = re.search(r"(nodes/\S+/published/csv2json\.py)", notice)
    assert path is not None, notice
    run = f"{shlex.quote(sys.executable)} ../../../{path[1]} given.csv"
    return says(call("bash", command=f"printf '{SAMPLE}' > given.csv && {run}"))


def reports_success(answer: str) -> Step:
    assert opened(answer).split() == f"[exit code 0] {CONVERTED}".split()
    return finishes("The tool works.", f"ran:{PUBLISHED_TOOL}")


def commands_run(events: list[Event], node: WorkNode) -> list[str]:
    ran = [e.data for e in events if e.type == "tool.result" and e.data["tool"] == "command"]
    return [run["text"].partition(",")[0] for run in ran if run["node_id"] == node.id]


def check_outcome(goal: WorkNode, task: WorkNode, published: dict[str, str]) -> None:
    assert (goal.status, goal.stop_reason, goal.result, doubts_of(goal)) == (
        NodeStatus.COMPLETED,
        StopReason.FINISHED,
        "The tool works.",
        None,
    )
    assert (task.status, task.stop_reason, task.result, doubts_of(task)) == (
        NodeStatus.COMPLETED,
        StopReason.PUBLISHED,
        RESULT,
        None,
    )
    assert published.items() >= {"csv2json.py": TOOL, "_result.md": RESULT}.items()


async def test_a_script_writes_the_tool_and_the_coordinator_runs_it(
    tmp_path: Path, database_url: str
) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)
    command = shlex.join([sys.executable, str(agent)])

    def play(seen: Seen) -> Step:
        last = seen.messages[-1].text
        if seen.index == 0:
            hire = call("spawn_worker", name="coder", type="autonomous", agent_command=command)
            task = call("create_work_node", task=GOAL, title="Tool", assigned_to="coder")
            return says(DONE, hire, task)
        if RESULT in last:
            return runs_published_tool(last)
        if last.startswith("[exit code"):
            return reports_success(last)
        # The first time, or after a message of the worker, which ends the wait early.
        thread = " ".join(message.text for message in seen.messages)
        made = re.search(r"Created (node_\w+), given to coder", thread)
        assert made is not None
        return says(call("task_output", id=made[1], blocking=True))

    async with ModelServer(play) as server:
        keys = Keys({"anthropic": Account(key="sk-test", base_url=server.anthropic_url)})
        async with World(tmp_path / "home", database_url=database_url, keys=keys) as world:
            founded = await world.found(GOAL, model="anthropic/test")
            await world.settle()
            goal, task = await world.board(founded.team.id)
            events = await world.events(founded.team.id)
            published = world.published(task)

    check_outcome(goal, task, published)
    assert commands_run(events, task) == ["[exited"]
    assert [e.data["text"] for e in events if e.type == "node.output"] == ["Reading the task.\n"]
    assert "I begin." in [e.data["text"] for e in events if e.type == "message.sent"]
    assert server.refused == []


@pytest.fixture(scope="session")
def claude() -> Path:
    return claude_code.installed()


def plays_claude(seen: Seen) -> Step:
    """The model of Claude Code: it writes the tool, runs it, and writes its result."""
    whole = " ".join(message.text for message in seen.messages)
    folder = re.search(r"Primary working directory: (\S+)", whole + seen.system)
    assert folder is not None
    assert GOAL in whole
    match sum(message.role == "tool" for message in seen.messages):
        case 0:
            path = f"{folder[1]}/csv2json.py"
            return says("I write it.", call("Write", file_path=path, content=TOOL))
        case 1:
            run = f"printf '{SAMPLE}' > sample.csv && {sys.executable} csv2json.py sample.csv"
            return says(call("Bash", command=run, description="Try it"))
        case 2:
            assert seen.messages[-1].text.startswith(CONVERTED)
            return says(call("Write", file_path=f"{folder[1]}/_result.md", content=RESULT))
        case _:
            return says("It is done.")


def plays_the_coordinator(seen: Seen) -> Step:
    last = seen.messages[-1].text
    if len(seen.messages) == 1:
        task = call("assign_task", agent="cli:claude", task=GOAL, description="The tool")
        return says(DONE, task)
    return runs_published_tool(last) if RESULT in last else reports_success(last)


async def test_claude_code_writes_the_tool_and_the_coordinator_runs_it(
    tmp_path: Path, claude: Path
) -> None:
    """The real program; its model and the coordinator's are scripted, on one server."""

    def play(seen: Seen) -> Step:
        return (
            plays_claude(seen) if seen.model == claude_code.MODEL else plays_the_coordinator(seen)
        )

    async with ModelServer(play) as server:
        command = (
            f'{shlex.quote(str(claude))} -p "$(cat _task.md)" --model {claude_code.MODEL} '
            "--output-format json --permission-mode acceptEdits --allowedTools Write,Edit,Read,Bash"
        )
        named = Command(command=command, environment=claude_code.environment(server.anthropic_url))
        keys = Keys({"anthropic": Account(key="sk-test", base_url=server.anthropic_url)})
        async with World(tmp_path / "home", keys=keys, commands={"claude": named}) as world:
            founded = await world.found(GOAL, model="anthropic/test")
            await world.settle()
            goal, task = await world.board(founded.team.id)
            events = await world.events(founded.team.id)
            published = world.published(task)

    check_outcome(goal, task, published)
    assert commands_run(events, task) == ["[exited"]
    [said] = [e.data["text"] for e in events if e.type == "node.output"]
    assert '"result":"It is done."' in said
    assert server.refused == []
