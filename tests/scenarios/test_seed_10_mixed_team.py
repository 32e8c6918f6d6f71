"""Seed scenario 10: a coder and a tester find a bug by talking, and a third one documents it."""

import sys
from pathlib import Path

from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.model_server import Seen, Step
from tests.doubts import doubts_of
from tests.fences import opened
from tests.scenarios.endings import ACCEPTS, OPENS, defines, finishes
from tests.scenarios.thread_queries import (
    agent_name,
    event_number,
    new_text,
    reply_count,
    seen_created_nodes,
)
from tests.services.stages import accepts

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
    if "give_verdict" in seen.tools:
        return OPENS if reply_count(seen) == 0 else ACCEPTS
    roles = {"coordinator": coordinates, "coder": codes, "tester": checks, "docs": documents}
    return roles[agent_name(seen)](seen)


def coordinates(seen: Seen) -> Step:
    nodes = seen_created_nodes(seen)
    match reply_count(seen):
        case 0:
            return says(
                defines("`strutils.py` is the module", "`README.md` explains it", "the tests pass"),
                *(
                    call("spawn_worker", name=who, model=model)
                    for who, model in MODELS.items()
                    if who != "coordinator"
                ),
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
            assert "Stage 'package' is over: its contract is met" in new_text(seen)
            files = " ".join(f"../../{node}/published/[!_]*" for node in nodes)
            return says(call("bash", command=f"cp {files} . && {RUN}"))
        case 5:
            assert "OK" in new_text(seen)
            return says(accepts("It is whole, and its tests pass.", nodes, decision="finish"))
        case _:
            evidence = ["file:strutils.py", "file:README.md", f"ran:{RUN}"]
            return finishes("strutils, with tests and a README.", *evidence)


def codes(seen: Seen) -> Step:
    """Writes the module, tells the tester, and waits for the tests."""
    said = new_text(seen)
    if reply_count(seen) == 0:
        return says(call("write_file", path="strutils.py", content=WRONG), call("check_board"))
    if BUG in said:
        return says(
            call("write_file", path="strutils.py", content=RIGHT),
            call("send_message", to="tester", content=f"Fixed it:\n{RIGHT}", kind="urgent"),
            call("checkpoint", summary="The bug is out."),
        )
    if "The bug is out." in str([made.arguments for m in seen.messages for made in m.calls]):
        return says(call("publish", summary="strutils.py, with reverse_words()."))
    return says(
        *(
            [call("send_message", to="tester", content=f"The module:\n{WRONG}", kind="urgent")]
            * (reply_count(seen) == 1)
        ),
        call("task_output", id=node_id_on_board(seen, "Tests"), blocking=True),
    )


def checks(seen: Seen) -> Step:
    """Runs its tests on the module, reports the bug, and waits for the repair."""
    said = opened(new_text(seen))
    if "[Message from coder (urgent)] " in said:
        module = said.split("[Message from coder (urgent)] ")[1].split(":\n", 1)[1] + "\n"
        return says(
            # The coder may be faster: then the message is there before the first look at the board.
            *([call("check_board")] * (reply_count(seen) == 0)),
            call("write_file", path="strutils.py", content=module),
            call("write_file", path="test_strutils.py", content=TESTS),
            call("bash", command=RUN),
        )
    if "FAILED" in said:
        return says(
            call("send_message", to="coder", content=BUG, kind="urgent"),
            call("task_output", id=node_id_on_board(seen, "Module"), blocking=True),
        )
    if "\nOK" in said:
        return says(
            call("bash", command="rm strutils.py"),  # the coder publishes this file
            call("checkpoint", summary="All tests pass."),
        )
    if "All tests pass." in str([made.arguments for m in seen.messages for made in m.calls]):
        return says(call("publish", summary="test_strutils.py, for strutils.reverse_words()."))
    if reply_count(seen) == 0:
        return says(call("check_board"))
    return says(call("task_output", id=node_id_on_board(seen, "Module"), blocking=True))


def documents(seen: Seen) -> Step:
    match reply_count(seen):
        case 0:
            return says(
                call("read_ref", ref_name="module/strutils.py"),
                call("read_ref", ref_name="tests/test_strutils.py"),
            )
        case 1:
            assert RIGHT.strip() in new_text(seen)
            assert TESTS.strip() in new_text(seen)
            readme = '# strutils\n\n`reverse_words("one two")` gives `"two one"`.\n'
            return says(call("write_file", path="README.md", content=readme))
        case 2:
            return says(call("checkpoint", summary="The README is written."))
        case _:
            return says(call("publish", summary="README.md, from module and tests."))


def node_id_on_board(seen: Seen, title: str) -> str:
    """Return the id of a node from the board that the model was shown."""
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

            *board, review = await world.board(founded.team.id)
            goal, module, tested, documented = board
            events = await world.events(founded.team.id)
            names = {
                str(node.assignee_id): (await world.agent(node.assignee_id)).name for node in board
            }
            published = [world.published(node) for node in board]

    assert {node.status for node in board} == {NodeStatus.COMPLETED}
    assert review.stop_reason is StopReason.ACCEPTED
    assert (goal.stop_reason, doubts_of(goal)) == (StopReason.FINISHED, None)

    # Coder and tester exchanged messages until the bug was fixed.
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
    assert runs == [True, False, False]  # failing tests, passing tests, cleaning up

    # The documentation was written after module and tests, and the result has all three.
    readme = {"README.md": '# strutils\n\n`reverse_words("one two")` gives `"two one"`.\n'}
    assert published[1:] == [{"strutils.py": RIGHT}, {"test_strutils.py": TESTS}, readme]
    assert "from strutils import reverse_words" in published[2]["test_strutils.py"]
    assert published[0] == published[1] | published[2] | published[3]
    ended = [event_number(events, "node.completed", node_id=n.id) for n in (module, tested)]
    assert max(ended) < event_number(events, "node.started", node_id=documented.id)
    checkpoints = {e.data["node_id"] for e in events if e.type == "node.checkpoint"}
    assert checkpoints == {module.id, tested.id, documented.id}

    used = {
        (agent_name(seen), f"{seen.wire}/{seen.model}")
        for seen in server.requests
        if "give_verdict" not in seen.tools
    }
    assert used == set(MODELS.items())
    assert server.refused == []
