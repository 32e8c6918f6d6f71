"""Views: what a person sees of a home by commands that need no server, as JSON."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Awaitable[str]]
"""Runs a command of agiraph on the home, and returns what it prints."""
OF_ALL = ("teams", "inbox")
OF_A_TEAM = ("board", "cost")
OF_SOME = ("agents", "insights", "memories")
SOME = ("beans", "harbour")
"""Teams whose agents are looked at one by one: a command takes its time."""


async def seen(run: Run, folder: Path) -> dict[str, Any]:
    """Return what the commands show; `folder` is for exports, and empty."""
    shown: dict[str, Any] = {name: json.loads(await run(name, "--json")) for name in OF_ALL}
    for team in shown["teams"]:
        names = (*OF_A_TEAM, *(OF_SOME if team["name"] in SOME else ()))
        about = {name: json.loads(await run(name, team["id"], "--json")) for name in names}
        for cost in about["cost"]:
            assert cost.pop("next") is None
            _drop_above(cost["runs"])
        await run("export", team["id"], str(folder / team["id"]))
        shown[team["name"]] = about | {"export": exported(folder / team["id"])}
    return shown


def _drop_above(nodes: list[dict[str, Any]]) -> None:
    """Leave out the fields that costs had not before they had pages."""
    for node in nodes:
        del node["above_id"]
        _drop_above(node["below"])


def exported(folder: Path) -> dict[str, Any]:
    """Return the files of an export by path, read where they hold JSON."""
    found: dict[str, Any] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, text = str(path.relative_to(folder)), path.read_text()
        match path.suffix:
            case ".json":
                found[name] = json.loads(text)
            case ".jsonl":
                found[name] = [json.loads(line) for line in text.splitlines()]
            case _:
                found[name] = text
    return found
