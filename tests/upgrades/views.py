"""Views: what a person sees of a home by commands that need no server, as JSON."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from agiraph.core.domain.costs import Bill, NodeCosts, bills

Run = Callable[..., Awaitable[str]]
"""Runs a command of agiraph on the home, and returns what it prints."""
OF_ALL = ("teams", "inbox")
OF_A_TEAM = ("board", "cost")
OF_SOME = ("agents", "insights", "memories")
SOME = ("beans", "harbour")
"""Teams whose agents are looked at one by one: a command takes its time."""
_NODES = TypeAdapter(list[NodeCosts])


async def seen(run: Run, folder: Path) -> dict[str, Any]:
    """Return what the commands show; `folder` is for exports, and empty."""
    shown: dict[str, Any] = {name: json.loads(await run(name, "--json")) for name in OF_ALL}
    for team in shown["teams"]:
        names = (*OF_A_TEAM, *(OF_SOME if team["name"] in SOME else ()))
        about = {name: json.loads(await run(name, team["id"], "--json")) for name in names}
        about["cost"] = [_in_runs(cost) for cost in about["cost"]]
        await run("export", team["id"], str(folder / team["id"]))
        shown[team["name"]] = about | {"export": exported(folder / team["id"])}
    return shown


def _in_runs(cost: dict[str, Any]) -> dict[str, Any]:
    """Return costs with a tree for each run, as they were shown before they had pages."""
    nodes, is_last = cost.pop("nodes"), cost.pop("next") is None
    assert is_last
    return {**cost, "runs": [_run_of(bill) for bill in bills(_NODES.validate_python(nodes))]}


def _run_of(bill: Bill) -> dict[str, Any]:
    own: dict[str, Any] = asdict(bill.node)
    del own["above_id"]
    below = [_run_of(each) for each in bill.below]
    return {**own, "below": below, "total": asdict(bill.total)}


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
