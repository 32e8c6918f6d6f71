"""Commands that cannot be confined: clean ones are labelled, and labelled threads ask for each."""

import json
import sys
from pathlib import Path

import pytest

from agiraph.home import sandbox
from tests.home.test_sandbox import without_namespaces

pytestmark = pytest.mark.skipif(
    not sandbox.is_possible(), reason="this machine has no namespaces to take away"
)

SCRIPT = """
import asyncio, json, sys
from pathlib import Path
from agiraph.testing import call
from tests.tools.strangers import READ, answers, found_with_calls, go_on_with, strange_world

COMMANDS = {
    "local": [call("bash", command="echo a > a; cat a")],
    "network": [call("bash", command="python3 -c 'print(1)'")],
    "after network": [
        call("bash", command="python3 -c 'print(1)'"),
        call("bash", command="echo b"),
    ],
    "labelled": [READ, call("bash", command="echo b")],
}

async def main():
    found = {}
    for trust in ("standard", "open"):
        for name, calls in COMMANDS.items():
            async with strange_world(Path(sys.argv[1]) / trust / name.replace(" ", "-")) as world:
                founded = await found_with_calls(world, *calls, trust=trust)
                thread = await world.thread(founded.node.id)
                questions = await world.questions(founded.team.id)
                asked = [question.call.arguments["command"] for question in questions]
                said = (await answers(world, founded))[-2]
                found[f"{trust} {name}"] = [list(thread.label.sources), asked, said[:13]]
    print(json.dumps(found))

asyncio.run(main())
"""


def test_where_commands_cannot_be_confined_clean_ones_label_and_labelled_ones_ask(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = without_namespaces(sys.executable, str(script), str(tmp_path))

    assert done.returncode == 0, done.stderr
    ran, asked = "[exit code 0]", "Not made yet:"
    network, page = ["network:unknown"], ["page:example.com"]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "standard local": [[], [], ran],
        "standard network": [network, [], ran],
        "standard after network": [network, ["echo b"], asked],
        "standard labelled": [page, ["echo b"], asked],
        "open local": [[], [], ran],
        "open network": [network, [], ran],
        "open after network": [network, [], ran],
        "open labelled": [page, [], ran],
    }
