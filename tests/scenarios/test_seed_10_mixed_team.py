"""Seed scenario 10: a coder and a tester find a bug by talking, and a third one documents it."""

import sys
from pathlib import Path

from agiraph.domain.work import NodeStatus, StopReason
from agiraph.providers.registry import Account, Keys
from agiraph.store.teams import AGENTS
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.model_server import Seen, Step
from tests.scenarios.reading import heard, made, name, place, step

GOAL = (
    "Create a Python package with a module, tests, and documentation. The code writer and test "
    "writer should coordinate."
)
WRONG = 'def reverse_words(text):\n    return " ".join(reversed(text))\n'
RIGHT = 'def reverse_words(text):\n    return " ".join(reversed(text.split()))\n'
TESTS = """\
import unittest

from strutils import reverse_words


class ReverseWords(unittest.TestCase):
    def test_the_last_word_comes_first(self):
        self.assertEqual(reverse_words("one two"), "two one")
"""
RUN = f"{sys.executable} -B -m unittest test_strutils"
BUG = "Found a bug in reverse_words(): it reverses letters, not words."
MODELS = {
    "coordinator": "openai/gpt-lead",
    "coder": "openai/gpt-coder",
    "tester": "anthropic/claude-tester",
    "docs": "gemini/gemini-docs",
}


def play(seen: Seen) -> Step:
    roles = {"coordinator": coordinates, "coder": codes, "tester": checks, "docs": documents}
    return roles[name(seen)](seen)


def coordinates(seen: Seen) -> Step:
    nodes = made(seen)
    match step(seen):
        case 0:
            return says(
                *(
                    call("spawn_worker", name=who, model=model)
                    for who, model in MODELS.items()
                    if who != "coordinator"
                )
            )
        case 1:
            return says(
                call("create_work_node", title="Module", task="Write a module for strings."),
                call("create_work_node", title="Tests", task="Write tests for the module."),
            )
        case 2:
            return says(
                call(
                    "create_work_node",
                    title="Documentation",
                    task="Write the README.",
                    refs={"module": nodes[0], "tests": nodes[1]},
                    assigned_to="docs",
                ),
                call("assign_worker", node_id=nodes[0], worker_id="coder"),
                call("assign_worker", node_id=nodes[1], worker_id="tester"),
            )
        case 3:
            return says(call("start_stage", name="package", nodes=nodes))
        case 4:
            assert "Stage 'package' is over: its contract is met" in heard(seen)
            files = " ".join(f"../../{node}/published/[!_]*" for node in nodes)
            return says(call("bash", command=f"cp {files} . && {RUN}"))
        case 5:
            assert "OK" in heard(seen)
            return says(call("reconvene", assessment="It is whole, and its tests pass."))
        case _:
            return says(call("finish", summary="strutils, with tests and a README."))


def codes(seen: Seen) -> Step:
    """Writes, tells the tester, and waits for what they say."""
    said = heard(seen)
    if step(seen) == 0:
        return says(call("write_file", path="strutils.py", content=WRONG), call("check_board"))
    if BUG in said:
        return says(
            call("write_file", path="strutils.py", content=RIGHT),
            call("send_message", to="tester", content=f"Fixed it:\n{RIGHT}"),
            call("checkpoint", summary="The bug is out."),
            call("publish", summary="strutils.py, with reverse_words()."),
        )
    return says(
        *([call("send_message", to="tester", content=f"The module:\n{WRONG}")] * (step(seen) == 1)),
        call("task_output", id=listed(seen, "Tests"), blocking=True),
    )


