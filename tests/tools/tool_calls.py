"""Tool calls: run calls in a world, and the answers that the model got."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agiraph.core.domain.work import WorkNode
from agiraph.testing import Call, World, call, says


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    text: str
    failed: bool = False


def refused(text: str) -> ToolAnswer:
    return ToolAnswer(text, failed=True)


async def run_calls(
    world: World, *calls: Call, by: str = "ada", **more: Any
) -> tuple[WorkNode, list[ToolAnswer]]:
    """Let a coordinator make these calls in one reply; return its node and their answers.

    Of two runs in one world, each has a model of its own (`by`).
    """
    world.script(by, says(*calls), says(call("finish", summary="done")))
    founded = await world.found("Use the tools", model=f"scripted/{by}", **more)
    await world.settle()
    [goal, *_] = await world.board(founded.team.id)
    answers = [t for t in await world.turns(goal.id) if t.role == "tool"]
    return goal, [ToolAnswer(t.text, t.failed) for t in answers][: len(calls)]


def node_folder(world: World, node: WorkNode) -> Path:
    return world.path / "teams" / node.team_id / "nodes" / node.id
