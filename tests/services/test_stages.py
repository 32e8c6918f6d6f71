"""Nodes are waited for together, until their contract is met, broken or too late."""

import pytest

from agiraph.domain.work import Budget, NodeStatus, StopReason
from agiraph.providers.base import Request
from agiraph.services.lifecycle import endings
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.store import stages
from agiraph.testing import Says, World, call, says
from tests.services.staging import (
    BEGIN,
    DONE,
    allow,
    begun,
    last_answer,
    made,
    pass_time,
    the_stage,
    wait,
    work,
)
from tests.services.team import created, gathered
from tests.thinking import ThinkingModel

S = NodeStatus


@pytest.mark.parametrize(("wants", "successes"), [("all", 3), ("majority", 2), ("any", 1)])
async def test_a_contract_is_met_as_soon_as_enough_have_succeeded(
    world: World, wants: str, successes: int
) -> None:
    review = says(call("reconvene", assessment="Good."))
    founded = await begun(
        world,
        made("wonder a", "wonder b", "wonder c"),
        wait(contract={"wants": wants}),
        review,
        says(call("ask_human", question="Shall we go on?")),
    )
    nodes = await work(world, founded)
    for node in nodes[: successes - 1]:
        await allow(world, node)
        assert (await the_stage(world, founded)).status == "running"
    await allow(world, nodes[successes - 1])

    stage = await the_stage(world, founded)
    assert (stage.status, stage.assessment) == ("reconvened", "Good.")
    events = await world.events(founded.team.id)
    assert [e.data["status"] for e in events if e.type == "stage.ended"] == ["met"]
    assert [n.status for n in await work(world, founded)] == (
        [S.COMPLETED] * successes + [S.WAITING] * (3 - successes)
    )


@pytest.mark.parametrize(("wants", "failures"), [("all", 1), ("majority", 2), ("any", 3)])
async def test_a_contract_is_broken_as_soon_as_it_cannot_be_met(
    world: World, wants: str, failures: int
) -> None:
    founded = await begun(
        world,
        made("wonder a", "wonder b", "wonder c"),
        wait(contract={"wants": wants}),
        says(call("ask_human", question="What now?")),
    )
    nodes = await work(world, founded)
    for node in nodes[: failures - 1]:
        await world.store.write(endings.cancel, node.id)
        assert (await the_stage(world, founded)).status == "running"
    await world.store.write(endings.cancel, nodes[failures - 1].id)
    await world.settle()

    assert (await the_stage(world, founded)).status == "broken"
    told = await last_answer(world, founded)
    assert told.startswith(
        f"Stage 'first' is over: its contract cannot be met any more (wanted: {wants})."
    )
    assert told.count("Status: cancelled (cancelled)") == failures
    assert told.count(": waiting: asked the human: May I?") == 3 - failures


async def test_a_stage_without_nodes_is_refused(world: World) -> None:
    founded = await begun(
        world,
        says(
            call("start_stage", name="none"),
            call("start_stage", name="none", nodes=[], contract={"wants": "majority"}),
            call("start_stage", name="none", nodes=["node_none"]),
            call("start_stage", name="none", nodes=["node_none"], contract={"wants": "most"}),
            call("reconvene", assessment="Nothing happened."),
        ),
        DONE,
    )
    assert founded.node is not None
    answers = [t.text for t in await world.turns(founded.node.id) if t.role == "tool"][1:-1]
    nothing = "A stage needs nodes: create some first, then name them here."
    assert answers[:3] == [
        nothing,
        nothing,
        "There is no node 'node_none'. check_board lists them with their ids.",
    ]
    assert answers[3].startswith("start_stage: 'contract.wants' is wrong (")
    assert answers[4] == "No stage of yours is open; start_stage begins one."
    assert await world.store.read(stages.of_team, founded.team.id) == []


async def test_nodes_can_be_added_to_a_running_stage(world: World) -> None:
    founded = await begun(
        world,
        made("wonder a"),
        wait(contract={"wants": "majority"}),
        made("wonder b", "wonder c"),
        wait(),
        says(call("reconvene", assessment="Good.")),
        DONE,
    )
    await world.say(founded.coordinator.id, "Three, please.", team_id=founded.team.id)
    await world.settle()
    first, second, third = await work(world, founded)
    assert {n.stage_id for n in (first, second, third)} == {(await the_stage(world, founded)).id}

    await allow(world, first)
    assert (await the_stage(world, founded)).status == "running"  # two of three, now
    await allow(world, third)
    goal = (await world.board(founded.team.id))[0]
    assert (goal.status, (await the_stage(world, founded)).status) == (S.COMPLETED, "reconvened")


async def test_a_stage_that_is_over_goes_on_when_nodes_are_added(world: World) -> None:
    founded = await begun(
        world,
        made("a"),
        wait(contract={"timeout_seconds": 60}),
        made("wonder b"),
        says(call("start_stage", name="first")),
        wait(),
        says(call("reconvene", assessment="Good.")),
        DONE,
    )
    assert founded.node is not None
    first, second = await work(world, founded)
    stage = await the_stage(world, founded)
    answers = [t.text for t in await world.turns(founded.node.id) if t.role == "tool"]
    assert answers[-1].startswith("Stage 'first' is over: its contract is met (wanted: all).")
    assert (stage.status, first.stage_id, second.stage_id) == ("running", stage.id, stage.id)

    await pass_time(world, 3600)  # the person takes their time
    await allow(world, second)
    assert (await world.node(founded.node.id)).status is S.COMPLETED


