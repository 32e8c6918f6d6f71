"""Chat flow: a person, a coordinator and workers talk while the work continues."""

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path

from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.messages import Draft, Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.services.mail import bus
from agiraph.models.base import Request
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, Says, World, call, says
from agiraph.testing.model_server import Seen, Step
from tests.doubts import doubts_of
from tests.fences import opened
from tests.runtime.waiting import Gate, until
from tests.scenarios.endings import (
    ACCEPTS,
    OPENS,
    defines,
    finishes,
    opens_and_accepts,
    sends_back,
)
from tests.scenarios.thread_queries import (
    agent_name,
    new_text,
    reply_count,
    seen_created_nodes,
    shown_text,
)
from tests.services.stages import accepts
from tests.thinking import ThinkingModel

GOAL = "Research AI chip companies and write a report"
ON_IT = "On it. Setting up 3 researchers for NVIDIA, AMD, Intel."
QUALCOMM = "Also include Qualcomm"
GOT_IT = "Got it. Adding a 4th researcher for Qualcomm."
WHICH = "Should I focus on data center or consumer GPUs?"
DATA_CENTER = "Data center only."
SCARCE = "AMD MI300X benchmarks are hard to find."
MAY_WE = "Bob says AMD benchmarks are scarce. MLPerf data OK?"
MLPERF = "Yes, MLPerf is fine. Also try anandtech.com."
STAGE_1 = "Stage 1 done. NVIDIA dominates training, AMD competitive on inference."
DONE = ("a report covers all companies", "the report has what the person asked for")
NO_REPORT = "The chapters are written, with prices."
NO_REPORT_FINDING = "There are two chapters and no report; put them into one file."
PRICES = "Make sure the report includes pricing data too."


def write(file: str, text: str) -> Step:
    return says(call("write_file", path=file, content=text))


def publish(summary: str) -> Step:
    return says(call("publish", summary=summary))


@dataclass
class Cast:
    """The scripted agents; some of them wait at a gate that the test opens."""

    qualcomm_is_in: Gate = field(default_factory=Gate)
    bob_is_told: Gate = field(default_factory=Gate)
    all_are_told: Gate = field(default_factory=Gate)
    reviews: int = 0

    async def play(self, seen: Seen) -> Step:
        match agent_name(seen):
            case "coordinator":
                return self.coordinator(seen)
            case "reviewer" | "reviewer-2":
                return self.reviewer(seen)
            case "alice" | "bob" as who if "chapter" in seen.messages[0].text:
                return await self.writer(seen, who)
            case "alice":
                return self.alice(seen)
            case "bob":
                return await self.bob(seen)
            case other:
                return [write(f"{other}.md", other), publish(f"{other} is done.")][
                    reply_count(seen)
                ]

    def coordinator(self, seen: Seen) -> Step:
        news, nodes = new_text(seen), seen_created_nodes(seen)
        match reply_count(seen):
            case 0:
                return says(
                    defines(*DONE),
                    call("send_message", to="human", content=ON_IT),
                    call("spawn_worker", name="alice"),
                    call("spawn_worker", name="bob"),
                    call("create_work_node", task="NVIDIA", assigned_to="alice"),
                    call("create_work_node", task="AMD", assigned_to="bob"),
                    call("create_work_node", task="Intel", assigned_to="new:openai/intel"),
                )
            case 1:
                return says(call("start_stage", name="research", nodes=nodes))
            case 2:
                assert f"[Message from human] {QUALCOMM}" in news
                return says(
                    call("send_message", to="human", content=GOT_IT),
                    call("create_work_node", task="Qualcomm", assigned_to="new:openai/qualcomm"),
                )
            case 3:
                return says(call("start_stage", name="research", nodes=nodes[3:]))
            case 4:
                assert f"[Message from bob (urgent)] {SCARCE}" in opened(news)
                return says(call("ask_human", question=MAY_WE))
            case 5:
                assert news.startswith(MLPERF)
                return says(call("send_message", to="bob", content=f"Human says: {MLPERF}"))
            case 6:
                return says(call("start_stage", name="research"))
            case 7:
                assert "'research' is over: its contract is met" in news
                return says(
                    accepts("All four are there.", nodes),
                    call("send_message", to="human", content=f"{STAGE_1} Starting synthesis."),
                    call("create_work_node", task="A chapter on training", assigned_to="alice"),
                    call("create_work_node", task="A chapter on inference", assigned_to="bob"),
                )
            case 8:
                return says(call("start_stage", name="synthesis", nodes=nodes[4:]))
            case 9:
                assert f"[Message from human] {PRICES}" in news
                return says(call("start_stage", name="synthesis"))
            case 10:
                assert "'synthesis' is over: its contract is met" in news
                return says(accepts("Both have prices.", nodes[4:], decision="finish"))
            case 11:
                return self.ends(NO_REPORT)
            case 12:
                assert NO_REPORT_FINDING in news
                text = "Training: NVIDIA. Inference: AMD. It costs 30,000 dollars."
                return write("report.md", text)
            case _:
                return self.ends("The report is written, with prices: report.md.")

    def ends(self, summary: str) -> Step:
        return finishes(summary, "the two chapters", "30,000 dollars in each chapter")

    def reviewer(self, seen: Seen) -> Step:
        self.reviews += 1
        return sends_back(NO_REPORT_FINDING) if self.reviews == 1 else opens_and_accepts(seen)

    def alice(self, seen: Seen) -> Step:
        match reply_count(seen):
            case 0:
                return says(call("ask_human", question=WHICH))
            case 1:
                return write("nvidia.md", f"Scope: {new_text(seen)}")
            case _:
                return publish("NVIDIA dominates training.")

    async def bob(self, seen: Seen) -> Step:
        match reply_count(seen):
            case 0:
                await self.qualcomm_is_in.wait()
                return says(call("send_message", to="coordinator", content=SCARCE, kind="urgent"))
            case 1:
                await self.bob_is_told.wait()
                return says(call("checkpoint", summary="Looking for other benchmarks."))
            case 2:
                assert f"[Message from coordinator] Human says: {MLPERF}" in opened(new_text(seen))
                return write("amd.md", "MLPerf: competitive.")
            case _:
                return publish("AMD is competitive on inference.")

    async def writer(self, seen: Seen, who: str) -> Step:
        match reply_count(seen):
            case 0:
                await self.all_are_told.wait()
                return says(call("checkpoint", summary="Begun."))
            case 1:
                assert f"[Message from human] {PRICES}" in new_text(seen)
                return write(f"{who}.md", "It costs 30,000 dollars.")
            case _:
                return publish("With prices.")


