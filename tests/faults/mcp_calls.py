"""MCP calls: a sweep scenario of calls that change something at an MCP server."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from agiraph.core.home.layout import Home
from agiraph.core.runtime.calls import IN_DOUBT
from agiraph.features.mcp import pins
from agiraph.features.mcp.pins import PinnedTool, Pins
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.script import Call
from tests.faults.invariants import Ledger, database
from tests.faults.scenarios import counting_model, found_team_once, step
from tests.mcp import rude_server
from tests.mcp.kit import rude

SERVER = rude(effects={"note": "changes", "echo": "reads"})
TOLD = ("first", "second")


def react(request: Request) -> Says:
    """Note two things, and ask for something in between."""
    match step(request):
        case 0:
            return says(_called("note", text=TOLD[0]))
        case 1:
            return says(_called("echo", text="something"))
        case 2:
            return says(_called("note", text=TOLD[1]))
        case _:
            return says(call("finish", summary="Noted."))


def _called(tool: str, **given: str) -> Call:
    return call("call_tool", name=f"mcp__rude__{tool}", arguments=given)


async def mcp_calls(home: Path) -> None:
    Ledger(home).note("life")
    _accept_tools(home)
    async with World(home, features={"mcp": {"rude": SERVER}}, easy_endings=True) as world:
        world.model("ada", counting_model(home, react))
        await found_team_once(world, trust="open")
        await world.settle()


def _accept_tools(home: Path) -> None:
    """Accept the tools of the server as `agiraph mcp add` does, without starting it."""
    opened = Home.open(home)
    if pins.load(opened.folder, "rude") is None:
        tools = [
            PinnedTool.of(
                tool["name"],
                tool["description"],
                tool["inputSchema"],
                says_it_reads=tool["annotations"]["readOnlyHint"],
            )
            for tool in rude_server.tools()
        ]
        accepted = Pins(tools={tool.name: tool for tool in tools}, is_seen=True)
        pins.save(opened.folder, "rude", accepted)
    opened.folder.close()


def after_recovery(home: Path) -> Iterator[str]:
    """Check that the server has noted nothing twice, and all that the thread calls done."""
    file = home / "mcp" / "rude" / "notes"
    noted = Counter(file.read_text().split() if file.exists() else ())
    if twice := [text for text, count in noted.items() if count > 1]:
        yield f"the server has noted twice: {twice}"
    with closing(database(home)) as db:
        answers = [row["text"] for row in db.execute("select text from journal where role='tool'")]
    told = sum("\ndone\n" in answer for answer in answers)
    doubtful = sum(answer == IN_DOUBT for answer in answers)
    if not told <= sum(noted.values()) <= told + doubtful or told + doubtful < len(TOLD):
        yield f"{told} calls are done and {doubtful} in doubt, but the server has noted {noted}"
    if list(home.glob("spool/mcp-*")):
        yield "a spool folder of a server is left"
