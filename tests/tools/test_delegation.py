"""Tasks are given away and waited for, or fetched later; earlier ones are taken up again."""

import asyncio
import re
from collections.abc import Callable

import pytest

from agiraph.domain.ids import HUMAN, NodeId
from agiraph.domain.messages import Message
from agiraph.domain.work import NodeStatus, StopReason
from agiraph.providers.base import Request
from agiraph.services import endings, leases, work
from agiraph.services.teams import Founded
from agiraph.store import messages
from agiraph.store.teams import AGENTS
from agiraph.testing import Call, Says, World, call, says
from agiraph.tools.delegation import assign_task, described, task_output
from agiraph.tools.toolsets import BUILT_IN
from tests.thinking import ThinkingModel, Thought
from tests.tools.made import Told, made, refused

DONE = says(call("finish", summary="done"))
ASK = says(call("ask_human", question="Which?"))
S = NodeStatus


def give(agent: str = "new:scripted/bob", task: str = "Count the files", **more: object) -> Call:
    return call("assign_task", agent=agent, task=task, description="Count files", **more)


def hand_in(summary: str) -> Says:
    return says(call("publish", summary=summary))


def id_in(text: str) -> str:
    found = re.search(r"node_\w+", text)
    assert found is not None, text
    return found[0]


def fetch(**more: object) -> Callable[[Request], Says]:
    """Ask for the task that was spoken of first in this thread."""

    def line(request: Request) -> Says:
        said = "\n".join(turn.text for turn in request.transcript.spoken())
        return says(call("task_output", id=id_in(said), **more))

    return line


def resume(agent: str = "bob", task: str = "Now sort them", **more: object) -> Callable[..., Says]:
    """Take up the task that was spoken of first in this thread."""

    def line(request: Request) -> Says:
        said = "\n".join(turn.text for turn in request.transcript.spoken())
        return says(give(agent, task, resume=id_in(said), **more))

    return line


def notice(node_id: str, text: str, ending: str = "completed (published)") -> str:
    first = "finished" if ending.startswith("completed") else "not"
    opening = {
        "finished": "[Task] bob has finished a task of yours.",
        "not": "[Task] bob could not do a task of yours.",
    }[first]
    return (
        f"{opening}\nTitle: Count files\nId: {node_id}\nStatus: {ending}\n\n"
        f"--- RESULT ---\n{text}\n--- END OF RESULT ---"
    )


async def answers(world: World, node_id: NodeId) -> list[Told]:
    turns = await world.turns(node_id)
    return [Told(t.text, bool(t.extra.get("failed"))) for t in turns if t.role == "tool"]


async def own_question(world: World, founded: Founded) -> Message:
    """What the coordinator asks, whoever else may ask."""
    asked = await world.questions(founded.team.id)
    [question] = [q for q in asked if q.sender == founded.coordinator.id]
    return question


# Background agents can be launched and results retrieved later.


async def test_a_task_is_waited_for_unless_told_otherwise_and_waiting_costs_nothing(
    world: World,
) -> None:
    ada = world.script("ada", says(give()), DONE)
    world.script("bob", ASK, says(call("write_file", path="n.md", content="3")), hand_in("Three."))
    founded = await world.found("Count")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    assert (goal.status, goal.waiting_reason) == (
        S.WAITING,
        f"bob: Count files ({task.id})",
    )
    assert (task.source, task.parent_id, task.creator_id) == (
        "delegation",
        goal.id,
        founded.coordinator.id,
    )
    assert len(ada.requests) == 1

    [question] = await world.questions(founded.team.id)
    await world.answer(question, "All.")
    await world.settle()
    files = f"\nFiles: nodes/{task.id}/published/n.md\n\n---"
    assert ada.heard == notice(task.id, "Three.").replace("\n\n---", files, 1)
    assert len(ada.requests) == 2
    assert (await world.node(goal.id)).status is S.COMPLETED


