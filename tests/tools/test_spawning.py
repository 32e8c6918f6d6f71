"""Spawning: a task for `new:provider/model` creates an agent with its own thread and tools."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pytest

from agiraph.core.domain.agents import Agent, Limits, Specialist
from agiraph.core.domain.chat import Thread
from agiraph.core.domain.errors import Misconfigured, NotFound
from agiraph.core.domain.ids import AgentId, TeamId, ThreadId, new_id
from agiraph.core.home.specialists import specialists
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.core.services.members.roster import Hirer
from agiraph.core.store import teams, threads
from agiraph.core.store.teams import AGENTS
from agiraph.models.base import Request
from agiraph.testing import Says, ScriptedModel, World, call, says
from tests.fences import fenced_task
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
from tests.tools.tool_calls import refused, run_calls
from tests.wording import Wording, refusals_of


def hirer(founded: NewTeam, known: Mapping[str, Specialist] | None = None) -> Hirer:
    def check(name: str) -> None:
        if name.startswith("nobody/"):
            raise Misconfigured("'nobody' is not a provider.")

    thread = ThreadId("t_lead")
    return Hirer(founded.coordinator, thread, specialists() if known is None else known, check)


# Phase 1.1: new:provider/model parsing, invalid format rejection, agent creation triggered.


ADDRESSES = [
    ("new:scripted/bob", "bob", "scripted/bob", "worker"),
    ("  new:scripted/bob ", "bob", "scripted/bob", "worker"),
    ("New:scripted/bob", "bob", "scripted/bob", "worker"),
    ("new: scripted/bob", "bob", "scripted/bob", "worker"),
    ("new:anthropic/claude-3-sonnet", "claude-3-sonnet", "anthropic/claude-3-sonnet", "worker"),
    ("new:openrouter/meta/llama:free", "llama", "openrouter/meta/llama:free", "worker"),
    ("new:ollama/qwen3:8b", "qwen3", "ollama/qwen3:8b", "worker"),
    ("new:scripted/_odd name!", "odd-name", "scripted/_odd name!", "worker"),
    ("new:scripted/human", "human-2", "scripted/human", "worker"),
    ("new:scripted/" + "x" * 60, "x" * 32, "scripted/" + "x" * 60, "worker"),
    ("new:scripted/…", "worker", "scripted/…", "worker"),
    ("new:writer:scripted/bob", "writer", "scripted/bob", "writer"),
    ("new:Writer: scripted/qwen3:8b", "writer", "scripted/qwen3:8b", "writer"),
    ("writer", "writer", "scripted/ada", "writer"),
]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_new_provider_model_parsing(world: World) -> None:
    for address, *expected in ADDRESSES:
        founded = await waiting_team(world)
        made: Agent = await world.store.write(roster.resolve, hirer(founded), address)

        assert [made.name, made.model, made.role] == expected
        assert (made.kind, made.persistent) == ("llm", False)
        assert await world.agent(made.id) == made


SUCH_AS = "it takes provider/model, such as new:scripted/ada."
KNOWN = "analyst, coder, researcher, reviewer, tester, writer"


WRONG_ADDRESSES = [
    "new:",
    "new:gpt",
    "new:/gpt",
    "new:openai/",
    "new:writer",
    "new:writer:",
    "new:poet:scripted/bob",
    "new:nobody/x",
    "new:writer:nobody/x",
    "scripted/bob",
    "",
    "poet",
    "human",
    "cli:",
    "cli:'./a",
    "coordinator",
]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_invalid_format_is_rejected_with_what_to_write(
    world: World, wording: Wording
) -> None:
    founded = await waiting_team(world)
    resolve = partial(world.store.write, roster.resolve, hirer(founded))
    wording(await refusals_of(WRONG_ADDRESSES, resolve))
    assert [m.agent for m in await all_members(world, founded.team.id)] == [founded.coordinator]


async def test_a_rejected_address_reaches_the_model_and_nothing_is_created(world: World) -> None:
    goal, told = await run_calls(world, assign("new:bob"), assign("new:nobody/x"))

    assert told[0] == refused(f"new:bob does not name a model: {SUCH_AS}")
    assert told[1].failed
    assert told[1].text.startswith("Nobody can be hired with 'nobody/x': 'nobody/x' is not a model")
    assert [n.id for n in await world.board(goal.team_id)] == [goal.id]
    assert len(await all_members(world, goal.team_id)) == 1


@pytest.mark.parametrize("how", ["assign_task", "create_work_node", "assign_worker"])
async def test_agent_creation_is_triggered_by_assignment(world: World, how: str) -> None:
    task = "Count the files"

    def choose(request: Request) -> Says:
        created = list(request.transcript.spoken())[-1].text.split()[1].rstrip(".")
        return says(call("assign_worker", node_id=created, worker_id="new:scripted/bob"))

    lines: dict[str, list[Says | Callable[[Request], Says]]] = {
        "assign_task": [says(assign_in_background())],
        "create_work_node": [
            says(call("create_work_node", task=task, assigned_to="new:scripted/bob"))
        ],
        "assign_worker": [says(call("create_work_node", task=task)), choose],
    }
    world.script("ada", *lines[how], ASK, DONE)
    bob = world.script("bob", WORK, says(call("publish", summary="Three.")))
    founded = await world.found("Count")
    await world.settle()

    goal, task_node = await world.board(founded.team.id)
    made_one = await member_named(world, founded.team.id, "bob")
    assert (task_node.assignee_id, task_node.result) == (made_one.agent.id, "Three.")
    assert (task_node.parent_id, task_node.creator_id) == (goal.id, founded.coordinator.id)
    assert len(bob.requests) == 2
    hired = [e.data for e in await world.events(founded.team.id) if e.type == "agent.hired"]
    assert [h["name"] for h in hired] == ["coordinator", "bob"]


async def test_agents_of_one_model_get_different_names(world: World) -> None:
    parts = [assign_in_background(task=f"Count part {number}") for number in range(3)]
    world.script("ada", says(*parts), ASK)
    world.script("bob", ASK, ASK, ASK)
    founded = await world.found("Count")
    await world.settle()

    names = [m.agent.name for m in await all_members(world, founded.team.id)]
    assert names == ["coordinator", "bob", "bob-2", "bob-3"]


# Phase 1.2: thread creation, metadata storage, task notification.


async def test_thread_creation_below_the_parent_s_thread(world: World) -> None:
    sort = assign_in_background("new:scripted/cid", "Sort them")
    world.script("ada", says(assign_in_background(), sort), ASK, DONE)
    world.script("bob", says(assign_in_background("new:scripted/dot", "Count half")), ASK)
    world.script("cid", ASK)
    world.script("dot", ASK)
    founded = await world.found("Count")
    await world.settle()

    goal, *tasks = await world.board(founded.team.id)
    root = await world.thread(goal.id)
    below: list[Thread] = [await world.thread(task.id) for task in tasks]
    grandchild = next(t for t in below if t.agent_id == tasks[2].assignee_id)
    child = next(t for t in below if t.node_id == tasks[0].id)
    assert root.parent_id is None
    assert {t.id for t in below[:2]} == {f"{root.id}.1", f"{root.id}.2"}
    assert {t.parent_id for t in below[:2]} == {root.id}
    assert (grandchild.id, grandchild.parent_id) == (f"{child.id}.1", child.id)
    assert [task.depth for task in tasks] == [1, 1, 2]


async def test_child_threads_are_persistent_and_keep_counting(world: World) -> None:
    world.script("ada", says(assign()), says(assign("new:scripted/cid", "Sort them")), DONE)
    world.script("bob", WORK, says(call("publish", summary="One.")))
    world.script("cid", WORK, says(call("publish", summary="Two.")))
    founded = await world.found("Count")
    await world.settle()

    goal, first, second = await world.board(founded.team.id)
    root = await world.thread(goal.id)
    threads_below = [await world.thread(first.id), await world.thread(second.id)]
    assert [t.id for t in threads_below] == [f"{root.id}.1", f"{root.id}.2"]
    assert all(t.closed_at is not None for t in threads_below)
    assert [t.role for t in await world.turns(first.id) if t.role != "intent"] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]


async def test_metadata_storage_of_a_spawned_agent(world: World) -> None:
    world.script("ada", says(assign_in_background("new:writer:scripted/bob")), ASK)
    world.script("bob", ASK)
    founded = await world.found("Count")
    await world.settle()
    await world.restart()

    goal, task = await world.board(founded.team.id)
    root = await world.thread(goal.id)
    stored = (await member_named(world, founded.team.id, "writer")).agent
    writer = specialists()["writer"]
    assert stored == Agent(
        id=stored.id,
        team_id=founded.team.id,
        name="writer",
        role="writer",
        model="scripted/bob",
        created_at=world.clock.now(),
        tools=writer.tools,
        identity=writer.prompt,
        persistent=False,
        created_for=task.id,
        parent_thread_id=ThreadId(root.id),
    )


async def test_task_notification_is_the_first_message_of_a_new_agent(world: World) -> None:
    world.script("ada", says(assign()), DONE)
    bob = world.script("bob", WORK, says(call("publish", summary="Three.")))
    founded = await world.found("Count")
    await world.settle()

    _, task = await world.board(founded.team.id)
    [first] = bob.requests[0].turns
    assert (first.role, first.text) == (
        "user",
        "[Task] You have been given a task.\nTitle: Count files\nFrom: coordinator\n"
        f"Id: {task.id}\nLimits: 100 turns\n\n"
        f"{fenced_task('Count the files', task.thread_id or '')}",
    )
    assert bob.requests[0].system.count("You are bob.") == 1


# Phase 2: metadata CRUD, session filtering, foreign key constraints.


async def test_metadata_crud(world: World) -> None:
    founded = await waiting_team(world)
    team_id = founded.team.id
    bob: Agent = await world.store.write(roster.resolve, hirer(founded), "new:scripted/bob")
    assert await world.agent(bob.id) == bob

    await world.store.write(roster.promote, bob)
    assert (await world.agent(bob.id)) == replace(bob, persistent=True)

    cid: Agent = await world.store.write(roster.resolve, hirer(founded), "new:scripted/cid")
    assert await world.store.write(roster.retire, cid)
    gone = replace(cid, retired_at=world.clock.now())
    assert await world.agent(cid.id) == gone
    assert [a.name for a in await world.store.read(teams.members, team_id)] == [
        "coordinator",
        "bob",
    ]
    assert not await world.store.write(roster.retire, gone)


async def test_the_current_task_of_an_agent_follows_its_work(world: World) -> None:
    world.script("ada", says(assign_in_background()), ASK)
    world.script("bob", ASK, WORK, says(call("publish", summary="Three.")))
    founded = await world.found("Count")
    await world.settle()
    _, task = await world.board(founded.team.id)
    at_work = await member_named(world, founded.team.id, "bob")
    assert at_work.node is not None
    assert (at_work.node.id, at_work.doing) == (task.id, "waiting_for_you")

    await answer_question_of(world, at_work.agent.id, founded)
    after = await member_named(world, founded.team.id, "bob")
    assert after.node is not None
    assert (after.node.id, after.node.status, after.doing) == (task.id, S.COMPLETED, "left")


async def test_session_filtering_lists_the_agents_of_one_team_only(world: World) -> None:
    world.script(
        "ada",
        says(assign_in_background()),
        ASK,
        says(assign_in_background("new:scripted/cid")),
        ASK,
    )
    world.script("bob", ASK)
    world.script("cid", ASK)
    first = await world.found("One")
    await world.settle()
    world.script("ada", says(assign_in_background("new:scripted/cid")), ASK)
    second = await world.found("Two")
    await world.settle()

    assert [m.agent.name for m in await all_members(world, first.team.id)] == ["coordinator", "bob"]
    assert [m.agent.name for m in await all_members(world, second.team.id)] == [
        "coordinator",
        "cid",
    ]
    _, task = await world.board(second.team.id)
    cid = await member_named(world, second.team.id, "cid")
    assert (cid.agent.created_for, cid.agent.team_id) == (task.id, second.team.id)
    with pytest.raises(NotFound):
        await world.store.read(teams.by_name, second.team.id, "bob")


async def test_foreign_key_constraints_keep_agents_and_threads_on_a_team(world: World) -> None:
    founded = await waiting_team(world)
    stray = replace(founded.coordinator, id=AgentId(new_id("agent")), team_id=TeamId("team_0"))
    lost = Thread(
        id=ThreadId(new_id("t")),
        team_id=founded.team.id,
        agent_id=stray.id,
        created_at=world.clock.now(),
    )
    twin = replace(founded.coordinator, id=AgentId(new_id("agent")))
    for table, row in ((AGENTS, stray), (threads.THREADS, lost), (AGENTS, twin)):
        with pytest.raises(Exception, match=r"(?i)foreign key|unique"):
            await world.store.write(table.insert, row)

    with pytest.raises(NotFound):
        await world.store.write(
            roster.hire, TeamId("team_0"), name="bob", role="worker", model="scripted/bob"
        )
    assert [m.agent for m in await all_members(world, founded.team.id)] == [founded.coordinator]


# Phase 3: agent creation, tool filtering, initial task message; recursion ends at a depth.


async def test_tool_filtering_keeps_coordinator_tools_from_spawned_agents(world: World) -> None:
    ada = world.script("ada", says(assign()), DONE)
    bob = world.script("bob", WORK, says(call("publish", summary="Three.")))
    await world.found("Count")
    await world.settle()

    lead, spawned = set(ada.requests[0].tools), set(bob.requests[0].tools)
    board = {"assign_task", "check_board", "create_work_node", "set_acceptance", "start_stage"}
    assert lead - spawned == {*board, "assign_worker", "finish", "reconvene", "spawn_worker"}
    assert spawned - lead == {"checkpoint", "edit_file", "publish", "read_ref", "suggest_next"}
    leading = {"extend_task", "promise", "promote"}
    assert listed(ada) - listed(bob) == {*leading, "checkpoint", "edit_file", "read_ref"}
    assert listed(bob) - listed(ada) == {"assign_task", "check_board", "create_work_node"}


def listed(model: ScriptedModel) -> set[str]:
    """Return the tools that the model's prompt lists."""
    [names] = re.findall(r"^More tools, .*: (.+)\.$", model.requests[0].system, re.M)
    return set(names.split(", "))


