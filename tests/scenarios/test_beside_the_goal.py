"""Beside the goal: side work, messages and alarms while the goal waits for a person."""

from agiraph.core.domain.messages import Message
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.doubts import doubts_of
from tests.scenarios.endings import ACCEPTS, OPENS
from tests.scenarios.thread_queries import shown_text

GOAL = "Paint the office."
QUESTION = "Which colour?"
SIDE = "Count the chairs."
UNITS = "By the way, measure in metres."
ALARM = "Look at the build."
HOUR = 3600


def works(request: Request) -> Says:
    """A coordinator that asks for the colour, counts chairs and looks at builds."""
    turns = list(request.transcript.spoken())
    shown = shown_text(request)
    made = [c.name for turn in turns for c in turn.calls]
    if "no_work_needed" in [tool.name for tool in request.tools]:
        if SIDE in shown:
            return says("I do that beside it.", call("start_work", task=SIDE))
        return says("I will keep that in mind.")
    if "give_verdict" in [tool.name for tool in request.tools]:
        return ACCEPTS if made else OPENS
    if SIDE in turns[0].text:
        if "write_file" not in made:
            return says(call("write_file", path="chairs.md", content="There are 7 chairs.\n"))
        return says(call("finish", summary="There are 7 chairs: chairs.md."))
    if ALARM in turns[0].text:
        if "bash" not in made:
            return says(call("bash", command="echo green"))
        return says(call("finish", summary="The build is green."))
    return paints(request, made)


def paints(request: Request, made: list[str]) -> Says:
    shown = shown_text(request)
    if "set_acceptance" not in made:
        return says(
            call("set_acceptance", lines=["`paint.md` names the colour"], kinds=["file"]),
            call("schedule", type="delayed", config={"delay_seconds": HOUR}, action=ALARM),
        )
    if (colour := answered(request)) is None:
        return says(call("ask_human", question=QUESTION))
    if "write_file" not in made:
        unit = "metres" if UNITS in shown else "feet"
        return says(call("write_file", path="paint.md", content=f"{colour}, in {unit}.\n"))
    done = "The paint is chosen: paint.md."
    return says(call("finish", summary=done, evidence=["file:paint.md"]))


def answered(request: Request) -> str | None:
    """Return the person's answer to the question, if it has come."""
    turns = list(request.transcript.spoken())
    asked = {c.id for turn in turns for c in turn.calls if c.name == "ask_human"}
    answers = [turn.text for turn in turns if turn.ref in asked]
    return next((text for text in answers if not text.startswith("Not answered yet")), None)


async def begin(world: World) -> tuple[NewTeam, Message]:
    world.model("ada", ReactiveModel("scripted/ada", works))
    founded = await world.found(GOAL)
    await world.settle()
    [question] = await world.questions(founded.team.id)
    return founded, question


async def test_side_work_is_done_while_the_goal_waits(world: World) -> None:
    founded, question = await begin(world)
    await world.chat(founded.coordinator.id, SIDE)
    await world.settle()
    goal, side = await world.board(founded.team.id)
    assert (goal.status, side.status) == (NodeStatus.WAITING, NodeStatus.COMPLETED)
    assert world.published(side) == {"chairs.md": "There are 7 chairs.\n"}
    assert [m.id for m in await world.questions(founded.team.id)] == [question.id]

    await world.answer(question, "Green")
    await world.settle()
    goal, side, _ = await world.board(founded.team.id)
    assert (goal.status, doubts_of(goal)) == (NodeStatus.COMPLETED, None)
    assert world.published(goal) == {"paint.md": "Green, in feet.\n"}


async def test_a_message_beside_an_open_question_is_heard_and_the_question_stays(
    world: World,
) -> None:
    founded, question = await begin(world)
    await world.chat(founded.coordinator.id, UNITS)
    await world.settle()
    assert [m.id for m in await world.questions(founded.team.id)] == [question.id]

    await world.answer(question, "Green")
    await world.settle()
    goal, _ = await world.board(founded.team.id)
    assert world.published(goal) == {"paint.md": "Green, in metres.\n"}


async def test_an_alarm_that_finishes_leaves_the_goal_and_its_question_alone(
    world: World,
) -> None:
    founded, question = await begin(world)
    await world.pass_time(seconds=HOUR)
    goal, alarm = await world.board(founded.team.id)
    assert (goal.status, alarm.status) == (NodeStatus.WAITING, NodeStatus.COMPLETED)
    assert alarm.result == "The build is green."
    assert (await world.team(founded.team.id)).status == "active"
    assert [m.id for m in await world.questions(founded.team.id)] == [question.id]

    await world.answer(question, "Green")
    await world.settle()
    assert [n.status for n in await world.board(founded.team.id)] == [NodeStatus.COMPLETED] * 3
