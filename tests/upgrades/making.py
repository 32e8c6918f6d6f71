"""Making: write the home, the backup and the views that a release leaves, as the README says."""

import asyncio
import importlib.util
import json
import os
import shutil
import signal
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from agiraph.testing import ManualClock
from tests.api.serving import Served, serving
from tests.cli.shell import Shell
from tests.local_web import local_web
from tests.mcp import rude_server
from tests.mcp.kit import rude
from tests.upgrades.players import SITES, TEAMS, players
from tests.upgrades.views import Run, seen

SETTLED = (
    "news", "market", "letters", "garden", "school", "beans", "bridge", "paused", "stopped",
    "archived", "partial", "failed", "readers", "writers", "smith", "kettle",
)  # fmt: skip
"""Teams whose work has ended, or waits for a person."""
FOUNDED: dict[str, dict[str, Any]] = {
    "letters": {"trust": "open"},
    "garden": {"mode": "infinite", "heartbeat": 3600.0},
    "beans": {"learns": True},
    "thoughts": {"learns": True},
    "poem": {"acceptance": ["It is funny"], "review": "auto"},
}
SECRET = "a-secret-of-a-test-only"
"""Of the webhook."""
TRIGGERS: tuple[dict[str, Any], ...] = (
    {"type": "scheduled", "config": {"cron": "0 9 * * *"}, "payload": {"task": "Look at nine."}},
    {"type": "scheduled", "config": {"cron": "30 9 * * *"}, "action": "research",
     "payload": {"question": "Compare the two towers."}},
    {"type": "delayed", "config": {"delay_seconds": 7200}, "action": "send_message",
     "payload": {"to": "human", "content": "Two hours are over."}},
    {"type": "delayed", "config": {"delay_seconds": 3600}, "action": "run_callback",
     "payload": {"callback": "ring"}},
    {"type": "at_time", "config": {"at": "2026-01-06T12:00", "zone": "Europe/Berlin"}},
    {"type": "on_event", "config": {"event_pattern": "node.completed"}},
    {"type": "on_idle", "config": {"idle_seconds": 1800, "max_fires": 1}},
    {"type": "webhook", "config": {"secret": SECRET}},
)  # fmt: skip
SKILL = "---\nname: lessons\ndescription: How lessons are held.\n---\n\nSpeak slowly.\n"
OWN_TOOL = '''from agiraph import tool


@tool(touches="nothing")
def feels_like(celsius: float, wind_kmh: float = 0.0) -> str:
    """Compute how cold it feels."""
    return f"It feels like {celsius - wind_kmh / 10:.1f} degrees."
'''


class Paper:
    """A channel that writes to a file beside the home, while it works."""

    kinds = frozenset({"question", "approval", "briefing", "report", "failure", "result"})
    description = "paper"

    def __init__(self, file: Path) -> None:
        self._file = file
        self.works = True

    async def send(self, outgoing: Any) -> None:
        if not self.works:
            raise OSError("there is no paper")
        self._write(outgoing.key, outgoing.message.text)

    async def ring(self, request: Any) -> None:
        """Act as the callback of a trigger."""
        self._write(request.key, "ring")

    def _write(self, *words: str) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps(words) + "\n")


def put_settings(home: Path) -> None:
    """Write what a person has in a home: settings, a specialist, a skill, a tool, pinned tools."""
    home.mkdir(mode=0o700)
    for name, text in {
        "agiraph.toml": 'model = "demo"\n',
        "agents/gardener.md": "---\nname: gardener\ndescription: Knows beds.\n---\n\nYou dig.\n",
        "skills/lessons/SKILL.md": SKILL,
        "tools/weather.py": OWN_TOOL,
    }.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


async def enable(home: Path) -> None:
    run = commands(home)
    await run("skills", "enable", "lessons")
    await run("tools", "enable", "weather")


def pin_tools(home: Path) -> None:
    """Accept the tools of the MCP server, as `agiraph mcp add` does."""
    pins = moved("mcp_client.pins", "features.mcp.pins")
    opened = moved("home.layout", "core.home.layout").Home.open(home)
    tools = [
        pins.PinnedTool.of(
            one["name"],
            one["description"],
            one["inputSchema"],
            says_it_reads=one["annotations"]["readOnlyHint"],
        )
        for one in rude_server.tools()
    ]
    pins.save(opened.folder, "rude", pins.Pins(tools={t.name: t for t in tools}, is_seen=True))
    opened.folder.close()


def moved(*names: str) -> Any:
    """Return the first module of these that there is; other releases have it at another place."""
    for name in names:
        if importlib.util.find_spec(f"agiraph.{name.partition('.')[0]}") is not None:
            return importlib.import_module(f"agiraph.{name}")
    raise ModuleNotFoundError(names[0])