async def said(world: World, team_id: TeamId) -> list[tuple[str, str, str]]:
    """Return sender, recipient and text of every message except results."""
    names = {str(agent.id): agent.name for agent in await world.members(team_id)}
    return [
        (names.get(m.sender, m.sender), names.get(m.recipient, m.recipient), m.text)
        for m in await world.messages(team_id)
        if m.kind != "result"
    ]


async def test_person_coordinator_and_workers_talk_while_all_work_continues(
    tmp_path: Path, database_url: str
) -> None:
    cast = Cast()
    async with ModelServer(cast.play) as server:
        keys = Keys({"openai": Account(key="sk-test", base_url=server.openai_url)})
        async with World(tmp_path / "home", database_url=database_url, keys=keys) as world:
            team, coordinator, goal = await world.found(GOAL, model="openai/lead")
            assert goal is not None

            async def status(task: str) -> tuple[NodeStatus, bool] | None:
                nodes = await world.board(team.id)
                found = [(n.status, n.stage_id is not None) for n in nodes if n.task == task]
                return found[0] if found else None

            async def is_waiting(*tasks: str) -> bool:
                found = [await status(task) for task in tasks]
                return all(f is not None and f[0] is NodeStatus.WAITING for f in found)

            async def is_launched(task: str) -> bool:
                found = await status(task)
                return found is not None and found[1] and await is_waiting(GOAL)

            async def has_said(*line: str) -> bool:
                return line in await said(world, team.id)

            # The stage is running and Alice has asked a question when the person asks for more.
            await until(world, lambda: is_waiting(GOAL, "NVIDIA"))
            await world.say(coordinator.id, QUALCOMM, team_id=team.id)
            await until(world, lambda: is_launched("Qualcomm"))

            # Alice's own question is answered to her.
            [question] = await world.questions(team.id)
            alice = await world.agent(question.sender)
            assert (alice.name, question.text) == ("alice", WHICH)
            await world.answer(question, DATA_CENTER)

            # Bob tells the coordinator, who asks the person and forwards the answer.
            cast.qualcomm_is_in.set()
            await until(world, lambda: has_said("coordinator", OWNER, MAY_WE))
            await cast.bob_is_told.reached()
            [question] = await world.questions(team.id)
            await world.answer(question, MLPERF)
            await until(world, lambda: has_said("coordinator", "bob", f"Human says: {MLPERF}"))
            cast.bob_is_told.set()

            # A message to everyone arrives while the second stage is running.
            await until(world, lambda: is_launched("A chapter on inference"))
            await cast.all_are_told.reached(2)
            sent: list[Message] = await world.store.write(
                bus.broadcast,
                Draft(team_id=team.id, sender=OWNER, recipient="", text=PRICES),
            )
            cast.all_are_told.set()
            await world.settle()

            board = await world.board(team.id)
            turns = [turn for each in board for turn in await world.turns(each.id)]
            conversation = await said(world, team.id)
            published = {each.task: world.published(each) for each in board}

    assert {each.status for each in board} == {NodeStatus.COMPLETED}
    # The first result was no report: a reviewer sent it back, and accepted the second.
    assert [each.stop_reason for each in board if each.parent_id == goal.id][-2:] == [
        StopReason.SENT_BACK,
        StopReason.ACCEPTED,
    ]
    assert (board[0].result, doubts_of(board[0])) == (
        "The report is written, with prices: report.md.",
        None,
    )
    assert list(published[GOAL]) == ["report.md"]
    assert conversation == [
        ("coordinator", "human", ON_IT),
        ("alice", "human", WHICH),
        ("human", "coordinator", QUALCOMM),
        ("coordinator", "human", GOT_IT),
        ("human", "alice", DATA_CENTER),
        ("bob", "coordinator", SCARCE),
        ("coordinator", "human", MAY_WE),
        ("human", "coordinator", MLPERF),
        ("coordinator", "bob", f"Human says: {MLPERF}"),
        ("coordinator", "human", f"{STAGE_1} Starting synthesis."),
        ("human", "coordinator", PRICES),
        ("human", "alice", PRICES),
        ("human", "bob", PRICES),
    ]
    assert published["NVIDIA"] == {"nvidia.md": f"Scope: {DATA_CENTER}"}
    assert published["AMD"] == {"amd.md": "MLPerf: competitive."}
    assert published["A chapter on training"] == {"alice.md": "It costs 30,000 dollars."}
    # Each agent got it once, at a yield point: never between a call and its answer.
    assert [[t.text for t in turns if t.ref == m.id] for m in sent] == [
        [f"[Message from human] {PRICES}"] for _ in sent
    ]
    assert server.refused == []  # vendors refuse a call that is not followed by its answer


