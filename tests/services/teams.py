"""Teams: a coordinator that waits for a person's answer, and workers that follow their task."""

import re
from typing import Any

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.ids import AgentId, NodeId
from agiraph.core.domain.work import Budget, WorkNode
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.core.store.tx import Tx
from agiraph.models.base import Model, Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import Line, ReactiveModel

NO_MODEL_CALLS = Budget(model_calls=0)
"""A budget with which a node fails before its first model call."""


def follow_task(request: Request) -> Says:
    """Ask a question if the task says `wonder`, else submit."""
    turns = list(request.transcript.spoken())
    if "wonder" in turns[0].text and not any(turn.role == "tool" for turn in turns):
        return says(call("ask_human", question="May I?"))
    return says(call("publish", summary="done as told"))


ASK_THEN_FINISH: tuple[Line, ...] = (
    says(call("ask_human", question="Shall we?")),
    says(call("finish", summary="all done")),
)


async def found_waiting_team(
    world: World, *names: str, lead: tuple[Line, ...] | Model = ASK_THEN_FINISH, **more: Any
) -> tuple[NewTeam, dict[str, Agent]]:
    """Found a team whose coordinator waits for a person's answer and whose workers are idle."""
    if isinstance(lead, tuple):
        world.script("ada", *lead)
    else:
        world.model("ada", lead)
    world.model("hand", ReactiveModel("scripted/hand", follow_task))
    founded = await world.found("Get it done", **more)
    workers = {
        name: await world.store.write(
            roster.hire, founded.team.id, name=name, role="worker", model="scripted/hand"
        )
        for name in names
    }
    await world.settle()
    return founded, workers


def created_ids(request: Request) -> list[str]:
    """Return the ids of the nodes that this thread has created, oldest first."""
    said = "\n".join(turn.text for turn in request.transcript.spoken() if turn.role == "tool")
    return re.findall(r"(?:Created|background as) (node_\w+)", said)


def _create_child(
    tx: Tx, founded: NewTeam, task: str, to: Agent | None, more: dict[str, Any]
) -> WorkNode:
    assert founded.node is not None
    return planning.create(
        tx,
        team_id=founded.team.id,
        task=task,
        title=task,
        source="delegation",
        creator_id=founded.coordinator.id,
        parent_id=founded.node.id,
        assignee_id=None if to is None else AgentId(to.id),
        **more,
    )


async def add_child(
    world: World, founded: NewTeam, task: str, *, to: Agent | None = None, **more: Any
) -> NodeId:
    """Create a child of the goal, in the coordinator's name; return its id."""
    return (await world.store.write(_create_child, founded, task, to, more)).id
