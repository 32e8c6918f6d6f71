"""The success criteria of the documents on assigned tasks and on spawned agents.

One story, with the settings that a new team has: a coordinator gives tasks to a new agent and to a
specialist in the background, gets the results later, resumes the first session, and finishes.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import WorkNode
from agiraph.core.home.specialists import specialists
from agiraph.core.services.lifecycle import teams
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.doubts import doubts_of
from tests.scenarios.endings import ACCEPTS, OPENS, defines, finishes

GOAL = "Say how many herons and storks there are, in answer.md."
Line = Says | Callable[[Request], Says]
NOTHING_LEARNED = says('{"insights": [], "score": 0, "title": "", "text": ""}')


@dataclass(slots=True)
class Worker:
    """Says its lines in order when it works, the last one again and again, and learns nothing when
    it looks back, whenever that is."""

    lines: list[Line]
    requests: list[Request] = field(default_factory=list[Request])

    def react(self, request: Request) -> Says:
        if "now look back on it" in request.transcript.system:
            return NOTHING_LEARNED
        if "give_verdict" in [tool.name for tool in request.tools]:
            is_first = all(turn.role != "assistant" for turn in request.transcript.spoken())
            return OPENS if is_first else ACCEPTS
        line = self.lines[min(len(self.requests), len(self.lines) - 1)]
        self.requests.append(request)
        return line(request) if callable(line) else line


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    world: World
    goal: WorkNode
    tasks: list[WorkNode]
    bob: Worker

    async def agent(self, node: WorkNode) -> Agent:
        return await self.world.agent(node.assignee_id)

    async def answers(self) -> list[str]:
        turns = await self.world.turns(self.goal.id)
        return [turn.text for turn in turns if turn.role == "tool"]


def _assigns(agent: str, bird: str, **more: object) -> Says:
    return says(
        call(
            "assign_task",
            agent=agent,
            task=f"Count the {bird}, for an answer to a bird watcher.",
            description=f"Count the {bird}",
            output="the number",
            **more,
        )
    )


def _first_task(request: Request) -> str:
    said = "\n".join(turn.text for turn in request.transcript.spoken())
    found = re.search(r"node_\w+", said)
    assert found is not None
    return found[0]


def _resumes(request: Request) -> Says:
    return _assigns("bob", "young herons", resume=_first_task(request))


@asynccontextmanager
async def told(home: Path) -> AsyncGenerator[Story]:
    async with World(home) as world:
        counts = says(call("write_file", path="n.md", content="3"))
        herons, storks, young = (
            says(call("publish", summary=text))
            for text in ("Three herons.", "Two storks.", "One is young.")
        )
        ada = Worker(
            [
                says(defines("`answer.md` has both"), call("tool_help", name="assign_task")),
                _assigns("new:scripted/bob", "herons", run_in_background=True),
                _assigns("new:researcher:scripted/cid", "storks"),
                lambda request: says(call("task_output", id=_first_task(request), blocking=True)),
                _resumes,
                says(call("write_file", path="answer.md", content="Three herons and two storks.")),
                finishes("Three herons and two storks: answer.md.", "file:answer.md"),
            ]
        )
        bob, cid = Worker([counts, herons, counts, young]), Worker([counts, storks])
        for name, worker in (("ada", ada), ("bob", bob), ("cid", cid)):
            world.model(name, ReactiveModel(f"scripted/{name}", worker.react))
        # As `POST /teams` does it, with nothing chosen.
        founded = await world.store.write(
            teams.create, goal=GOAL, model="scripted/ada", owner_id=OWNER
        )
        await world.settle()
        board = await world.board(founded.team.id)
        goal, *tasks = [node for node in board if node.reviews_call is None]
        yield Story(world=world, goal=goal, tasks=tasks, bob=bob)


@pytest.fixture
async def story(tmp_path: Path) -> AsyncIterator[Story]:
    async with told(tmp_path) as begun:
        yield begun


async def test_background_agents_can_be_launched_resumed_and_their_results_retrieved_later(
    story: Story,
) -> None:
    herons, storks, young = story.tasks
    _, _, launched, done, fetched, resumed, *_ = await story.answers()
    assert launched.startswith(f"bob works on it in the background as {herons.id}.")
    assert "Two storks." in done
    assert "Three herons." in fetched
    assert "One is young." in resumed
    assert (story.goal.status, doubts_of(story.goal)) == ("completed", None)
    assert story.world.published(story.goal)["answer.md"] == "Three herons and two storks."

    # The session is resumed with full context: the same thread, with all that was said in it.
    assert young.thread_id == herons.thread_id != storks.thread_id
    heard = [turn.text for turn in story.bob.requests[2].transcript.spoken() if turn.role == "user"]
    assert ["Count the herons, " in heard[0], "Count the young herons, " in heard[-1]] == [True] * 2


async def test_the_description_shows_tools_examples_and_when_not_to_use_each_agent(
    story: Story,
) -> None:
    explained = (await story.answers())[1]
    for specialist in specialists().values():
        assert f"  Tools: {', '.join(specialist.tools)}\n" in explained
        assert f"  Not when: {specialist.when_not_to_use}\n" in explained
        assert all(f"  Example: {example}" in explained for example in specialist.examples)


async def test_an_agent_is_created_by_the_address_of_its_task(story: Story) -> None:
    bob, cid, again = [await story.agent(node) for node in story.tasks]
    parent = (await story.world.thread(story.goal.id)).id
    assert (bob.name, bob.model, bob.created_for) == ("bob", "scripted/bob", story.tasks[0].id)
    assert (cid.role, cid.model, cid.parent_thread_id) == ("researcher", "scripted/cid", parent)
    assert again == bob
    assert [agent.persistent for agent in (bob, cid)] == [False, False]
    first = next(iter(story.bob.requests[0].transcript.spoken())).text
    assert first.startswith("[Task] You have been given a task.\nTitle: Count the herons\n")
    assert "Output: the number" in first