def stops_the_search(request: Request) -> Says:
    """Cancel the task that the board lists last."""
    node = re.findall(r"node_\w+", shown_text(request))[-1]
    return says(call("cancel_work_node", node_id=node, reason="The person said so."))


async def test_a_message_sent_while_an_agent_decides_to_wait_ends_its_wait(world: World) -> None:
    ada = world.script(
        "ada",
        says(
            defines("it is found, or the person stops the search"),
            call("assign_task", agent="new:scripted/bob", task="Look.", description="A search"),
        ),
        says(call("check_board")),
        stops_the_search,
        finishes("Stopped looking.", "the person stopped the search"),
        ACCEPTS,
    )

    async def meanwhile() -> Says:
        await world.say(founded.coordinator.id, "Never mind, stop.", team_id=founded.team.id)
        await asyncio.Event().wait()  # for ever: the test would hang if the message waited for bob
        return says(call("publish", summary="Nothing."))

    world.model("bob", ThinkingModel("scripted/bob", [meanwhile]))
    founded = await world.found("Find it.")
    await world.settle()

    answer, message = ada.requests[1].turns[-2:]
    assert answer.text.startswith("Interrupted, because there is a message for you")
    assert message.text == "[Message from human] Never mind, stop."
    goal, search, review = await world.board(founded.team.id)
    assert (goal.status, doubts_of(goal), search.status) == (
        NodeStatus.COMPLETED,
        None,
        NodeStatus.CANCELLED,
    )
    assert review.stop_reason is StopReason.ACCEPTED


async def test_an_answer_and_messages_at_the_same_time_are_all_delivered(world: World) -> None:
    ada = world.script(
        "ada",
        says(defines("`focus.md` holds their choice"), call("ask_human", question=WHICH)),
        says(call("write_file", path="focus.md", content=DATA_CENTER)),
        finishes("They want data centers.", "file:focus.md"),
        OPENS,
        ACCEPTS,
    )
    founded = await world.found("Ask what to focus on.")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    ada.gate = asyncio.Event()
    lines = [f"And {number}." for number in range(10)]
    await asyncio.gather(
        world.answer(question, DATA_CENTER),
        *(world.say(founded.coordinator.id, line, team_id=founded.team.id) for line in lines),
    )
    ada.gate.set()
    await world.settle()

    shown = "\n".join(turn.text for asked in ada.requests for turn in asked.turns)
    assert all(line in shown for line in (DATA_CENTER, *lines))
    goal, _ = await world.board(founded.team.id)
    assert (goal.status, doubts_of(goal)) == (NodeStatus.COMPLETED, None)
