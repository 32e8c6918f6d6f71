"""Ending calls: `finish` and `publish` too early, beside other calls, or in the wrong place."""

import asyncio
import re

import pytest

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import Extension, NodeStatus, StopReason
from agiraph.core.runtime.steps import NOT_ALONE, Steps
from agiraph.core.services.lifecycle import continuations
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.tools.acceptance import HOW_TO_SET_LINES, NO_EFFECT, NO_LINES
from agiraph.models.base import Request
from agiraph.testing import Call, Says, World, call, says
from tests.doubts import doubts_of
from tests.habits.kit import ASK, ASK_MORE, assign
from tests.scenarios.thread_queries import shown_text
from tests.services.stages import pass_time
from tests.services.triggers import create_trigger, found_idle_team, nodes_of
from tests.thinking import ThinkingModel, Thought
from tests.tools.delegated_tasks import tool_answers

S = NodeStatus
LINES = call("set_acceptance", lines=["`report.md` compares both", "The sources were read"])
WRITE = says(call("write_file", path="report.md", content="words"))


def finish(summary: str = "All is done.", *evidence: str) -> Call:
    return call("finish", summary=summary, evidence=list(evidence))


def first_node(request: Request) -> str:
    """Return the first id of a task that the model was shown."""
    return re.findall(r"node_\w+", shown_text(request))[0]


async def team_status(world: World, founded: NewTeam) -> str:
    return (await world.team(founded.team.id)).status


async def test_e5_a_finish_without_any_work_is_sent_back_once_and_then_doubted(
    world: World,
) -> None:
    plan = finish("First I will read the code, then I will fix it.")
    ada = world.script("ada", says(plan), says(plan), insists=False)
    founded = await world.found("Fix it", acceptance=())
    await world.settle()

    [goal] = await world.board(founded.team.id)
    [report] = await world.inbox()
    objection = f"[Not accepted] {NO_EFFECT}; {NO_LINES}.{HOW_TO_SET_LINES}"
    assert ada.heard.startswith(f"{objection} Put it right (1 of 500 ")
    assert (goal.status, doubts_of(goal)) == (S.COMPLETED, NO_EFFECT)
    assert (report.text, report.doubts) == (goal.result, goal.doubts)


async def test_a_goal_for_which_nobody_gave_acceptance_lines_is_no_doubt(world: World) -> None:
    done = says(finish("It is in `report.md`."))
    ada = world.script("ada", WRITE, done, done, insists=False)
    founded = await world.found("Write a report", acceptance=())
    await world.settle()

    [goal] = await world.board(founded.team.id)
    [report] = await world.inbox()
    assert ada.heard.startswith(f"[Not accepted] {NO_LINES}.{HOW_TO_SET_LINES} Put it right (2 of ")
    assert ada.heard.endswith("or call finish again to end the work without them.")
    assert (goal.status, doubts_of(goal), report.text) == (
        S.COMPLETED,
        None,
        "It is in `report.md`.",
    )


async def test_e5_a_goal_that_only_asks_is_done_by_an_answer(world: World) -> None:
    lines = call("set_acceptance", lines=["The capital of France is named"])
    world.script("ada", says(lines), says(finish("Paris.", "Paris is named")))
    founded = await world.found("What is the capital of France?", acceptance=())
    await world.settle()

    [goal] = await world.board(founded.team.id)
    doubts = "'The capital of France is named' was not checked"  # nobody reviews here
    assert (goal.status, doubts_of(goal), goal.result) == (S.COMPLETED, doubts, "Paris.")


async def test_e5_a_goal_without_end_is_not_done_by_nothing_either(world: World) -> None:
    ada = world.script("ada", says(finish("HEARTBEAT_OK")), ASK, insists=False)
    founded = await world.found("Watch the news", mode="infinite", acceptance=())
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert ada.heard.startswith(f"[Not accepted] {NO_EFFECT}. Put it right")
    assert goal.status is S.WAITING


