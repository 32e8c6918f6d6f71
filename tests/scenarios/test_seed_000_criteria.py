"""The success criteria of the document on foreground and background; the test names are its words.

All tests share one story, with the settings that a new team has: a finite team is created and
works, a person sends a message, the work is completed, followed by a reflection and a briefing. A
finite team that has reached its goal rests; where the document has a team act by itself an hour
later, the team is one without an end.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from agiraph.api.feature_views.known import Insight
from agiraph.core.domain.agents import Agent, Mode
from agiraph.core.domain.chat import Thread, Turn
from agiraph.core.domain.messages import Message
from agiraph.core.domain.triggers import Trigger
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.lifecycle.teams import HOUR, NewTeam
from agiraph.core.services.members import roster
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests import known
from tests.doubts import doubts_of

GOAL = "Track tech stocks and tell me what matters"
ASKED = "Research NVIDIA stock"
FACT = "NVIDIA reports earnings on the last Wednesday of February."
TASTE = "They like short answers."


@dataclass(slots=True)
class Shown:
    """The requests to the model, by their purpose."""

    replies: list[Request] = field(default_factory=list[Request])
    works: list[Request] = field(default_factory=list[Request])
    reflections: list[Request] = field(default_factory=list[Request])

    def react(self, request: Request) -> Says:
        system = request.transcript.system
        last = next(t.text for t in reversed(request.transcript.turns) if t.role == "user")
        if "You are talking with the human" in system:
            self.replies.append(request)
            return says(
                "I'll look into NVIDIA for you.",
                call("remember", content=TASTE),
                call("add_insight", type="technique", content="Filings beat news for earnings."),
            )
        if "now look back on it" in system:
            self.reflections.append(request)
            if "worth keeping" in last:
                kept = {"type": "fact", "content": FACT, "confidence": 0.9, "work": 1}
                return says(json.dumps({"insights": [kept]}))
            briefing = {"score": 0.9, "title": "NVIDIA is up", "text": "NVIDIA rose 3 % today."}
            return says(json.dumps(briefing))
        self.works.append(request)
        if not any(t.role == "assistant" for t in request.transcript.turns):
            return says(
                call("checkpoint", summary="an internal step"),
                call("write_file", path="nvidia.md", content="NVIDIA is up 3 %."),
            )
        return says(call("finish", summary="Looked into it."))


@dataclass(slots=True, kw_only=True)
class Story:
    world: World
    founded: NewTeam
    shown: Shown

    @property
    def lead(self) -> Agent:
        return self.founded.coordinator

    async def nodes(self) -> list[WorkNode]:
        return await self.world.board(self.founded.team.id)

    async def threads(self, kind: str = "work") -> list[Thread]:
        found = await self.world.threads(self.lead.id)
        return [thread for thread in found if thread.kind == kind]

    async def turns(self, thread: Thread) -> list[Turn]:
        return await self.world.turns(thread)

    async def insights(self) -> list[Insight]:
        return await known.insights(self.world, self.lead.id)

    async def alarms(self, agent: Agent) -> list[Trigger]:
        """Return the active triggers that wake an agent."""
        made = await self.world.triggers(self.founded.team.id)
        return [one for one in made if one.agent_id == agent.id and one.status == "active"]

    async def said(self) -> list[Message]:
        return await self.world.conversation(self.lead)

    async def an_hour_passes(self) -> None:
        await self.world.pass_time(hours=1)


@asynccontextmanager
async def told(home: Path, *, mode: Mode = "finite") -> AsyncGenerator[Story]:
    """The story up to the person's message, and the work that came of it."""
    async with World(home) as world:
        shown = Shown()
        world.model("ada", ReactiveModel("scripted/ada", shown.react))
        founded = await world.found(GOAL, mode=mode, learns=True, heartbeat=HOUR)
        await world.settle()
        await world.chat(founded.coordinator.id, ASKED)
        await world.settle()
        yield Story(world=world, founded=founded, shown=shown)


@pytest.fixture
async def story(tmp_path: Path) -> AsyncIterator[Story]:
    async with told(tmp_path) as begun:
        yield begun


@pytest.fixture
async def endless(tmp_path: Path) -> AsyncIterator[Story]:
    """The same story of a team without an end."""
    async with told(tmp_path, mode="infinite") as begun:
        yield begun


async def test_each_work_session_creates_new_thread(story: Story) -> None:
    worked = [node.thread_id for node in await story.nodes()]
    assert len(worked) == len(set(worked)) == 2
    assert [thread.id for thread in await story.threads()] == worked