async def test_a_spawned_worker_has_the_role_and_the_identity_it_was_given(world: World) -> None:
    given = {"model": "scripted/bob", "role": "Proofreader", "tools": ["bash", "start_stage"]}
    hire = call("spawn_worker", name="bob", identity="You doubt every result.", **given)
    leads = call("spawn_worker", name="cyd", role="coordinator")
    tester = call("spawn_worker", name="dee", role="tester", identity="You like rust.")
    ada = world.script("ada", says(hire, leads, tester), says(assign("bob")), DONE)
    bob = world.script("bob", WORK, says(call("publish", summary="Three.")))
    founded = await world.found("Count")
    await world.settle()
    member = (await member_named(world, founded.team.id, "bob")).agent
    assert (member.role, member.tools) == ("proofreader", ("bash",))
    assert "You doubt every result." in bob.requests[0].system
    assert "publish" in bob.requests[0].tools
    refused = [turn.text for turn in ada.requests[1].turns if turn.role == "tool"][1]
    assert refused == "The team has one coordinator, you. Give a worker another role."
    dee = (await member_named(world, founded.team.id, "dee")).agent
    specialist = world.runtime.specialists["tester"]
    assert (dee.role, dee.identity, dee.tools) == (
        "tester",
        f"{specialist.prompt}\n\nYou like rust.",
        specialist.tools,
    )