async def test_a_background_agent_is_launched_and_its_result_is_retrieved_later(
    world: World,
) -> None:
    began, looked = asyncio.Event(), asyncio.Event()

    async def peek() -> Says:
        await began.wait()
        return says(call("task_output", id=id_in(ada.heard[-1])))

    async def wait() -> Says:
        looked.set()
        return says(call("task_output", id=id_in(ada.heard[-1]), blocking=True))

    async def count() -> Says:
        began.set()
        await looked.wait()
        return says(call("write_file", path="n.md", content="3"))

    ada = ThinkingModel("scripted/ada", [says(give(run_in_background=True)), peek, wait, DONE])
    world.model("ada", ada)
    world.model("bob", ThinkingModel("scripted/bob", [count, hand_in("Three.")]))
    founded = await world.found("Count")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    launched, peeked, fetched = (await answers(world, goal.id))[:3]
    assert launched == Told(
        f"bob works on it in the background as {task.id}. "
        f'Fetch the result with task_output("{task.id}").'
    )
    assert peeked == Told(f"Count files ({task.id}) is running, with bob.")
    assert "--- RESULT ---\nThree.\n--- END OF RESULT ---" in fetched.text
    assert (goal.status, task.status) == (S.COMPLETED, S.COMPLETED)


async def test_a_result_nobody_asked_for_comes_by_itself_and_once(world: World) -> None:
    ada = world.script("ada", says(give(run_in_background=True)), ASK, DONE)
    world.script("bob", says(call("write_file", path="n", content="3")), hand_in("Three."))
    founded = await world.found("Count")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Whatever.")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    heard = [t.text for t in await world.turns(goal.id) if "RESULT" in t.text]
    assert [id_in(text) for text in heard] == [task.id]
    assert ada.heard == heard[0]


async def test_a_background_result_can_be_retrieved_after_a_restart(world: World) -> None:
    world.script("ada", says(give(run_in_background=True)), fetch(blocking=True), DONE)
    world.script("bob", ASK, says(call("write_file", path="n", content="3")), hand_in("Three."))
    founded = await world.found("Count")
    await world.settle()
    await world.restart()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "All.")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    told = await answers(world, goal.id)
    assert told[1].text.startswith("[Task] bob has finished a task of yours.")
    assert (goal.status, task.result) == (S.COMPLETED, "Three.")


async def test_parallel_calls_in_one_turn_run_side_by_side(world: World) -> None:
    together = asyncio.Barrier(3)

    def worker(name: str) -> None:
        async def meet() -> Says:
            await together.wait()
            return says(call("write_file", path="n", content=name))

        world.model(name, ThinkingModel(f"scripted/{name}", [meet, hand_in(f"By {name}.")]))

    for name in ("bob", "cid", "dot"):
        worker(name)
    calls = [give(f"new:scripted/{name}", f"Part of {name}") for name in ("bob", "cid", "dot")]
    ada = world.script("ada", says(*calls), DONE)
    founded = await world.found("Count in parts")
    await world.settle()

    goal, *parts = await world.board(founded.team.id)
    results = {t.ref: t.text.splitlines()[-2] for t in ada.requests[-1].turns if t.role == "tool"}
    asked = [c.id for t in await world.turns(goal.id) for c in t.calls][:3]
    assert [results[call_id] for call_id in asked] == ["By bob.", "By cid.", "By dot."]
    assert {part.status for part in parts} == {S.COMPLETED}
    assert len(ada.requests) == 2


async def test_parallel_tasks_for_one_specialist_go_to_as_many_of_its_kind(world: World) -> None:
    together = asyncio.Barrier(2)

    async def meet() -> Says:
        await together.wait()
        return says(call("write_file", path="n", content="x"))

    folder = world.path / "agents"
    folder.mkdir()
    (folder / "scout.md").write_text("---\ndescription: Looks.\nmodel: scripted/scout\n---\nLook.")
    await world.restart()
    both: list[Thought] = [meet, meet, hand_in("Seen."), hand_in("Seen.")]
    world.model("scout", ThinkingModel("scripted/scout", both))
    world.script("ada", says(give("scout", "Look left"), give("Scout", "Look right")), DONE)
    founded = await world.found("Look around")
    await world.settle()

    _, left, right = await world.board(founded.team.id)
    names = [(await world.store.read(AGENTS.get, n.assignee_id)).name for n in (left, right)]
    assert names == ["scout", "scout-2"]
    assert (left.result, right.result) == ("Seen.", "Seen.")