async def test_e6_a_task_that_was_told_to_stop_is_not_waited_for(world: World) -> None:
    def stops(request: Request) -> Says:
        return says(call("cancel_work_node", node_id=first_node(request), reason="not needed"))

    world.script(
        "ada", says(assign("Count", run_in_background=True)), stops, says(finish("Left it out."))
    )
    bob = world.script("bob", ASK)
    bob.gate = asyncio.Event()  # never set: its run hears of the end while it thinks
    founded = await world.found("Make an inventory of the house")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    assert (goal.status, doubts_of(goal), task.status) == (S.COMPLETED, None, S.CANCELLED)


def delegating(world: World, *names: str, blocks: bool = False) -> Says:
    """Return a reply that gives each of these workers a task; each asks the person and submits."""
    for name in names:
        count = says(call("publish", summary=f"{name} counted."))
        world.script(
            name, says(call("ask_human", question=f"How does {name} count?")), WRITE, count
        )
    more = {} if blocks else {"run_in_background": True}
    return says(*(assign(f"Count {name}", f"new:scripted/{name}", **more) for name in names))


async def answer_of(world: World, founded: NewTeam, name: str) -> None:
    """Answer the question of a worker, as the person, and let all work that can go on."""
    asked = await world.questions(founded.team.id)
    [question] = [each for each in asked if each.text == f"How does {name} count?"]
    await world.answer(question, "By hand.")
    await world.settle()


async def test_e6_a_finish_waits_for_all_open_tasks_and_is_made_again_with_their_results(
    world: World,
) -> None:
    early, late = finish("I delegated it."), finish("bob and cem counted.")
    ada = world.script("ada", delegating(world, "bob", "cem"), says(early), says(late))
    ada.insists = False
    founded = await world.found("Make an inventory of the house")
    await world.settle()
    goal, first, second = await world.board(founded.team.id)
    assert (goal.status, goal.waiting_reason) == (S.WAITING, "the end of 'Count bob', 'Count cem'")
    await answer_of(world, founded, "bob")
    assert (await world.node(goal.id)).status is S.WAITING
    assert len(ada.requests) == 2  # the end of the first task costs no call
    await answer_of(world, founded, "cem")

    goal = await world.node(goal.id)
    assert (goal.status, goal.result, doubts_of(goal)) == (
        S.COMPLETED,
        "bob and cem counted.",
        None,
    )
    [*_, told] = await tool_answers(world, goal.id)
    ended = f"'Count cem' ({second.id}): completed; 'Count bob' ({first.id}): completed"
    read = ada.requests[-1].turns[-3:]
    assert read[0].text.startswith(f"[Not ended] What you gave away has ended: {ended}. ")
    assert [name in turn.text for turn, name in zip(read[1:], ("bob", "cem"), strict=True)] == [
        True,
        True,
    ]
    assert told.text == "Published: no files."


async def test_e6_a_message_reaches_a_finish_that_waits_and_it_waits_again(world: World) -> None:
    lines = delegating(world, "bob"), says(finish("Early.")), says(finish("Soon.")), says(finish())
    ada = world.script("ada", *lines, insists=False)
    founded = await world.found("Make an inventory of the house")
    await world.settle()
    goal = (await world.board(founded.team.id))[0]
    await world.say(founded.coordinator.id, "Count the cellar, too.", team_id=founded.team.id)
    await world.settle()
    assert ada.requests[-1].turns[-2].text.startswith("Interrupted, because there is a message")
    assert ada.heard == "[Message from human] Count the cellar, too."
    assert (await world.node(goal.id)).status is S.WAITING
    await answer_of(world, founded, "bob")
    assert (await world.node(goal.id)).result == "All is done."


