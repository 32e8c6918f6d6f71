"""Reviews: a reviewer judges a result that no machine can check before it counts."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from agiraph.core.domain.agents import Limits, Rule
from agiraph.core.domain.errors import ModelRefused
from agiraph.core.domain.work import Budget, Line, LineKind, NodeStatus, StopReason, WorkNode
from agiraph.core.services.lifecycle import teams as lifecycle
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.doubts import doubts_of
from tests.runtime.waiting import until

pytestmark = pytest.mark.needs("reviews")

S = NodeStatus
LINE = "It is funny"
ACCEPT = says(call("give_verdict", verdict="accept"))
REWORK = says(call("give_verdict", verdict="rework", findings=["Line 1: no joke. Add one."]))
FINISH = says(call("finish", summary="A joke.", evidence=["I laughed"]))
WRITE = says(call("write_file", path="joke.md", content="Knock, knock."))


def opens_files(request: Request) -> Says | None:
    """Return the first reply of a careful reviewer, which opens all files; None once it has."""
    asked, *later = request.transcript.turns[1:]
    names = re.findall(r"([\w.]+) \([\d,]+ bytes\)", asked.text)
    if not names or any(turn.role == "assistant" for turn in later):
        return None
    node = re.findall(r"submits as (\w+)", asked.text)[0]
    return says(*(call("read_file", path=f"nodes/{node}/scratch/{name}") for name in names))


@dataclass
class Cast:
    """An author and a reviewer that play their lines; the last line of the reviewer repeats."""

    reviewer: Sequence[Says]
    author: Callable[[Request], Says] | None = None
    asked: list[str] = field(default_factory=list[str])
    reviews: list[Request] = field(default_factory=list[Request])

    def play(self, request: Request) -> Says:
        turns = list(request.transcript.spoken())
        replies = sum(turn.role == "assistant" for turn in turns)
        if any(tool.name == "give_verdict" for tool in request.tools):
            if (look := opens_files(request)) is not None:
                return look
            self.reviews.append(request)
            review = sum(turn.role == "user" for turn in turns) and replies
            at = self.asked.count("review") if len(self.reviewer) > 1 else review
            self.asked.append("review")
            return self.reviewer[min(at, len(self.reviewer) - 1)]
        self.asked.append("author")
        if self.author is not None:
            return self.author(request)
        return WRITE if replies == 0 else FINISH


async def found(world: World, cast: Cast, **more: Any) -> NewTeam:
    world.model("ada", ReactiveModel("scripted/ada", cast.play))
    given: dict[str, Any] = {"acceptance": [LINE], "review": "auto"} | more
    founded = await world.found("Write a joke", **given)
    await world.settle()
    return founded


async def goal_and_reviews(world: World, founded: NewTeam) -> tuple[WorkNode, list[WorkNode]]:
    goal, *rest = await world.board(founded.team.id)
    return goal, [node for node in rest if node.reviews_call is not None]


async def test_an_accepted_result_counts_without_another_turn_of_its_author(world: World) -> None:
    cast = Cast([ACCEPT])
    goal, [review] = await goal_and_reviews(world, await found(world, cast))
    assert (goal.status, goal.result, doubts_of(goal)) == (S.COMPLETED, "A joke.", None)
    assert (review.status, review.stop_reason, review.parent_id) == (
        S.COMPLETED,
        StopReason.ACCEPTED,
        goal.id,
    )
    assert review.title == "Review of Write a joke"
    assert cast.asked == ["author", "author", "review"]
    shown = cast.reviews[0].transcript.turns[1].text
    assert "Write a joke" in shown
    assert f"Done means: {LINE}\nEvidence given: I laughed" in shown
    assert f"nodes/{goal.id}/scratch" in shown
    tools = [tool.name for tool in cast.reviews[0].tools]
    assert tools == ["bash", "give_verdict", "list_files", "read_file", "read_ref"]
    everyone = await world.members(goal.team_id)
    [reviewer] = [agent for agent in everyone if agent.role == "reviewer"]
    assert reviewer.retired_at is not None


async def test_a_result_is_sent_back_with_the_findings_and_reviewed_again(world: World) -> None:
    cast = Cast([REWORK, ACCEPT])
    goal, reviews = await goal_and_reviews(world, await found(world, cast))
    assert (goal.status, doubts_of(goal)) == (S.COMPLETED, None)
    assert [r.stop_reason for r in reviews] == [StopReason.SENT_BACK, StopReason.ACCEPTED]
    [sent_back] = [t.text for t in await world.turns(goal.id) if t.text.startswith("[Sent back")]
    assert "This is time 1 of at most 2" in sent_back
    assert "the findings, in the words of the reviewer" in sent_back
    assert "- Line 1: no joke. Add one." in sent_back


PRICE = "`btc.py` prints a price"
WRITE_BTC = call("write_file", path="btc.py", content="print(get_price())")


def submits(*evidence: str) -> Says:
    return says(call("finish", summary="btc.py is written. I could not run it.", evidence=evidence))


def by_lines(*lines: Says) -> Callable[[Request], Says]:
    """Return an author that gives these replies in turn; the last one repeats."""

    def play(request: Request) -> Says:
        replies = sum(turn.role == "assistant" for turn in request.transcript.turns)
        return lines[min(replies, len(lines) - 1)]

    return play


async def test_a_line_without_a_kind_that_only_a_file_supports_is_reviewed(world: World) -> None:
    cast = Cast([REWORK], by_lines(says(WRITE_BTC), submits("file:btc.py")))
    goal, made = await goal_and_reviews(world, await found(world, cast, acceptance=[PRICE]))
    assert ([r.stop_reason for r in made], doubts_of(goal)) == (
        [StopReason.SENT_BACK] * 3,
        "the reviewer objects: - Line 1: no joke. Add one.",
    )


@pytest.mark.parametrize(
    ("kind", "given", "asks_for"),
    [
        ("ran", "file:btc.py", "a command that was run"),
        ("file", "ran:true", "a file"),
    ],
)
async def test_evidence_of_another_kind_is_sent_back_once_and_then_a_doubt(
    world: World, kind: LineKind, given: str, asks_for: str
) -> None:
    cast = Cast([ACCEPT], by_lines(says(WRITE_BTC), submits(given)))
    founded = await found(world, cast, acceptance=[Line(PRICE, kind)])
    goal, made = await goal_and_reviews(world, founded)
    doubt = f"{PRICE!r} asks for {asks_for} as evidence, and was given {given!r}"
    assert (goal.status, doubts_of(goal), made) == (S.COMPLETED, doubt, [])
    [refused] = [t.text for t in await world.turns(goal.id) if t.text.startswith("[Not accepted]")]
    assert doubt in refused


@pytest.mark.parametrize(
    ("kind", "given", "reviews"),
    [
        ("ran", "ran:python3 btc.py", 0),
        ("file", "file:btc.py", 1),
        ("judged", "I read it", 1),
        ("judged", "file:btc.py", 1),
    ],
)
async def test_evidence_of_the_right_kind_counts(
    world: World, kind: LineKind, given: str, reviews: int
) -> None:
    """That a file exists proves no line that the agent wrote itself: it is read."""
    run = says(call("bash", command="echo 'print(1)' > btc.py && python3 btc.py"))
    lines = call("set_acceptance", lines=[PRICE], kinds=[kind])
    finish = says(call("finish", summary="btc.py prints 1.", evidence=[given]))
    cast = Cast([ACCEPT], by_lines(says(lines), run, finish))
    goal, made = await goal_and_reviews(world, await found(world, cast, acceptance=()))
    assert (goal.status, doubts_of(goal), len(made)) == (S.COMPLETED, None, reviews)
    assert goal.line_kinds == {PRICE: kind}


async def test_a_task_shows_its_worker_the_kinds_of_its_lines(world: World) -> None:
    lines = {"acceptance": ["It is funny", "It runs"], "kinds": ["judged", "ran"]}
    make = call("create_work_node", task="Joke", assigned_to="new:scripted/bob", **lines)
    wrong = call("set_acceptance", lines=["one", "two"], kinds=["ran"])
    ask = says(call("ask_human", question="What now?"))
    ada = world.script("ada", says(make), says(wrong), ask)
    bob = world.script("bob", ask)
    await world.found("Have a joke made", acceptance=())
    await world.settle()
    shown = "- It is funny [in words, for a reviewer]\n- It runs [ran:COMMAND]"
    assert shown in bob.requests[0].turns[0].text
    assert "There are 2 lines and 1 kinds. Give a kind for each line" in ada.heard


async def test_after_two_rounds_of_rework_a_result_counts_with_doubts(world: World) -> None:
    goal, reviews = await goal_and_reviews(world, await found(world, Cast([REWORK])))
    assert [r.stop_reason for r in reviews] == [StopReason.SENT_BACK] * 3
    assert goal.status is S.COMPLETED
    assert doubts_of(goal) == "the reviewer objects: - Line 1: no joke. Add one."


@pytest.mark.parametrize(
    "line",
    [
        says("It looks good to me. I accept it."),
        says(call("give_verdict", verdict="maybe")),
        says(call("give_verdict", verdict="rework")),
        says(call("publish", summary="Accepted.")),
        says(call("assign_task", agent="new:scripted/ada", task="x", description="x")),
    ],
)
async def test_without_a_valid_verdict_a_result_counts_with_doubts(
    world: World, line: Says
) -> None:
    goal, [review] = await goal_and_reviews(world, await found(world, Cast([line])))
    assert (goal.status, goal.result) == (S.COMPLETED, "A joke.")
    assert (doubts_of(goal) or "").startswith("review gave no verdict (")
    assert review.stop_reason not in (StopReason.ACCEPTED, StopReason.SENT_BACK)


@pytest.mark.parametrize(
    ("more", "reviews"),
    [
        ({"review": "never"}, 0),
        ({"review": "auto", "acceptance": ["`joke.md` exists"]}, 1),
        ({"review": "auto", "acceptance": ["answer"]}, 0),
        ({"review": "always", "acceptance": ["answer"]}, 1),
        ({"review": "always", "acceptance": ["`joke.md` exists"]}, 1),
        ({"review": "auto"}, 1),
    ],
)
async def test_the_setting_decides_what_is_reviewed(
    world: World, more: dict[str, Any], reviews: int
) -> None:
    cast = Cast([ACCEPT])
    goal, made = await goal_and_reviews(world, await found(world, cast, **more))
    doubts = f"{LINE!r} was not checked" if more == {"review": "never"} else None
    assert (goal.status, doubts_of(goal), len(made)) == (S.COMPLETED, doubts, reviews)
    assert cast.asked.count("review") == reviews


async def test_a_team_that_may_hire_nobody_completes_with_doubts(world: World) -> None:
    founded = await found(world, Cast([ACCEPT]), limits=Limits(agents=1))
    goal, reviews = await goal_and_reviews(world, founded)
    assert (goal.status, reviews) == (S.COMPLETED, [])
    assert (doubts_of(goal) or "").startswith("review gave no verdict: The team has 1 members")


async def test_a_budget_that_is_spent_never_blocks_the_result(world: World) -> None:
    founded = await found(world, Cast([ACCEPT]), budget=Budget(model_calls=3))
    goal, _ = await goal_and_reviews(world, founded)
    assert (goal.status, goal.result) == (S.COMPLETED, "A joke.")
    assert (doubts_of(goal) or "").startswith("review gave no verdict")


async def test_a_reviewer_reads_the_authors_files_and_changes_none(world: World) -> None:
    answers: list[str] = []

    def review(request: Request) -> Says:
        told = [t for t in request.transcript.spoken() if t.role == "tool"]
        answers[:] = [t.text for t in told]
        node = request.transcript.turns[1].text.split(" submits as ")[1].split(".")[0]
        if not told:
            return says(
                call("read_file", path=f"nodes/{node}/scratch/joke.md"),
                call("bash", command=f"cat ../../{node}/scratch/joke.md"),
                call("bash", command=f"echo changed > ../../{node}/scratch/joke.md"),
            )
        return ACCEPT

    cast = Cast([])
    cast.play = lambda request: (  # type: ignore[method-assign]
        review(request)
        if any(tool.name == "give_verdict" for tool in request.tools)
        else Cast([ACCEPT]).play(request)
    )
    founded = await found(world, cast)
    goal, _ = await goal_and_reviews(world, founded)
    assert doubts_of(goal) is None
    assert [("Knock, knock." in text) for text in answers] == [True, True, False]
    assert world.published(goal)["joke.md"] == "Knock, knock."


async def test_a_task_is_reviewed_if_somebody_waits_for_it(world: World) -> None:
    def lead(request: Request) -> Says:
        turns = list(request.transcript.spoken())
        if "You have been given a task" in turns[0].text:
            return says(call("publish", summary="A pun.", evidence=["words"]))
        replies = sum(turn.role == "assistant" for turn in turns)
        if replies == 0:
            new = "new:scripted/ada"
            return says(
                call("create_work_node", task="Pun", assigned_to=new, acceptance=["It is short"]),
            )
        if replies == 1:
            node = turns[-1].text.split()[1].rstrip(",")
            return says(call("task_output", id=node, blocking=True))
        return says(call("finish", summary="Done: A pun."))

    cast = Cast([ACCEPT], author=lead)
    founded = await found(world, cast, acceptance=["answer"])
    board = await world.board(founded.team.id)
    assert [n.status for n in board] == [S.COMPLETED] * 3
    [review] = [n for n in board if n.reviews_call is not None]
    assert review.parent_id == board[1].id


@dataclass(slots=True)
class HeldReviewer(ReactiveModel):
    """A model whose reviews wait until a test lets them go on."""

    is_asked: asyncio.Event = field(default_factory=asyncio.Event)
    is_told: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the author has heard the person."""
    may_judge: asyncio.Event = field(default_factory=asyncio.Event)

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        if any(tool.name == "give_verdict" for tool in request.tools):
            self.is_asked.set()
            await self.may_judge.wait()
        elif any("Make haste." in turn.text for turn in request.transcript.turns):
            self.is_told.set()
        return await ReactiveModel.reply(self, request, on_delta)