async def test_tasks_have_source_field(endless: Story) -> None:
    await endless.an_hour_passes()
    assert [node.source for node in await endless.nodes()] == ["system", "user", "trigger"]
    assert [doubts_of(node) for node in await endless.nodes()] == [None] * 3


async def test_user_messages_queue_tasks_return_contextual_ack(story: Story) -> None:
    assert ASKED in [node.task for node in await story.nodes()]
    assert "I'll look into NVIDIA for you." in [message.text for message in await story.said()]


async def test_background_processes_tasks_via_thread_not_conversation(story: Story) -> None:
    [_, thread] = await story.threads()
    assert [t.text for t in await story.turns(thread) if t.ref == "assignment"] == [ASKED]
    assert not any("internal step" in message.text for message in await story.said())


async def test_insights_extracted_from_thread_after_queue_cleared(story: Story) -> None:
    assert FACT in [insight.content for insight in await story.insights()]
    assert len(await story.threads("reflection")) >= 1


async def test_insights_linked_to_source_thread_id(story: Story) -> None:
    [learned] = [i for i in await story.insights() if i.content == FACT]
    assert learned.source_thread_id in [thread.id for thread in await story.threads()]


async def test_thread_marked_completed_after_insight_extraction(story: Story) -> None:
    for thread in await story.threads():
        assert thread.closed_at is not None
        assert thread.harvested_at is not None


async def test_team_leads_decide_briefings_not_automatic(story: Story) -> None:
    decided = [
        event
        for event in await story.world.events(story.founded.team.id)
        if event.type == "briefing.decided"
    ]
    assert decided


async def test_briefings_go_to_inbox_summary_and_conversation_full(endless: Story) -> None:
    await endless.an_hour_passes()  # a briefing is sent only about work that no person asked for
    [briefing] = [m for m in await endless.world.inbox() if m.kind == "briefing"]
    assert (briefing.title, briefing.text) == ("NVIDIA is up", "NVIDIA rose 3 % today.")
    assert briefing.id in [message.id for message in await endless.said()]


async def test_team_leads_have_1_hour_proactive_trigger(endless: Story) -> None:
    [heartbeat] = await endless.alarms(endless.lead)
    assert heartbeat.type == "heartbeat"
    assert heartbeat.due_at == endless.world.clock.now() + timedelta(hours=1)
    before = len(await endless.threads())
    await endless.an_hour_passes()
    assert len(await endless.threads()) == before + 1


async def test_a_finite_team_that_has_reached_its_goal_rests(story: Story) -> None:
    before = await story.nodes()
    await story.an_hour_passes()
    assert await story.nodes() == before
    assert await story.alarms(story.lead) == []


async def test_workers_are_purely_reactive(endless: Story) -> None:
    bob = await endless.world.store.write(
        roster.hire, endless.founded.team.id, name="bob", role="worker", model="scripted/ada"
    )
    assert await endless.alarms(bob) == []
    await endless.an_hour_passes()
    assert await endless.world.threads(bob.id) == []


async def test_new_teams_bootstrap_with_get_to_work_task(story: Story) -> None:
    first = (await story.nodes())[0]
    assert (first.title, first.task, first.source) == ("Get to work on the goal", GOAL, "system")


async def test_insights_accumulate_professional_knowledge_over_time(endless: Story) -> None:
    await endless.an_hour_passes()
    assert [i.content for i in await endless.insights()].count(FACT) == 1
    assert FACT in endless.shown.works[-1].transcript.system


async def test_insights_sent_to_llm_only_in_background(story: Story) -> None:
    await story.world.chat(story.lead.id, "What else?")
    await story.world.settle()
    assert FACT in story.shown.works[-1].transcript.system
    assert all(FACT not in request.transcript.system for request in story.shown.replies)


async def test_memories_sent_to_llm_only_in_foreground(story: Story) -> None:
    await story.world.chat(story.lead.id, "What else?")
    await story.world.settle()
    assert TASTE in story.shown.replies[-1].transcript.system
    background = [*story.shown.works, *story.shown.reflections]
    assert all(TASTE not in request.transcript.system for request in background)


async def test_agent_can_add_insights_from_user_conversation(story: Story) -> None:
    [added] = [i for i in await story.insights() if i.type == "technique"]
    assert added.source_thread_id is None


async def test_ui_shows_only_user_conversation_not_threads(story: Story) -> None:
    assert {m.kind for m in await story.said()} <= {"message", "result", "briefing"}
    assert all("[Runtime]" not in m.text for m in await story.said())