# task_output: peek, blocking, timeout, failed agents, unknown ids.


async def test_a_peek_tells_of_the_last_checkpoint_and_what_is_waited_for(world: World) -> None:
    world.script("ada", says(give(run_in_background=True)), ASK, fetch(), DONE)
    asks = says(call("checkpoint", summary="Half."), call("ask_human", question="Which?"))
    world.script("bob", asks)
    founded = await world.found("Count")
    await world.settle()
    question = await own_question(world, founded)
    await world.answer(question, "Go on.")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    assert (await answers(world, goal.id))[2] == Told(
        f"Count files ({task.id}) is waiting, with bob. "
        "It waits: asked the human: Which?. Last checkpoint: Half."
    )


async def test_blocking_with_a_timeout_gives_up_in_time_and_the_task_goes_on(world: World) -> None:
    wait = fetch(blocking=True, timeout_ms=60_000)
    world.script("ada", says(give(run_in_background=True)), wait, fetch(blocking=True), DONE)
    world.script("bob", ASK, says(call("write_file", path="n", content="3")), hand_in("Three."))
    founded = await world.found("Count")
    await world.settle()
    goal, task = await world.board(founded.team.id)
    assert goal.waiting_reason == f"the result of {task.id}"

    world.clock.advance(seconds=59)
    await world.store.write(work.ring)
    await world.settle()
    assert len(await answers(world, goal.id)) == 1

    world.clock.advance(seconds=1)
    await world.store.write(work.ring)
    await world.settle()
    [late] = (await answers(world, goal.id))[1:]
    assert late.text.startswith(f"The time is over. Count files ({task.id}) is ")
    assert late.text.endswith("It goes on; ask again later.")
    assert not (await world.node(task.id)).status.is_final

    [question] = await world.questions(founded.team.id)
    await world.answer(question, "All.")
    await world.settle()
    assert "--- RESULT ---\nThree." in (await answers(world, goal.id))[2].text
    assert (await world.node(goal.id)).status is S.COMPLETED


async def test_a_result_that_comes_in_time_is_not_followed_by_a_timeout(world: World) -> None:
    wait = fetch(blocking=True, timeout_ms=60_000)
    ada = world.script("ada", says(give(run_in_background=True)), wait, ASK, DONE)
    world.script("bob", ASK, says(call("write_file", path="n", content="3")), hand_in("Three."))
    founded = await world.found("Count")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "All.")
    await world.settle()
    world.clock.advance(hours=1)
    await world.store.write(work.ring)
    await world.settle()

    goal, _ = await world.board(founded.team.id)
    told = await answers(world, goal.id)
    assert ["RESULT" in t.text for t in told] == [False, True]
    assert len(ada.requests) == 3


async def test_a_failed_agent_is_told_as_a_failure_whether_waited_for_or_fetched(
    world: World,
) -> None:
    world.script("ada", says(give()), fetch(), fetch(blocking=True), DONE)
    world.script("bob", says(), says(), says())
    founded = await world.found("Count")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    waited, peeked, blocked = (await answers(world, goal.id))[:3]
    why = "The model said nothing, 3 times running."
    assert (task.status, task.stop_reason) == (S.FAILED, StopReason.SILENT)
    assert waited == refused(notice(task.id, why, "failed (silent)"))
    assert peeked == blocked
    assert peeked.failed
    assert peeked.text.startswith("[Task] bob could not do a task of yours.")
    assert goal.status is S.COMPLETED


async def test_an_unknown_id_is_refused_with_where_to_find_the_right_one(world: World) -> None:
    other = await world.found("Another team's", start=True, model="scripted/eve")
    world.script("eve", ASK)
    await world.settle()
    assert other.node is not None
    unknown = ["node_0", other.node.id, "%%%%", "____", " ", ""]
    _, told = await made(world, *[call("task_output", id=name) for name in unknown])

    known = "check_board lists them with their ids."
    assert told == [refused(f"There is no node {name!r}. {known}") for name in unknown]


