"""Stages in play: a coordinator that waits for a stage of what it put on the board."""

from collections.abc import Callable
from typing import Any

from agiraph.domain.stages import Stage
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.providers.base import Request
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.services.lifecycle.timers import fire_due
from agiraph.store import stages
from agiraph.testing import Says, World, call, says
from tests.services.team import created, gathered

S = NodeStatus
BEGIN = says(call("ask_human", question="Are all here?"))
DONE = says(call("finish", summary="all done"))


def made(*tasks: str, **more: Any) -> Says:
    return says(*[call("create_work_node", task=task, **more) for task in tasks])


def wait(name: str = "first", **more: Any) -> Callable[[Request], Says]:
    """Wait for a stage of all that was put on the board."""
    return lambda request: says(call("start_stage", name=name, nodes=created(request), **more))


async def begun(
    world: World, *lead: Any, names: tuple[str, ...] = ("bob", "cyd", "dee"), **more: Any
) -> NewTeam:
    """A team with idle workers, whose coordinator goes on with these lines."""
    founded, _ = await gathered(world, *names, lead=(BEGIN, *lead), **more)
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Yes.")
    await world.settle()
    return founded


async def the_stage(world: World, founded: NewTeam) -> Stage:
    [stage] = await world.store.read(stages.of_team, founded.team.id)
    return stage


async def work(world: World, founded: NewTeam) -> list[WorkNode]:
    return [n for n in await world.board(founded.team.id) if n.parent_id is not None]


async def allow(world: World, node: WorkNode) -> None:
    """Say yes to whoever asks for this node."""
    [question] = [q for q in await world.questions(node.team_id) if q.node_id == node.id]
    await world.answer(question, "Yes.")
    await world.settle()


async def last_answer(world: World, founded: NewTeam) -> str:
    assert founded.node is not None
    return [t.text for t in await world.turns(founded.node.id) if t.role == "tool"][-1]


async def pass_time(world: World, seconds: float) -> None:
    """Let time pass, and everything that is due by then happen."""
    world.clock.advance(seconds=seconds)
    await world.store.write(fire_due)
    await world.settle()
