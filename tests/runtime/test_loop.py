"""The loop: from a node to its outcome, with failing models, mail, pauses, cancels and crashes."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import (
    KeyRefused,
    Misconfigured,
    ModelGarbled,
    ModelRefused,
    ModelUnavailable,
    QuotaSpent,
)
from agiraph.core.domain.events import Event, EventType
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.runtime.steps import HELD_BACK
from agiraph.core.services.lifecycle import answers, endings, removal, teams
from agiraph.core.services.mail import bus, inbox
from agiraph.core.services.members import roster
from agiraph.core.store import spend
from agiraph.core.store.tx import Aftermath
from agiraph.testing import PowerCut, Says, World, call, says
from tests.thinking import ThinkingModel
from tests.tools.tool_calls import node_folder

FINISH = says(call("finish", summary="done"))
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def next_event(world: World, type: EventType) -> asyncio.Future[Event]:
    """Return a future of the next event of this type."""
    found: asyncio.Future[Event] = asyncio.get_running_loop().create_future()

    def look(aftermath: Aftermath) -> None:
        for event in aftermath.events:
            if event.type == type and not found.done():
                found.set_result(event)

    world.store.subscribe(look)
    return found


# ---- a plain run ---------------------------------------------------------------------------


async def test_every_step_is_journaled_in_order_and_emitted_as_an_event(world: World) -> None:
    world.script("ada", says("First.", call("write_file", path="a.md", content="x")), FINISH)
    founded = await world.found("Write a file")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    turns = await world.turns(goal.id)
    events = await world.events(founded.team.id)
    assert [(t.role, t.ref, t.text) for t in turns if t.role != "intent"][1:] == [
        ("user", "assignment", "Write a file"),
        ("assistant", None, "First."),
        ("tool", "call_1", "Wrote a.md (1 bytes)."),
        ("assistant", None, ""),
        ("tool", "call_2", "Published: a.md."),
    ]
    assert [t.seq for t in turns] == list(range(1, len(turns) + 1))
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert [e.type for e in events] == [
        "team.created",
        "agent.hired",
        "node.created",
        "node.assigned",
        "thread.opened",
        "node.started",
        "turn.added",
        "tool.result",
        "turn.added",
        "tool.result",
        "node.completed",
        "message.sent",
        "team.completed",
    ]
    assert (goal.attempt, goal.crashes, goal.owner) == (1, 0, None)


# ---- models that fail ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        ModelRefused("No such model."),
        ModelGarbled("That is not JSON."),
        Misconfigured("No key is set."),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_error_that_only_a_person_can_fix_parks_the_node_with_a_question(
    world: World, error: Exception
) -> None:
    ada = world.script("ada", says(call("checkpoint", summary="half")), error, FINISH)
    founded = await world.found("Try")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    [question] = await world.questions(founded.team.id)
    assert (goal.status, goal.waiting_reason) == (NodeStatus.WAITING, str(error))
    assert question.text == (
        f"I cannot go on: {error} Tell me when I should try again. `agiraph set {founded.team.id} "
        "--model NAME` gives me another model."
    )

    await world.answer(question, "It is repaired.")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.result, ada.heard) == (
        NodeStatus.COMPLETED,
        "done",
        "It is repaired.",
    )


WRONG_KEY = "The server does not accept the key."


async def refused_teams(
    world: World, error: Exception, names: str = "ada bob eve", *, times: int = 1
) -> list[Team]:
    """Create teams whose models meet the same error and would end their goals after it."""
    found: list[Team] = []
    for name in names.split():
        world.script(name, *[error] * times, FINISH)
        found.append((await world.found("Try", model=f"scripted/{name}")).team)
    await world.settle()
    return found


async def statuses(world: World, asked: list[Team]) -> list[NodeStatus]:
    return [(await world.board(team.id))[0].status for team in asked]


async def open_items(world: World, team: Team | None = None) -> list[inbox.Item]:
    team_id = None if team is None else team.id
    page = await world.store.read(inbox.page, OWNER, team_id=team_id)
    return [item for item in page.items if item.needs_answer]


@pytest.mark.parametrize("error", [KeyRefused(WRONG_KEY), QuotaSpent("No money is left.")])
async def test_teams_whose_provider_refuses_every_call_ask_one_question(
    world: World, error: Exception
) -> None:
    stopped = await refused_teams(world, error)
    others = await refused_teams(world, ModelRefused("No such model."), "kim")

    everything = await open_items(world)
    assert [len(item.waiting_work) for item in everything] == [3, 0]
    [asked, _] = everything
    assert [(await open_items(world, team))[0].message.id for team in stopped] == [
        asked.message.id
    ] * 3
    assert await statuses(world, stopped) == [NodeStatus.WAITING] * 3
    await world.restart()
    await world.answer(asked.message, "Try again.")
    await world.settle()

    assert await statuses(world, stopped) == [NodeStatus.COMPLETED] * 3
    assert await statuses(world, others) == [NodeStatus.WAITING]
    assert [item.message.team_id for item in await open_items(world)] == [others[0].id]


async def test_a_new_key_lets_all_teams_go_on_that_the_old_one_stopped(world: World) -> None:
    stopped = await refused_teams(world, KeyRefused(WRONG_KEY))

    await world.store.write(answers.accept_key, "other")
    await world.settle()
    assert await statuses(world, stopped) == [NodeStatus.WAITING] * 3
    await world.store.write(answers.accept_key, "scripted")
    await world.settle()
    assert await statuses(world, stopped) == [NodeStatus.COMPLETED] * 3
    assert await open_items(world) == []


async def test_the_question_about_a_key_outlives_the_team_that_asked_it(world: World) -> None:
    stopped = await refused_teams(world, KeyRefused(WRONG_KEY), "ada bob", times=2)
    [asked] = await open_items(world)
    assert asked.message.team_id == stopped[0].id

    await world.store.write(teams.stop, stopped[0].id)
    await world.settle()
    [left] = await open_items(world)
    assert [work.team_id for work in left.waiting_work] == [stopped[1].id]
    gone = {"name": stopped[0].name, "who": "admin", "person_id": OWNER}
    await world.store.write(removal.delete_team, stopped[0].id, stop=True, **gone)
    await world.runtime.removal.idle()
    await world.settle()
    [anew] = await open_items(world)
    assert {anew.message.team_id, *(work.team_id for work in anew.waiting_work)} == {stopped[1].id}
    await world.answer(anew.message, "Try again.")
    await world.settle()
    assert await statuses(world, stopped[1:]) == [NodeStatus.COMPLETED]


async def test_an_unexpected_exception_fails_the_node_with_its_message(world: World) -> None:
    world.script("ada", ZeroDivisionError("a bug"))
    founded = await world.found("Try")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    [told] = await world.inbox()
    assert (goal.status, goal.stop_reason) == (NodeStatus.FAILED, StopReason.BROKEN)
    assert (told.kind, told.text) == ("failure", "ZeroDivisionError: a bug")


async def test_an_unavailable_model_parks_the_node_until_it_is_back(world: World) -> None:
    away = ModelUnavailable("Overloaded.")
    ada = world.script("ada", says(call("checkpoint", summary="half")), away, away, FINISH)
    founded = await world.found("Be patient")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.waiting_reason) == (
        NodeStatus.WAITING,
        "the model cannot be reached: Overloaded. Trying again by itself.",
    )
    parked_again = next_event(world, "node.waiting")
    world.clock.advance(seconds=30)
    await parked_again

    done = next_event(world, "node.completed")
    world.clock.advance(seconds=30)
    await done
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.result, goal.attempt) == (NodeStatus.COMPLETED, "done", 1)
    assert [len(asked.turns) for asked in ada.requests] == [1, 3, 3, 3]


async def test_retry_after_is_respected_even_across_a_restart(
    world: World,
) -> None:
    ada = world.script("ada", ModelUnavailable("Slow down.", retry_after=7200), FINISH)
    founded = await world.found("Wait two hours")
    await world.settle()

    world.clock.advance(seconds=7199)
    await world.restart()
    await world.settle()
    assert len(ada.requests) == 1

    done = next_event(world, "node.completed")
    world.clock.advance(seconds=1)
    await done
    await world.settle()
    assert (await world.board(founded.team.id))[0].result == "done"


# ---- mail ----------------------------------------------------------------------------------


async def test_mail_is_added_between_turns_and_never_between_a_call_and_its_answer(
    world: World,
) -> None:
    async def meanwhile() -> Says:
        await world.say(founded.coordinator.id, "In blue, please.", team_id=founded.team.id)
        await world.say(founded.coordinator.id, "And large.", team_id=founded.team.id)
        return says(call("checkpoint", summary="red"))

    ada = ThinkingModel("scripted/ada", [meanwhile, FINISH])
    world.model("ada", ada)
    founded = await world.found("Paint it red")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    turns = [(t.role, t.text) for t in await world.turns(goal.id) if t.role != "intent"]
    assert turns[1:6] == [
        ("user", "Paint it red"),
        ("assistant", ""),
        ("tool", HELD_BACK),
        ("user", "[Message from human] In blue, please."),
        ("user", "[Message from human] And large."),
    ]


async def test_mail_that_arrives_as_a_node_ends_becomes_a_new_node(world: World) -> None:
    """A teammate's question holds back no call; a person's message would hold back `finish`."""

    async def writes() -> Says:
        return says(call("write_file", path="a.md", content="words"))

    async def meanwhile() -> Says:
        sent: dict[str, Any] = {"sender": bob.id, "recipient": founded.coordinator.id}
        draft = Draft(team_id=founded.team.id, kind="question", text="In blue?", **sent)
        await world.store.write(bus.send, draft)
        return FINISH

    ada = ThinkingModel(
        "scripted/ada", [writes, meanwhile, says(call("finish", summary="that too"))]
    )
    world.model("ada", ada)
    founded = await world.found("Do it", mode="infinite", start=False)
    to_hire = {"name": "bob", "role": "worker", "model": "scripted/bob"}
    bob = await world.store.write(roster.hire, founded.team.id, **to_hire)
    await world.say(founded.coordinator.id, "Begin.", team_id=founded.team.id)
    await world.settle()

    first, second = await world.board(founded.team.id)
    assert (first.status, first.result) == (NodeStatus.COMPLETED, "done")
    assert second.task.startswith("[Message from bob (question)]\n<<< ")
    assert ("\nIn blue?\n>>> " in second.task, second.result) == (True, "that too")
    assert ada.heard[-1] == second.task


# ---- people --------------------------------------------------------------------------------


async def test_a_paused_team_stops_at_the_yield_point_and_goes_on_where_it_was(
    world: World,
) -> None:
    async def meanwhile() -> Says:
        await world.store.write(teams.pause, founded.team.id)
        return says(call("write_file", path="a.md", content="x"))

    ada = ThinkingModel("scripted/ada", [meanwhile, FINISH])
    world.model("ada", ada)
    founded = await world.found("Pause")
    await next_event(world, "team.paused")
    await next_event(world, "node.assigned")

    [goal] = await world.board(founded.team.id)
    assert (goal.status, len(ada.heard)) == (NodeStatus.ASSIGNED, 1)
    await world.store.write(teams.resume, founded.team.id)
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.result, ada.heard[-1]) == (
        NodeStatus.COMPLETED,
        "done",
        "Wrote a.md (1 bytes).",
    )


async def test_a_cancelled_node_ends_without_waiting_for_its_model(world: World) -> None:
    async def meanwhile() -> Says:
        assert founded.node is not None
        await world.store.write(endings.cancel, founded.node.id)
        return await asyncio.Future[Says]()

    world.model("ada", ThinkingModel("scripted/ada", [meanwhile]))
    founded = await world.found("Cancel")
    await next_event(world, "node.cancelled")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.stop_reason, goal.result) == (
        NodeStatus.CANCELLED,
        StopReason.CANCELLED,
        None,
    )
    assert not (node_folder(world, goal) / "published").exists()


async def test_stopping_a_team_cancels_its_waiting_node(world: World) -> None:
    world.script("ada", says(call("ask_human", question="Which?")))
    founded = await world.found("Stop")
    await world.settle()
    await world.store.write(teams.stop, founded.team.id)
    await world.settle()

    [goal] = await world.board(founded.team.id)
    team: Team = await world.team(founded.team.id)
    assert (goal.status, team.status) == (NodeStatus.CANCELLED, "stopped")


# ---- crashes -------------------------------------------------------------------------------


async def test_a_crash_costs_at_most_one_model_call(world: World) -> None:
    ada = world.script(
        "ada",
        says(call("write_file", path="a.md", content="half")),
        PowerCut(),
        says(call("finish", summary="whole")),
    )
    founded = await world.found("Write something")
    await world.settle()
    await world.restart()
    await world.settle()

    [goal] = await world.board(founded.team.id)
    [spent] = await world.store.read(spend.of_node, goal.id)
    assert (goal.status, goal.result, goal.attempt) == (NodeStatus.COMPLETED, "whole", 2)
    assert (len(ada.requests), ada.heard) == (3, "Wrote a.md (4 bytes).")
    assert (spent.calls, spent.lost) == (2, 1)


@on_sqlite
async def test_a_step_that_always_crashes_parks_with_a_question(world: World) -> None:
    ada = world.script("ada", *[PowerCut()] * 4, says(call("finish", summary="done otherwise")))
    founded = await world.found("Crash")
    for _ in range(5):
        await world.settle()
        await world.restart()
    await world.settle()

    [goal] = await world.board(founded.team.id)
    [question] = await world.questions(founded.team.id)
    assert goal.status is NodeStatus.WAITING
    assert question.text.startswith("My work was cut off 3 times at the same step")
    ada.lines[:] = ada.lines[-1:]
    await world.answer(question, "Do it otherwise.")
    await world.settle()
    assert (await world.board(founded.team.id))[0].result == "done otherwise"
    assert ada.heard == "Do it otherwise."


@on_sqlite
async def test_earlier_turns_are_sent_unchanged_in_every_later_request(world: World) -> None:
    ada = world.script(
        "ada",
        *(says(call("write_file", path=f"{n}.md", content="x")) for n in range(10)),
        says(call("ask_human", question="On?")),
        *(says(call("write_file", path=f"{n}.md", content="y")) for n in range(10)),
        FINISH,
    )
    founded = await world.found("Go on and on")
    await world.settle()
    await world.restart()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Yes.")
    await world.settle()

    shown = [[(t.role, t.ref, t.text, t.calls) for t in asked.turns] for asked in ada.requests]
    assert len(shown) == 22
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(shown))
    assert {asked.system for asked in ada.requests} == {ada.requests[0].system}