async def test_a_task_is_found_by_the_tail_of_its_id(world: World) -> None:
    def tail(request: Request) -> Says:
        said = "\n".join(turn.text for turn in request.transcript.spoken())
        return says(call("task_output", id=f" {id_in(said)[-8:]} "))

    world.script("ada", says(give()), tail, DONE)
    world.script("bob", says(call("write_file", path="n", content="3")), hand_in("Three."))
    founded = await world.found("Count")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    fetched = (await answers(world, goal.id))[1]
    assert (id_in(fetched.text), fetched.failed) == (task.id, False)


async def test_nobody_waits_for_their_own_work_or_in_a_circle(world: World) -> None:
    def on_the_goal(request: Request) -> Says:
        return says(call("task_output", id=goal_id(), blocking=True))

    def goal_id() -> str:
        assert founded.node is not None
        return founded.node.id

    world.script("ada", on_the_goal, says(give()), DONE)
    world.script("bob", on_the_goal, hand_in("Never mind."))
    founded = await world.found("Count")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    assert (await answers(world, goal.id))[0] == refused(
        "That is your own work; nobody else will end it."
    )
    assert (await answers(world, task.id))[0] == refused(
        f"{goal.id} needs or waits for your own work, so neither would ever end. Go on without "
        "it, or hand in what you have first."
    )
    assert (goal.status, task.status) == (S.COMPLETED, S.COMPLETED)


@pytest.mark.parametrize("timeout", [0, -1, 10**12, "soon"])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_timeout_that_makes_no_sense_is_refused(world: World, timeout: object) -> None:
    _, [told] = await made(world, call("task_output", id="node_1", timeout_ms=timeout))

    assert told.failed
    assert told.text.startswith("task_output: 'timeout_ms' is wrong (Input should be ")
    assert told.text.endswith("It takes: id, blocking (optional), timeout_ms (optional).")


# Agent sessions can be resumed with full context.


async def test_a_session_is_resumed_with_full_context(world: World) -> None:
    world.script("ada", says(give()), resume(), DONE)
    bob = world.script(
        "bob",
        says("I count.", call("write_file", path="n.md", content="3")),
        hand_in("Three."),
        says("I sort.", call("write_file", path="s.md", content="a b c")),
        hand_in("Sorted."),
    )
    founded = await world.found("Count and sort")
    await world.settle()

    goal, first, second = await world.board(founded.team.id)
    before, after = bob.requests[1], bob.requests[2]
    assert (first.result, second.result) == ("Three.", "Sorted.")
    assert (first.thread_id, first.assignee_id) == (second.thread_id, second.assignee_id)
    assert after.turns[: len(before.turns)] == before.turns
    assert after.system == before.system
    assert [t.text for t in after.turns[len(before.turns) :]] == [
        "",
        "Published: n.md.",
        "[Task] You have been given a task.\nTitle: Count files\nFrom: coordinator\n"
        f"Id: {second.id}\n\n--- TASK ---\nNow sort them\n--- END OF TASK ---",
    ]
    assert (world.published(first), world.published(second)) == (
        {"n.md": "3"},
        {"s.md": "a b c"},
    )
    assert [id_in(t.text) for t in (await answers(world, goal.id))[:2]] == [first.id, second.id]


async def test_a_session_is_resumed_by_agent_name_in_the_background_and_after_a_restart(
    world: World,
) -> None:
    again = says(give("BOB", "Once more", resume="bob", run_in_background=True))
    world.script("ada", says(give()), ASK, again, fetch(), ASK, DONE)
    bob = world.script(
        "bob", says(call("write_file", path="n", content="3")), hand_in("One."), hand_in("Two.")
    )
    founded = await world.found("Count twice")
    await world.settle()
    await world.restart()
    for _ in range(2):
        [question] = await world.questions(founded.team.id)
        await world.answer(question, "Go on.")
        await world.settle()

    goal, first, second = await world.board(founded.team.id)
    assert (first.thread_id, second.result) == (second.thread_id, "Two.")
    assert "Count the files" in bob.requests[2].turns[0].text
    assert "Once more" in bob.heard
    assert goal.status is S.COMPLETED


