"""A stage has so much time; none of it passes while a person is asked."""

from agiraph.domain.agents import Limits
from agiraph.domain.work import NodeStatus
from agiraph.providers.base import Request
from agiraph.services.members import roster
from agiraph.testing import Says, World, call, says
from tests.services.staging import BEGIN, allow, begun, made, pass_time, the_stage, wait, work
from tests.services.team import gathered

S = NodeStatus


async def test_a_stage_runs_out_of_time_and_says_what_it_waited_for(world: World) -> None:
    founded = await begun(
        world,
        made("a"),
        wait(contract={"timeout_seconds": 60}),
        says(call("reconvene", assessment="Too late.")),
        says(call("ask_human", question="What now?")),
        names=(),
        limits=Limits(agents=1),
    )
    await pass_time(world, 59)
    assert (await the_stage(world, founded)).status == "running"
    await pass_time(world, 1)

    stage = await the_stage(world, founded)
    [node] = await work(world, founded)
    full = "nobody is free: The team has 1 members and may have no more."
    assert (stage.status, stage.assessment) == ("reconvened", "Too late.")
    assert (node.status, (node.waiting_reason or "")[: len(full)]) == (S.PENDING, full)
    assert founded.node is not None
    told = [t.text for t in await world.turns(founded.node.id) if t.role == "tool"][-2]
    assert told.startswith("Stage 'first' ran out of time (wanted: all).")
    assert f"[Task] a ({node.id}, nobody): pending: {full}" in told


async def test_time_does_not_run_while_a_person_is_asked_even_across_a_restart(
    world: World,
) -> None:
    founded = await begun(
        world,
        made("wonder", assigned_to="bob"),
        made("a", tools=["check_board"], assigned_to="cyd"),
        wait(contract={"timeout_seconds": 60}),
        says(call("ask_human", question="What now?")),
    )
    asking, _ = await work(world, founded)
    await pass_time(world, 3600)
    assert (await the_stage(world, founded)).status == "running"
    await world.restart()
    await pass_time(world, 3600)
    assert (await the_stage(world, founded)).status == "running"

    await allow(world, asking)
    stage = await the_stage(world, founded)
    assert (stage.status, stage.paused_seconds) == ("met", 7200.0)


async def test_time_runs_on_when_nobody_is_asked_any_more(world: World) -> None:
    lead = (
        BEGIN,
        made("wonder", assigned_to="bob"),
        made("what bob has no tools for", tools=["bash"]),
        wait(contract={"timeout_seconds": 60}),
        says(call("ask_human", question="What now?")),
    )
    founded, _ = await gathered(world, lead=lead, limits=Limits(agents=2))
    await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/hand",
        tools=("ask_human",),
    )  # fmt: skip
    assert founded.node is not None
    await allow(world, founded.node)
    asking, left = await work(world, founded)
    assert (asking.status, left.status) == (S.WAITING, S.PENDING)

    await pass_time(world, 1000)
    await allow(world, asking)
    await pass_time(world, 59)
    assert (await the_stage(world, founded)).status == "running"
    await pass_time(world, 1)
    assert (await the_stage(world, founded)).status == "timed_out"


async def test_time_stands_still_while_a_grandchild_asks(world: World) -> None:
    world.script(
        "boss",
        says(call("assign_task", agent="new:scripted/hand", task="wonder", description="ask")),
        says(call("publish", summary="asked")),
    )
    founded = await begun(
        world,
        made("let ask", assigned_to="new:scripted/boss"),
        wait(contract={"timeout_seconds": 60}),
        says(call("ask_human", question="What now?")),
        names=(),
    )
    await pass_time(world, 3600)
    assert (await the_stage(world, founded)).status == "running"
    _, grandchild = await work(world, founded)
    await allow(world, grandchild)
    stage = await the_stage(world, founded)
    assert (stage.status, stage.paused_seconds) == ("met", 3600.0)


async def test_time_stands_still_for_a_node_that_asked_before_the_stage_began(
    world: World,
) -> None:
    founded = await begun(
        world,
        made("wonder", assigned_to="bob"),
        says(call("ask_human", question="Shall I wait for it?")),
        wait(contract={"timeout_seconds": 60}),
        says(call("ask_human", question="What now?")),
    )
    assert founded.node is not None
    await allow(world, founded.node)
    await pass_time(world, 3600)
    assert (await the_stage(world, founded)).status == "running"
    [asking] = await work(world, founded)
    await allow(world, asking)
    assert (await the_stage(world, founded)).status == "met"


async def test_time_runs_on_while_somebody_goes_on_with_an_open_question(world: World) -> None:
    """A person's words end the wait; from then on it is the work that takes the time."""

    def busy(_: Request) -> Says:
        world.clock.advance(seconds=30)
        return says(call("publish", summary="done"))

    world.script("bob", says(call("ask_human", question="May I?")), busy)
    founded = await begun(
        world,
        made("a", assigned_to="new:scripted/bob"),
        wait(contract={"timeout_seconds": 60}),
        says(call("ask_human", question="What now?")),
        names=(),
    )
    [asking] = await work(world, founded)
    await pass_time(world, 1000)
    assert asking.assignee_id is not None
    await world.chat(asking.assignee_id, "Hurry up.", nudge=True)
    await world.settle()
    stage = await the_stage(world, founded)
    assert (stage.status, stage.paused_seconds) == ("met", 1000.0)