def checks(seen: Seen) -> Step:
    """Tries what it is told of, says what is wrong, and waits for the repair."""
    said = heard(seen)
    if "[Message from coder] " in said:
        module = said.split("[Message from coder] ")[1].split(":\n", 1)[1] + "\n"
        return says(
            call("write_file", path="strutils.py", content=module),
            call("write_file", path="test_strutils.py", content=TESTS),
            call("bash", command=RUN),
        )
    if "FAILED" in said:
        return says(
            call("send_message", to="coder", content=BUG),
            call("task_output", id=listed(seen, "Module"), blocking=True),
        )
    if "\nOK" in said:
        return says(
            call("bash", command="rm strutils.py"),  # it is the coder's to publish
            call("checkpoint", summary="All tests pass."),
            call("publish", summary="test_strutils.py, for strutils.reverse_words()."),
        )
    if step(seen) == 0:
        return says(call("check_board"))
    return says(call("task_output", id=listed(seen, "Module"), blocking=True))


def documents(seen: Seen) -> Step:
    match step(seen):
        case 0:
            return says(
                call("read_ref", ref_name="module/strutils.py"),
                call("read_ref", ref_name="tests/test_strutils.py"),
            )
        case 1:
            assert RIGHT.strip() in heard(seen)
            assert TESTS.strip() in heard(seen)
            readme = '# strutils\n\n`reverse_words("one two")` gives `"two one"`.\n'
            return says(call("write_file", path="README.md", content=readme))
        case 2:
            return says(call("checkpoint", summary="The README is written."))
        case _:
            return says(call("publish", summary="README.md, from module and tests."))


def listed(seen: Seen, title: str) -> str:
    """The id of a node, as the board shows it."""
    board = next(m.text for m in seen.messages if "Work:\n" in m.text)
    [row] = [line for line in board.splitlines() if f"] {title} (" in line]
    return row.split()[1]


async def test_workers_find_a_bug_by_talking_and_repair_it(
    tmp_path: Path, database_url: str
) -> None:
    async with ModelServer(play) as server:
        keys = Keys(
            {
                "openai": Account(key="sk-test", base_url=server.openai_url),
                "anthropic": Account(key="sk-test", base_url=server.anthropic_url),
                "gemini": Account(key="sk-test", base_url=server.gemini_url),
            }
        )
        async with World(tmp_path / "home", database_url=database_url, keys=keys) as world:
            founded = await world.found(GOAL, model=MODELS["coordinator"])
            await world.settle()

            goal, module, tested, documented = board = await world.board(founded.team.id)
            events = await world.events(founded.team.id)
            names = {
                str(node.assignee_id): (await world.store.read(AGENTS.get, node.assignee_id)).name
                for node in board
            }
            published = [world.published(node) for node in board]

    assert {node.status for node in board} == {NodeStatus.COMPLETED}
    assert goal.stop_reason is StopReason.FINISHED

    # They talked to each other, there and back, and it went on until the bug was out.
    talk = [
        (names[e.data["sender"]], names[e.data["recipient"]], e.data["text"].splitlines()[0])
        for e in events
        if e.type == "message.sent" and e.data["kind"] == "message"
    ]
    assert talk == [
        ("coder", "tester", "The module:"),
        ("tester", "coder", BUG),
        ("coder", "tester", "Fixed it:"),
    ]
    runs = [
        e.data["failed"]
        for e in events
        if e.type == "tool.result" and (e.data["tool"], e.data["node_id"]) == ("bash", tested.id)
    ]
    assert runs == [True, False, False]  # the tests, the tests again, and clearing up

    # The tests are about the module, the documentation came after both, and all is in the result.
    readme = {"README.md": '# strutils\n\n`reverse_words("one two")` gives `"two one"`.\n'}
    assert published[1:] == [{"strutils.py": RIGHT}, {"test_strutils.py": TESTS}, readme]
    assert "from strutils import reverse_words" in published[2]["test_strutils.py"]
    assert published[0] == published[1] | published[2] | published[3]
    ended = [place(events, "node.completed", node_id=n.id) for n in (module, tested)]
    assert max(ended) < place(events, "node.started", node_id=documented.id)
    checkpoints = {e.data["node_id"] for e in events if e.type == "node.checkpoint"}
    assert checkpoints == {module.id, tested.id, documented.id}

    used = {(name(seen), f"{seen.wire}/{seen.model}") for seen in server.requests}
    assert used == set(MODELS.items())
    assert server.refused == []
