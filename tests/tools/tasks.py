"""Tasks given away in a world: the lines that give them, and what came of them."""

import re
from collections.abc import Callable

from agiraph.domain.ids import NodeId, TeamId
from agiraph.domain.messages import Message
from agiraph.domain.work import NodeStatus
from agiraph.providers.base import Request
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.services.members import roster
from agiraph.testing import Call, Says, World, call, says
from tests.tools.made import Told

DONE = says(call("finish", summary="done"))
ASK = says(call("ask_human", question="Which?"))
WORK = says(call("write_file", path="n.md", content="3"))
S = NodeStatus


def give(agent: str = "new:scripted/bob", task: str = "Count the files", **more: object) -> Call:
    return call("assign_task", agent=agent, task=task, description="Count files", **more)


def hand_in(summary: str) -> Says:
    return says(call("publish", summary=summary))


def id_in(text: str) -> str:
    found = re.search(r"node_\w+", text)
    assert found is not None, text
    return found[0]


def fetch(**more: object) -> Callable[[Request], Says]:
    """Ask for the task that was spoken of first in this thread."""

    def line(request: Request) -> Says:
        said = "\n".join(turn.text for turn in request.transcript.spoken())
        return says(call("task_output", id=id_in(said), **more))

    return line


def resume(agent: str = "bob", task: str = "Now sort them", **more: object) -> Callable[..., Says]:
    """Take up the task that was spoken of first in this thread."""

    def line(request: Request) -> Says:
        said = "\n".join(turn.text for turn in request.transcript.spoken())
        return says(give(agent, task, resume=id_in(said), **more))

    return line


def notice(node_id: str, text: str, ending: str = "completed (published)") -> str:
    """What whoever gave a task is told of its end."""
    how = "has finished" if ending.startswith("completed") else "could not do"
    return (
        f"[Task] bob {how} a task of yours.\nTitle: Count files\nId: {node_id}\n"
        f"Status: {ending}\n\n--- RESULT ---\n{text}\n--- END OF RESULT ---"
    )


async def answers(world: World, node_id: NodeId) -> list[Told]:
    turns = await world.turns(node_id)
    return [Told(t.text, t.failed) for t in turns if t.role == "tool"]


async def own_question(world: World, founded: NewTeam) -> Message:
    """What the coordinator asks, whoever else may ask."""
    asked = await world.questions(founded.team.id)
    [question] = [q for q in asked if q.sender == founded.coordinator.id]
    return question


def in_background(agent: str = "new:scripted/bob", task: str = "Count the files") -> Call:
    return give(agent, task, run_in_background=True)


async def waiting_team(world: World) -> NewTeam:
    """A team whose coordinator has nothing to do yet."""
    world.script("ada")
    return await world.found("Count", start=False)


async def everyone(world: World, team_id: TeamId) -> list[roster.Member]:
    return await world.store.read(roster.members, team_id, all=True)


async def only(world: World, team_id: TeamId, name: str) -> roster.Member:
    [found] = [m for m in await everyone(world, team_id) if m.agent.name == name]
    return found


async def answered(world: World, question_from: str, founded: NewTeam) -> None:
    """Answer what this agent asks, and let everything run that can."""
    asked = await world.questions(founded.team.id)
    [question] = [q for q in asked if q.sender == question_from]
    await world.answer(question, "This one.")
    await world.settle()
