"""A node starts when all it needs has succeeded; if that cannot be, it ends or is told of."""

import asyncio
import re
import threading
from typing import get_args

import pytest

from agiraph.domain.agents import Limits
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.ids import NodeId
from agiraph.domain.work import IfUnmet, NodeStatus, StopReason
from agiraph.providers.base import Request
from agiraph.services.board import planning
from agiraph.services.lifecycle import endings
from agiraph.services.members import roster
from agiraph.store import messages, teams
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx
from agiraph.testing import Says, World, call, says
from tests.services.team import NOTHING, REST, created, gathered, put

S, R = NodeStatus, StopReason


async def ends(world: World, *node_ids: NodeId) -> list[tuple[NodeStatus, StopReason | None]]:
    found = [await world.node(node_id) for node_id in node_ids]
    return [(node.status, node.stop_reason) for node in found]


async def test_a_node_starts_only_when_all_it_needs_has_succeeded(world: World) -> None:
    founded, hands = await gathered(world, "bob", "cyd", "dee")
    first = await put(world, founded, "wonder first", to=hands["bob"])
    second = await put(world, founded, "second", to=hands["cyd"])
    both = await put(world, founded, "both", to=hands["dee"], depends_on=[first, second])
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
async def test_what_did_not_succeed_is_dealt_with_as_each_declares(
    world: World, if_unmet: IfUnmet, how: str
) -> None:
    founded, hands = await gathered(world, "bob", "cyd", "dee")
    root = await put(world, founded, "wonder", to=hands["bob"])
    broken = root
    if how == "skipped":
        broken = await put(
            world, founded, "middle", to=hands["dee"], depends_on=[root], if_unmet="skip"
        )
    if how == "failed":
        broken = await put(
            world, founded, "middle", to=hands["dee"], depends_on=[root], if_unmet="fail"
        )
    last = await put(
        world, founded, "last", to=hands["cyd"], depends_on=[broken], if_unmet=if_unmet
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


async def test_a_failure_travels_down_a_chain_and_stops_where_one_may_go_on(world: World) -> None:
    founded, hands = await gathered(world, "bob", "cyd")
    first = await put(world, founded, "wonder", to=hands["bob"])
    second = await put(world, founded, "second", depends_on=[first], if_unmet="skip")
    third = await put(world, founded, "third", depends_on=[second])
    fourth = await put(world, founded, "fourth", depends_on=[third], if_unmet="go_on")
    fifth = await put(world, founded, "fifth", depends_on=[fourth, third], if_unmet="skip")
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


async def test_one_failed_need_decides_while_others_still_run(world: World) -> None:
    founded, hands = await gathered(world, "bob", "cyd")
    slow = await put(world, founded, "wonder slowly", to=hands["bob"])
    waits_for_all: list[NodeId] = []
    doomed = await put(world, founded, "wonder in vain", to=hands["cyd"])
    for if_unmet in get_args(IfUnmet):
        waits_for_all.append(
            await put(
                world, founded, if_unmet, to=hands["cyd"], depends_on=[slow, doomed],
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


async def test_work_whose_need_failed_before_it_was_made_is_refused_at_once(world: World) -> None:
    founded, hands = await gathered(world, "bob", "cyd")
    broken = await put(world, founded, "broken", to=hands["bob"], budget=NOTHING)
    await world.settle()
    assert await ends(world, broken) == [(S.FAILED, R.CALLS_SPENT)]

    for if_unmet in ("fail", "skip", "ask"):
        with pytest.raises(Refused, match=f"{broken} is failed.*if_unmet='go_on'"):
            await put(world, founded, "late", depends_on=[broken], if_unmet=if_unmet)
    late = await put(world, founded, "late", to=hands["cyd"], depends_on=[broken], if_unmet="go_on")
    await world.settle()
    assert await ends(world, late) == [(S.COMPLETED, R.PUBLISHED)]


def _depend(tx: Tx, node_id: NodeId, needs: list[NodeId]) -> None:
    planning.add_dependencies(tx, NODES.get(tx, node_id), needs)


async def test_circles_and_unknown_needs_are_refused_when_they_are_written(world: World) -> None:
    founded, hands = await gathered(world, "bob")
    first = await put(world, founded, "wonder", to=hands["bob"])
    second = await put(world, founded, "second", depends_on=[first])
    third = await put(world, founded, "third", depends_on=[second])
    await world.settle()

    with pytest.raises(Refused, match=f"{second} and {second} would wait for each other"):
        await world.store.write(_depend, second, [second])
    with pytest.raises(Refused, match=f"{first} and {third} would wait for each other"):
        await world.store.write(_depend, first, [third])
    with pytest.raises(NotFound, match=r"no node 'node_none'\. check_board lists them"):
        await world.store.write(_depend, third, [NodeId("node_none")])
    with pytest.raises(NotFound):
        await put(world, founded, "fourth", depends_on=["node_none"])
    await world.store.write(_depend, third, [second, first, first])  # known, or twice: no harm
    assert {n.task for n in await world.board(founded.team.id)} == {
        "Get it done", "wonder", "second", "third",
    }  # fmt: skip


async def test_another_teams_node_cannot_be_needed(world: World) -> None:
    founded, _ = await gathered(world)
    other, _ = await gathered(world)
    assert other.node is not None
    with pytest.raises(NotFound, match=other.node.id):
        await put(world, founded, "spy", depends_on=[other.node.id])


async def test_refs_to_what_is_not_done_yet_are_waited_for(world: World) -> None:
    def refer(request: Request) -> Says:
        [find] = created(request)
        return says(
            call("create_work_node", task="write", assigned_to="cyd",
                 refs={"notes": f"{find}/notes.md", "all": f"nodes/{find}"}),
            call("create_work_node", task="x", refs={"bad": "node_zzzz"}),
            call("create_work_node", task="x", depends_on=["node_zzzz"]),
            call("ask_human", question="Good?"),
        )  # fmt: skip

    start = says(call("ask_human", question="Are all here?"))
    plan = says(call("create_work_node", task="wonder", assigned_to="bob"))
    founded, _ = await gathered(world, "bob", "cyd", lead=(start, plan, refer, *REST))
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


async def test_what_needs_two_of_a_broken_chain_ends_once(world: World) -> None:
    founded, hands = await gathered(world, "bob")
    root = await put(world, founded, "wonder", to=hands["bob"])
    middle = await put(world, founded, "middle", depends_on=[root])
    both = await put(world, founded, "both", depends_on=[root, middle], if_unmet="skip")
    await world.settle()
    await world.store.write(endings.cancel, root)

    assert await ends(world, middle, both) == [(S.FAILED, R.UNMET), (S.CANCELLED, R.SKIPPED)]
    assert len(await world.store.read(_mail_about, both)) == 1
    events = [e.type for e in await world.events(founded.team.id) if e.data.get("node_id") == both]
    assert events == ["node.created", "node.cancelled", "message.sent"]


async def test_a_cancelled_parent_takes_all_its_children_along_as_cancelled(world: World) -> None:
    founded, hands = await gathered(world, "bob", "cyd")
    assert founded.node is not None
    first = await put(world, founded, "wonder", to=hands["bob"])
    second = await put(world, founded, "second", to=hands["cyd"], depends_on=[first])
    third = await put(world, founded, "third", depends_on=[first], if_unmet="go_on")
    await world.settle()
    await world.store.write(endings.cancel, founded.node.id)
    await world.settle()

    cancelled = (S.CANCELLED, R.CANCELLED)
    assert await ends(world, founded.node.id, first, second, third) == [cancelled] * 4
    hired = [e for e in await world.events(founded.team.id) if e.type == "agent.hired"]
    assert len(hired) == 3  # nobody was taken on for what was about to be cancelled


async def test_whoever_is_to_do_something_later_stays_for_it(world: World) -> None:
    """An end must never be refused because somebody else could not be brought back for it."""
    founded, hands = await gathered(world, "bob", limits=Limits(agents=3))
    temp = await world.store.write(
        roster.hire, founded.team.id, name="temp", role="worker", model="scripted/hand",
        persistent=False,
    )  # fmt: skip
    first = await put(world, founded, "wonder", to=hands["bob"])
    now = await put(world, founded, "now", to=temp)
    later = await put(world, founded, "later", to=temp, depends_on=[first])
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


async def test_a_decision_wakes_a_coordinator_that_has_nothing_left_to_do(world: World) -> None:
    def decide(request: Request) -> Says:
        [waiting] = re.findall(r"last \((node_\w+)\) cannot", request.transcript.turns[1].text)
        return says(call("assign_worker", node_id=waiting, worker_id="cyd"))

    lead = (
        says(call("ask_human", question="Shall we?")),
        says(call("finish", summary="for now")),
        decide,
        says(call("finish", summary="decided")),
    )
    founded, hands = await gathered(world, "bob", "cyd", lead=lead, mode="infinite")
    first = await put(world, founded, "wonder", to=hands["bob"])
    last = await put(world, founded, "last", depends_on=[first], if_unmet="ask")
    assert founded.node is not None
    [question] = [q for q in await world.questions(founded.team.id) if q.node_id == founded.node.id]
    await world.answer(question, "Not now.")
    await world.settle()
    await world.store.write(endings.cancel, first)
    await world.settle()

    assert await ends(world, last) == [(S.COMPLETED, R.PUBLISHED)]
    assert [n.result for n in await world.board(founded.team.id) if n.parent_id is None] == [
        "for now",
        "decided",
    ]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_a_need_that_ends_while_it_is_written_down_is_noticed(world: World) -> None:
    looked, may_commit = threading.Event(), threading.Event()
    founded, hands = await gathered(world, "bob", "cyd")
    first = await put(world, founded, "wonder", to=hands["bob"])
    await world.settle()

    def slowly(tx: Tx) -> NodeId:
        node = planning.create(
            tx, team_id=founded.team.id, task="second", source="delegation",
            creator_id=founded.coordinator.id, assignee_id=hands["cyd"].id, depends_on=[first],
        )  # fmt: skip
        looked.set()
        may_commit.wait(5)
        return node.id

    making = asyncio.ensure_future(world.store.write(slowly))
    await asyncio.to_thread(looked.wait)
    ending = asyncio.ensure_future(world.store.write(endings.cancel, first))
    await asyncio.wait({ending}, timeout=0.5)  # it ends now, if nothing keeps it
    may_commit.set()
    second = await making
    await ending
    assert await ends(world, second) == [(S.FAILED, R.UNMET)]