def world_options(home: Path, web: Any) -> dict[str, Any]:
    """Return what the world of a stored home is given, in each release."""
    server = rude(effects={"note": "changes", "echo": "reads"})
    paper = Paper(home.parent / "paper.jsonl")
    return {
        "web": web,
        "mcp": {"rude": server},
        "channels": {"paper": paper},
        "callbacks": {"ring": paper.ring},
    }


async def make(home: Path) -> None:
    """Fill the home, and kill this process in the middle of the work."""
    clock = ManualClock()
    async with local_web(clock, SITES) as web:
        given = world_options(home, web.access)
        async with serving(home, clock=clock, **given) as served:
            await play(served, given["channels"]["paper"])
            os.kill(os.getpid(), signal.SIGKILL)


async def play(served: Served, paper: Paper) -> None:
    """Bring all teams to the place at which they stop."""
    world = served.world
    cast = players(goes_on=False)
    for name, player in cast.items():
        world.model(name, player)
    founded: dict[str, Any] = {}
    for name in SETTLED:
        founded[name] = await found(world, name)
        await world.settle()
        paper.works = False  # what the first team asks is sent, what the others ask is queued
    garden, beans = founded["garden"], founded["beans"]
    for trigger in TRIGGERS:
        await asked(served, "POST", f"/teams/{garden.team.id}/triggers", trigger)
    await keep(served, beans.coordinator.id)
    await asked(served, "POST", f"/teams/{founded['paused'].team.id}/pause")
    await asked(served, "POST", f"/teams/{founded['stopped'].team.id}/stop")
    await asked(served, "DELETE", f"/teams/{founded['archived'].team.id}")
    await world.settle()
    for name in (name for name in TEAMS if name not in SETTLED):
        founded[name] = await found(world, name)
        await (begun(served.world.path) if name == "mill" else cast[name].stopped.wait())
    for name in ("readers", "writers"):
        agent, body = founded[name].coordinator.id, {"goal": "Compare the two towers."}
        await asked(served, "POST", f"/agents/{agent}/research", body)
        await cast[name].stopped.wait()
    for words in ("When will it be built?", "And how high?"):
        await world.chat(founded["bridge"].coordinator.id, words)
    await cast["bridge"].stopped.wait()


async def found(world: Any, name: str) -> Any:
    return await world.found(f"Play {name}", name=name, model=f"scripted/{name}",
                             **FOUNDED.get(name, {}))  # fmt: skip


async def keep(served: Served, agent: str) -> None:
    """Let an agent keep what a person tells it."""
    await asked(served, "POST", f"/agents/{agent}/memories", {"content": "Likes figures."})
    insight = {"type": "fact", "content": "Prices fall in May."}
    await asked(served, "POST", f"/agents/{agent}/insights", insight)


async def begun(home: Path) -> None:
    """Wait until the program runs."""
    while True:
        if list(home.rglob("begun.md")):
            return
        await asyncio.sleep(0.1)


async def asked(served: Served, method: str, path: str, body: Any = None) -> Any:
    status, answer = await served.ask(method, path, body)
    assert status < 300, (method, path, status, answer)
    return answer


def commands(home: Path, **environment: str) -> Run:
    """Return what runs commands of this release on the home, without a server."""
    agiraph = Shell(home, environment)

    async def run(*arguments: str) -> str:
        ended = await agiraph(*arguments)
        assert ended.code == 0, (arguments, ended.err)
        return ended.out

    return run


async def write_down(home: Path, place: Path) -> None:
    """Write what the home shows, and its backup."""
    run = commands(home)
    views = await seen(run, place / "exports")
    (place / "views.json").write_text(json.dumps(views, indent=1))
    await run("backup", str(place / "backup.tar.gz"))


def main(target: Path) -> None:
    """Write the archive with the home, its backup and its views."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        home = place / "home"
        put_settings(home)
        pin_tools(home)
        asyncio.run(enable(home))
        if (child := os.fork()) == 0:
            try:
                asyncio.run(make(home))
            finally:
                os._exit(1)  # it has killed itself, unless it has failed
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        shutil.copytree(home, place / "seen", symlinks=True)
        asyncio.run(write_down(place / "seen", place))
        for left_out in ("token", "lock", "agiraph.db-shm"):
            (home / left_out).unlink(missing_ok=True)
        with tarfile.open(target, "w:xz") as tar:
            for part in ("home", "paper.jsonl", "views.json", "backup.tar.gz"):
                tar.add(place / part, part)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