async def test_tool_filtering_by_a_specialist_s_own_list(world: World) -> None:
    world.script("ada", says(assign("new:writer:scripted/bob")), DONE)
    bob = world.script("bob", WORK, says(call("publish", summary="Three.")))
    await world.found("Count")
    await world.settle()

    talk = {"ask_human", "checkpoint", "send_message", "suggest_next"}
    trade = {"read_file", "write_file", "edit_file", "list_files", "read_ref"}
    assert set(bob.requests[0].tools) == talk | trade | {"publish"}
    assert specialists()["writer"].prompt in bob.requests[0].system


async def test_depth_limits_end_the_recursion_with_what_to_do(world: World) -> None:
    def deeper(level: int) -> Says:
        return says(assign("new:scripted/bob", f"Dig to level {level}"))

    world.script("ada", deeper(1), DONE)
    hand_in = says(call("publish", summary="Done."))
    world.script("bob", deeper(2), deeper(3), hand_in, hand_in)
    founded = await world.found("Dig", limits=Limits(depth=2))
    await world.settle()

    _, first, second = await world.board(founded.team.id)
    [told, *_] = [t for t in await world.turns(second.id) if t.role == "tool"]
    assert (first.depth, second.depth) == (1, 2)
    assert (told.text, told.failed) == (
        "Work may be 2 levels deep, and yours is at the last one. Do this part yourself, or "
        "submit and suggest it with suggest_next.",
        True,
    )
    assert {m.agent.name for m in await all_members(world, founded.team.id)} == {
        "coordinator",
        "bob",
        "bob-2",
    }
