"""The time limit of a stage; its clock pauses while a node waits for a person."""

from agiraph.core.domain.agents import Limits
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.members import roster
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from tests.services.stages import (
    BEGIN,
    answer_yes,
    child_nodes,
    creates,
    found_team,
    pass_time,
    reconvenes,
    stage_of,
    waits,
)
from tests.services.teams import found_waiting_team

S = NodeStatus


async def test_a_stage_that_times_out_names_its_unfinished_nodes(world: World) -> None:
    founded = await found_team(
        world,
        creates("a"),
        waits(contract={"timeout_seconds": 60}),
        reconvenes("Too late."),
        says(call("ask_human", question="What now?")),
        names=(),
        limits=Limits(agents=1),
    )
    await pass_time(world, 59)
    assert (await stage_of(world, founded)).status == "running"
    await pass_time(world, 1)

    stage = await stage_of(world, founded)
    [node] = await child_nodes(world, founded)
    full = "nobody is free: The team has 1 members and may have no more."
    assert (stage.status, stage.assessment) == ("reconvened", "Too late.")
    assert (node.status, (node.waiting_reason or "")[: len(full)]) == (S.PENDING, full)
    assert founded.node is not None
    told = [t.text for t in await world.turns(founded.node.id) if t.role == "tool"][-2]
    assert told.startswith("Stage 'first' ran out of time (wanted: all).")
    assert f"[Task] a ({node.id}, nobody): pending: {full}" in told


async def test_the_clock_pauses_while_a_node_waits_for_a_person_even_across_a_restart(
    world: World,
) -> None:
    founded = await found_team(
        world,
        creates("wonder", assigned_to="bob"),
        creates("a", tools=["check_board"], assigned_to="cyd"),
        waits(contract={"timeout_seconds": 60}),
        says(call("ask_human", question="What now?")),
    )
    asking, _ = await child_nodes(world, founded)
    await pass_time(world, 3600)
    assert (await stage_of(world, founded)).status == "running"
    await world.restart()
    await pass_time(world, 3600)
    assert (await stage_of(world, founded)).status == "running"

    await answer_yes(world, asking)
    stage = await stage_of(world, founded)
    assert (stage.status, stage.paused_seconds) == ("met", 7200.0)


async def test_the_clock_runs_again_after_the_person_has_answered(world: World) -> None:
    lead = (
        BEGIN,
        creates("wonder", assigned_to="bob"),
        creates("what bob has no tools for", tools=["bash"]),
        waits(contract={"timeout_seconds": 60}),
        says(call("ask_human", question="What now?")),
    )
    founded, _ = await found_waiting_team(world, lead=lead, limits=Limits(agents=2))
    await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/hand",
        tools=("ask_human",),
    )  # fmt: skip
    assert founded.node is not None
    await answer_yes(world, founded.node)
    asking, left = await child_nodes(world, founded)
    assert (asking.status, left.status) == (S.WAITING, S.PENDING)

    await pass_time(world, 1000)
    await answer_yes(world, asking)
    await pass_time(world, 59)
    assert (await stage_of(world, founded)).status == "running"
    await pass_time(world, 1)
    assert (await stage_of(world, founded)).status == "timed_out"


async def test_the_clock_pauses_while_a_grandchild_waits_for_a_person(world: World) -> None:
    world.script(
        "boss",
        says(call("assign_task", agent="new:scripted/hand", task="wonder", description="ask")),
        says(call("publish", summary="asked")),
    )
    founded = await found_team(
        world,
        creates("let ask", assigned_to="new:scripted/boss"),
        waits(contract={"timeout_seconds": 60}),
        says(call("ask_human", question="What now?")),
        names=(),
    )
    await pass_time(world, 3600)
    assert (await stage_of(world, founded)).status == "running"
    _, grandchild = await child_nodes(world, founded)
    await answer_yes(world, grandchild)
    stage = await stage_of(world, founded)
    assert (stage.status, stage.paused_seconds) == ("met", 3600.0)


async def test_the_clock_pauses_for_a_question_from_before_the_stage(
    world: World,
) -> None:
    founded = await found_team(
        world,
        creates("wonder", assigned_to="bob"),
        says(call("ask_human", question="Shall I wait for it?")),
        waits(contract={"timeout_seconds": 60}),
        says(call("ask_human", question="What now?")),
    )
    assert founded.node is not None
    await answer_yes(world, founded.node)
    await pass_time(world, 3600)
    assert (await stage_of(world, founded)).status == "running"
    [asking] = await child_nodes(world, founded)
    await answer_yes(world, asking)
    assert (await stage_of(world, founded)).status == "met"


async def test_the_clock_runs_while_a_node_works_with_its_question_still_open(world: World) -> None:
    """The person's message ends the wait; from then on the clock runs again."""

    def busy(_: Request) -> Says:
        world.clock.advance(seconds=30)
        return says(call("publish", summary="done"))

    world.script("bob", says(call("ask_human", question="May I?")), busy)
    founded = await found_team(
        world,
        creates("a", assigned_to="new:scripted/bob"),
        waits(contract={"timeout_seconds": 60}),
        says(call("ask_human", question="What now?")),
        names=(),
    )
    [asking] = await child_nodes(world, founded)
    await pass_time(world, 1000)
    assert asking.assignee_id is not None
    await world.chat(asking.assignee_id, "Hurry up.", nudge=True)
    await world.settle()
    stage = await stage_of(world, founded)
    assert (stage.status, stage.paused_seconds) == ("met", 1000.0)
