"""Delegated tasks: lines of scripted models that assign tasks, and the answers they get."""

import re
from collections.abc import Callable

from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.models.base import Request
from agiraph.testing import Call, Says, World, call, says
from tests.fences import fenced_result
from tests.tools.tool_calls import ToolAnswer

DONE = says(call("finish", summary="done"))
ASK = says(call("ask_human", question="Which?"))
WORK = says(call("write_file", path="n.md", content="3"))
S = NodeStatus


def assign(agent: str = "new:scripted/bob", task: str = "Count the files", **more: object) -> Call:
    return call("assign_task", agent=agent, task=task, description="Count files", **more)


def publish(summary: str) -> Says:
    return says(call("publish", summary=summary))


def node_id_in(text: str) -> str:
    found = re.search(r"node_\w+", text)
    assert found is not None, text
    return found[0]


def ask_for_result(**more: object) -> Callable[[Request], Says]:
    """Call `task_output` for the first task that this thread names."""

    def line(request: Request) -> Says:
        said = "\n".join(turn.text for turn in request.transcript.spoken())
        return says(call("task_output", id=node_id_in(said), **more))

    return line


def resume(agent: str = "bob", task: str = "Now sort them", **more: object) -> Callable[..., Says]:
    """Resume the first task that this thread names."""

    def line(request: Request) -> Says:
        said = "\n".join(turn.text for turn in request.transcript.spoken())
        return says(assign(agent, task, resume=node_id_in(said), **more))

    return line


def completion_notice(
    node_id: str, text: str, ending: str = "completed (published)", *, thread: str, files: str = ""
) -> str:
    """Return the notice about the end of a task that its creator gets in this thread."""
    how = "has finished" if ending.startswith("completed") else "could not do"
    return (
        f"[Task] bob {how} a task of yours.\nTitle: Count files\nId: {node_id}\n"
        f"Status: {ending}{files}\n\n{fenced_result(text, thread)}"
    )


async def tool_answers(world: World, node_id: NodeId) -> list[ToolAnswer]:
    turns = await world.turns(node_id)
    return [ToolAnswer(t.text, t.failed) for t in turns if t.role == "tool"]


async def coordinators_question(world: World, founded: NewTeam) -> Message:
    """Return the question of the coordinator; other agents may have open questions, too."""
    asked = await world.questions(founded.team.id)
    [question] = [q for q in asked if q.sender == founded.coordinator.id]
    return question


def assign_in_background(agent: str = "new:scripted/bob", task: str = "Count the files") -> Call:
    return assign(agent, task, run_in_background=True)


async def waiting_team(world: World) -> NewTeam:
    """Create a team whose coordinator has no work yet."""
    world.script("ada")
    return await world.found("Count", start=False)


async def all_members(world: World, team_id: TeamId) -> list[roster.Member]:
    return await world.store.read(roster.members, team_id, all=True)


async def member_named(world: World, team_id: TeamId, name: str) -> roster.Member:
    [found] = [m for m in await all_members(world, team_id) if m.agent.name == name]
    return found


async def answer_question_of(world: World, question_from: str, founded: NewTeam) -> None:
    """Answer the question of this agent, and run until the world is idle."""
    asked = await world.questions(founded.team.id)
    [question] = [q for q in asked if q.sender == question_from]
    await world.answer(question, "This one.")
    await world.settle()