async def found_held(world: World) -> tuple[NewTeam, HeldReviewer]:
    """Found a team whose result is under review, and a reviewer that has not judged it yet."""
    held = HeldReviewer("scripted/ada", Cast([ACCEPT]).play)
    world.model("ada", held)
    founded = await world.found("Write a joke", acceptance=[LINE], review="auto")
    await held.is_asked.wait()
    return founded, held


async def test_a_message_during_a_review_neither_repeats_nor_loses_it(world: World) -> None:
    founded, held = await found_held(world)
    await world.say(founded.coordinator.id, "Make haste.", team_id=founded.team.id)
    await held.is_told.wait()
    held.may_judge.set()
    await world.settle()
    goal, [review] = await goal_and_reviews(world, founded)
    assert (goal.status, doubts_of(goal)) == (S.COMPLETED, None)
    assert review.stop_reason is StopReason.ACCEPTED


async def test_a_review_survives_a_restart(world: World) -> None:
    founded, held = await found_held(world)
    held.may_judge.set()
    await world.restart()
    await world.settle()
    goal, [review] = await goal_and_reviews(world, founded)
    assert (goal.status, doubts_of(goal)) == (S.COMPLETED, None)
    assert review.stop_reason is StopReason.ACCEPTED


async def test_a_team_that_is_stopped_cancels_its_review(world: World) -> None:
    founded, held = await found_held(world)
    await world.store.write(lifecycle.stop, founded.team.id)
    held.may_judge.set()
    await world.settle()
    goal, [review] = await goal_and_reviews(world, founded)
    assert (goal.status, review.status) == (S.CANCELLED, S.CANCELLED)


