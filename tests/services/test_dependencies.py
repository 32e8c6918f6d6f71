"""A node starts when all its dependencies succeeded; otherwise its `if_unmet` policy decides."""

import asyncio
import re
import threading
from typing import get_args

import pytest

from agiraph.core.domain.agents import Limits
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.work import IfUnmet, NodeStatus, StopReason
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.members import roster
from agiraph.core.store import messages, teams
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from tests.services.teams import (
    ASK_THEN_FINISH,
    NO_MODEL_CALLS,
    add_child,
    created_ids,
    found_waiting_team,
)

S, R = NodeStatus, StopReason


async def ends(world: World, *node_ids: NodeId) -> list[tuple[NodeStatus, StopReason | None]]:
    found = [await world.node(node_id) for node_id in node_ids]
    return [(node.status, node.stop_reason) for node in found]


async def test_a_node_starts_only_when_all_its_dependencies_have_succeeded(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob", "cyd", "dee")
    first = await add_child(world, founded, "wonder first", to=workers["bob"])
    second = await add_child(world, founded, "second", to=workers["cyd"])
    both = await add_child(world, founded, "both", to=workers["dee"], depends_on=[first, second])
    await world.settle()
    assert await ends(world, first, second, both) == [
        (S.WAITING, None),
        (S.COMPLETED, R.PUBLISHED),
        (S.PENDING, None),
    ]

    [_, question] = await world.questions(founded.team.id)
    await world.answer(question, "Go on.")
    await world.settle()
    assert await ends(world, first, both) == [(S.COMPLETED, R.PUBLISHED)] * 2
    started = [e.data["node_id"] for e in await world.events(founded.team.id)
               if e.type == "node.started"]  # fmt: skip
    assert started.index(both) > max(started.index(first), started.index(second))


ENDS: dict[IfUnmet, tuple[NodeStatus, StopReason | None]] = {
    "fail": (S.FAILED, R.UNMET),
    "skip": (S.CANCELLED, R.SKIPPED),
    "go_on": (S.COMPLETED, R.PUBLISHED),
    "ask": (S.PENDING, None),
}


@pytest.mark.parametrize("if_unmet", get_args(IfUnmet))
@pytest.mark.parametrize("how", ["failed", "cancelled", "skipped"])
async def test_an_unmet_dependency_is_handled_by_each_nodes_if_unmet_policy(
    world: World, if_unmet: IfUnmet, how: str
) -> None:
    founded, workers = await found_waiting_team(world, "bob", "cyd", "dee")
    root = await add_child(world, founded, "wonder", to=workers["bob"])
    broken = root
    if how == "skipped":
        broken = await add_child(
            world, founded, "middle", to=workers["dee"], depends_on=[root], if_unmet="skip"
        )
    if how == "failed":
        broken = await add_child(
            world, founded, "middle", to=workers["dee"], depends_on=[root], if_unmet="fail"
        )
    last = await add_child(
        world, founded, "last", to=workers["cyd"], depends_on=[broken], if_unmet=if_unmet
    )
    await world.settle()
    await world.store.write(endings.cancel, root)
    await world.settle()

    assert await ends(world, last) == [ENDS[if_unmet]]
    node = await world.node(last)
    status = "failed" if how == "failed" else "cancelled"
    title = "wonder" if how == "cancelled" else "middle"
    what = f"{title} ({broken}) is {status}"
    assert node.waiting_reason == (f"needs a decision: {what}" if if_unmet == "ask" else None)
    told = await world.store.read(_mail_about, last)
    expected = {
        "fail": [("failure", f"It needs what did not succeed: {what}.")],
        "skip": [("failure", f"It was left out, because it needs what did not succeed: {what}.")],
        "go_on": [("result", "done as told")],
        "ask": [("nudge", f"last ({last}) cannot start as planned: {what}.")],
    }[if_unmet]
    assert [kind for kind, _ in told] == [kind for kind, _ in expected]
    assert expected[0][1] in told[0][1]


def _mail_about(tx: Tx, node_id: NodeId) -> list[tuple[str, str]]:
    return [(m.kind, m.text) for m in messages.of_node(tx, node_id)]


async def test_a_failure_propagates_along_a_chain_up_to_a_node_that_may_go_on(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob", "cyd")
    first = await add_child(world, founded, "wonder", to=workers["bob"])
    second = await add_child(world, founded, "second", depends_on=[first], if_unmet="skip")
    third = await add_child(world, founded, "third", depends_on=[second])
    fourth = await add_child(world, founded, "fourth", depends_on=[third], if_unmet="go_on")
    fifth = await add_child(world, founded, "fifth", depends_on=[fourth, third], if_unmet="skip")
    await world.settle()
    await world.store.write(endings.cancel, first)
    await world.settle()

    assert await ends(world, first, second, third, fourth, fifth) == [
        (S.CANCELLED, R.CANCELLED),
        (S.CANCELLED, R.SKIPPED),
        (S.FAILED, R.UNMET),
        (S.COMPLETED, R.PUBLISHED),
        (S.CANCELLED, R.SKIPPED),
    ]


async def test_a_failed_dependency_decides_while_the_others_still_run(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob", "cyd")
    slow = await add_child(world, founded, "wonder slowly", to=workers["bob"])
    waits_for_all: list[NodeId] = []
    doomed = await add_child(world, founded, "wonder in vain", to=workers["cyd"])
    for if_unmet in get_args(IfUnmet):
        waits_for_all.append(
            await add_child(
                world, founded, if_unmet, to=workers["cyd"], depends_on=[slow, doomed],
                if_unmet=if_unmet,
            )
        )  # fmt: skip
    await world.settle()
    await world.store.write(endings.cancel, doomed)
    await world.settle()
    undecided = (S.PENDING, None)
    assert await ends(world, *waits_for_all) == [ENDS["fail"], ENDS["skip"], undecided, undecided]
    assert (await world.node(waits_for_all[3])).waiting_reason is None

    [question] = [q for q in await world.questions(founded.team.id) if q.node_id == slow]
    await world.answer(question, "Yes.")
    await world.settle()
    assert await ends(world, *waits_for_all) == [ENDS[i] for i in get_args(IfUnmet)]
    assert (await world.node(waits_for_all[3])).waiting_reason is not None


async def test_a_new_node_whose_dependency_already_failed_is_refused(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob", "cyd")
    broken = await add_child(world, founded, "broken", to=workers["bob"], budget=NO_MODEL_CALLS)
    await world.settle()
    assert await ends(world, broken) == [(S.FAILED, R.CALLS_SPENT)]

    for if_unmet in ("fail", "skip", "ask"):
        with pytest.raises(Refused, match=f"{broken} is failed.*if_unmet='go_on'"):
            await add_child(world, founded, "late", depends_on=[broken], if_unmet=if_unmet)
    late = await add_child(
        world, founded, "late", to=workers["cyd"], depends_on=[broken], if_unmet="go_on"
    )
    await world.settle()
    assert await ends(world, late) == [(S.COMPLETED, R.PUBLISHED)]


def _depend(tx: Tx, node_id: NodeId, needs: list[NodeId]) -> None:
    planning.add_dependencies(tx, NODES.get(tx, node_id), needs)


async def test_cyclic_and_unknown_dependencies_are_refused(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob")
    first = await add_child(world, founded, "wonder", to=workers["bob"])
    second = await add_child(world, founded, "second", depends_on=[first])
    third = await add_child(world, founded, "third", depends_on=[second])
    await world.settle()

    with pytest.raises(Refused, match=f"{second} and {second} would wait for each other"):
        await world.store.write(_depend, second, [second])
    with pytest.raises(Refused, match=f"{first} and {third} would wait for each other"):
        await world.store.write(_depend, first, [third])
    with pytest.raises(NotFound, match=r"no node 'node_none'\. check_board lists them"):
        await world.store.write(_depend, third, [NodeId("node_none")])
    with pytest.raises(NotFound):
        await add_child(world, founded, "fourth", depends_on=["node_none"])
    # Dependencies that are known or given twice are accepted.
    await world.store.write(_depend, third, [second, first, first])
    assert {n.task for n in await world.board(founded.team.id)} == {
        "Get it done", "wonder", "second", "third",
    }  # fmt: skip


async def test_a_node_of_another_team_cannot_be_a_dependency(world: World) -> None:
    founded, _ = await found_waiting_team(world)
    other, _ = await found_waiting_team(world)
    assert other.node is not None
    with pytest.raises(NotFound, match=other.node.id):
        await add_child(world, founded, "spy", depends_on=[other.node.id])


async def test_a_reference_to_an_unfinished_node_is_a_dependency(world: World) -> None:
    def refer(request: Request) -> Says:
        [find] = created_ids(request)
        return says(
            call("create_work_node", task="write", assigned_to="cyd",
                 refs={"notes": f"{find}/notes.md", "all": f"nodes/{find}"}),
            call("create_work_node", task="x", refs={"bad": "node_zzzz"}),
            call("create_work_node", task="x", depends_on=["node_zzzz"]),
            call("ask_human", question="Good?"),
        )  # fmt: skip

    start = says(call("ask_human", question="Are all here?"))
    plan = says(call("create_work_node", task="wonder", assigned_to="bob"))
    founded, _ = await found_waiting_team(
        world, "bob", "cyd", lead=(start, plan, refer, *ASK_THEN_FINISH)
    )
    await world.answer((await world.questions(founded.team.id))[0], "Yes.")
    await world.settle()

    goal, find, write = await world.board(founded.team.id)
    assert (find.status, write.status) == (S.WAITING, S.PENDING)
    assert write.refs == {
        "notes": f"nodes/{find.id}/published/notes.md",
        "all": f"nodes/{find.id}/published",
    }
    unknown = "There is no node 'node_zzzz'. check_board lists them with their ids."
    assert [t.text for t in await world.turns(goal.id) if t.role == "tool"][-2:] == [unknown] * 2
    bobs = next(q for q in await world.questions(founded.team.id) if q.text == "May I?")
    await world.answer(bobs, "Yes.")
    await world.settle()
    assert (await world.node(write.id)).status is S.COMPLETED


async def test_a_node_with_two_unmet_dependencies_ends_once(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob")
    root = await add_child(world, founded, "wonder", to=workers["bob"])
    middle = await add_child(world, founded, "middle", depends_on=[root])
    both = await add_child(world, founded, "both", depends_on=[root, middle], if_unmet="skip")
    await world.settle()
    await world.store.write(endings.cancel, root)

    assert await ends(world, middle, both) == [(S.FAILED, R.UNMET), (S.CANCELLED, R.SKIPPED)]
    assert len(await world.store.read(_mail_about, both)) == 1
    events = [e.type for e in await world.events(founded.team.id) if e.data.get("node_id") == both]
    assert events == ["node.created", "node.cancelled", "message.sent"]


async def test_cancelling_a_parent_cancels_all_its_children(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob", "cyd")
    assert founded.node is not None
    first = await add_child(world, founded, "wonder", to=workers["bob"])
    second = await add_child(world, founded, "second", to=workers["cyd"], depends_on=[first])
    third = await add_child(world, founded, "third", depends_on=[first], if_unmet="go_on")
    await world.settle()
    await world.store.write(endings.cancel, founded.node.id)
    await world.settle()

    cancelled = (S.CANCELLED, R.CANCELLED)
    assert await ends(world, founded.node.id, first, second, third) == [cancelled] * 4
    hired = [e for e in await world.events(founded.team.id) if e.type == "agent.hired"]
    assert len(hired) == 3  # nobody was hired for nodes that are about to be cancelled


async def test_a_temporary_worker_stays_while_it_has_a_pending_node(world: World) -> None:
    """Ending a node must not fail because a full team cannot take a worker back."""
    founded, workers = await found_waiting_team(world, "bob", limits=Limits(agents=3))
    temp = await world.store.write(
        roster.hire, founded.team.id, name="temp", role="worker", model="scripted/hand",
        persistent=False,
    )  # fmt: skip
    first = await add_child(world, founded, "wonder", to=workers["bob"])
    now = await add_child(world, founded, "now", to=temp)
    later = await add_child(world, founded, "later", to=temp, depends_on=[first])
    await world.settle()
    assert await ends(world, now, later) == [(S.COMPLETED, R.PUBLISHED), (S.PENDING, None)]
    with pytest.raises(Refused, match="The team has 3 members"):
        await world.store.write(
            roster.hire, founded.team.id, name="eve", role="worker", model="scripted/hand"
        )

    [question] = [q for q in await world.questions(founded.team.id) if q.node_id == first]
    await world.answer(question, "Yes.")
    await world.settle()
    assert await ends(world, first, later) == [(S.COMPLETED, R.PUBLISHED)] * 2
    members = await world.store.read(teams.members, founded.team.id)
    assert [m.name for m in members] == ["coordinator", "bob"]


async def test_a_needed_decision_reaches_a_coordinator_that_waits_to_finish(world: World) -> None:
    def decide(request: Request) -> Says:
        [waiting] = re.findall(r"last \((node_\w+)\) cannot", request.transcript.turns[-2].text)
        return says(call("assign_worker", node_id=waiting, worker_id="cyd"))

    lead = (
        says(call("ask_human", question="Shall we?")),
        says(call("finish", summary="for now")),
        decide,
        says(call("finish", summary="decided")),
    )
    founded, workers = await found_waiting_team(world, "bob", "cyd", lead=lead, mode="infinite")
    first = await add_child(world, founded, "wonder", to=workers["bob"])
    last = await add_child(world, founded, "last", depends_on=[first], if_unmet="ask")
    assert founded.node is not None
    [question] = [q for q in await world.questions(founded.team.id) if q.node_id == founded.node.id]
    await world.answer(question, "Not now.")
    await world.settle()
    await world.store.write(endings.cancel, first)
    await world.settle()

    assert await ends(world, last) == [(S.COMPLETED, R.PUBLISHED)]
    assert [n.result for n in await world.board(founded.team.id) if n.parent_id is None] == [
        "decided"
    ]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_a_dependency_that_ends_while_it_is_being_added_is_noticed(world: World) -> None:
    looked, may_commit = threading.Event(), threading.Event()
    founded, workers = await found_waiting_team(world, "bob", "cyd")
    first = await add_child(world, founded, "wonder", to=workers["bob"])
    await world.settle()

    def slowly(tx: Tx) -> NodeId:
        node = planning.create(
            tx, team_id=founded.team.id, task="second", source="delegation",
            creator_id=founded.coordinator.id, assignee_id=workers["cyd"].id, depends_on=[first],
        )  # fmt: skip
        looked.set()
        may_commit.wait(5)
        return node.id

    making = asyncio.ensure_future(world.store.write(slowly))
    await asyncio.to_thread(looked.wait)
    ending = asyncio.ensure_future(world.store.write(endings.cancel, first))
    await asyncio.wait({ending}, timeout=0.5)  # it ends now, unless a row lock delays it
    may_commit.set()
    second = await making
    await ending
    assert await ends(world, second) == [(S.FAILED, R.UNMET)]
