"""Reconvening: a coordinator judges each task of a stage and decides what comes next."""

from typing import Any

import pytest

from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle import endings
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from tests.services.stages import (
    DONE,
    answer_yes,
    child_nodes,
    creates,
    found_team,
    reconvenes,
    stage_of,
    waits,
)
from tests.services.teams import created_ids

S = NodeStatus


def judges_each(*verdicts: dict[str, str], decision: str, assessment: str = "Read."):
    """Return a line that judges the nodes created so far, in their order."""

    def line(request: Request) -> Says:
        nodes = created_ids(request)
        given = [{"node_id": n} | v for n, v in zip(nodes, verdicts, strict=False)]
        return says(call("reconvene", assessment=assessment, verdicts=given, decision=decision))

    return line


ACCEPT = {"verdict": "accept"}
DROP = {"verdict": "drop"}
REDO = {"verdict": "redo", "reason": "Add the sums."}


async def answers_of(world: World, founded: Any) -> list[str]:
    return [t.text for t in await world.turns(founded.node.id) if t.role == "tool"]


async def test_a_redone_task_goes_back_to_its_worker_in_its_thread(world: World) -> None:
    founded = await found_team(
        world,
        creates("a", "b"),
        waits(),
        judges_each(REDO, ACCEPT, decision="redo"),
        reconvenes("Now it is right.", decision="finish"),
        DONE,
    )
    a, b, again = await child_nodes(world, founded)
    stage = await stage_of(world, founded)
    assert (a.stage_id, b.stage_id, again.stage_id) == (None, stage.id, stage.id)
    assert (again.status, again.assignee_id, again.thread_id) == (
        S.COMPLETED,
        a.assignee_id,
        a.thread_id,
    )
    assert again.task == f"a\n\nThis was done before ({a.id}) and is sent back:\nAdd the sums."
    assert (stage.status, stage.decision, stage.assessment) == (
        "reconvened",
        "finish",
        "Now it is right.",
    )
    assert stage.verdicts == {b.id: "accept", again.id: "accept"}
    events = [e.data for e in await world.events(founded.team.id) if e.type == "stage.reconvened"]
    assert [(e["decision"], e["verdicts"]) for e in events] == [
        ("redo", {a.id: "redo: Add the sums.", b.id: "accept"}),
        ("finish", {b.id: "accept", again.id: "accept"}),
    ]


@pytest.mark.slow
async def test_tasks_that_need_each_other_are_redone_in_their_order(world: World) -> None:
    def second(request: Request) -> Says:
        return says(call("create_work_node", task="b", depends_on=created_ids(request)))

    founded = await found_team(
        world,
        creates("a"),
        second,
        waits(),
        judges_each(REDO, REDO, decision="redo"),
        reconvenes("Fine."),
        DONE,
    )
    nodes = await child_nodes(world, founded)
    assert [n.status for n in nodes] == [S.COMPLETED] * 4
    started = {n.id: n.started_at for n in nodes}
    first, then = nodes[2].ended_at, started[nodes[3].id]
    assert first is not None
    assert then is not None
    assert first <= then


async def test_a_dropped_task_is_cancelled_if_it_still_runs(world: World) -> None:
    founded = await found_team(
        world,
        creates("a", "wonder b"),
        waits(contract={"wants": "any"}),
        judges_each(ACCEPT, DROP, decision="continue"),
        DONE,
    )
    a, b = await child_nodes(world, founded)
    assert (a.status, b.status) == (S.COMPLETED, S.CANCELLED)
    stage = await stage_of(world, founded)
    assert (stage.status, stage.verdicts) == ("reconvened", {a.id: "accept", b.id: "drop"})


@pytest.mark.slow
async def test_an_unfinished_task_without_a_verdict_runs_on(world: World) -> None:
    founded = await found_team(
        world,
        creates("a", "wonder b"),
        waits(contract={"wants": "any"}),
        reconvenes("One is enough for now."),
        lambda request: says(call("task_output", id=created_ids(request)[1], blocking=True)),
        DONE,
    )
    _, b = await child_nodes(world, founded)
    assert b.status is S.WAITING
    await answer_yes(world, b)
    assert (await world.node(b.id)).status is S.COMPLETED


async def test_an_assessment_alone_accepts_what_has_ended_and_closes_the_stage(
    world: World,
) -> None:
    founded = await found_team(
        world,
        creates("a", "wonder b"),
        waits(contract={"wants": "any"}),
        says(call("reconvene", assessment="Good enough.")),
        says(call("ask_human", question="What now?")),
    )
    a, b = await child_nodes(world, founded)
    stage = await stage_of(world, founded)
    assert (stage.status, stage.decision, stage.verdicts) == (
        "reconvened",
        "continue",
        {a.id: "accept"},
    )
    assert b.status is S.WAITING


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (judges_each(ACCEPT, decision="redo"), "redo exactly if a task is to be redone"),
        (judges_each(REDO, decision="continue"), "redo exactly if a task is to be redone"),
        (judges_each(REDO | {"reason": " "}, decision="redo"), "redo of {a} needs a reason"),
        (judges_each(ACCEPT, ACCEPT, decision="finish"), "{b} is still waiting: leave it out"),
        (
            judges_each(ACCEPT | {"node_id": "node_none"}, decision="continue"),
            "'node_none' is not a task of this stage; no verdict on {a}",
        ),
    ],
)
async def test_wrong_or_missing_verdicts_are_refused_with_the_list_of_tasks(
    world: World, line: Any, why: str
) -> None:
    founded = await found_team(
        world,
        creates("a", "wonder b"),
        waits(contract={"wants": "any"}),
        line,
        says(call("ask_human", question="What now?")),
    )
    a, b = await child_nodes(world, founded)
    told = (await answers_of(world, founded))[-1]
    assert told.startswith("Nothing was changed: ")
    assert why.format(a=a.id, b=b.id) in told
    assert f"- {a.id}: a (bob), completed\n- {b.id}: wonder b (cyd), waiting; it goes on" in told
    stage = await stage_of(world, founded)
    assert (stage.status, stage.assessment, stage.verdicts) == ("met", None, {})


async def test_what_did_not_succeed_cannot_be_accepted(world: World) -> None:
    founded = await found_team(
        world,
        creates("wonder a"),
        waits(),
        judges_each(ACCEPT, decision="continue"),
        judges_each(DROP, decision="finish"),
        DONE,
    )
    [a] = await child_nodes(world, founded)
    await world.store.write(endings.cancel, a.id)
    await world.settle()
    told = [t for t in await answers_of(world, founded) if t.startswith("Nothing was changed")]
    assert [f"{a.id} is cancelled, so there is nothing to accept" in t for t in told] == [True]
    assert (await stage_of(world, founded)).verdicts == {a.id: "drop"}
