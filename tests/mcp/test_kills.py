"""SIGKILL of the runtime during a call of an MCP server: nothing is left, nothing is repeated."""

from pathlib import Path

import orjson
import pytest

from agiraph.core.runtime.calls import IN_DOUBT
from agiraph.sandbox.inside import processes
from agiraph.testing import World, call, says
from tests.cli.shell import Shell
from tests.mcp.kit import pids, rude
from tests.mcp.test_agents import accepted

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("point", "noted"), [("fx:before:mcp", 0), ("fx:after:mcp", 1)], ids=["before", "after"]
)
async def test_a_call_that_a_crash_cut_off_is_not_made_again(
    tmp_path: Path, point: str, noted: int
) -> None:
    home = tmp_path / "home"
    await accepted(home)
    ended = await Shell(home, function="tests.mcp.crash:main")(point)
    assert ended.code == -9, ended.out
    [started] = home.glob("spool/mcp-*/started.json")
    record = orjson.loads(started.read_bytes())
    async with World(home, features={"mcp": {"rude": rude()}}, easy_endings=True) as world:
        world.script("ada", says(call("finish", summary="done")))
        await world.settle()
        [team] = await world.teams()
        [goal] = await world.board(team.id)
        [answer, *_] = [turn for turn in await world.turns(goal.id) if turn.role == "tool"]
        assert (answer.text, answer.failed) == (IN_DOUBT, True)
    notes = home / "mcp" / "rude" / "notes"
    assert (notes.read_text().split() if notes.exists() else []) == ["once"] * noted
    # The server died with its runtime, and nobody started it again for the call.
    assert processes.born(record["warden"]) != record["warden_born"]
    assert len(pids(home)) == 2
    assert list(home.glob("spool/mcp-*")) == []
