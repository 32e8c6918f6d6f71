"""Edge cases: a node ends, is cancelled, retried or paused while something else happens."""

import asyncio
from pathlib import Path

import pytest

from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import ModelUnavailable
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import Budget, NodeStatus, StopReason
from agiraph.core.run_context import RunContext
from agiraph.core.services.lifecycle import continuations, endings, teams
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import tool
from agiraph.testing import PowerCut, Says, World, call, says
from tests.runtime.test_loop import next_event
from tests.thinking import ThinkingModel

FINISH = says(call("finish", summary="done"))
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@on_sqlite
async def test_two_agents_do_not_report_results_to_each_other_for_ever(world: World) -> None:
    ada = world.script(
        "ada",
        says(call("send_message", to="bob", content="Count, please.")),
        *[says(call("finish", summary="noted"))] * 50,
    )
    bob = world.script("bob", *[says(call("publish", summary="One, two, three."))] * 50)
    founded = await world.found("Let Bob count", start=False, mode="infinite")
    await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/bob"
    )
    await world.say(founded.coordinator.id, "Begin.", team_id=founded.team.id)
    async with asyncio.timeout(10):
        await world.settle()

    assert len(bob.requests) == 1
    assert len(ada.requests) <= 3


async def test_mail_that_arrives_while_a_node_is_cancelled_becomes_a_new_node(world: World) -> None:
    async def meanwhile() -> Says:
        assert founded.node is not None
        await world.say(founded.coordinator.id, "Do this instead.", team_id=founded.team.id)
        await world.store.write(endings.cancel, founded.node.id)
        return await asyncio.Future[Says]()

    world.model("ada", ThinkingModel("scripted/ada", [meanwhile, FINISH, FINISH]))
    founded = await world.found("Cancel", mode="infinite")
    await next_event(world, "node.cancelled")
    await world.settle()

    assert [n.status for n in await world.board(founded.team.id)] == [
        NodeStatus.CANCELLED,
        NodeStatus.COMPLETED,
    ]


async def test_mail_for_a_parked_node_is_not_lost_when_the_node_is_cancelled(
    world: World,
) -> None:
    world.script("ada", says(call("ask_human", question="Which?")), FINISH)
    founded = await world.found("Ask", mode="infinite")
    await world.settle()
    coordinator, node = founded.coordinator, founded.node
    assert node is not None

    def say_and_cancel(tx: Tx) -> None:
        # In one transaction: otherwise the node could continue and read the message first.
        told = {"team_id": founded.team.id, "recipient": coordinator.id}
        bus.send(tx, Draft(**told, sender=OWNER, text="Do this instead."))
        endings.cancel(tx, node.id)

    await world.store.write(say_and_cancel)
    await world.settle()

    assert [n.status for n in await world.board(founded.team.id)] == [
        NodeStatus.CANCELLED,
        NodeStatus.COMPLETED,
    ]


@on_sqlite
async def test_waiting_for_a_person_does_not_use_up_the_time_budget(world: World) -> None:
    world.script("ada", says(call("ask_human", question="Which?")), FINISH)
    founded = await world.found("Ask", budget=Budget(seconds=60))
    await world.settle()
    world.clock.advance(days=1)
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "This one.")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.stop_reason) == (NodeStatus.COMPLETED, StopReason.FINISHED)


@on_sqlite
async def test_a_node_ends_when_its_time_runs_out_while_the_model_is_unavailable(
    world: World,
) -> None:
    world.script("ada", *[ModelUnavailable("Overloaded.")] * 9)
    founded = await world.found("Try for a minute", budget=Budget(seconds=60))
    await world.settle()
    for _ in range(5):
        again = next_event(world, "node.started")
        world.clock.advance(minutes=20)
        if (await world.board(founded.team.id))[0].status.is_final:
            break
        await asyncio.wait({again}, timeout=2)
        await world.settle()

    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.stop_reason) == (NodeStatus.FAILED, StopReason.TIME_SPENT)


