"""Over HTTP: a real server with a real wire keeps a goal right while its models misbehave."""

import asyncio
import queue
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pytest

from agiraph.api.views import MessageView, NodeView
from agiraph.client import Client
from agiraph.core.domain.work import Extension
from agiraph.testing import ModelServer, call, says
from agiraph.testing.model_server import Seen, Step
from tests.cli.shell import Shell
from tests.scenarios.thread_queries import reply_count
from tests.up_process import use_model_server

pytestmark = pytest.mark.slow
PATIENCE_S = 60
QUESTION = "Which colour?"
GREEN = "Green it is."
SIDE = "Count the chairs."
METRES = "By the way, measure in metres."
ALARM = "Look at the build."
WAITING = "I am waiting for the results."


def play(seen: Seen) -> Step:
    """Play all models of all teams; the goal in the system prompt says which team it is."""
    for goal, role in ROLES.items():
        if goal in seen.system:
            return role(seen)
    raise AssertionError(seen.system)


def called(seen: Seen) -> list[str]:
    return [made.name for message in seen.messages for made in message.calls]


def heard(seen: Seen, text: str) -> bool:
    return any(text in m.text for m in seen.messages if m.role != "assistant")


def is_reply(seen: Seen) -> bool:
    return "no_work_needed" in seen.tools


def writes_and_ends(seen: Seen, file: str, text: str, summary: str) -> Step:
    """Write a file, and hand in until that is accepted."""
    if "write_file" not in called(seen):
        return says(call("write_file", path=file, content=text))
    return says(call("finish", summary=summary))


def with_side_work(seen: Seen) -> Step:
    if is_reply(seen):
        return says("I do that beside it.", call("start_work", task=SIDE))
    if SIDE in seen.messages[0].text:
        return writes_and_ends(seen, "chairs.md", "7\n", "There are 7 chairs: chairs.md.")
    return asks_first(seen)


def asks_first(seen: Seen) -> Step:
    if not heard(seen, GREEN):
        return says(call("ask_human", question=QUESTION))
    unit = "metres" if heard(seen, METRES) else "feet"
    return writes_and_ends(seen, "paint.md", f"Green, in {unit}.\n", "Chosen: paint.md.")


def with_a_message(seen: Seen) -> Step:
    return says("I will keep that in mind.") if is_reply(seen) else asks_first(seen)


def with_an_alarm(seen: Seen) -> Step:
    if ALARM in seen.messages[0].text:
        if "bash" not in called(seen):
            return says(call("bash", command="echo green"))
        return says(call("finish", summary="The build is green."))
    return asks_first(seen)


def with_a_worker(seen: Seen) -> Step:
    """A coordinator that waits in words, again and again, for a worker that asks the person."""
    if "finish" not in seen.tools:
        if not heard(seen, GREEN):
            return says(call("ask_human", question=QUESTION))
        if "write_file" not in called(seen):
            return says(call("write_file", path="paint.md", content="Green.\n"))
        return says(call("publish", summary="Chosen: paint.md."))
    if "assign_task" not in called(seen):
        return says(
            call(
                "assign_task",
                agent="new:openai/test",
                task="Ask for the colour and write paint.md.",
                description="The colour",
                run_in_background=True,
            )
        )
    if not heard(seen, "Chosen: paint.md."):
        return says(WAITING)
    return writes_and_ends(seen, "report.md", "Green.\n", "The colour is chosen: report.md.")


def with_few_turns(seen: Seen) -> Step:
    """A goal that needs more turns than it has at first."""
    if not seen.tools or reply_count(seen) < 3:
        return says("So far: one wall.", call("checkpoint", summary=f"wall {reply_count(seen)}"))
    return writes_and_ends(seen, "walls.md", "Four walls.\n", "All walls: walls.md.")


ROLES: dict[str, Callable[[Seen], Step]] = {
    "Paint the office beside the chairs": with_side_work,
    "Paint the office in some unit": with_a_message,
    "Paint the office after the build": with_an_alarm,
    "Paint the office with a colleague": with_a_worker,
    "Paint the office in few turns": with_few_turns,
}
BESIDE, UNIT, BUILD, COLLEAGUE, FEW_TURNS = ROLES


