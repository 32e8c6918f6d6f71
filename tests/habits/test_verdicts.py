"""Verdicts: an end says whether the work was reached, and only what a machine saw is evidence."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from agiraph.core.domain.agents import GivenFolder
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import Line, NodeStatus, StopReason, WorkNode
from agiraph.core.prompts import prompt
from agiraph.core.services.lifecycle import continuations, endings, teams
from agiraph.core.tools.toolsets import toolset
from agiraph.models.base import Request
from agiraph.testing import Call, Says, World, call, says
from tests.doubts import doubts_of
from tests.habits.kit import ASK, assign
from tests.scenarios.thread_queries import shown_text
from tests.services.stages import pass_time
from tests.services.triggers import create_trigger, nodes_of

S = NodeStatus


def write(path: str, content: str) -> Call:
    return call("write_file", path=path, content=content)


def finish(summary: str = "Done.", *evidence: str, **more: Any) -> Call:
    return call("finish", summary=summary, evidence=list(evidence), **more)


async def goal_of(
    world: World, *steps: Call, goal: str = "Do it", acceptance: tuple[Any, ...] = ("answer",),
    **more: Any,
) -> WorkNode:  # fmt: skip
    """Make these calls one after the other, insist on the last, and return the goal."""
    world.script("ada", *map(says, steps))
    founded = await world.found(goal, acceptance=acceptance, **more)
    await world.settle()
    return (await world.board(founded.team.id))[0]


@pytest.mark.parametrize(
    ("reached", "status", "reason", "line"),
    [
        ("yes", S.COMPLETED, StopReason.FINISHED, ""),
        ("partly", S.PARTIAL, StopReason.PARTLY_REACHED, "\n\nReached only in part."),
        ("no", S.FAILED, StopReason.NOT_REACHED, "\n\nNot reached."),
    ],
)
async def test_the_status_and_the_report_follow_the_verdict(
    world: World, reached: str, status: NodeStatus, reason: StopReason, line: str
) -> None:
    end = finish("The printer is on fire.", reached=reached)
    goal = await goal_of(world, write("notes.md", "It burns."), end)
    [told] = await world.inbox()
    assert (goal.status, goal.stop_reason, goal.result) == (
        status,
        reason,
        "The printer is on fire.",
    )
    assert (told.text, told.kind) == (
        f"The printer is on fire.{line}",
        "result" if status is S.COMPLETED else "failure",
    )
    assert world.published(goal) == {"notes.md": "It burns."}


async def test_work_that_was_not_reached_can_be_tried_again(world: World) -> None:
    giving_up = says(finish("I have no key.", reached="no"))
    world.script("ada", says(write("a.md", "words")), giving_up, says(finish("Now I had one.")))
    founded = await world.found("Do it")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    await world.store.write(continuations.retry, goal.id)
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.result) == (S.COMPLETED, "Now I had one.")


@pytest.mark.parametrize("more", [{}, {"reached": "maybe"}])
async def test_a_missing_verdict_is_asked_for_once_and_then_counts_as_partly(
    world: World, more: dict[str, Any]
) -> None:
    silent = says(Call("finish", {"summary": "Done.", **more}))
    ada = world.script("ada", says(write("a.md", "words")), silent, silent, insists=False)
    founded = await world.found("Do it")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert ada.heard.startswith(
        "[Not accepted] nobody said whether it was reached. Say it with `reached`: "
        '"yes", "partly" or "no".'
    )
    assert (goal.status, doubts_of(goal)) == (S.PARTIAL, "nobody said whether it was reached")


async def test_a_worker_that_did_not_reach_its_task_stands_so_with_its_giver(world: World) -> None:
    ada = world.script("ada", says(assign("Count")), ASK)
    no = call("publish", summary="The cellar is locked.", reached="no")
    world.script("bob", says(write("n.md", "?")), says(no))
    founded = await world.found("Make an inventory of the house")
    await world.settle()
    _, task = await world.board(founded.team.id)
    assert (task.status, task.result) == (S.FAILED, "The cellar is locked.")
    assert "Status: failed (not_reached)" in ada.heard
    assert "The cellar is locked." in ada.heard


FILE = (Line("`report.md` compares them", "file"),)
TASK = "Compare the three heat pumps and write down which one suits an old house"


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("", "is empty"),
        (" \n\t\n", "is empty"),
        ("...\n", "is empty"),
        ("\u200b\u2060\n", "is empty"),
        ("| | |\n|---|---|\n| | |\n", "is empty"),
        ("TODO", "holds only a placeholder"),
        (f"# {TASK}\n", "only repeats the task"),
        ("The second one.", None),
    ],
    ids=["empty", "blank", "dots", "unseen", "frame", "placeholder", "copied", "written"],
)
async def test_a_file_counts_if_it_has_words_of_its_own(
    world: World, content: str, wrong: str | None
) -> None:
    end = finish("It is in `report.md`.", "file:report.md")
    goal = await goal_of(world, write("report.md", content), end, goal=TASK, acceptance=FILE)
    file = f"the file 'report.md' {wrong}"
    doubts = f"{file}, but '`report.md` compares them' asks for it; {file}, but it was given as"
    assert goal.status is S.COMPLETED
    assert doubts_of(goal) == (None if wrong is None else f"{doubts} evidence")


@pytest.mark.parametrize(
    ("goal", "missing"),
    [
        ("Write the comparison into report.md, please", "report.md"),
        ("Schreibe den Vergleich nach `out/vergleich.md`.", "out/vergleich.md"),
        ("请把结果写入report.md文件。", "report.md"),
        ("اكتب النتيجة في report.md", "report.md"),
        ("तुलना को रिपोर्ट.md में लिखो", "रिपोर्ट.md"),
        ("इसे `रिपोर्ट.md` में लिखो", "रिपोर्ट.md"),
        ("Compare them. Run it with `python meter.py`.", None),
        ("Compare what https://x.example/data.csv and node.js say", None),
        ("Keep to PLAN.md", None),
    ],
)
async def test_a_file_that_the_goal_names_and_that_does_not_exist_is_a_doubt(
    world: World, goal: str, missing: str | None
) -> None:
    plan = call("write_file", path="PLAN.md", content="1. Look.")
    ended = await goal_of(world, plan, write("other.md", "words"), finish(), goal=goal)
    said = None if missing is None else f"the file {missing!r} of the task does not exist"
    assert (ended.status, doubts_of(ended)) == (S.COMPLETED, said)


async def test_a_folder_with_the_name_of_a_file_is_not_that_file(world: World) -> None:
    made = call("bash", command="mkdir report.md && ls -d report.md")
    goal = await goal_of(world, made, write("x.md", "words"), finish(), goal="Write report.md")
    assert doubts_of(goal) == "the file 'report.md' of the task does not exist"


async def test_a_file_of_a_given_folder_is_no_missing_file(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "notes.txt").write_text("one\ntwo\n")
    look = call("read_file", path="folders/given/notes.txt")
    ended = await goal_of(
        world,
        look,
        write("summary.md", "Two lines."),
        finish(),
        goal="Summarise notes.txt into summary.md",
        folders=(GivenFolder(name="given", path=str(folder)),),
    )
    assert (ended.status, doubts_of(ended)) == (S.COMPLETED, None)


async def test_a_failed_only_task_is_a_doubt_whatever_the_summary_says(world: World) -> None:
    def told(request: Request) -> Says:
        [node] = set(re.findall(r"node_\w+", shown_text(request)))
        return says(finish(f"{node} was counted. All is well."))

    world.script("ada", says(assign("Count")), told, told, insists=False)
    world.script("bob", says(), says(), says())
    founded = await world.found("Make an inventory of the house")
    await world.settle()
    goal, _ = await world.board(founded.team.id)
    assert (goal.status, doubts_of(goal)) == (S.COMPLETED, "'Count' has failed")


async def test_a_task_that_somebody_else_cancelled_is_a_doubt(world: World) -> None:
    world.script("ada", says(assign("Count")), says(finish("All is counted.")))
    world.script("bob", ASK)
    founded = await world.found("Make an inventory of the house")
    await world.settle()
    _, task = await world.board(founded.team.id)
    await world.store.write(endings.cancel, task.id)
    await world.settle()
    goal, _ = await world.board(founded.team.id)
    assert (goal.status, doubts_of(goal)) == (S.COMPLETED, "'Count' was cancelled")


async def test_a_failed_task_that_was_done_in_a_second_try_is_no_doubt(world: World) -> None:
    world.script(
        "ada",
        says(assign("Count")),
        says(assign("Count", agent="new:scripted/cem")),
        says(finish("There are 3.")),
    )
    world.script("bob", says(), says(), says())
    world.script("cem", says(write("n.md", "3")), says(call("publish", summary="There are 3.")))
    founded = await world.found("Make an inventory of the house")
    await world.settle()
    goal, first, second = await world.board(founded.team.id)
    assert [n.status for n in (goal, first, second)] == [S.COMPLETED, S.FAILED, S.COMPLETED]
    assert doubts_of(goal) is None


@pytest.mark.parametrize("mark", ["?", "\uff1f", "\u061f", "\u037e"])
async def test_a_question_in_a_summary_is_sent_back_and_then_a_doubt(
    world: World, mark: str
) -> None:
    asking = finish(f"It is nearly done. Red or blue{mark}")
    ada = world.script("ada", says(write("a.md", "words")), says(asking), says(asking),
                       insists=False)  # fmt: skip
    founded = await world.found("Paint it")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert "Ask with ask_human or send_message, or end without a question." in ada.heard
    assert (goal.status, doubts_of(goal)) == (
        S.COMPLETED,
        "it ends with a question that nobody was asked",
    )


async def test_of_two_finishes_in_one_reply_the_first_counts(world: World) -> None:
    both = says(finish("The first."), finish("The second."))
    ada = world.script("ada", says(write("a.md", "words")), both, insists=False)
    founded = await world.found("Do it")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.result, len(ada.requests)) == (S.COMPLETED, "The first.", 2)


async def test_work_from_a_chat_that_is_done_over_nothing_has_a_doubt(world: World) -> None:
    idle = finish("Done!")
    world.script("ada", says("On it.", call("start_work", task="Fix it")), says(idle), says(idle))
    founded = await world.found("Help", start=False)
    await world.chat(founded.coordinator.id, "Fix the build.")
    await world.settle()
    [work] = [n for n in await world.board(founded.team.id) if n.lane == "work"]
    nothing = "nothing was read, written, run or given to anyone"
    assert (work.status, doubts_of(work)) == (S.COMPLETED, nothing)


async def test_work_of_a_persons_trigger_that_is_done_over_nothing_has_a_doubt(
    world: World,
) -> None:
    world.script("ada", ASK, says(finish("All checked!")))
    founded = await world.found("Watch the shop")
    await world.settle()
    alarm = await create_trigger(world, founded, "delayed", {"delay_seconds": 60}, made_by=OWNER)
    await pass_time(world, 61)
    [woken] = await nodes_of(world, alarm)
    nothing = "nothing was read, written, run or given to anyone"
    assert (woken.status, doubts_of(woken)) == (S.COMPLETED, nothing)


CONTRADICTS = [
    says(call("set_acceptance", lines=["`report.md` says that it works"], kinds=["file"])),
    says(write("report.md", "It does not work."), write("other.txt", "Something else.")),
    says(finish("It works.", "file:report.md")),
]


NOT_OPENED = "'report.md' was not checked"
BESIDE = "../../node_*/scratch"
"""The folder of the files, as a reviewer may write it in a command."""


@pytest.mark.parametrize(
    ("opens", "doubts"),
    [
        ("", NOT_OPENED),
        ("read_file", None),
        (f"cat {BESIDE}/report.md", None),
        (f"cat {BESIDE}/*.md", None),
        (f"find {BESIDE} -type f -exec cat {{}} +", None),
        (f"cat {BESIDE}/other.txt", NOT_OPENED),
        (f"ls -d {BESIDE}", NOT_OPENED),
    ],
)
async def test_a_file_of_the_agents_own_line_is_read_by_a_reviewer_or_not_checked(
    world: World, opens: str, doubts: str | None
) -> None:
    """Without a review, the summary could say the opposite of the file."""
    asked: list[str] = []

    def review(request: Request) -> Says:
        asked.append(request.transcript.turns[1].text)
        node = asked[0].split("submits as ")[1].split(".")[0]
        reads = call("read_file", path=f"nodes/{node}/scratch/report.md")
        return says(reads if opens == "read_file" else call("bash", command=opens))

    accept = says(call("give_verdict", verdict="accept"))
    lines = [review, accept] if opens else [accept]
    world.script("ada", *CONTRADICTS, *lines, insists=False)
    founded = await world.found("Try it", acceptance=(), review="auto")
    await world.settle()
    goal, _ = await world.board(founded.team.id)
    assert (goal.status, doubts_of(goal)) == (S.COMPLETED, doubts)
    assert not opens or "report.md (17 bytes)" in asked[0]


async def test_the_example_of_the_lean_prompt_followed_to_the_letter_ends_clean(
    world: World,
) -> None:
    """Its calls are those that stand in the prompt of a model with a small window."""
    example, _ = prompt("lean_coordinator").split("A worker is given")
    made = re.findall(r"You call (\w+) with (\{.*\})\.", example.format(ending="finish"))
    calls = [Call(name, json.loads(arguments)) for name, arguments in made]
    assert [made.name for made in calls] == ["set_acceptance", "bash", "finish"]
    goal = await goal_of(
        world,
        write("data.csv", "1\n" * 120),
        *calls,
        goal="Count the lines of data.csv",
        acceptance=(),
        review="auto",
    )
    assert (goal.status, doubts_of(goal)) == (S.COMPLETED, None)


@pytest.mark.parametrize(("role", "ending"), [("coordinator", "finish"), ("worker", "publish")])
async def test_a_model_with_a_small_window_is_shown_verdict_and_evidence(
    world: World, role: str, ending: str
) -> None:
    founded = await world.found("Do it", start=False)
    agent = replace(founded.coordinator, role=role)
    [spec] = [spec for spec in toolset(agent, is_lean=True).shown if spec.name == ending]
    assert spec.schema["properties"] == {
        "summary": {"type": "string"},
        "reached": {"type": "string", "enum": ["yes", "partly", "no"]},
        "evidence": {"type": "array", "items": {"type": "string"}},
    }
    assert spec.schema["required"] == ["summary", "reached"]


async def test_a_refusal_for_missing_evidence_says_how_to_give_it(world: World) -> None:
    ada = world.script("ada", says(write("a.md", "words")), says(finish()), ASK, insists=False)
    await world.found("Do it", acceptance=("It is right",))
    await world.settle()
    assert 'Give `evidence` for each line, in order: ["file:NAME", "ran:COMMAND"]' in ada.heard


OLD = "Heat pumps were compared in 2019. None of them was good.\n"
COPIED = "'report.md' is a copy of 'folders/given/old.md'"


def old_folder(tmp_path: Path) -> tuple[GivenFolder, ...]:
    """A folder of the person with a file from before the work."""
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "old.md").write_text(OLD)
    os.utime(folder / "old.md", (0, 0))
    return (GivenFolder(name="given", path=str(folder)),)


@pytest.mark.parametrize("kind", ["file", None])
async def test_a_copy_of_what_was_there_before_is_no_evidence(
    world: World, tmp_path: Path, kind: Literal["file"] | None
) -> None:
    lines = (Line("`report.md` compares them", kind),)
    end = finish("It is in `report.md`.", "file:report.md")
    folders = old_folder(tmp_path)
    goal = await goal_of(
        world, write("report.md", OLD), end, goal=TASK, acceptance=lines, folders=folders
    )
    assert doubts_of(goal) == f"'`report.md` compares them' was not checked: {COPIED}"


async def test_a_copy_of_an_earlier_result_is_no_evidence(world: World) -> None:
    once = [says(write("report.md", OLD)), says(finish("Done.", "file:report.md"))]
    world.script("ada", *once, *once)
    founded = await world.found("Do it", acceptance=("`report.md` compares them",))
    await world.settle()
    world.clock.advance(days=1)
    await world.store.write(teams.set_goal, founded.team.id, "Do it anew", acceptance=FILE)
    await world.settle()
    first, second = await world.board(founded.team.id)
    same = "'report.md' is a copy of 'report.md' of 'Do it'"
    assert (doubts_of(first), doubts_of(second)) == (
        None,
        f"'`report.md` compares them' was not checked: {same}",
    )


@pytest.mark.parametrize(
    ("verdict", "doubts"),
    [("accept", None), ("rework", "the reviewer objects: - It compares nothing.")],
)
async def test_a_reviewer_is_told_of_a_copy_and_decides_whether_it_was_asked_for(
    world: World, tmp_path: Path, verdict: str, doubts: str | None
) -> None:
    """The line could be checked by a machine alone, were it no copy. A task that asks for a copy
    ends without a doubt."""
    asked: list[str] = []

    def look(request: Request) -> Says:
        asked.append(request.transcript.turns[1].text)
        node = asked[-1].split("submits as ")[1].split(".")[0]
        return says(call("read_file", path=f"nodes/{node}/scratch/report.md"))

    judge = says(call("give_verdict", verdict=verdict, findings=["It compares nothing."]))
    end = says(finish("It is in `report.md`.", "file:report.md"))
    reviews = [look, judge, end] * (1 if verdict == "accept" else 3)
    world.script("ada", says(write("report.md", OLD)), end, *reviews, insists=False)
    goal = await world.found(
        "Copy old.md to report.md",
        acceptance=("`report.md` is a copy",),
        review="auto",
        folders=old_folder(tmp_path),
    )
    await world.settle()
    ended = (await world.board(goal.team.id))[0]
    assert (ended.status, doubts_of(ended)) == (S.COMPLETED, doubts)
    assert f"accept it only if a copy was asked for: {COPIED}." in asked[0]
    assert world.published(ended) == {"report.md": OLD}


async def test_a_file_that_the_work_itself_made_in_a_folder_is_no_copy(
    world: World, tmp_path: Path
) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    make = call("write_file", path="folders/given/new.md", content=OLD)
    end = finish("It is in `report.md`.", "file:report.md")
    folders = (GivenFolder(name="given", path=str(folder), access="rw"),)
    goal = await goal_of(
        world, make, write("report.md", OLD), end, goal=TASK, acceptance=FILE, folders=folders
    )
    assert (goal.status, doubts_of(goal)) == (S.COMPLETED, None)