async def test_a_reviewer_whose_model_refuses_asks_no_person(world: World) -> None:
    def refuses(request: Request) -> Says:
        if any(tool.name == "give_verdict" for tool in request.tools):
            raise ModelRefused("no such model")
        return cast.play(request)

    cast = Cast([ACCEPT])
    world.model("ada", ReactiveModel("scripted/ada", refuses))
    founded = await world.found("Write a joke", acceptance=[LINE], review="auto")
    await world.settle()
    goal, _ = await goal_and_reviews(world, founded)
    assert (goal.status, doubts_of(goal)) == (
        S.COMPLETED,
        "review gave no verdict (model_refused)",
    )
    assert await world.questions(founded.team.id) == []


PROGRAM = "cli:sh -c 'echo found > data.txt && echo It is found. > _result.md'"


def gives_program(request: Request) -> Says:
    """A coordinator that gives a program a task with a line that only a reader can judge."""
    replies = sum(turn.role == "assistant" for turn in request.transcript.spoken())
    task = {"task": "Find it", "title": "Find", "acceptance": [LINE], "assigned_to": PROGRAM}
    match replies:
        case 0:
            return says(call("create_work_node", **task))
        case 1:
            shown = "\n".join(turn.text for turn in request.transcript.spoken())
            node = re.findall(r"Created (node_\w+)", shown)[-1]
            return says(call("task_output", id=node, blocking=True))
        case _:
            return says(call("finish", summary="It is found."))


