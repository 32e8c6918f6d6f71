"""Spawned agents: completion notices, listing, and leaving and returning to the team."""

from dataclasses import replace

import pytest

from agiraph.core.domain.agents import Limits
from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.persons import OWNER
from agiraph.core.services.board import planning, texts
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.store import messages
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from tests.fences import fenced_result, fenced_task
from tests.folding import folded_differences
from tests.tools.delegated_tasks import (
    ASK,
    DONE,
    WORK,
    S,
    all_members,
    answer_question_of,
    assign,
    assign_in_background,
    member_named,
    waiting_team,
)

# Phase 4: completion notices sent, no self-notification, notification content in one envelope.


async def test_completion_notices_are_sent_to_the_creator_of_the_task(world: World) -> None:
    ada = world.script("ada", says(assign_in_background()), ASK, DONE)
    world.script("bob", WORK, says(call("publish", summary="Three.")))
    founded = await world.found("Count")
    await world.settle()
    _, task = await world.board(founded.team.id)
    bob = await member_named(world, founded.team.id, "bob")
    [sent] = await world.store.read(messages.unseen, founded.coordinator.id)
    assert (sent.kind, sent.sender, sent.recipient, sent.node_id, sent.title) == (
        "result",
        bob.agent.id,
        founded.coordinator.id,
        task.id,
        "Count files",
    )

    await answer_question_of(world, founded.coordinator.id, founded)
    assert ada.heard == sent.text
    assert await world.store.read(messages.unseen, founded.coordinator.id) == []


async def test_a_failed_task_is_reported_to_its_creator(world: World) -> None:
    ada = world.script("ada", says(assign_in_background()), ASK, DONE)
    world.script("bob", says(), says(), says())
    founded = await world.found("Count")
    await world.settle()
    await answer_question_of(world, founded.coordinator.id, founded)

    assert ada.heard.startswith("[Task] bob could not do a task of yours.\nTitle: Count files\n")


async def test_no_self_notification(world: World) -> None:
    ada = world.script("ada", ASK, DONE)

    def own_work(tx: Tx, founded: NewTeam) -> None:
        lead = founded.coordinator
        planning.create(
            tx,
            team_id=founded.team.id,
            task="Note to self",
            source="self",
            creator_id=lead.id,
            assignee_id=lead.id,
        )

    founded = await world.found("Count", mode="infinite")
    await world.settle()
    await world.store.write(own_work, founded)
    world.script("ada", DONE, DONE)
    await world.restart()
    await answer_question_of(world, founded.coordinator.id, founded)

    goal, own = await world.board(founded.team.id)
    assert (goal.status, own.status) == (S.COMPLETED, S.COMPLETED)
    assert await world.store.read(messages.unseen, founded.coordinator.id) == []
    sent = [e.data for e in await world.events(founded.team.id) if e.type == "message.sent"]
    assert [(m["recipient"], m["node_id"]) for m in sent] == [(OWNER, goal.id)]
    assert len(ada.requests) == 1


async def test_an_agent_that_waits_gets_the_result_once_as_the_answer(world: World) -> None:
    world.script("ada", says(assign()), DONE)
    world.script("bob", WORK, says(call("publish", summary="Three.")))
    founded = await world.found("Count")
    await world.settle()

    goal, _ = await world.board(founded.team.id)
    told = [t.role for t in await world.turns(goal.id) if ": the result, in" in t.text]
    sent = [e.data for e in await world.events(founded.team.id) if e.type == "message.sent"]
    assert told == ["tool"]
    assert [m["recipient"] for m in sent] == [OWNER]


async def test_a_result_for_an_agent_that_has_left_goes_to_the_coordinator(world: World) -> None:
    give = {"task": "Count the files", "assigned_to": "new:scripted/bob", "max_turns": 2}
    ada = world.script("ada", says(call("create_work_node", **give)), ASK, DONE)
    world.script(
        "bob",
        says(assign_in_background("new:scripted/cid", "Count mine")),
        says(call("checkpoint", summary="cid counts.")),
        says("My turns are used up; cid counts."),
    )
    world.script("cid", ASK, WORK, says(call("publish", summary="Late.")))
    founded = await world.found("Count")
    await world.settle()
    cid = await member_named(world, founded.team.id, "cid")
    assert (await member_named(world, founded.team.id, "bob")).doing == "left"
    await answer_question_of(world, cid.agent.id, founded)
    await answer_question_of(world, founded.coordinator.id, founded)

    assert ada.heard.startswith("[Task] cid has finished a task of yours.")


async def test_notification_content_is_one_envelope(world: World) -> None:
    world.script("ada", says(assign_in_background()), ASK)
    world.script("bob", WORK, says(call("publish", summary="Three.\n\nSee n.md.")))
    founded = await world.found("Count")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    [sent] = await world.store.read(messages.unseen, founded.coordinator.id)
    assert sent.text == (
        "[Task] bob has finished a task of yours.\n"
        "Title: Count files\n"
        f"Id: {task.id}\n"
        "Status: completed (published)\n"
        f"Files: nodes/{task.id}/published/n.md\n"
        "\n" + fenced_result("Three.\n\nSee n.md.", (await world.thread(goal.id)).id)
    )
    assert await world.store.read(bus.thread_text, sent, "t_1") == sent.text