@dataclass(frozen=True, slots=True)
class Served:
    origin: str
    token: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`agiraph up` and its models, in the event loop of a thread: tests have a loop each."""
    agiraph = Shell(tmp_path_factory.mktemp("up") / "home", {"AGIRAPH_PORT": "0"})
    started: queue.Queue[tuple[Served, Callable[[], object]]] = queue.Queue()

    async def serve() -> None:
        over = asyncio.Event()
        end = partial(asyncio.get_running_loop().call_soon_threadsafe, over.set)
        async with (
            ModelServer(play) as server,
            use_model_server(agiraph, server).start("up") as process,
        ):
            await process.says("Token for programs")
            [origin] = re.findall(r"Sign in once: (\S+)/signin", process.seen)
            started.put((Served(origin, (agiraph.home / "token").read_text().strip()), end))
            await over.wait()
            process.signal(signal.SIGTERM)
            assert (await process.ends()).code == 0

    with ThreadPoolExecutor(1) as thread:
        serving = thread.submit(asyncio.run, serve())
        opened, end = started.get(timeout=PATIENCE_S)
        try:
            yield opened
        finally:
            end()
            serving.result(PATIENCE_S)


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    async with Client(served.origin, served.token, patience=5) as opened:
        yield opened


async def reached(
    client: Client, team: str, holds: Callable[[list[NodeView]], bool]
) -> list[NodeView]:
    """Wait until a statement about the board holds; return the board."""
    board = await client.board(team)
    try:
        async with asyncio.timeout(PATIENCE_S):
            async for _ in client.follow(team):
                board = await client.board(team)
                if holds(board):
                    return board
    except TimeoutError:
        pass
    raise AssertionError([(n.status, n.title, n.result, n.waiting_reason) for n in board])


def statuses(*expected: str) -> Callable[[list[NodeView]], bool]:
    return lambda board: [node.status for node in board if node.lane == "work"] == [*expected]


async def open_questions(client: Client, team: str) -> list[MessageView]:
    page = await client.inbox()
    asked = [item.message for item in page.items if item.needs_answer]
    return [message for message in asked if message.team_id == team]


async def found(client: Client, goal: str, **more: object) -> str:
    return (await client.create_team(goal, learns=False, **more)).id  # type: ignore[arg-type]


async def test_side_work_beside_a_parked_goal_is_done_and_leaves_the_goal_alone(
    client: Client,
) -> None:
    team = await found(client, BESIDE)
    await reached(client, team, statuses("waiting"))
    [lead] = await client.agents(team)
    await client.send(lead.id, SIDE)
    goal, side = await reached(client, team, statuses("waiting", "completed"))
    assert side.result == "There are 7 chairs: chairs.md."
    assert (await client.team(team)).status == "active"
    [question] = await open_questions(client, team)
    await client.answer(question.id, GREEN)
    goal, _ = await reached(client, team, statuses("completed", "completed"))
    assert goal.result == "Chosen: paint.md."


async def test_a_goal_that_waits_in_words_keeps_its_worker(client: Client) -> None:
    team = await found(client, COLLEAGUE)
    goal, worker = await reached(client, team, statuses("waiting", "waiting"))
    [question] = await open_questions(client, team)
    assert question.node_id == worker.id
    await client.answer(question.id, GREEN)
    goal, worker = await reached(client, team, statuses("completed", "completed"))
    assert (goal.result, worker.result) == (
        "The colour is chosen: report.md.",
        "Chosen: paint.md.",
    )


async def test_a_message_beside_an_open_question_is_heard(client: Client) -> None:
    team = await found(client, UNIT)
    await reached(client, team, statuses("waiting"))
    [asked] = await open_questions(client, team)
    [lead] = await client.agents(team)
    await client.send(lead.id, METRES)
    await answered(client, team, lead.id)
    await reached(client, team, statuses("waiting"))
    [still] = await open_questions(client, team)
    assert still.id == asked.id
    await client.answer(asked.id, GREEN)
    [goal] = await reached(client, team, statuses("completed"))
    published = await client.read_file(team, f"nodes/{goal.id}/published/paint.md")
    assert published == b"Green, in metres.\n"


async def answered(client: Client, team: str, agent: str) -> None:
    """Wait until the agent has replied to the person."""
    async with asyncio.timeout(PATIENCE_S):
        async for event in client.follow(team):
            if event.type == "message.sent" and event.data["sender"] == agent:
                return


async def test_an_alarm_that_finishes_ends_only_itself(client: Client) -> None:
    team = await found(client, BUILD)
    await reached(client, team, statuses("waiting"))
    config, payload = {"delay_seconds": 0.1}, {"task": ALARM}
    await client.create_trigger(team, "delayed", config=config, payload=payload)
    goal, alarm = await reached(client, team, statuses("waiting", "completed"))
    assert alarm.result == "The build is green."
    assert (await client.team(team)).status == "active"
    [question] = await open_questions(client, team)
    await client.answer(question.id, GREEN)
    goal, _ = await reached(client, team, statuses("completed", "completed"))
    assert goal.result == "Chosen: paint.md."


async def test_a_goal_that_a_limit_ended_is_extended_and_completes(client: Client) -> None:
    team = await found(client, FEW_TURNS, budget={"turns": 3})
    [goal] = await reached(client, team, statuses("partial"))
    assert (goal.stop_reason, goal.result) == ("turns_spent", "So far: one wall.")
    extended = await client.extend_node(goal.id, Extension(turns=10))
    assert extended.status in ("assigned", "running")
    [goal] = await reached(client, team, statuses("completed"))
    assert goal.result == "All walls: walls.md."
    assert (await client.team(team)).status == "completed"
