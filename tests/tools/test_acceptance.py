"""Acceptance: a result is checked against its evidence; doubts are reported with it."""

from typing import Any

import pytest

from agiraph.core.domain.agents import Limits
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle.teams import NewTeam, pause, resume
from agiraph.core.services.members import roster
from agiraph.core.store.tx import Tx
from agiraph.core.tools.objections import ADVICE
from agiraph.testing import Call, Says, World, call, says
from tests.doubts import doubts_of
from tests.services.teams import ASK_THEN_FINISH, add_child, found_waiting_team

S = NodeStatus
GIVE = call("assign_task", agent="new:scripted/wes", task="Do it.", description="do it")


async def publish_as_worker(
    world: World, *lines: Says | Call, acceptance: list[str] | None = None
) -> tuple[WorkNode, list[str], str]:
    """Run a worker; return its node, the answers of its calls, and what its coordinator read."""
    steps = [says(line) if isinstance(line, Call) else line for line in lines]
    world.script("wes", *steps, insists=False)
    make = call(
        "create_work_node", task="Do it.", assigned_to="new:scripted/wes", acceptance=acceptance
    )
    world.script(
        "ada",
        says(make),
        lambda request: says(
            call("task_output", id=request.transcript.turns[-2].text.split()[1][:-1], blocking=True)
        ),
        says(call("check_board")),
        says(call("finish", summary="done")),
    )
    founded = await world.found("Have it done")
    await world.settle()
    goal, node, *_ = await world.board(founded.team.id)
    answers = [t.text for t in await world.turns(node.id) if t.role == "tool"]
    told = [t.text for t in await world.turns(goal.id) if t.role == "tool"]
    return node, answers, "\n".join(told[1:3])


def publish(*evidence: str) -> Call:
    return call("publish", summary="all done", evidence=list(evidence))


WRITE = call("write_file", path="report.md", content="words")
LINES = ["`report.md` has the numbers", "the tests pass"]


async def test_a_result_with_evidence_is_accepted_at_once(world: World) -> None:
    node, answers, told = await publish_as_worker(
        world,
        WRITE,
        call("bash", command="true && echo fine"),
        publish("file:report.md", "ran:true"),
        acceptance=LINES,
    )
    assert (node.status, doubts_of(node)) == (S.COMPLETED, None)
    assert answers[-1] == "Published: report.md."
    assert "Not confirmed" not in told


@pytest.mark.parametrize(
    ("evidence", "missing"),
    [
        ((), ["no file 'report.md' is delivered, but '`report.md` has the numbers' asks for it",
              "nothing is given as evidence for 'the tests pass'"]),
        (("file:other.md", "file:gone.md"),
         ["no file 'report.md' is delivered, but '`report.md` has the numbers' asks for it",
          "no file 'other.md' is delivered, but it was given as evidence",
          "no file 'gone.md' is delivered, but it was given as evidence"]),
        (("it is there", "ran:pytest"),
         ["no file 'report.md' is delivered, but '`report.md` has the numbers' asks for it",
          "no command 'pytest' was run that succeeded"]),
    ],
)  # fmt: skip
async def test_missing_evidence_is_refused_once_and_then_reported_as_doubts(
    world: World, evidence: tuple[str, ...], missing: list[str]
) -> None:
    ran = call("bash", command="pytest-of-nobody; false")
    node, answers, told = await publish_as_worker(
        world, ran, publish(*evidence), publish(*evidence), acceptance=LINES
    )
    doubts = "; ".join(missing)
    how = ADVICE["no_evidence"] if not evidence else ""
    assert answers[1] == (
        f"[Not accepted] {doubts}.{how} Put it right (2 of 100 turns are used), or call publish "
        "again and say in the summary why it cannot be done; then the work ends with these doubts, "
        "and whoever asked for it reads them."
    )
    assert (node.status, doubts_of(node)) == (S.COMPLETED, doubts)
    assert f"Not confirmed: {doubts}" in told
    assert f"{node.id} [completed] Do it. (wes); not confirmed: {doubts}" in told


async def test_a_corrected_result_has_no_doubts(world: World) -> None:
    node, answers, _ = await publish_as_worker(
        world,
        publish(),
        WRITE,
        publish("", "I read it twice"),
        acceptance=LINES,
    )
    assert answers[0].startswith("[Not accepted] ")
    assert (doubts_of(node), world.published(node)) == (None, {"report.md": "words"})


@pytest.mark.parametrize(
    ("did", "doubts"),
    [
        ([publish()], "nothing was read, written, run or given to anyone"),
        ([call("checkpoint", summary="busy"), call("check_board"), publish()],
         "nothing was read, written, run or given to anyone"),
        ([call("bash", command="exit 1"), publish()],
         "nothing was read, written, run or given to anyone"),
        ([call("bash", command="echo hi")], None),
        ([WRITE], None),
    ],
)  # fmt: skip
async def test_a_result_without_any_work_is_sent_back_and_then_doubted(
    world: World, did: list[Call], doubts: str | None
) -> None:
    node, _, told = await publish_as_worker(world, *did, publish())
    assert (node.status, doubts_of(node)) == (S.COMPLETED, doubts)
    assert (f"Not confirmed: {doubts}" in told) == (doubts is not None)