async def test_a_message_ends_the_wait_and_the_stage_is_waited_for_again(world: World) -> None:
    founded = await begun(
        world,
        made("wonder"),
        wait(contract={"timeout_seconds": 60}),
        says(call("start_stage", name="first")),
        says(call("reconvene", assessment="Good.")),
        DONE,
    )
    assert founded.node is not None
    await world.say(founded.coordinator.id, "How is it?", team_id=founded.team.id)
    await world.settle()
    goal, node = await world.board(founded.team.id)
    assert (goal.status, goal.waiting_reason) == (S.WAITING, "stage 'first'")
    said = [t.text for t in await world.turns(goal.id) if t.role != "intent"]
    assert said[-3:-1] == [
        "Interrupted, because there is a message for you; it follows. What you waited for "
        "(stage 'first') is still under way: wait again, or do something else first.",
        "[Message from human] How is it?",
    ]

    await allow(world, node)
    assert (await world.node(goal.id)).status is S.COMPLETED
    summaries = [t for t in await world.turns(goal.id) if "--- RESULT ---" in t.text]
    assert len(summaries) == 1  # told once, by the stage


async def test_a_message_that_comes_while_the_coordinator_thinks_ends_the_wait_too(
    world: World,
) -> None:
    async def while_mail_comes() -> Says:
        await world.say(founded.coordinator.id, "Wait!", team_id=founded.team.id)
        [node] = await work(world, founded)
        return says(call("start_stage", name="first", nodes=[node.id]))

    ada = ThinkingModel(
        "scripted/ada",
        [BEGIN, made("wonder"), while_mail_comes, says(call("ask_human", question="Yes?"))],
    )
    founded, _ = await gathered(world, "bob", lead=ada)
    assert founded.node is not None
    await allow(world, founded.node)

    assert ada.heard[-1] == "[Message from human] Wait!"
    assert (await world.node(founded.node.id)).waiting_reason == "asked the human: Yes?"


async def test_a_stage_cannot_hold_who_waits_for_it_nor_what_waits_for_that(world: World) -> None:
    def cross(request: Request) -> Says:
        assert founded.node is not None
        return says(
            call("start_stage", name="own", nodes=[founded.node.id]),
            call("create_work_node", task="afterwards", depends_on=[founded.node.id]),
        )

    def cross_again(request: Request) -> Says:
        return says(
            call("start_stage", name="after", nodes=[created(request)[0]]),
            call("task_output", id=created(request)[0], blocking=True),
        )

    founded, _ = await gathered(
        world, "bob", lead=(BEGIN, cross, cross_again, says(call("ask_human", question="Hm?")))
    )
    assert founded.node is not None
    await allow(world, founded.node)

    [after] = await work(world, founded)
    answers = [t.text for t in await world.turns(founded.node.id) if t.role == "tool"]
    circle = (
        f"{after.id} needs or waits for your own work, so neither would ever end. Go on without "
        "it, or hand in what you have first."
    )
    assert answers[1] == (
        "A stage cannot hold the work that waits for it; leave your own node out."
    )
    assert answers[3:] == [circle, circle]
    assert await world.store.read(stages.of_team, founded.team.id) == []


async def test_a_node_belongs_to_one_running_stage(world: World) -> None:
    founded = await begun(
        world,
        made("wonder"),
        wait(),
        wait("second"),
        says(call("ask_human", question="Hm?")),
    )
    await world.say(founded.coordinator.id, "Try again.", team_id=founded.team.id)
    await world.settle()
    [node] = await work(world, founded)
    assert await last_answer(world, founded) == (
        f"{node.id} belongs to another stage that is still running."
    )


async def test_turns_per_node_bound_what_has_not_begun(world: World) -> None:
    world.script("talker", *[says(call("checkpoint", summary=f"step {n}")) for n in range(9)],
                 says("no more"))  # fmt: skip
    founded = await begun(
        world,
        made("talk", assigned_to=None),
        lambda request: says(
            call("assign_worker", node_id=created(request)[0], worker_id="new:scripted/talker"),
            call(
                "start_stage", name="first", nodes=created(request), contract={"turns_per_node": 3}
            ),
        ),
        says(call("ask_human", question="What now?")),
    )
    [node] = await work(world, founded)
    assert node.budget == Budget(turns=3)
    assert (node.status, node.stop_reason) == (S.FAILED, StopReason.TURNS_SPENT)
    replies = [t for t in await world.turns(node.id) if t.role == "assistant"]
    assert len(replies) == 3
    assert (await the_stage(world, founded)).status == "broken"


# ---- limits that somebody chose -------------------------------------------------------------


async def turns_of(world: World, founded: NewTeam) -> list[int]:
    return [node.budget.turns for node in await work(world, founded)]


async def test_a_stage_does_not_lower_turns_that_were_given_to_a_node(world: World) -> None:
    both = says(
        call("create_work_node", task="wonder at it", max_turns=30),
        call("create_work_node", task="wonder again"),
        call("create_work_node", task="wonder once more", max_turns=50),
    )
    terms = {"contract": {"turns_per_node": 7}}
    founded = await begun(world, both, wait("first", **terms), DONE)
    assert await turns_of(world, founded) == [30, 7, 50]


async def test_the_default_of_a_stage_does_not_lower_them_either(world: World) -> None:
    founded = await begun(world, made("wonder", max_turns=11), wait(), DONE)
    assert await turns_of(world, founded) == [11]


async def test_who_gives_more_turns_than_their_own_budget_allows_is_told(world: World) -> None:
    budget = Budget(model_calls=10)
    founded = await begun(world, made("wonder", max_turns=30), wait(), DONE, budget=budget)
    assert founded.node is not None
    answers = [t.text for t in await world.turns(founded.node.id) if t.role == "tool"]
    assert answers[1].endswith(
        " Your own budget leaves it 4 model calls, so it cannot use all of the 30 turns you gave "
        "it."
    )
