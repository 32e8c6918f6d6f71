"""Stages: nodes are waited for together, until their contract is met, broken or timed out."""

import pytest

from agiraph.core.domain.work import Budget, NodeStatus, StopReason
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import stages
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from tests.services.stages import (
    BEGIN,
    DONE,
    answer_yes,
    child_nodes,
    creates,
    found_team,
    last_tool_answer,
    pass_time,
    reconvenes,
    stage_of,
    waits,
)
from tests.services.teams import created_ids, found_waiting_team
from tests.thinking import ThinkingModel

S = NodeStatus


@pytest.mark.parametrize(("wants", "successes"), [("all", 3), ("majority", 2), ("any", 1)])
async def test_a_contract_is_met_as_soon_as_enough_have_succeeded(
    world: World, wants: str, successes: int
) -> None:
    review = reconvenes("Good.")
    founded = await found_team(
        world,
        creates("wonder a", "wonder b", "wonder c"),
        waits(contract={"wants": wants}),
        review,
        says(call("ask_human", question="Shall we go on?")),
    )
    nodes = await child_nodes(world, founded)
    for node in nodes[: successes - 1]:
        await answer_yes(world, node)
        assert (await stage_of(world, founded)).status == "running"
    await answer_yes(world, nodes[successes - 1])

    stage = await stage_of(world, founded)
    assert (stage.status, stage.assessment) == ("reconvened", "Good.")
    events = await world.events(founded.team.id)
    assert [e.data["status"] for e in events if e.type == "stage.ended"] == ["met"]
    assert [n.status for n in await child_nodes(world, founded)] == (
        [S.COMPLETED] * successes + [S.WAITING] * (3 - successes)
    )


@pytest.mark.parametrize(("wants", "failures"), [("all", 1), ("majority", 2), ("any", 3)])
async def test_a_contract_is_broken_as_soon_as_it_cannot_be_met(
    world: World, wants: str, failures: int
) -> None:
    founded = await found_team(
        world,
        creates("wonder a", "wonder b", "wonder c"),
        waits(contract={"wants": wants}),
        says(call("ask_human", question="What now?")),
    )
    nodes = await child_nodes(world, founded)
    for node in nodes[: failures - 1]:
        await world.store.write(endings.cancel, node.id)
        assert (await stage_of(world, founded)).status == "running"
    await world.store.write(endings.cancel, nodes[failures - 1].id)
    await world.settle()

    assert (await stage_of(world, founded)).status == "broken"
    told = await last_tool_answer(world, founded)
    assert told.startswith(
        f"Stage 'first' is over: its contract cannot be met any more (wanted: {wants})."
    )
    assert told.count("Status: cancelled (cancelled)") == failures
    assert told.count(": waiting: asked the human: May I?") == 3 - failures