async def test_e6_a_finish_that_gives_open_tasks_up_by_name_cancels_them_and_says_so(
    world: World,
) -> None:
    gives_up = call("finish", summary="bob counted.", give_up=["count CEM"])
    ada = world.script(
        "ada", delegating(world, "bob", "cem"), says(gives_up), says(finish("bob counted."))
    )
    ada.insists = False
    founded = await world.found("Make an inventory of the house")
    await world.settle()
    goal, _, given_up = await world.board(founded.team.id)
    assert (goal.waiting_reason, given_up.status) == ("the end of 'Count bob'", S.CANCELLED)
    await answer_of(world, founded, "bob")

    goal = await world.node(goal.id)
    said = "bob counted.\n\nGiven up before it was done: 'Count cem'."
    assert (goal.status, goal.result, doubts_of(goal)) == (S.COMPLETED, said, None)
    [cancelled] = [e for e in await world.events(founded.team.id) if e.type == "node.cancelled"]
    assert cancelled.data["result"] == "coordinator gave it up, to end its own work without it."
    assert not any(given_up.id in t.text and t.role == "user" for t in ada.requests[-1].turns)


@pytest.mark.parametrize("written", ["Za\u0308hle  die Ba\u0308nke.", "ZÄHLE DIE BÄNKE"])
async def test_e6_a_title_is_known_however_its_letters_are_written(
    world: World, written: str
) -> None:
    given = {"agent": "new:scripted/bob", "description": "Zähle die Bänke"}
    gives = call("assign_task", task="Count the benches", run_in_background=True, **given)
    gives_up = call("finish", summary="Enough.", give_up=[written])
    world.script("ada", says(gives), says(gives_up))
    world.script("bob", ASK)
    founded = await world.found("Make an inventory of the park")
    await world.settle()
    goal, task = await world.board(founded.team.id)
    assert (goal.status, task.status) == (S.COMPLETED, S.CANCELLED)


async def test_e6_a_name_that_fits_no_open_task_is_refused_with_the_open_ones(
    world: World,
) -> None:
    wrong = call("finish", summary="Done.", give_up=["Sum", "Count bob"])
    ada = world.script("ada", delegating(world, "bob"), says(wrong), ASK_MORE, insists=False)
    founded = await world.found("Make an inventory of the house")
    await world.settle()
    _, task = await world.board(founded.team.id)
    assert ada.heard == (
        "Nothing was given up: 'Sum' is none of them. Open tasks: "
        f"'Count bob' ({task.id}). Give ids."
    )
    assert task.status is S.WAITING


async def test_e6_a_task_that_a_limit_ends_ends_the_wait_of_its_giver(world: World) -> None:
    late = finish("It was cut off.")
    create = call(
        "create_work_node", task="Count", assigned_to="new:scripted/bob", max_turns=2, title="Count"
    )
    lines = says(create), says(finish("Early.")), says(late), says(late)
    world.script("ada", *lines, insists=False)
    world.script("bob", ASK, WRITE, says("I have 3 so far."))
    founded = await world.found("Make an inventory of the house")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "By hand.")
    await world.settle()
    goal, task = await world.board(founded.team.id)
    assert (task.stop_reason, goal.status, goal.result) == (
        StopReason.TURNS_SPENT,
        S.COMPLETED,
        "It was cut off.",
    )


async def test_e6_a_publish_waits_for_the_tasks_below_it_too(world: World) -> None:
    world.script("ada", says(assign("Count it all")), says(finish("All counted.")))
    bob = world.script(
        "bob", delegating(world, "cem"), says(call("publish", summary="cem counts.")), WRITE,
        says(call("publish", summary="cem counted.")), insists=False,
    )  # fmt: skip
    founded = await world.found("Make an inventory of the house")
    await world.settle()
    assert [n.status for n in await world.board(founded.team.id)] == [S.WAITING] * 3
    await answer_of(world, founded, "cem")
    goal, task, _ = await world.board(founded.team.id)
    assert (task.result, goal.status) == ("cem counted.", S.COMPLETED)
    assert len(bob.requests) == 4


@pytest.mark.parametrize("order", [1, -1])
async def test_e7_a_finish_beside_other_calls_is_refused_and_the_others_are_made(
    world: World, order: int
) -> None:
    calls = [call("ask_human", question="Red or blue?"), finish()][::order]
    world.script("ada", says(*calls), says(finish("Painted.")), insists=False)
    founded = await world.found("Paint it")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    [question] = await world.questions(founded.team.id)
    assert (goal.status, await team_status(world, founded)) == (S.WAITING, "active")
    await world.answer(question, "Red.")
    await world.settle()
    assert (await world.node(goal.id)).result == "Painted."
    assert NOT_ALONE.format(name="finish") in [a.text for a in await tool_answers(world, goal.id)]


