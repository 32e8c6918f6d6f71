"""Stages: script a coordinator that creates nodes and waits for a stage of them."""

from collections.abc import Callable
from typing import Any

from agiraph.domain.stages import Stage
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.providers.base import Request
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.services.lifecycle.timers import fire_due
from agiraph.store import stages
from agiraph.testing import Says, World, call, says
from tests.services.teams import created_ids, found_waiting_team

S = NodeStatus
BEGIN = says(call("ask_human", question="Are all here?"))
DONE = says(call("finish", summary="all done"))


def creates(*tasks: str, **more: Any) -> Says:
    return says(*[call("create_work_node", task=task, **more) for task in tasks])


def waits(name: str = "first", **more: Any) -> Callable[[Request], Says]:
    """Return a line that starts a stage of all nodes created so far, and waits for it."""
    return lambda request: says(call("start_stage", name=name, nodes=created_ids(request), **more))


async def found_team(
    world: World, *lead: Any, names: tuple[str, ...] = ("bob", "cyd", "dee"), **more: Any
) -> NewTeam:
    """Found a team with idle workers, whose coordinator says these lines."""
    founded, _ = await found_waiting_team(world, *names, lead=(BEGIN, *lead), **more)
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Yes.")
    await world.settle()
    return founded


async def stage_of(world: World, founded: NewTeam) -> Stage:
    [stage] = await world.store.read(stages.of_team, founded.team.id)
    return stage


async def child_nodes(world: World, founded: NewTeam) -> list[WorkNode]:
    return [n for n in await world.board(founded.team.id) if n.parent_id is not None]


async def answer_yes(world: World, node: WorkNode) -> None:
    """Answer this node's question with yes."""
    [question] = [q for q in await world.questions(node.team_id) if q.node_id == node.id]
    await world.answer(question, "Yes.")
    await world.settle()


async def last_tool_answer(world: World, founded: NewTeam) -> str:
    assert founded.node is not None
    return [t.text for t in await world.turns(founded.node.id) if t.role == "tool"][-1]


async def pass_time(world: World, seconds: float) -> None:
    """Advance the clock, and fire everything that is due by then."""
    world.clock.advance(seconds=seconds)
    await world.store.write(fire_due)
    await world.settle()