@pytest.mark.parametrize(
    ("verdict", "doubts"),
    [(ACCEPT, None), (REWORK, "the reviewer objects: - Line 1: no joke. Add one.")],
    ids=["accepted", "sent back"],
)
async def test_a_programs_result_on_which_others_build_is_reviewed(
    world: World, verdict: Says, doubts: str | None
) -> None:
    """It is not run again: what a reviewer finds is a doubt for whoever gave the task."""
    cast = Cast([verdict], author=gives_program)
    founded = await found(
        world, cast, acceptance=["answer"], permissions=(Rule(tool="bash", action="allow"),)
    )

    goal, program, review = await world.board(founded.team.id)
    assert (program.status, program.result, doubts_of(program)) == (
        S.COMPLETED,
        "It is found.",
        doubts,
    )
    assert (review.parent_id, review.title) == (program.id, "Review of Find")
    assert world.published(program).keys() >= {"data.txt"}
    shown = cast.reviews[0].transcript.turns[1].text
    assert "It is found." in shown
    assert f"nodes/{program.id}/scratch" in shown
    assert goal.status is S.COMPLETED
    events = await world.events(founded.team.id)
    runs = [e for e in events if e.type == "tool.result" and e.data["tool"] == "command"]
    assert len(runs) == 1


async def test_a_message_to_a_program_under_review_does_not_wake_it(world: World) -> None:
    """It could only wait for the review again, and again, until the reviewer has judged."""
    held = HeldReviewer("scripted/ada", Cast([ACCEPT], author=gives_program).play)
    world.model("ada", held)
    founded = await world.found(
        "Write a joke",
        acceptance=["answer"],
        review="auto",
        permissions=(Rule(tool="bash", action="allow"),),
    )
    await held.is_asked.wait()
    _, program, _ = await world.board(founded.team.id)
    assert program.assignee_id is not None

    async def is_waiting() -> bool:
        return (await world.node(program.id)).status is S.WAITING

    await until(world, is_waiting)
    await world.say(program.assignee_id, "One thing more.", team_id=founded.team.id)
    assert await is_waiting()
    held.may_judge.set()
    await world.settle()

    events = await world.events(founded.team.id)
    waits = [e for e in events if e.type == "node.waiting" and e.data["node_id"] == program.id]
    tasks = [node.task for node in await world.board(founded.team.id)]
    assert (len(waits), sum("One thing more." in task for task in tasks)) == (1, 1)
