"""A person's message at any commit of a node is answered once and delivered to the work once."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.ids import SYSTEM
from agiraph.core.domain.messages import Draft, Message
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import WorkNode
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.steps import HELD_BACK
from agiraph.core.services.board import planning
from agiraph.core.services.mail import bus
from agiraph.core.store import nodes
from agiraph.core.store.database import Store
from agiraph.core.store.engine.connect import open_store
from agiraph.core.store.tx import Aftermath, Tx
from agiraph.core.tools.base import Tool, tool
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import Asked, ReactiveModel
from tests.runtime.waiting import Gate, until
from tests.thinking import ThinkingModel, Thought

MOST_COMMITS = 40


def _two_step_model() -> ReactiveModel:
    """Return a model that makes two steps and finishes; called again, it finishes at once."""

    def react(request: Request) -> Says:
        made = sum(t.role == "assistant" for t in request.transcript.turns)
        if made < 2:
            return says(call("checkpoint", summary=f"step {made}"))
        return says(call("finish", summary="done"))

    return ReactiveModel("scripted/ada", react)


async def _speak_at(world: World, commit: int, agent: Agent) -> asyncio.Future[Message]:
    """Send a message at the nth commit, before any other subscriber sees that commit."""
    said: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    left = commit

    async def speak() -> None:
        said.set_result(await world.chat(agent.id, "By the way: mind the gap"))

    tasks: list[asyncio.Task[None]] = []

    def count(_: Aftermath) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            tasks.append(asyncio.create_task(speak()))

    world.store.subscribe(count)
    return said


@pytest.mark.slow
@pytest.mark.parametrize("slow_reply", [False, True], ids=["quick reply", "slow reply"])
async def test_a_message_at_any_commit_of_a_node_is_answered_once_and_delivered_once(
    tmp_path: Path, slow_reply: bool
) -> None:
    heard_in: set[str] = set()
    for commit in range(1, MOST_COMMITS):
        async with World(
            tmp_path / str(commit), reply_model="scripted/mouth", easy_endings=True
        ) as world:
            mouth = world.script("mouth", says("I'll mind it."))
            gate = mouth.gate = Gate()
            if not slow_reply:
                gate.set()
            world.model("ada", _two_step_model())
            founded = await world.found("Build the platform", start=False)
            ada = founded.coordinator
            said = await _speak_at(world, commit, ada)
            await world.store.write(_create_node, ada)
            if slow_reply:
                await _settle_all_but_the_reply(world, ada, gate)
                gate.set()
            await world.settle()
            if not said.done():
                break
            message = said.result()

            answers = [m for m in await world.conversation(ada) if m.in_reply_to == message.id]
            assert [m.text for m in answers] == ["I'll mind it."], commit
            work = await world.board(founded.team.id)
            as_mail = [
                turn
                for node in work
                for turn in await world.turns(node.id)
                if turn.ref == message.id
            ]
            as_work = [node for node in work if "mind the gap" in node.task]
            assert len(as_mail) + len(as_work) == 1, commit
            heard_in.add("mail" if as_mail else "work")
    else:
        raise AssertionError("the node has more commits than MOST_COMMITS")
    assert heard_in == {"mail", "work"}


def _create_node(tx: Tx, agent: Agent) -> WorkNode:
    return planning.create(
        tx, team_id=agent.team_id, task="Lay the bricks", source="user", assignee_id=agent.id
    )


async def _settle_all_but_the_reply(world: World, agent: Agent, gate: Gate) -> None:
    """Wait until nothing runs, except for a reply that the gate holds back."""
    rested = asyncio.create_task(world.settle())
    held = asyncio.create_task(gate.reached())
    await asyncio.wait({rested, held}, return_when=asyncio.FIRST_COMPLETED)
    if held.done():
        await until(world, lambda: _is_idle(world, agent))
    for task in (rested, held):
        task.cancel()
    await asyncio.gather(rested, held, return_exceptions=True)


async def _is_idle(world: World, agent: Agent) -> bool:
    return not await world.store.read(nodes.has_open, agent.id)


TIDY = call("bash", command="touch tidied")


@dataclass
class Digging:
    """A tool that the person talks to its agent during, and what was dug with it."""

    store: Store | None = None
    places: list[str] = field(default_factory=list[str])

    def tool(self) -> Tool:
        @tool(effect="repeatable")
        async def dig(ctx: RunContext, place: str) -> Answer:
            """Dig a hole."""
            self.places.append(place)
            if place == "here":
                assert self.store is not None
                said = {"sender": OWNER, "recipient": ctx.agent.id, "text": "Not there."}
                await self.store.write(
                    bus.send, Draft(team_id=ctx.team.id, client_id="once", **said)
                )
            return Done("Dug.")

        return dig


def _answers(request: Asked) -> list[str]:
    return [turn.text for turn in request.turns if turn.role == "tool"]


async def test_a_persons_message_holds_back_the_calls_of_a_reply_that_are_not_begun(
    tmp_path: Path, database_url: str
) -> None:
    """The message is written by another connection, as another process would."""
    digging = Digging()
    tools = [digging.tool()]
    async with World(
        tmp_path / "home", database_url=database_url, tools=tools, easy_endings=True
    ) as world:
        digging.store = world.store
        if database_url.startswith("postgres"):
            digging.store = await open_store(database_url, world.clock)
        dig = [call("dig", place=place) for place in ("here", "there", "elsewhere")]
        finish = says(call("finish", summary="Dug."))
        ada = world.script("ada", says(*dig, TIDY), says(dig[2]), finish)
        founded = await world.found("Dig three holes")
        await world.settle()
        if digging.store is not None and digging.store is not world.store:
            await digging.store.close()

        [goal] = await world.board(founded.team.id)
        assert digging.places == ["here", "elsewhere"]
        assert _answers(ada.requests[1]) == ["Dug.", HELD_BACK, HELD_BACK, HELD_BACK]
        assert ada.requests[1].turns[-1].text == "[Message from human] Not there."
        assert (goal.result, goal.manifest) == ("Dug.", {})


async def test_calls_that_messages_hold_back_are_no_circle(world: World) -> None:
    async def meanwhile() -> Says:
        agent = founded.coordinator
        await world.say(agent.id, "Go on like this.", team_id=agent.team_id)
        return says(call("finish", summary="Tidied."))

    ada = ThinkingModel("scripted/ada", [*[meanwhile] * 9, says(call("finish", summary="Tidied."))])
    world.model("ada", ada)
    founded = await world.found("Tidy up")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.result) == ("completed", "Tidied.")
    assert [turn.text for turn in await world.turns(goal.id)].count(HELD_BACK) == 9


async def test_a_message_that_comes_while_the_model_thinks_holds_back_all_calls(
    world: World,
) -> None:
    async def meanwhile() -> Says:
        agent = founded.coordinator
        await world.say(agent.id, "Leave the cellar.", team_id=agent.team_id)
        return says(call("finish", summary="Too early."))

    lines: list[Thought] = [meanwhile, says(call("finish", summary="Left the cellar."))]
    ada = ThinkingModel("scripted/ada", lines)
    world.model("ada", ada)
    founded = await world.found("Tidy up")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert (goal.result, ada.heard[1:]) == (
        "Left the cellar.",
        ["[Message from human] Leave the cellar."],
    )


async def test_a_message_of_a_teammate_holds_back_no_call(world: World) -> None:
    async def meanwhile() -> Says:
        agent = founded.coordinator
        to = {"team_id": agent.team_id, "sender": SYSTEM, "recipient": agent.id, "text": "FYI"}
        await world.store.write(bus.send, Draft(**to))
        return says(TIDY)

    lines: list[Thought] = [meanwhile, says(call("finish", summary="Tidied."))]
    world.model("ada", ThinkingModel("scripted/ada", lines))
    founded = await world.found("Tidy up")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert list(goal.manifest) == ["tidied"]
