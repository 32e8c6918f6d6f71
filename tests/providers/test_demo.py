"""Demo model: does the same few things for every goal, and says that it is scripted."""

from agiraph.domain.chat import ToolSpec
from agiraph.domain.work import NodeStatus, StopReason, Usage
from agiraph.providers.base import Reply
from agiraph.providers.demo import DemoModel
from agiraph.testing import World
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
    assert goal.doubts is None
    assert goal.acceptance == (*given, "`note.md` is there.", "The command `uname -s` ran.")
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


async def test_a_demo_worker_publishes_and_without_file_tools_at_once() -> None:
    after_two = request(
        turn("user", "Go."),
        turn("tool", "Wrote.", ref="a"),
        turn("tool", "[exit code 0]", ref="b"),
        tools=tools("publish"),
    )
    handed_in = await DemoModel().reply(after_two)
    at_once = await DemoModel().reply(request(turn("user", "Go."), tools=tools("publish")))

    assert handed_in.calls == (tool_call("", "publish", summary=handed_in.text, evidence=[]),)
    assert at_once.calls == (tool_call("", "publish", summary=at_once.text, evidence=[]),)


async def test_without_tools_the_demo_only_talks_and_costs_nothing() -> None:
    reply = await DemoModel().reply(request(turn("user", "What is it?")))

    said = "I am a scripted demo, not an AI: I do the same few things for every goal. "
    usage = Usage(input_tokens=3, output_tokens=40, usd=0.0)
    assert reply == Reply(text=said + "Without tools I can do none of them.", usage=usage)
