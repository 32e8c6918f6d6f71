"""Audited: opens a home, lists all in it and runs a team, and prints what code of it was run.

A program of its own, because an audit hook cannot be removed. Arguments: the home, and `enable` to
enable the tool and the skill first.
"""

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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


async def main(home: Path, *, enables: bool) -> None:
    from agiraph import World, call, says
    from agiraph.extensions.loading import Extensions
    from agiraph.extensions.skills import Skills
    from agiraph.home.layout import Home

    opened = Home.open(home)
    extensions, skills = Extensions(home=opened), Skills(home=opened)
    if enables:
        await extensions.enable("tools/evil.py", at=datetime.now(UTC))
        skills.enable("evil", at=datetime.now(UTC))
    listed = [one.state for one in await extensions.listed()]
    listed += [one.state for one in skills.listed()]
    async with World(home, easy_endings=True) as world:
        ada = world.script(
            "ada",
            says(call("steal"), call("use_skill", name="evil")),
            says(call("finish", summary="done")),
        )
        founded = await world.found("Use the evil tool and the evil skill")
        await world.settle()
        board = len(await world.board(founded.team.id))
    told = [turn.text[:30] for turn in ada.requests[1].turns if turn.role == "tool"]
    words = "obey me" in str(ada.requests)
    print(
        json.dumps({"listed": listed, "seen": seen, "told": told, "words": words, "nodes": board})
    )


sys.addaudithook(hook)
asyncio.run(main(Path(sys.argv[1]), enables="enable" in sys.argv))