async def test_work_of_an_earlier_task_is_no_evidence_for_the_next(world: World) -> None:
    world.script(
        "wes",
        says(call("bash", command="echo tested")),
        says(publish()),
        says(publish()),
    )
    again: dict[str, Any] = {"agent": "wes", "description": "again", "task": "Again."}
    world.script(
        "ada",
        says(GIVE),
        lambda request: says(call("assign_task", resume="wes", **again)),
        says(call("finish", summary="done")),
    )
    founded = await world.found("Have it done twice")
    await world.settle()
    _, first, second = await world.board(founded.team.id)
    assert doubts_of(first) is None
    assert doubts_of(second) == "nothing was read, written, run or given to anyone"


async def test_unowned_work_goes_to_an_idle_agent_with_the_tools_or_a_new_one(
    world: World,
) -> None:
    founded, _ = await found_waiting_team(world, "bob")
    assert founded.node is not None
    await world.store.write(
        roster.hire, founded.team.id, name="reader", role="worker", model="scripted/hand",
        tools=("read_file",),
    )  # fmt: skip
    reading = await add_child(world, founded, "wonder at files", needs_tools=("read_file",))
    shell = await add_child(world, founded, "wonder at shells", needs_tools=("bash",))
    await world.store.write(_assign_unowned, founded)
    await world.settle()
    assert [await assignee_name(world, n) for n in (reading, shell)] == ["bob", "worker"]
    more = await add_child(world, founded, "wonder again", needs_tools=("read_file",))
    await world.store.write(_assign_unowned, founded)
    await world.settle()
    assert await assignee_name(world, more) == "reader"


async def test_unowned_work_waits_with_a_reason_until_an_agent_is_free(
    world: World,
) -> None:
    founded, workers = await found_waiting_team(world, "bob", limits=Limits(agents=2))
    asking = await add_child(world, founded, "wonder", to=workers["bob"])
    waiting = await add_child(world, founded, "later")
    await world.settle()
    await world.store.write(_assign_unowned, founded)
    node = await world.node(waiting)
    assert (node.status, node.waiting_reason) == (
        S.PENDING,
        "nobody is free: The team has 2 members and may have no more. Give the work to one of "
        "them, or wait until a member that was hired for one task is done.",
    )
    [question] = [q for q in await world.questions(founded.team.id) if q.node_id == asking]
    await world.answer(question, "Yes.")
    await world.settle()
    assert (await world.node(waiting)).status is S.COMPLETED
    assert await assignee_name(world, waiting) == "bob"


async def test_unowned_work_of_a_paused_team_is_assigned_when_it_resumes(
    world: World,
) -> None:
    founded, _ = await found_waiting_team(world, "bob")
    await world.store.write(pause, founded.team.id)
    node_id = await add_child(world, founded, "later")
    await world.store.write(_assign_unowned, founded)
    await world.settle()
    assert (await world.node(node_id)).status is S.PENDING
    await world.store.write(resume, founded.team.id)
    await world.settle()
    assert (await world.node(node_id)).status is S.COMPLETED


async def test_a_node_that_needs_unknown_tools_is_refused(world: World) -> None:
    make = call("create_work_node", task="Fly.", tools=["fly", "bash"])
    founded, _ = await found_waiting_team(world, lead=(says(make), *ASK_THEN_FINISH))
    assert founded.node is not None
    [answer] = [t.text for t in await world.turns(founded.node.id) if t.role == "tool"]
    assert answer.startswith("There are no tools called fly. There are: ask_human, ")


async def test_a_worker_keeps_its_notes_from_one_node_to_the_next(world: World) -> None:
    wes = world.script(
        "wes",
        says(call("write_file", path="agents/wes/MEMORY.md", content="The key is under the mat.")),
        says(call("write_file", path="agents/wes/NOTEBOOK.md", content="Day one: found it.")),
        says(publish()),
        says(publish()),
    )
    founded, _ = await found_waiting_team(world)
    worker = await world.store.write(
        roster.hire, founded.team.id, name="wes", role="worker", model="scripted/wes"
    )
    for task in ("first", "second"):
        await add_child(world, founded, task, to=worker)
        await world.settle()
    assert "The key is under the mat." not in wes.requests[0].system
    assert "The key is under the mat." in wes.requests[-1].system
    assert "Day one: found it." in wes.requests[-1].system


def _assign_unowned(tx: Tx, founded: NewTeam) -> None:
    planning.assign_unowned(tx, founded.team.id)


async def assignee_name(world: World, node_id: NodeId) -> str:
    node = await world.node(node_id)
    return (await world.agent(node.assignee_id)).name