async def test_what_is_resumed_can_be_resumed_again_from_any_of_its_tasks(world: World) -> None:
    world.script("ada", says(give()), resume(), resume(task="Now print them"), DONE)
    bob = world.script(
        "bob",
        says(call("write_file", path="n", content="3")),
        hand_in("One."),
        hand_in("Two."),
        hand_in("Three."),
    )
    founded = await world.found("Count on and on")
    await world.settle()

    _, *tasks = await world.board(founded.team.id)
    assert [t.result for t in tasks] == ["One.", "Two.", "Three."]
    assert len({t.thread_id for t in tasks}) == 1
    heard = "\n".join(t.text for t in bob.requests[-1].turns)
    assert all(words in heard for words in ("Count the files", "Now sort", "Now print"))


async def test_a_failed_session_can_be_resumed(world: World) -> None:
    world.script("ada", says(give()), resume(task="Try harder"), DONE)
    bob = world.script("bob", says(), says(), says(), hand_in("There."))
    founded = await world.found("Count")
    await world.settle()

    _, failed, done = await world.board(founded.team.id)
    assert (failed.status, done.status, done.result) == (S.FAILED, S.COMPLETED, "There.")
    assert "Try harder" in bob.heard


async def test_a_session_that_ended_with_words_is_resumed_without_a_reproach(world: World) -> None:
    world.script("ada", says(give()), resume(), DONE)
    bob = world.script("bob", says("Three."), says("Three, I said."), hand_in("Sorted."))
    founded = await world.found("Count and sort")
    await world.settle()

    _, first, second = await world.board(founded.team.id)
    assert (first.stop_reason, first.result) == (StopReason.ANSWERED, "Three, I said.")
    assert bob.heard.startswith("[Task] You have been given a task.")
    assert second.result == "Sorted."


async def test_a_call_left_open_at_the_end_is_answered_before_a_session_is_resumed(
    world: World,
) -> None:
    world.script("ada", says(give()), resume(), DONE)
    bob = world.script(
        "bob",
        says(call("publish", summary="Three."), call("bash", command="touch late")),
        hand_in("Sorted."),
    )
    founded = await world.found("Count and sort")
    await world.settle()

    _, _, second = await world.board(founded.team.id)
    roles = [(t.role, t.text) for t in bob.requests[-1].turns][-3:]
    assert roles[:2] == [("tool", "Published: no files."), ("tool", leases.CUT_OFF)]
    assert "Now sort them" in roles[2][1]
    assert world.published(second) == {}


async def test_a_session_cancelled_while_it_waited_is_resumed_without_waiting_on(
    world: World,
) -> None:
    world.script("ada", says(give(run_in_background=True)), ASK, resume(), DONE)
    bob = world.script("bob", ASK, hand_in("Sorted."))
    founded = await world.found("Count")
    await world.settle()
    _, task = await world.board(founded.team.id)
    await world.store.write(endings.cancel, task.id)
    await world.answer(await own_question(world, founded), "Go on without it.")
    await world.settle()

    _, task, again = await world.board(founded.team.id)
    assert (task.status, again.status, again.result) == (S.CANCELLED, S.COMPLETED, "Sorted.")
    assert [t.text for t in bob.requests[-1].turns if t.role == "tool"] == [leases.CUT_OFF]
    assert "Now sort them" in bob.heard


