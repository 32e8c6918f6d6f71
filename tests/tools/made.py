"""Calls made in a world, one after another, and what the model was told of each."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agiraph.domain.work import WorkNode
from agiraph.testing import Call, World, call, says


@dataclass(frozen=True, slots=True)
class Told:
    text: str
    failed: bool = False


def refused(text: str) -> Told:
    return Told(text, failed=True)


async def made(world: World, *calls: Call, **more: Any) -> tuple[WorkNode, list[Told]]:
    """Let a team's coordinator make these calls in one reply, and then finish."""
    world.script("ada", says(*calls), says(call("finish", summary="done")))
    founded = await world.found("Use the tools", **more)
    await world.settle()
    [goal, *_] = await world.board(founded.team.id)
    answers = [t for t in await world.turns(goal.id) if t.role == "tool"]
    return goal, [Told(t.text, t.failed) for t in answers][: len(calls)]


def folder(world: World, node: WorkNode) -> Path:
    return world.path / "teams" / node.team_id / "nodes" / node.id
