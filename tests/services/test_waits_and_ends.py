"""Every wait, every end and every message in between: an end is told to its giver once."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import pytest

from agiraph.core.domain.agents import Agent, Limits
from agiraph.core.domain.ids import NodeId, new_id
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.stages import Stage
from agiraph.core.domain.work import ANSWER, NodeStatus
from agiraph.core.services.lifecycle import endings, teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.store import messages
from agiraph.core.store.tx import Aftermath, Tx
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import Call, Says, World, call, says
from agiraph.testing.scripted import ReactiveModel, as_reply
from tests.runtime.waiting import until
from tests.services.stages import BEGIN, answer_yes, child_nodes, creates
from tests.services.teams import created_ids, found_waiting_team
from tests.thinking import ThinkingModel

S = NodeStatus
Wait = Literal["assign_task", "task_output", "stage", "words", "board", "question", "ask_human"]
End = Literal["publish", "fail", "cancel"]
Said = Literal["nothing", "info", "everyone", "question", "urgent", "person", "person to everyone"]

WAITS: list[tuple[Wait, int]] = [
    ("assign_task", 0),
    ("assign_task", 1),
    ("task_output", 0),
    ("task_output", 1),
    ("stage", 0),
    ("stage", 1),
    ("words", 0),
    ("board", 0),
    ("question", 0),
    ("question", 1),
    ("ask_human", 0),
    ("ask_human", 1),
]
"""Each wait, and how many of its two tasks end before the message comes."""
ENDS: list[End] = ["publish", "fail", "cancel"]
SAID: list[Said] = [
    "nothing", "info", "everyone", "question", "urgent", "person", "person to everyone",
]  # fmt: skip
ENDED = ("Interrupted, because", "Not answered yet;")
NODE_ENDS = ("node.completed", "node.failed", "node.cancelled")


def does_task(request: Request) -> Says:
    """Ask whether to do the task; publish after a yes, and only talk after a no."""
    answers = [t.text for t in request.transcript.spoken() if t.role == "tool"]
    if not answers:
        return says(call("ask_human", question="May I?"))
    return says("I cannot.") if answers[0] == "No." else says(call("publish", summary="done"))


@dataclass(slots=True)
class Lead:
    """A coordinator that gives two tasks away and does what its prompt says: it waits, if need be
    in words, until it has been told how both ended."""

    wait: Wait
    while_thinking: Callable[[], Awaitable[None]] | None = None
    """What happens during its first reply after it has begun to wait."""
    given: frozenset[str] = frozenset()
    """The ids of both tasks, as soon as they are known."""
    replies: int = 0

    @property
    def name(self) -> str:
        return "scripted/ada"

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        self.replies += 1
        begins = self._begin(request)
        if self.replies <= len(begins):
            return as_reply(begins[self.replies - 1])
        if self.while_thinking is not None:
            happens, self.while_thinking = self.while_thinking, None
            await happens()
        told = {*told_ids([t.text for t in request.transcript.spoken()])}
        return as_reply(DONE if told >= self.given else says("I wait."))

    def _begin(self, request: Request) -> list[Says]:
        """Return the replies with which it gives the tasks away and begins to wait."""
        given = created_ids(request)
        in_background = says(*[_task(n, run_in_background=True) for n in ("bob", "cyd")])
        match self.wait:
            case "assign_task":
                return [says(_task("bob"), _task("cyd"))]
            case "task_output":
                looks = [call("task_output", id=node, blocking=True) for node in given]
                return [in_background, says(*looks)]
            case "stage":
                made = [call("create_work_node", task=n, assigned_to=n) for n in ("bob", "cyd")]
                return [says(*made), says(call("start_stage", name="first", nodes=given))]
            case "words":
                return [in_background, says("I wait.")]
            case "board":
                return [in_background, says(call("check_board")), says(call("check_board"))]
            case "question":
                asks = call("send_message", to="dee", content="Which port?", kind="question")
                return [in_background, says(asks)]
            case "ask_human":
                return [in_background, says(call("ask_human", question="Which port?"))]


DONE = says(call("finish", summary="all done"))


def _task(agent: str, **more: bool) -> Call:
    return call("assign_task", agent=agent, task=f"Part of {agent}", description=agent, **more)


def told_ids(texts: Sequence[str]) -> list[str]:
    """Return the id of each task whose end these texts tell, as often as they do."""
    return re.findall(r"^\[Task\] .*(?:\nTitle: .*)?\nId: (node_\w+)$", "\n".join(texts), re.M)


@dataclass(slots=True, kw_only=True)
class Case:
    """One team of the sweep: its coordinator waits, a message comes, and its tasks end."""

    world: World
    lead: Lead
    founded: NewTeam
    agents: dict[str, Agent]
    tasks: list[NodeId]

    async def end(self, end: End, task: NodeId) -> None:
        """End a task in this way, and wait until it has ended."""
        over = asyncio.Event()

        def look(done: Aftermath) -> None:
            if any(e.type in NODE_ENDS and e.data["node_id"] == task for e in done.events):
                over.set()

        self.world.store.subscribe(look)
        if end == "cancel":
            await self.world.store.write(endings.cancel, task)
        else:
            await self.answer(task, "Yes." if end == "publish" else "No.")
        await over.wait()

    async def answer(self, node_id: NodeId, text: str) -> None:
        asked = await self.world.questions(self.founded.team.id)
        [question] = [q for q in asked if q.node_id == node_id]
        await self.world.answer(question, text)

    async def say(self, said: Said) -> None:
        """Send this message to the coordinator."""
        team, to = self.founded.team.id, self.founded.coordinator.id
        sent: dict[str, Any] = {"team_id": team, "sender": self.agents["eve"].id, "text": "Hello."}
        match said:
            case "nothing":
                return
            case "everyone":
                await self.world.store.write(bus.broadcast, Draft(recipient="", **sent))
            case "person to everyone":
                sent["sender"] = OWNER
                draft = Draft(recipient="", **sent)
                await self.world.store.write(bus.broadcast, draft)
            case "person":
                await self.world.say(to, "Hello.", team_id=team)
            case _:
                kind = "question" if said == "question" else "message"
                draft = Draft(recipient=to, kind=kind, **sent)
                await self.world.store.write(bus.send, draft, is_urgent=said == "urgent")

    async def settle_rest(self, ends: Callable[[], Awaitable[None]]) -> None:
        """End what has not ended while the coordinator thought, and answer what it asked."""
        await self.world.settle()
        if self.lead.while_thinking is not None:
            self.lead.while_thinking = None
            await ends()
            await self.world.settle()
        for question in await self.world.questions(self.founded.team.id):
            await self.world.answer(question, "Yes.")
        await self.world.settle()


def _found(tx: Tx, model: str) -> tuple[NewTeam, dict[str, Agent]]:
    """Found a team with idle workers; its coordinator begins when all of them are there."""
    goal: dict[str, Any] = {"goal": "Get it done", "acceptance": (ANSWER,), "review": "never"}
    founded = teams.create(tx, owner_id=OWNER, model=model, learns=False, heartbeat=None, **goal)
    hired: dict[str, Any] = {"role": "worker", "model": "scripted/hand"}
    names = ("bob", "cyd", "dee", "eve")
    return founded, {name: roster.hire(tx, founded.team.id, name=name, **hired) for name in names}


async def begin(world: World, wait: Wait) -> Case:
    """Found a team whose coordinator waits in this way for two tasks."""
    lead = Lead(wait)
    name = new_id("lead")  # a world keeps the model that it has used under a name
    world.model(name, lead)
    world.model("hand", ReactiveModel("scripted/hand", does_task))
    founded, agents = await world.store.write(_found, f"scripted/{name}")
    await world.settle()
    children = await child_nodes(world, founded)
    lead.given = frozenset(node.id for node in children)
    assert (await world.node(founded.node.id)).status is S.WAITING
    assert len(children) == 2
    tasks = [node.id for node in children]
    return Case(world=world, lead=lead, founded=founded, agents=agents, tasks=tasks)


async def play(world: World, wait: Wait, ended: int, end: End, said: Said) -> list[str]:
    """Play one case; return what is wrong with its end."""
    case = await begin(world, wait)

    async def rest() -> None:
        for task in case.tasks[ended:]:
            await case.end(end, task)

    case.lead.while_thinking = rest
    for task in case.tasks[:ended]:
        await case.end(end, task)
    await case.say(said)
    await case.settle_rest(rest)
    assert case.founded.node is not None
    goal = await world.node(case.founded.node.id)
    turns = [t.text for t in await world.turns(goal.id) if t.role in ("user", "tool")]
    told = told_ids(turns)
    wrong = [f"{task} was told {told.count(task)} times" for task in case.tasks
             if told.count(task) != 1]  # fmt: skip
    if goal.status is not S.COMPLETED:
        wrong.append(f"the goal is {goal.status}: {goal.stop_reason or goal.waiting_reason}")
    unread = await world.store.read(messages.unseen, case.founded.coordinator.id)
    wrong += [f"unread: {message.text[:60]!r}" for message in unread if message.text != "Hello."]
    # A stage that wants all is over when one of its tasks has failed.
    is_ended = _ends(wait, said) and not (wait == "stage" and ended and end != "publish")
    if any(text.startswith(ENDED) for text in turns) != is_ended:
        wrong.append(f"the wait was {'not ' * is_ended}ended by the message")
    return [f"{wait}, {ended} ended, {said}, {end}: {each}" for each in wrong]


def _ends(wait: Wait, said: Said) -> bool:
    """Whether this message answers a call that waits in this way. A wait in words has no call, and
    what a person says to everyone answers no question to them."""
    if said == "person to everyone":
        return wait not in ("words", "ask_human")
    return wait != "words" and said in ("question", "urgent", "person")


@pytest.mark.slow
@pytest.mark.parametrize(("wait", "ended"), WAITS)
async def test_each_end_is_told_once_whatever_message_comes_in_between(
    world: World, wait: Wait, ended: int
) -> None:
    """All teams play at the same time: their commits come together, which costs less."""
    played = (play(world, wait, ended, end, said) for end, said in product(ENDS, SAID))
    assert [wrong for found in await asyncio.gather(*played) for wrong in found] == []


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_the_sweep_finds_an_end_that_is_told_only_to_a_waiter(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "tell_stage_end", _tell_nobody)
    assert await play(world, "stage", 1, "publish", "nothing") == []
    wrong = await play(world, "stage", 1, "publish", "person")
    assert any(each.endswith("was told 0 times") for each in wrong)
    assert any(each.endswith("the goal is failed: silent") for each in wrong)


def _tell_nobody(tx: Tx, stage: Stage | None) -> None:
    """Do as if an open wait had told the end of a stage."""


@pytest.mark.parametrize("again", [False, True], ids=["in words", "waits again"])
async def test_a_stage_that_runs_out_of_time_while_its_coordinator_thinks_is_told_once(
    world: World, again: bool
) -> None:
    async def starts() -> Says:
        [node] = await child_nodes(world, founded)
        contract = {"timeout_seconds": 60}
        return says(call("start_stage", name="first", nodes=[node.id], contract=contract))

    async def thinks() -> Says:
        await world.advance(seconds=60)
        return says(call("start_stage", name="first")) if again else says("I wait.")

    asks = says(call("ask_human", question="What now?"))
    lead = ThinkingModel("scripted/ada", [BEGIN, creates("nobody's"), starts, thinks, asks])
    founded, _ = await found_waiting_team(world, lead=lead, limits=Limits(agents=1))
    assert founded.node is not None
    await answer_yes(world, founded.node)
    await world.say(founded.coordinator.id, "How is it?", team_id=founded.team.id)
    await world.settle()

    assert lead.heard[-1].startswith("Stage 'first' ran out of time (wanted: all).")
    turns = await world.turns(founded.node.id)
    told = [t.role for t in turns if t.text.startswith("Stage 'first' ran out")]
    assert told == ["tool" if again else "user"]
    assert await world.store.read(messages.unseen, founded.coordinator.id) == []


async def test_a_result_that_was_fetched_is_not_told_again(world: World) -> None:
    """The task ends while its giver thinks, and the giver then looks at it."""

    async def fetches() -> Says:
        [node] = await child_nodes(world, founded)
        asked = await world.questions(founded.team.id)
        await world.answer(next(q for q in asked if q.node_id == node.id), "Yes.")
        await until(world, lambda: _has_ended(world, node.id))
        return says(call("task_output", id=node.id))

    gives = says(_task("bob", run_in_background=True))
    asks = says(call("ask_human", question="What now?"))
    lead = ThinkingModel("scripted/ada", [BEGIN, gives, asks, fetches, asks])
    founded, _ = await found_waiting_team(world, "bob", lead=lead)
    world.model("hand", ReactiveModel("scripted/hand", does_task))
    assert founded.node is not None
    await answer_yes(world, founded.node)
    await world.say(founded.coordinator.id, "How is it?", team_id=founded.team.id)
    await world.settle()

    [node] = await child_nodes(world, founded)
    told = told_ids([t.text for t in await world.turns(founded.node.id)])
    assert told == [node.id]
    assert await world.store.read(messages.unseen, founded.coordinator.id) == []


async def _has_ended(world: World, node_id: NodeId) -> bool:
    return (await world.node(node_id)).status.is_final
