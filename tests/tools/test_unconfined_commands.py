"""Commands that are not confined: each asks a person, and what came of it is labelled."""

from pathlib import Path

import pytest

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.grants import Grant
from agiraph.core.services.lifecycle.answers import make_grant
from agiraph.core.store.tx import Tx
from agiraph.testing import call
from tests.tools.strangers import READ, answers, found_with_calls, strange_world, undecided

RAN, ASKED = "[exit code 0]", "Not made yet:"
NETWORK, PAGE = ["network:unknown"], ["page:example.com"]
LOCAL = call("bash", command="echo a > a; cat a")
USES_NETWORK = call("bash", command="python3 -c 'print(1)'")


@pytest.mark.parametrize(
    ("trust", "calls", "expected"),
    [
        ("standard", [LOCAL], ([], [LOCAL], ASKED)),
        ("standard", [READ, LOCAL], (PAGE, [LOCAL], ASKED)),
        ("open", [LOCAL], ([], [], RAN)),
        ("open", [USES_NETWORK], (NETWORK, [], RAN)),
        ("open", [READ, LOCAL], (PAGE, [], RAN)),
    ],
)
async def test_each_command_asks_unless_the_team_is_open(
    tmp_path: Path, trust: str, calls: list[object], expected: tuple[object, ...]
) -> None:
    async with strange_world(tmp_path, sandbox_level="none") as world:
        founded = await found_with_calls(world, *calls, trust=trust)  # pyright: ignore
        assert founded.node is not None
        thread = await world.thread(founded.node.id)
        questions = await undecided(world, founded)
        asked = [q.call.arguments["command"] for q in questions if q.call is not None]
        said = (await answers(world, founded))[-2]
    wanted = [each.arguments["command"] for each in expected[1]]  # pyright: ignore
    assert (list(thread.label.sources), asked, said[:13]) == (expected[0], wanted, expected[2])


async def test_a_grant_of_a_person_lets_the_exact_command_run(tmp_path: Path) -> None:
    async with strange_world(tmp_path, sandbox_level="none") as world:

        def allow(tx: Tx) -> Grant:
            words = "echo a > a; cat a"
            return make_grant(tx, kind="command", pattern=words, person_id=OWNER, team_id=None)

        await world.store.write(allow)
        founded = await found_with_calls(world, LOCAL, trust="standard")
        said = (await answers(world, founded))[-2]
    assert said[:13] == RAN