async def test_notification_content_of_an_assignment_has_refs_and_acceptance(
    world: World,
) -> None:
    node = call(
        "create_work_node",
        task="Count\nthe files",
        acceptance=["`n.md` holds a number"],
        assigned_to="new:scripted/bob",
    )
    world.script("ada", says(node), ASK)
    bob = world.script("bob", WORK, says(call("publish", summary="Three.")))
    founded = await world.found("Count")
    await world.settle()

    _, task = await world.board(founded.team.id)
    with_refs = replace(task, refs={"old": "nodes/node_1/published"})
    head = (
        f"[Task] You have been given a task.\nTitle: Count\nFrom: coordinator\nId: {task.id}\n"
        "Limits: 100 turns\n"
    )
    thread = (await world.thread(task.id)).id
    fenced = fenced_task("Count\nthe files", thread)
    body = f"\n{fenced}\n\nDone means:\n- `n.md` holds a number"
    assert bob.requests[0].turns[0].text == head + body
    assert texts.assignment(with_refs, giver="coordinator", thread=thread) == (
        f"{head}To read with read_ref: old (nodes/node_1/published)\n{body}"
    )


async def test_notification_content_that_is_too_long_is_cut_and_says_so(world: World) -> None:
    founded = await waiting_team(world)
    node = await world.store.write(
        planning.create, team_id=founded.team.id, task="Count", source="user"
    )
    ended, whole = replace(node, status=S.COMPLETED), "ß" * (texts.LONGEST + 5)
    text = texts.completion(ended, worker="bob", text=whole, thread="t_1")
    end = "\n… (5 characters more in its files)"
    assert text.endswith(fenced_result("ß" * texts.LONGEST, "t_1") + end)
    assert text.count("ß") == texts.LONGEST


# Phase 5: agent listing, thread switching, missing agent handling.


async def test_agent_listing_shows_the_work_of_each_agent(world: World) -> None:
    node = call("create_work_node", task="Later", assigned_to="bob")
    world.script(
        "ada", says(assign_in_background(), node, assign("new:scripted/cid", "Sort them")), DONE
    )
    world.script("bob", ASK)
    world.script(
        "cid", says(assign_in_background("new:scripted/dot")), says(call("check_board")), ASK
    )
    world.script("dot", WORK, says(call("publish", summary="Three.")))
    founded = await world.found("Count")
    await world.settle()

    listed = {m.agent.name: m for m in await all_members(world, founded.team.id)}
    assert {name: m.doing for name, m in listed.items()} == {
        "coordinator": "waiting",
        "bob": "waiting_for_you",
        "cid": "waiting_for_you",
        "dot": "left",
    }
    assert {name: m.node.task for name, m in listed.items() if m.node} == {
        "coordinator": "Count",
        "bob": "Count the files",
        "cid": "Sort them",
        "dot": "Count the files",
    }
    present = await world.store.read(roster.members, founded.team.id)
    assert [m.agent.name for m in present] == ["coordinator", "bob", "cid"]


async def test_thread_switching_leads_from_a_thread_to_its_agent(world: World) -> None:
    sort = assign_in_background("new:scripted/cid", "Sort them")
    world.script("ada", says(assign_in_background(), sort), ASK)
    world.script("bob", ASK)
    world.script("cid", WORK, says(call("publish", summary="Two.")))
    founded = await world.found("Count")
    await world.settle()

    _, first, second = await world.board(founded.team.id)
    for node, name, doing in ((first, "bob", "waiting_for_you"), (second, "cid", "left")):
        thread = await world.thread(node.id)
        member = await world.store.read(roster.of_thread, thread.id)
        assert member.thread == thread
        assert member.node == await world.node(node.id)
        assert (member.agent.name, member.doing) == (name, doing)


async def test_thread_switching_leads_to_the_thread_that_was_asked_for(world: World) -> None:
    first = call("spawn_worker", name="bob", model="scripted/bob")
    world.script("ada", says(first), says(assign("bob")), says(assign("bob", "Sort them")), DONE)
    world.script(
        "bob",
        WORK,
        says(call("publish", summary="One.")),
        WORK,
        says(call("publish", summary="Two.")),
    )
    founded = await world.found("Count")
    await world.settle()

    _, *tasks = await world.board(founded.team.id)
    for task in tasks:
        thread = await world.thread(task.id)
        member = await world.store.read(roster.of_thread, thread.id)
        assert (member.thread, member.node) == (thread, task)
        assert (member.agent.name, member.doing) == ("bob", "idle")


