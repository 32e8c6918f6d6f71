"""Demo model: does the same few things for every goal, and says that it is scripted."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from agiraph.core.domain.chat import ToolCall, ToolSpec
from agiraph.core.domain.text import fence
from agiraph.core.domain.work import NodeStatus, StopReason, Usage
from agiraph.core.tools.communication import unanswered
from agiraph.models import demo
from agiraph.models.base import Reply
from agiraph.models.demo import DemoModel
from agiraph.testing import ManualClock, World
from tests.doubts import doubts_of
from tests.providers.transcripts import request, tool_call, turn


def tools(*names: str) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(name=name, description="", schema={}) for name in names)


async def test_the_demo_writes_a_file_runs_a_command_and_finishes(world: World) -> None:
    given = ["It is polite."]
    founded = await world.found("Show me what you can do.", model="demo", acceptance=given)
    await world.settle()

    [goal] = await world.board(founded.team.id)
    made = [c.name for t in await world.turns(goal.id) for c in t.calls]
    answers = [t.text for t in await world.turns(goal.id) if t.role == "tool"]
    assert made == ["set_acceptance", "write_file", "bash", "finish"]
    assert (goal.status, goal.stop_reason) == (NodeStatus.COMPLETED, StopReason.FINISHED)
    assert doubts_of(goal) == "'It is polite.' was not checked"
    assert goal.acceptance == (*given, "`note.md` has words.", "The command `uname -s` ran.")
    assert goal.result is not None
    assert goal.result.startswith("The scripted demo wrote note.md, ran a command and published")
    assert answers[2].startswith("[exit code 0]\n")
    assert answers[2] in goal.result
    assert "The goal was: Show me what you can do." in world.published(goal)["note.md"]


async def test_the_demo_says_in_its_first_reply_that_it_is_not_an_ai() -> None:
    heard: list[str] = []
    reply = await DemoModel().reply(request(tools=tools("write_file")), heard.append)

    said = "I am a scripted demo, not an AI: I do the same few things for every goal. "
    assert heard == [reply.text]
    assert reply.text == said + "Then a file."


async def told(model: DemoModel, task: str, ending: str) -> list[ToolCall]:
    """Let the demo work on a task to its end, and return its calls."""
    turns, calls = [turn("user", task)], list[ToolCall]()
    while not calls or calls[-1].name != ending:
        heard: list[str] = []
        reply = await model.reply(request(*turns, tools=tools(ending)), heard.append)
        assert "".join(heard) == reply.text
        assert [len(piece.split()) for piece in heard] == [1] * len(heard)
        calls += reply.calls
        turns.append(turn("tool", "Done.", ref=f"{len(calls)}"))
    return calls


async def test_the_story_is_told_word_by_word_and_at_once_where_nobody_watches() -> None:
    clock = ManualClock()
    model = DemoModel(story_s=45, clock=clock)
    calls = await told(model, demo.GOAL, "finish")
    [packing] = [call.arguments["task"] for call in calls if call.name == "assign_task"]
    await told(model, packing, "publish")

    assert 42 < clock.monotonic() <= 45
    end = clock.monotonic()
    await model.reply(request(turn("user", demo.GOAL), tools=tools("finish")))
    assert clock.monotonic() == end


async def test_a_demo_worker_publishes_and_without_file_tools_at_once() -> None:
    after_two = request(
        turn("user", "Go."),
        turn("tool", "Wrote.", ref="a"),
        turn("tool", "[exit code 0]", ref="b"),
        tools=tools("publish"),
    )
    handed_in = await DemoModel().reply(after_two)
    at_once = await DemoModel().reply(request(turn("user", "Go."), tools=tools("publish")))

    end = {"reached": "yes", "evidence": []}
    assert handed_in.calls == (tool_call("", "publish", summary=handed_in.text, **end),)
    assert at_once.calls == (tool_call("", "publish", summary=at_once.text, **end),)


async def test_the_demo_speaks_of_work_only_if_the_message_becomes_work(world: World) -> None:
    founded = await world.found("Show me what you can do.", model="demo")
    await world.settle()
    said: list[tuple[bool, bool, int]] = []
    for text in ("How is it going?", "Write another note."):
        await world.chat(founded.coordinator.id, text)
        await world.settle()
        [*_, reply] = [m for m in await world.conversation(founded.coordinator) if m.in_reply_to]
        work = await world.board(founded.team.id)
        said.append(("starts no work" in reply.text, "becomes work" in reply.text, len(work)))
    assert said == [(True, False, 1), (False, True, 2)]


async def test_without_tools_the_demo_only_talks_and_costs_nothing() -> None:
    reply = await DemoModel().reply(request(turn("user", "What is it?")))

    said = "I am a scripted demo, not an AI: I do the same few things for every goal. "
    usage = Usage(input_tokens=3, output_tokens=40, usd=0.0)
    assert reply == Reply(text=said + "Without tools I can do none of them.", usage=usage)


@pytest.mark.parametrize(
    ("answer", "planned"),
    [
        ("The sea", "eat fish at the harbour"),
        ("Lisbon!\nI love trams.", "That was not one of my three options."),
    ],
)
async def test_the_demo_tells_a_story_that_follows_the_answer_of_the_person(
    world: World, answer: str, planned: str
) -> None:
    founded = await world.found(demo.GOAL, model="demo")
    await world.settle()

    [question] = await world.inbox()
    assert (question.kind, question.text) == ("question", demo.QUESTION)
    assert question.options == ("The sea", "The mountains", "A city")
    await world.answer(question.id, answer)
    await world.settle()

    goal, packing = await world.board(founded.team.id)
    place = answer.splitlines()[0]
    assert [(n.status, doubts_of(n)) for n in (goal, packing)] == [(NodeStatus.COMPLETED, None)] * 2
    assert goal.result is not None
    assert goal.result.startswith(f"You answered “{place}”: the trip is planned.\n")
    assert [*world.published(packing)] == ["packing.md"]
    written = world.published(goal)["trip.md"]
    assert f"You answered: “{place}”." in written
    assert planned in written


FENCED = fence.enclose_foreign("Lisbon", thread="t", source="a quotation in the message")


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ("Not answered yet; they said: Lisbon\nYour question stays open in their inbox.", "Lisbon"),
        (f"Not answered yet; they said: {FENCED}\nYour question stays open.", "Lisbon"),
        (FENCED, "Lisbon"),
        (unanswered(timedelta(minutes=30), None), "a place that you did not name"),
        (unanswered(timedelta(minutes=5), None, " (away)"), "a place that you did not name"),
        ("", "a place that you did not name"),
    ],
)
def test_the_story_finds_the_place_wherever_the_person_named_it(answer: str, place: str) -> None:
    turns = (
        *(turn("tool", "Done.", ref=ref) for ref in "abc"),
        turn("assistant", "", calls=(tool_call("d", "ask_human"),)),
        turn("tool", answer, ref="d"),
    )
    told = demo.next_step(demo.GOAL, turns, {"finish"})
    assert told is not None
    assert told[0] == f"You chose “{place}”. I write the plan."


def test_the_welcome_page_offers_the_goal_of_the_story() -> None:
    offered = Path(__file__, "../../../web/src/views/home/goalText.ts").resolve().read_text()
    assert f"DEMO_GOAL = {json.dumps(demo.GOAL)};" in offered