@on_sqlite
async def test_a_failed_publish_does_not_change_the_stop_reason(world: World) -> None:
    world.script(
        "ada", says(call("write_file", path="_manifest.json", content="{}")), says("Sorry.")
    )
    founded = await world.found("Land", budget=Budget(turns=2))
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.stop_reason, goal.result) == (
        NodeStatus.PARTIAL,
        StopReason.TURNS_SPENT,
        "Sorry.",
    )


@on_sqlite
async def test_a_crash_does_not_raise_the_number_of_calls_a_reply_may_make(world: World) -> None:
    from agiraph import faultpoints

    lines = [call("write_file", path=f"{n}.md", content="x") for n in range(100)]
    world.script("ada", says(*lines), FINISH)
    written: list[str] = []

    def cut(point: str) -> None:
        if point == "fx:before:write":
            written.append(point)
            if len(written) == 40:
                raise PowerCut

    faultpoints.armed = cut
    try:
        founded = await world.found("Write a hundred files")
        await world.settle()
        faultpoints.armed = None
    finally:
        faultpoints.armed = None
    await world.restart()
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert len(world.published(goal)) == 32


async def test_a_pause_takes_effect_between_the_calls_of_one_reply(world: World) -> None:
    async def meanwhile() -> Says:
        await world.store.write(teams.pause, founded.team.id)
        return says(
            call("write_file", path="a.md", content="x"),
            call("write_file", path="b.md", content="x"),
        )

    world.model("ada", ThinkingModel("scripted/ada", [meanwhile, FINISH]))
    founded = await world.found("Pause")
    await next_event(world, "team.paused")
    await next_event(world, "node.assigned")

    assert founded.node is not None
    scratch = world.path / "teams" / founded.team.id / "nodes" / founded.node.id / "scratch"
    assert sorted(p.name for p in scratch.iterdir()) != ["a.md", "b.md"]
    await world.store.write(teams.resume, founded.team.id)
    await world.settle()


async def test_a_nul_character_in_a_persons_text_is_no_error(world: World) -> None:
    world.script("ada", FINISH)
    founded = await world.found("Write a\0b")
    await world.settle()
    await world.say(founded.coordinator.id, "c\0d", team_id=founded.team.id)


@on_sqlite
@pytest.mark.parametrize("lines", [[says("Four."), says("Four.")], [says("")] * 3])
async def test_a_finite_team_whose_goal_has_ended_is_not_active(
    world: World, lines: list[Says]
) -> None:
    world.script("ada", *lines)
    founded = await world.found("What is 2 + 2?")
    await world.settle()

    team: Team = await world.team(founded.team.id)
    assert team.status != "active"


@on_sqlite
async def test_a_node_that_failed_for_looping_can_be_retried(world: World) -> None:
    ada = world.script("ada", *[says(call("read_file", path="_spec.md"))] * 5, FINISH)
    founded = await world.found("Go round")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert goal.stop_reason is StopReason.LOOPING
    await world.store.write(continuations.retry, goal.id)
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert (goal.status, len(ada.requests)) == (NodeStatus.COMPLETED, 6)


@on_sqlite
async def test_a_tools_answer_is_shown_unchanged_after_a_restart(
    tmp_path: Path, database_url: str
) -> None:
    @tool(effect="repeatable")
    async def blob(ctx: RunContext) -> Answer:
        """Give bytes that are no text."""
        return Done("a\0b")

    async with World(
        tmp_path / "home", database_url=database_url, tools=(blob,), easy_endings=True
    ) as world:
        ada = world.script(
            "ada", says(call("blob")), says(call("ask_human", question="Go on?")), FINISH
        )
        founded = await world.found("Look at bytes")
        await world.settle()
        await world.restart()
        [question] = await world.questions(founded.team.id)
        await world.answer(question, "Yes.")
        await world.settle()

        _, before, after = ada.requests
        assert after.turns[2].text == before.turns[2].text