async def test_missing_agent_handling(world: World) -> None:
    await waiting_team(world)
    with pytest.raises(NotFound) as missing:
        await world.store.read(roster.of_thread, "t_0.7")

    assert str(missing.value) == (
        "There is no thread 't_0.7'. `agiraph agents` lists agents and threads."
    )


# Ephemeral agents leave and return; a promoted agent stays.


async def test_an_ephemeral_agent_leaves_when_its_task_is_done(world: World) -> None:
    world.script("ada", says(assign()), says(assign("bob")), says(call("check_board")), DONE)
    world.script("bob", WORK, says(call("publish", summary="Three.")))
    founded = await world.found("Count")
    await world.settle()

    goal, _ = await world.board(founded.team.id)
    bob = await member_named(world, founded.team.id, "bob")
    told = [t.text for t in await world.turns(goal.id) if t.role == "tool"]
    left = [e.data for e in await world.events(founded.team.id) if e.type == "agent.left"]
    assert bob.doing == "left"
    assert left == [{"agent_id": bob.agent.id, "name": "bob"}]
    assert told[1].startswith("There is no teammate 'bob'. On this team: coordinator; and 'human'.")
    assert told[2].splitlines()[-2:] == [
        "Team:",
        "- coordinator (coordinator, scripted/ada): working",
    ]


@pytest.mark.slow
async def test_an_ephemeral_agent_comes_back_by_resume_and_leaves_again(world: World) -> None:
    world.script("ada", says(assign()), says(assign("bob", "Sort", resume="bob")), DONE)
    world.script("bob", WORK, says(call("publish", summary="One.")), ASK, says(
        call("publish", summary="Two.")))  # fmt: skip
    founded = await world.found("Count")
    await world.settle()
    bob = await member_named(world, founded.team.id, "bob")
    assert (bob.doing, bob.agent.retired_at) == ("waiting_for_you", None)

    await answer_question_of(world, bob.agent.id, founded)
    _, first, second = await world.board(founded.team.id)
    after = await member_named(world, founded.team.id, "bob")
    assert after.doing == "left"
    assert (after.agent.created_for, second.assignee_id) == (first.id, first.assignee_id)


async def test_an_ephemeral_agent_stays_while_it_has_more_work(world: World) -> None:
    more = call("create_work_node", task="Sort them", assigned_to="bob")
    world.script("ada", says(assign_in_background(), more), ASK)
    hand_in = says(call("publish", summary="Done."))
    world.script("bob", ASK, WORK, hand_in, WORK, hand_in)
    founded = await world.found("Count")
    await world.settle()
    bob = await member_named(world, founded.team.id, "bob")
    await answer_question_of(world, bob.agent.id, founded)

    _, first, second = await world.board(founded.team.id)
    left = [e.data["name"] for e in await world.events(founded.team.id) if e.type == "agent.left"]
    assert (first.status, second.status) == (S.COMPLETED, S.COMPLETED)
    assert first.assignee_id == second.assignee_id
    assert left == ["bob"]


async def test_a_promoted_agent_stays_on_the_team(world: World) -> None:
    world.script(
        "ada",
        says(assign()),
        says(call("promote", worker="BOB")),
        says(assign("bob", "Sort them")),
        says(call("promote", worker="bob"), call("promote", worker="nobody")),
        ASK,
    )
    hand_in = says(call("publish", summary="Done."))
    world.script("bob", WORK, hand_in, WORK, hand_in)
    founded = await world.found("Count")
    await world.settle()

    goal, first, second = await world.board(founded.team.id)
    bob = await member_named(world, founded.team.id, "bob")
    told = [t.text for t in await world.turns(goal.id) if t.role == "tool"]
    types = [e.type for e in await world.events(founded.team.id)]
    assert (bob.doing, bob.agent.persistent, bob.agent.retired_at) == ("idle", True, None)
    assert first.assignee_id == second.assignee_id
    assert (told[1], told[3]) == ("bob stays on the team.", "bob stays on the team.")
    assert told[4] == "There is no teammate 'nobody'. On this team: coordinator, bob; and 'human'."
    assert (types.count("agent.left"), types.count("agent.promoted")) == (1, 1)
    assert types.count("agent.returned") == 1
    assert await world.store.read(folded_differences) == []


async def test_a_full_team_hires_no_agent_and_takes_none_back(world: World) -> None:
    sort = assign_in_background("new:scripted/cid", "Sort them")
    more = (assign("new:scripted/dot", "Print them"), assign("bob", resume="bob"))
    world.script("ada", says(assign()), says(sort), says(*more), ASK)
    world.script("bob", WORK, says(call("publish", summary="One.")))
    world.script("cid", ASK)
    world.script("dot")
    founded = await world.found("Count", limits=Limits(agents=2))
    await world.settle()

    goal, *_ = await world.board(founded.team.id)
    told = [t.text for t in await world.turns(goal.id) if t.role == "tool"]
    full = "The team has 2 members and may have no more."
    assert [text.startswith(full) for text in told] == [False, False, True, True]
    assert (await member_named(world, founded.team.id, "bob")).doing == "left"
