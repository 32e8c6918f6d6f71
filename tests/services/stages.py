"""Stages: script a coordinator that creates nodes and waits for a stage of them."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from agiraph.core.domain.stages import Stage
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import stages
from agiraph.models.base import Request
from agiraph.testing import Call, Says, World, call, says
from tests.services.teams import created_ids, found_waiting_team

S = NodeStatus
BEGIN = says(call("ask_human", question="Are all here?"))
DONE = says(call("finish", summary="all done"))


def creates(*tasks: str, **more: Any) -> Says:
    return says(*[call("create_work_node", task=task, **more) for task in tasks])


def waits(name: str = "first", **more: Any) -> Callable[[Request], Says]:
    """Return a line that starts a stage of all nodes created so far, and waits for it."""
    return lambda request: says(call("start_stage", name=name, nodes=created_ids(request), **more))


def verdicts_on(told: str) -> list[dict[str, str]]:
    """Return a verdict on each ended task of the stage that a coordinator was told about."""
    found = re.findall(r"^Id: (node_\w+)\nStatus: (\w+)", told, re.M)
    found += re.findall(r"\((node_\w+), [^)]*\): (\w+); its result came", told)
    return [
        {"node_id": node, "verdict": "accept" if status == "completed" else "drop"}
        for node, status in found
    ]


def judges(assessment: str, told: str, *, decision: str = "continue", **more: Any) -> Call:
    """Return a call of `reconvene` that accepts what succeeded in the stage, and drops the rest."""
    given = {"assessment": assessment, "verdicts": verdicts_on(told), "decision": decision}
    return call("reconvene", **given | more)


def accepts(assessment: str, nodes: Sequence[str], *, decision: str = "continue") -> Call:
    """Return a call of `reconvene` that accepts all these nodes."""
    verdicts = [{"node_id": node, "verdict": "accept"} for node in nodes]
    return call("reconvene", assessment=assessment, verdicts=verdicts, decision=decision)


def reconvenes(assessment: str, **more: Any) -> Callable[[Request], Says]:
    """Return a line that judges the stage that the last tool answer tells about."""

    def line(request: Request) -> Says:
        told = [t.text for t in request.transcript.spoken() if t.text.startswith("Stage ")]
        return says(judges(assessment, told[-1], **more))

    return line


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
    await world.pass_time(seconds=seconds)
