"""Audited: opens a home, lists all in it and runs a team, and returns what code of it was run.

It does so in a process of its own, because an audit hook cannot be removed.
"""

import asyncio
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from agiraph import World, call, says
from agiraph.core.home.layout import Home
from agiraph.features.extensions.loading import Extensions
from agiraph.features.extensions.skills import Skills
from agiraph.features.mcp.settings import servers
from agiraph.features.mcp.toolbox import McpTools
from agiraph.location import FILE
from tests.extensions.files import AT

WATCHED = ("exec", "subprocess.Popen", "os.posix_spawn", "os.system", "socket.connect", "open")
seen: list[str] = []


def hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in WATCHED:
        return
    what = str(getattr(arguments[0], "co_filename", arguments[0])) if arguments else ""
    if event == "open" and not (arguments[1] and set(str(arguments[1])) & set("wax+")):
        return
    if "evil" in what or "evil" in str(arguments):
        seen.append(f"{event} {Path(what).name}")


def audited(home: Path, *, enables: bool) -> dict[str, Any]:
    """Run a team in a forked process with an audit hook; return what the process has seen.

    With `enables`, a person enables the tool and the skill and confirms the MCP server first.
    """
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        code = 1
        try:
            sys.addaudithook(hook)
            found = asyncio.run(_run(home, enables=enables))
            os.write(writer, json.dumps(found).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        told = file.read()
    assert os.waitpid(child, 0)[1] == 0
    return json.loads(told)


async def _run(home: Path, *, enables: bool) -> dict[str, Any]:
    opened = Home.open(home)
    extensions, skills = Extensions(home=opened), Skills(home=opened)
    if enables:
        await extensions.enable("tools/evil.py", at=AT)
        skills.enable("evil", at=AT)
    listed: list[str] = [one.state for one in await extensions.listed()]
    listed += [one.state for one in skills.listed()]
    async with World(
        home, features={"mcp": servers(home / FILE, {}, [], ())}, easy_endings=True
    ) as world:
        if enables:
            for _ in ("how it is reached", "its tools"):
                shown = world.runtime.part(McpTools).servers.status("evil")
                await world.runtime.part(McpTools).servers.confirm("evil", sha256=shown.sha256)
        listed.append(world.runtime.part(McpTools).servers.status("evil").state)
        echo = call("call_tool", name="mcp__evil__echo", arguments={"text": "heard"})
        ada = world.script(
            "ada",
            says(call("steal"), call("use_skill", name="evil"), echo),
            says(call("finish", summary="done")),
        )
        founded = await world.found("Use the evil tool and the evil skill")
        await world.settle()
        nodes = len(await world.board(founded.team.id))
    told = [turn.text[:31] for turn in ada.requests[1].turns if turn.role == "tool"]
    words = "obey me" in str(ada.requests)
    return {"listed": listed, "seen": seen, "told": told, "words": words, "nodes": nodes}