async def test_what_cannot_be_resumed_is_refused_with_what_to_do(world: World) -> None:
    def odd(request: Request) -> Says:
        known = id_in("\n".join(turn.text for turn in request.transcript.spoken()))
        return says(
            give("bob", resume="node_0"),
            give("bob", resume="nobody"),
            give("coordinator", resume=goal_id()),
            give("carol", resume=known),
            give("bob", resume=known),
        )

    def goal_id() -> str:
        assert founded.node is not None
        return founded.node.id

    unbegun = call("create_work_node", task="Wait", depends_on=[], assigned_to="new:scripted/cid")
    world.script("ada", says(give(run_in_background=True), unbegun), ASK, odd, DONE)
    world.script("bob", ASK)
    world.script("cid", ASK)
    founded = await world.found("Count")
    await world.settle()
    question = await own_question(world, founded)
    await world.answer(question, "Go on.")
    await world.settle()

    goal, task, *_ = await world.board(founded.team.id)
    lists = "check_board lists them with their ids. resume takes the id that assign_task gave."
    busy = f"{task.id} is still waiting; send_message reaches whoever is at it."
    assert (await answers(world, goal.id))[3:8] == [
        refused(f"There is no node 'node_0'. {lists}"),
        refused(f"There is no node 'nobody'. {lists}"),
        refused(f"{goal.id} is still running; send_message reaches whoever is at it."),
        refused(busy),
        refused(busy),
    ]


async def test_a_session_is_resumed_by_its_own_agent_and_by_one_at_a_time(world: World) -> None:
    def odd(request: Request) -> Says:
        known = id_in("\n".join(turn.text for turn in request.transcript.spoken()))
        return says(
            give("new:scripted/cid", resume=known),
            give("bob", "Sort", resume=known, run_in_background=True),
            give("worker", "Sort again", resume=known, run_in_background=True),
        )

    world.script("ada", says(give()), odd, ASK, DONE)
    world.script("bob", says(call("write_file", path="n", content="3")), hand_in("Three."), ASK)
    founded = await world.found("Count")
    await world.settle()

    goal, first, second = await world.board(founded.team.id)
    told = (await answers(world, goal.id))[1:4]
    assert told[0] == refused(f"{first.id} was done by bob; to resume it, give agent='bob'.")
    assert told[1].text.startswith(f"bob works on it in the background as {second.id}.")
    assert told[2] == refused(f"{second.id} already goes on in that thread; wait for it.")


async def test_a_task_nobody_began_is_given_anew_and_not_resumed(world: World) -> None:
    def again(request: Request) -> Says:
        said = "\n".join(turn.text for turn in request.transcript.spoken())
        [blocked] = re.findall(r"Created (node_\w+), given to bob", said)
        return says(give("bob", resume=blocked))

    def blocked(request: Request) -> Says:
        said = "\n".join(turn.text for turn in request.transcript.spoken())
        needs = [id_in(said)]
        node = call("create_work_node", task="x", depends_on=needs, assigned_to="new:scripted/bob")
        return says(node)

    wait = fetch(blocking=True)
    first = call("create_work_node", task="Fail", assigned_to="new:scripted/cid")
    world.script("ada", says(first), blocked, wait, again, DONE)
    world.script("bob")
    world.script("cid", ASK, says(), says(), says())
    founded = await world.found("Count")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "None.")
    await world.settle()

    goal, _, unmet = await world.board(founded.team.id)
    assert (unmet.status, unmet.stop_reason) == (S.FAILED, StopReason.UNMET)
    assert (await answers(world, goal.id))[3] == refused(
        f"Nobody ever began {unmet.id}; give the task anew, without resume."
    )


async def test_a_message_ends_a_wait_for_a_task_and_the_result_still_comes(world: World) -> None:
    ada = world.script("ada", says(give()), fetch(blocking=True), DONE)
    world.script("bob", ASK, says(call("write_file", path="n", content="3")), hand_in("Three."))
    founded = await world.found("Count")
    await world.settle()
    await world.say(founded.coordinator.id, "Still there?", team_id=founded.team.id)
    await world.settle()
    _, task = await world.board(founded.team.id)
    assert [t.text for t in ada.requests[1].turns][-2:] == [
        "Interrupted, because there is a message for you; it follows. What you waited for (bob: "
        f"Count files ({task.id})) is still under way: wait again, or do something else first.",
        "[Message from human] Still there?",
    ]
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "All.")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    assert (goal.status, task.result) == (S.COMPLETED, "Three.")
    assert "--- RESULT ---\nThree." in ada.heard


# The tool's description; no breaking change.


