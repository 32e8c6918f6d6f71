"""A running server: a file that a person enables meanwhile serves the next team, and its secret is
nowhere in what is stored, logged or sent to a model."""

from pathlib import Path

import pytest

from agiraph.testing import ModelServer, call, says
from agiraph.testing.model_server import Seen
from agiraph.testing.script import Says
from tests.cli.shell import Shell
from tests.extensions.files import put
from tests.up_process import Up, up, use_model_server

SECRET = "canary-of-the-parcel-service"
TOOL = '''
import asyncio
from agiraph import ToolContext, tool

print("imported")

@tool(touches="reads", secrets=["parcel"])
async def track(ctx: ToolContext, number: str) -> str:
    """Find a parcel."""
    await asyncio.sleep(0)
    if number == "1":
        raise RuntimeError(f"no access with {ctx.secret('parcel')}")
    return f"{number} is in Oslo ({ctx.secret('parcel')})"
'''


def play(seen: Seen) -> Says:
    """Ask for two parcels, then finish."""
    told = [message for message in seen.messages if message.role == "tool"]
    if len(told) < 2:
        return says(call("track", number=str(len(told) + 1)))
    return says(call("finish", summary="It is in Oslo."))


async def run_team(server: Up, goal: str) -> None:
    asked = {"goal": goal, "acceptance": ["answer"], "learns": False, "review": "never"}
    made = await server.ask("POST", "/teams", asked)
    await server.wait_for_event(made["id"], "team.completed")


@pytest.mark.slow
async def test_a_tool_that_is_enabled_while_the_server_runs_serves_the_next_team(
    tmp_path: Path,
) -> None:
    agiraph = Shell(tmp_path / "home", {"PARCEL_WORD": SECRET})
    put(agiraph.home, "tools/parcels.py", TOOL, enabled=False)
    put(agiraph.home, "agiraph.toml", '[secrets]\nparcel = "env:PARCEL_WORD"\n', enabled=False)
    async with ModelServer(play) as model, up(use_model_server(agiraph, model)) as server:
        await run_team(server, "Find my parcels")
        before = [m.text for request in model.requests for m in request.messages]
        assert any("There is no tool called 'track'" in text for text in before)
        assert server.process.has_said("imported") == 0

        assert (await agiraph("tools", "enable", "parcels")).code == 0
        model.requests.clear()
        await run_team(server, "Find my parcels again")
        after = [m.text for request in model.requests for m in request.messages]
        listed = await server.ask("GET", "/extensions")
        said = server.process.seen

    assert [one["state"] for one in listed] == ["on"]
    assert any("2 is in Oslo ([hidden])" in text for text in after)
    assert any("RuntimeError: no access with [hidden]" in text for text in after)
    everything = [*before, *after, said]
    assert SECRET not in "\n".join(everything)
    files = [path for path in agiraph.home.rglob("*") if path.is_file()]
    assert [str(path) for path in files if SECRET.encode() in path.read_bytes()] == []