async def test_e8_a_call_after_an_ending_one_is_made(world: World) -> None:
    world.script("ada", says(finish("Early."), call("bash", command="touch late")))
    founded = await world.found("Do it")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert list(goal.manifest) == ["late"]


async def test_e8_an_old_thread_that_is_resumed_says_that_the_later_call_was_not_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before an ending call had to be alone, it ended the node, and no later call was made."""

    def assigns(request: Request) -> Says:
        return says(assign("Count again", agent="bob", resume=first_node(request)))

    with monkeypatch.context() as old:
        old.setattr(Steps, "_ends_beside_others", lambda *_: False)
        world.script("ada", says(assign("Count")), ASK, assigns, ASK_MORE)
        late = call("bash", command="touch late")
        bob = world.script("bob", WRITE, says(call("publish", summary="3."), late), ASK)
        founded = await world.found("Make an inventory of the house")
        await world.settle()
    [question] = await world.questions(founded.team.id)
    assert (await world.board(founded.team.id))[1].status is S.COMPLETED
    await world.answer(question, "Count again.")
    await world.settle()

    told = [turn for turn in bob.requests[-1].turns if turn.role == "tool"]
    assert (told[-1].text, told[-1].failed) == (
        "Not made: another call of the same reply had ended the work.",
        True,
    )


async def test_e9_a_finish_in_the_work_of_an_alarm_ends_that_work_only(world: World) -> None:
    world.script("ada", ASK, says(finish("The build is green.")))
    founded = await world.found("Release it")
    await world.settle()
    alarm = await create_trigger(world, founded, "delayed", {"delay_seconds": 60})
    await pass_time(world, 61)
    [woken] = await nodes_of(world, alarm)
    assert (woken.status, woken.result) == (S.COMPLETED, "The build is green.")
    [question] = await world.questions(founded.team.id)
    goal = (await world.board(founded.team.id))[0]
    assert (goal.status, question.answered_at) == (S.WAITING, None)
    assert await team_status(world, founded) == "active"


@pytest.mark.parametrize("said", ["HEARTBEAT_OK", "Nothing to do."])
async def test_e10_no_wording_of_a_result_makes_a_waking_quiet(world: World, said: str) -> None:
    founded = await found_idle_team(world, says(finish(said)))
    alarm = await create_trigger(world, founded, "delayed", {"delay_seconds": 60})
    await pass_time(world, 61)

    [node] = await nodes_of(world, alarm)
    assert (node.stop_reason, node.result) == (StopReason.FINISHED, said)


async def test_m7_a_quiet_waking_is_not_reflected_on(world: World) -> None:
    ending = call("finish", nothing_to_do=True)
    founded = await found_idle_team(world, says(ending), learns=True)
    alarm = await create_trigger(world, founded, "delayed", {"delay_seconds": 60})
    await pass_time(world, 61)

    [node] = await nodes_of(world, alarm)
    assert (node.status, node.stop_reason) == (S.COMPLETED, StopReason.NOTHING_TO_DO)
    assert [n.lane for n in await world.board(founded.team.id)] == ["work"]


async def test_e17_an_agent_that_hands_off_early_says_so_and_can_be_extended(world: World) -> None:
    tired = call("finish", summary="I am running out of context.", reached="partly")
    world.script("ada", WRITE, says(tired), says(finish("Compared.")))
    founded = await world.found("Compare them")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.stop_reason) == (S.PARTIAL, StopReason.PARTLY_REACHED)
    await world.store.write(continuations.extend, goal.id, Extension(turns=5), by=OWNER)
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.result) == (S.COMPLETED, "Compared.")


async def test_e19_unmet_lines_with_turns_left_are_sent_back_with_the_lines(world: World) -> None:
    giving_up = finish("Diminishing returns.", "", "I read both")
    ada = world.script("ada", says(LINES), says(giving_up), ASK, insists=False)
    await world.found("Compare them", acceptance=())
    await world.settle()

    assert ada.heard.startswith(
        "[Not accepted] no file 'report.md' is delivered, but '`report.md` compares both' asks for "
        "it. Put it right (2 of 500 turns are used), or call finish again"
    )


async def test_a_retry_starts_the_count_of_refusals_anew(world: World) -> None:
    """An agent that was sent back once is sent back once more when it gets another try."""
    quiet = [says(), says(), says()]
    ada = world.script("ada", says(finish()), *quiet, says(finish()), ASK, insists=False)
    founded = await world.found("Fix it", acceptance=())
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert goal.status is not S.COMPLETED
    await world.store.write(continuations.retry, goal.id)
    await world.settle()
    assert ada.heard.startswith("[Not accepted]")


async def test_the_lines_of_the_person_can_be_added_to_and_not_changed(world: World) -> None:
    world.script(
        "ada",
        says(call("set_acceptance", lines=["Mine"])),
        says(call("set_acceptance", lines=["Mine, refined", "It is red"])),
        says(finish("Done.", "", "")),
        says(call("set_acceptance", lines=["Nothing at all"])),
        ASK,
        insists=False,
    )
    founded = await world.found("Paint it", acceptance=["It is red"])
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert goal.acceptance == ("It is red", "Mine, refined", "Nothing at all")
    lines = [e.data["lines"] for e in await world.events(founded.team.id)
             if e.type == "node.acceptance"]  # fmt: skip
    assert lines == [
        ["It is red", "Mine"],
        ["It is red", "Mine, refined"],
        ["It is red", "Mine, refined", "Nothing at all"],
    ]


async def test_a_model_cannot_say_that_any_answer_is_enough(world: World) -> None:
    ada = world.script("ada", says(call("set_acceptance", lines=["Answer."])), ASK)
    await world.found("Paint it", acceptance=())
    await world.settle()
    assert ada.heard == "Only the person may set the line 'answer'. Say what can be checked."


def note_completion(world: World) -> asyncio.Event:
    """Return an event that is set when a node is completed."""
    ended = asyncio.Event()
    world.store.subscribe(
        lambda aftermath: (
            ended.set() if any(one.type == "node.completed" for one in aftermath.events) else None
        )
    )
    return ended


# The second stands in the answer to the call that gave the task away.
@pytest.mark.parametrize("result", ["There are 3.", "works on it"])
async def test_d6_a_result_that_came_and_was_not_read_is_sent_back(
    world: World, result: str
) -> None:
    """The result arrives while the model writes its `finish`; the refusal shows it the result."""
    gate, ended = asyncio.Event(), note_completion(world)

    async def meanwhile() -> Says:
        gate.set()
        await ended.wait()
        return says(finish("Done without it."))

    counting = says(assign("Count", run_in_background=True))
    lines: list[Thought] = [counting, meanwhile, says(finish(result))]
    ada = ThinkingModel("scripted/ada", lines)
    world.model("ada", ada)
    world.script("bob", WRITE, says(call("publish", summary=result))).gate = gate
    founded = await world.found("Make an inventory of the house")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    refused = (await tool_answers(world, goal.id))[1].text
    unread = f"[Not accepted] 'Count' ({task.id}) has a result that was not read"
    assert refused.startswith(unread)
    assert result in ada.heard[2]
    assert (goal.result, doubts_of(goal)) == (result, None)


async def test_d6_a_goal_that_insists_says_so_in_its_doubts(world: World) -> None:
    """It was sent back before; the result arrives while it writes the second ending."""
    gate, ended = asyncio.Event(), note_completion(world)

    async def meanwhile() -> Says:
        gate.set()
        await ended.wait()
        return says(finish("Done without it."))

    counting = says(assign("Count", run_in_background=True))
    lines: list[Thought] = [says(finish("Done.")), counting, meanwhile]
    world.model("ada", ThinkingModel("scripted/ada", lines))
    world.script("bob", WRITE, says(call("publish", summary="There are 3."))).gate = gate
    founded = await world.found("Make an inventory of the house", acceptance=["`a.md` lists it"])
    await world.settle()

    goal, _ = await world.board(founded.team.id)
    assert (goal.status, goal.result, doubts_of(goal)) == (
        S.COMPLETED,
        "Done without it.",
        "'Count' has a result that was not read; "
        "no file 'a.md' is delivered, but '`a.md` lists it' asks for it",
    )


async def test_a_failed_task_is_a_doubt_although_the_summary_names_it(world: World) -> None:
    def told(request: Request) -> Says:
        return says(finish(f"I counted by hand, because {first_node(request)} failed."))

    ada = world.script("ada", says(assign("Count")), told, told, insists=False)
    world.script("bob", says(), says(), says())
    founded = await world.found("Make an inventory of the house")
    await world.settle()
    goal, task = await world.board(founded.team.id)
    assert ada.heard.startswith(f"[Not accepted] 'Count' ({task.id}) has failed. Put it right")
    assert (task.status, goal.status, doubts_of(goal)) == (
        S.FAILED,
        S.COMPLETED,
        "'Count' has failed",
    )


async def test_a_failed_task_that_the_summary_passes_over_is_a_doubt(world: World) -> None:
    world.script("ada", says(assign("Count")), says(finish("All is counted.")))
    world.script("bob", says(), says(), says())
    founded = await world.found("Make an inventory of the house")
    await world.settle()
    goal, _ = await world.board(founded.team.id)
    assert (goal.status, doubts_of(goal)) == (S.COMPLETED, "'Count' has failed")


async def test_e9_work_of_an_alarm_that_asks_a_person_is_left_alone_by_the_end_of_the_goal(
    world: World,
) -> None:
    world.script("ada", ASK, ASK_MORE, says(finish("Released.")), says(finish("The build is red.")))
    founded = await world.found("Release it")
    await world.settle()
    [asked] = await world.questions(founded.team.id)
    alarm = await create_trigger(world, founded, "delayed", {"delay_seconds": 60})
    await pass_time(world, 61)
    await world.answer(asked, "Go on.")
    await world.settle()

    [goal, woken] = await world.board(founded.team.id)
    assert (goal.status, woken.status) == (S.COMPLETED, S.WAITING)
    assert await team_status(world, founded) == "completed"
    [question] = await world.questions(founded.team.id)
    assert question.node_id == woken.id
    await world.answer(question, "Look once more.")
    await world.settle()
    [woken] = await nodes_of(world, alarm)
    assert (woken.status, woken.result) == (S.COMPLETED, "The build is red.")


async def test_e6_tasks_that_can_no_longer_start_end_with_the_goal(world: World) -> None:
    """One needs a decision of the coordinator, which ends instead; the other needs the first."""

    gate = asyncio.Event()

    def created(request: Request) -> str:
        return re.findall(r"Created (node_\w+)", shown_text(request))[-1]

    def sums(request: Request) -> Says:
        more = {"depends_on": [created(request)], "if_unmet": "ask"}
        return says(call("create_work_node", title="Sum", task="Sum up", **more))

    def prints(request: Request) -> Says:
        gate.set()
        more = {"depends_on": [created(request)]}
        return says(call("create_work_node", title="Print", task="Print", **more))

    count = call("create_work_node", title="Count", task="Count", assigned_to="new:scripted/bob")
    world.script("ada", says(count), sums, prints, says("I wait."), says(finish("Enough.")))
    world.script("bob", says(), says(), says()).gate = gate
    founded = await world.found("Make an inventory of the house")
    await world.settle()

    goal, _, total, printed = await world.board(founded.team.id)
    assert (goal.status, await team_status(world, founded)) == (S.COMPLETED, "completed")
    assert [(n.status, n.stop_reason) for n in (total, printed)] == [
        (S.CANCELLED, StopReason.CANCELLED)
    ] * 2
    ends = [e.data["result"] for e in await world.events(founded.team.id)
            if e.type == "node.cancelled"]  # fmt: skip
    assert ends[1].startswith("The work above it ended before it could start (needs a decision: ")