async def test_the_description_shows_each_specialist_with_its_tools_examples_and_anti_patterns(
    world: World,
) -> None:
    shown: list[str] = []

    def look(request: Request) -> Says:
        shown.extend(t.description for t in request.tools if t.name == "assign_task")
        return DONE

    world.script("ada", look)
    await world.found("Look at the tools")
    await world.settle()

    [description] = shown
    for name in ("analyst", "coder", "researcher", "reviewer", "tester", "writer"):
        listed = re.search(rf"^- {name}: .+ \(Tools: (.+)\)\n  Not when: .+\n  <example>.*assign_"
                           rf'task\(agent="{name}".*</example>$', description, re.M)  # fmt: skip
        assert listed is not None, name
        assert set(listed[1].split(", ")) <= set(BUILT_IN)
    assert "\n\nWhen NOT to use assign_task:\n- to read a file" in description
    assert description.startswith("Give a task to a teammate, a specialist or somebody new.")


async def test_the_description_lists_a_home_s_own_specialists_and_the_tools_that_are_there(
    world: World,
) -> None:
    folder = world.path / "agents"
    folder.mkdir()
    (folder / "scout.md").write_text("---\ndescription: Looks.\ntools: Read, Fly\n---\nLook.")
    (folder / "bird.md").write_text("---\ndescription: Flies.\ntools: Fly\n---\nFly.")
    (folder / "any.md").write_text("---\ndescription: Anything.\n---\nDo.")
    await world.restart()
    shown: list[str] = []

    def look(request: Request) -> Says:
        shown.extend(t.description for t in request.tools if t.name == "assign_task")
        return DONE

    world.script("ada", look)
    await world.found("Look at the tools")
    await world.settle()

    lines = shown[0].splitlines()
    assert "- scout: Looks. (Tools: read_file)" in lines
    assert "- bird: Flies. (Tools: none of its own)" in lines
    assert "- any: Anything. (Tools: all that a worker has)" in lines


def test_all_new_parameters_are_optional_and_nothing_breaks() -> None:
    assert assign_task.spec.schema["required"] == ["agent", "task", "description"]
    assert task_output.spec.schema["required"] == ["id"]
    optional = {
        name: field.default
        for spec in (assign_task, task_output)
        for name, field in spec.arguments.model_fields.items()
        if not field.is_required()
    }
    assert optional == {
        "run_in_background": False,
        "resume": None,
        "blocking": False,
        "timeout_ms": None,
    }


def test_describing_specialists_changes_the_description_and_nothing_else() -> None:
    shown = described(assign_task, {}, frozenset(BUILT_IN))
    assert (shown.spec.schema, shown.spec.guidance, shown.act, shown.effect) == (
        assign_task.spec.schema,
        assign_task.spec.guidance,
        assign_task.act,
        assign_task.effect,
    )


async def test_a_task_that_cannot_be_given_is_refused_with_what_it_takes(world: World) -> None:
    world.script("bob")
    usage = "It takes: agent, task, description, run_in_background (optional), resume (optional)."
    goal, told = await made(
        world,
        call("assign_task", agent="new:scripted/bob", description="x"),
        call("assign_task", agent="new:scripted/bob", task="", description="x"),
        call("assign_task", agent="new:scripted/bob", task="x", description="x" * 201),
        call("assign_task", agent="new:scripted/bob", task="x", description="x", model="y"),
        give("new:scripted/bob", "   "),
        give("coordinator"),
    )

    short, long = "String should have at least 1 character", "String should have at most 200"
    assert told == [
        refused(f"assign_task: 'task' is missing. {usage}"),
        refused(f"assign_task: 'task' is wrong ({short}). {usage}"),
        refused(f"assign_task: 'description' is wrong ({long} characters). {usage}"),
        refused(f"assign_task: there is no argument 'model'. {usage}"),
        refused("Say what is to be done: the task is empty."),
        refused("That is you. Do it yourself, or give it to somebody else."),
    ]
    assert [n.id for n in await world.board(goal.team_id)] == [goal.id]
    conversation = await world.store.read(messages.conversation, goal.team_id, goal.assignee_id)
    assert [m.recipient for m in conversation] == [HUMAN]
