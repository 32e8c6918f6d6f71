"""A team whose coordinator waits for the person's word, and workers who do what their task says."""

import re
from typing import Any

from agiraph.domain.agents import Agent
from agiraph.domain.ids import AgentId, NodeId
from agiraph.domain.work import Budget, WorkNode
from agiraph.providers.base import Model, Request
from agiraph.services.board import planning
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.services.members import roster
from agiraph.store.tx import Tx
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import Line, ReactiveModel, ScriptedModel

NOTHING = Budget(model_calls=0)
"""What a node cannot be done with: it fails before its worker has said a word."""


def obey(request: Request) -> Says:
    """Ask, if the task is to wonder; else hand in."""
    turns = list(request.transcript.spoken())
    if "wonder" in turns[0].text and not any(turn.role == "tool" for turn in turns):
        return says(call("ask_human", question="May I?"))
    return says(call("publish", summary="done as told"))


REST: tuple[Line, ...] = (
    says(call("ask_human", question="Shall we?")),
    says(call("finish", summary="all done")),
)


async def gathered(
    world: World, *names: str, lead: tuple[Line, ...] | Model = REST, **more: Any
) -> tuple[NewTeam, dict[str, Agent]]:
    """A team at rest: its coordinator has asked the person something, its workers are idle."""
    world.model("ada", ScriptedModel("scripted/ada", [*lead]) if isinstance(lead, tuple) else lead)
    world.model("hand", ReactiveModel("scripted/hand", obey))
    founded = await world.found("Get it done", **more)
    workers = {
        name: await world.store.write(
            roster.hire, founded.team.id, name=name, role="worker", model="scripted/hand"
        )
        for name in names
    }
    await world.settle()
    return founded, workers


def created(request: Request) -> list[str]:
    """The ids of the nodes that this thread has put on the board, oldest first."""
    said = "\n".join(turn.text for turn in request.transcript.spoken() if turn.role == "tool")
    return re.findall(r"(?:Created|background as) (node_\w+)", said)


def _put(tx: Tx, founded: NewTeam, task: str, to: Agent | None, more: dict[str, Any]) -> WorkNode:
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


async def put(
    world: World, founded: NewTeam, task: str, *, to: Agent | None = None, **more: Any
) -> NodeId:
    """A piece of work of the coordinator's, on the board."""
    return (await world.store.write(_put, founded, task, to, more)).id