async def test_a_stage_without_nodes_is_refused(world: World) -> None:
    founded = await found_team(
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


@pytest.mark.slow
async def test_assigned_members_start_together_with_their_stage_and_its_turns(
    world: World,
) -> None:
    create = [
        call("create_work_node", task=f"wonder {name}", assigned_to=name) for name in ("bob", "cyd")
    ]
    founded = await found_team(
        world,
        says(*create),
        says(call("check_board")),
        waits(contract={"turns_per_node": 4}),
        says(call("ask_human", question="What now?")),
    )
    members = await child_nodes(world, founded)
    assert [(n.status, n.budget.turns) for n in members] == [(S.WAITING, 4)] * 2
    told = [e for e in await world.events(founded.team.id) if e.type.startswith(("stage", "node"))]
    first = next(n for n, e in enumerate(told) if e.type == "stage.started")
    begun = [n for n, e in enumerate(told) if e.type == "node.started"
             and e.data["node_id"] in {m.id for m in members}]  # fmt: skip
    assert [number > first for number in begun] == [True] * len(begun)


async def test_an_assigned_task_without_a_stage_starts_after_half_a_minute(world: World) -> None:
    seen: list[bool] = []

    async def thinks() -> Says:
        for seconds in (29, 2):
            await world.advance(seconds=seconds)
            seen.append((await child_nodes(world, founded))[0].status is S.PENDING)
        return says(call("ask_human", question="What now?"))

    create = call("create_work_node", task="Wonder", assigned_to="new:scripted/bob")
    world.model("ada", ThinkingModel("scripted/ada", [says(create), thinks]))
    world.script("bob", says(call("ask_human", question="Why?")))
    founded = await world.found("Wonder about it")
    await world.settle()
    assert seen == [True, False]


async def test_nodes_can_be_added_to_a_running_stage(world: World) -> None:
    founded = await found_team(
        world,
        creates("wonder a"),
        waits(contract={"wants": "majority"}),
        creates("wonder b", "wonder c"),
        waits(),
        reconvenes("Good."),
        DONE,
    )
    await world.say(founded.coordinator.id, "Three, please.", team_id=founded.team.id)
    await world.settle()
    first, second, third = await child_nodes(world, founded)
    assert {n.stage_id for n in (first, second, third)} == {(await stage_of(world, founded)).id}

    await answer_yes(world, first)
    assert (await stage_of(world, founded)).status == "running"  # two of three, now
    await answer_yes(world, third)
    goal = (await world.board(founded.team.id))[0]
    assert (goal.status, (await stage_of(world, founded)).status) == (S.WAITING, "reconvened")
    await answer_yes(world, second)
    assert (await world.node(goal.id)).status is S.COMPLETED


@pytest.mark.slow
async def test_adding_nodes_reopens_a_stage_that_is_over(world: World) -> None:
    founded = await found_team(
        world,
        creates("a"),
        waits(contract={"timeout_seconds": 60}),
        creates("wonder b"),
        says(call("start_stage", name="first")),
        waits(),
        reconvenes("Good."),
        DONE,
    )
    assert founded.node is not None
    first, second = await child_nodes(world, founded)
    stage = await stage_of(world, founded)
    answers = [t.text for t in await world.turns(founded.node.id) if t.role == "tool"]
    assert answers[-1].startswith("Stage 'first' is over: its contract is met (wanted: all).")
    assert (stage.status, first.stage_id, second.stage_id) == ("running", stage.id, stage.id)

    await pass_time(world, 3600)  # the person answers late; the stage must not time out
    await answer_yes(world, second)
    assert (await world.node(founded.node.id)).status is S.COMPLETED


async def test_a_message_interrupts_the_wait_for_a_stage_which_can_be_resumed(world: World) -> None:
    founded = await found_team(
        world,
        creates("wonder"),
        waits(contract={"timeout_seconds": 60}),
        says(call("start_stage", name="first")),
        reconvenes("Good."),
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

    await answer_yes(world, node)
    assert (await world.node(goal.id)).status is S.COMPLETED
    summaries = [t for t in await world.turns(goal.id) if ": the result, in" in t.text]
    assert len(summaries) == 1  # told once, by the stage


async def test_a_message_during_the_model_call_interrupts_the_wait_for_a_stage(
    world: World,
) -> None:
    async def while_mail_comes() -> Says:
        await world.say(founded.coordinator.id, "Wait!", team_id=founded.team.id)
        [node] = await child_nodes(world, founded)
        return says(call("start_stage", name="first", nodes=[node.id]))

    ada = ThinkingModel(
        "scripted/ada",
        [BEGIN, creates("wonder"), while_mail_comes, says(call("ask_human", question="Yes?"))],
    )
    founded, _ = await found_waiting_team(world, "bob", lead=ada)
    assert founded.node is not None
    await answer_yes(world, founded.node)

    assert ada.heard[-1] == "[Message from human] Wait!"
    assert (await world.node(founded.node.id)).waiting_reason == "asked the human: Yes?"


async def test_a_stage_cannot_contain_its_own_waiter_or_nodes_that_depend_on_it(
    world: World,
) -> None:
    def cross(request: Request) -> Says:
        assert founded.node is not None
        return says(
            call("start_stage", name="own", nodes=[founded.node.id]),
            call("create_work_node", task="afterwards", depends_on=[founded.node.id]),
        )

    def cross_again(request: Request) -> Says:
        return says(
            call("start_stage", name="after", nodes=[created_ids(request)[0]]),
            call("task_output", id=created_ids(request)[0], blocking=True),
        )

    founded, _ = await found_waiting_team(
        world, "bob", lead=(BEGIN, cross, cross_again, says(call("ask_human", question="Hm?")))
    )
    assert founded.node is not None
    await answer_yes(world, founded.node)

    [after] = await child_nodes(world, founded)
    answers = [t.text for t in await world.turns(founded.node.id) if t.role == "tool"]
    circle = (
        f"{after.id} needs or waits for your own work, so neither would ever end. Go on without "
        "it, or submit what you have first."
    )
    assert answers[1] == (
        "A stage cannot hold the work that waits for it; leave your own node out."
    )
    assert answers[3:] == [circle, circle]
    assert await world.store.read(stages.of_team, founded.team.id) == []


async def test_a_node_belongs_to_one_running_stage(world: World) -> None:
    founded = await found_team(
        world,
        creates("wonder"),
        waits(),
        waits("second"),
        says(call("ask_human", question="Hm?")),
    )
    await world.say(founded.coordinator.id, "Try again.", team_id=founded.team.id)
    await world.settle()
    [node] = await child_nodes(world, founded)
    assert await last_tool_answer(world, founded) == (
        f"{node.id} belongs to another stage that is still running."
    )


async def test_turns_per_node_limits_nodes_that_have_not_started(world: World) -> None:
    world.script("talker", *[says(call("checkpoint", summary=f"step {n}")) for n in range(9)],
                 says("no more"))  # fmt: skip
    founded = await found_team(
        world,
        creates("talk", assigned_to=None),
        lambda request: says(
            call("assign_worker", node_id=created_ids(request)[0], worker_id="new:scripted/talker"),
            call(
                "start_stage",
                name="first",
                nodes=created_ids(request),
                contract={"turns_per_node": 3},
            ),
        ),
        says(call("ask_human", question="What now?")),
    )
    [node] = await child_nodes(world, founded)
    assert node.budget == Budget(turns=3)
    assert (node.status, node.stop_reason) == (S.PARTIAL, StopReason.TURNS_SPENT)
    replies = [t for t in await world.turns(node.id) if t.role == "assistant"]
    assert len(replies) == 3
    assert (await stage_of(world, founded)).status == "broken"


# ---- limits that were chosen ----------------------------------------------------------------


async def turns_of(world: World, founded: NewTeam) -> list[int]:
    return [node.budget.turns for node in await child_nodes(world, founded)]


async def test_a_stage_does_not_lower_a_nodes_own_turn_limit(world: World) -> None:
    both = says(
        call("create_work_node", task="wonder at it", max_turns=30),
        call("create_work_node", task="wonder again"),
        call("create_work_node", task="wonder once more", max_turns=50),
    )
    terms = {"contract": {"turns_per_node": 7}}
    founded = await found_team(world, both, waits("first", **terms), DONE)
    assert await turns_of(world, founded) == [30, 7, 50]


async def test_the_default_turn_limit_of_a_stage_does_not_lower_a_nodes_own(world: World) -> None:
    founded = await found_team(world, creates("wonder", max_turns=11), waits(), DONE)
    assert await turns_of(world, founded) == [11]


async def test_a_turn_limit_beyond_the_creators_own_budget_is_reported(world: World) -> None:
    budget = Budget(model_calls=10)
    founded = await found_team(world, creates("wonder", max_turns=30), waits(), DONE, budget=budget)
    assert founded.node is not None
    answers = [t.text for t in await world.turns(founded.node.id) if t.role == "tool"]
    assert answers[1].endswith(
        " Your own budget leaves it 4 model calls, so it cannot use all of the 30 turns you gave "
        "it."
    )
