"""A person's message at any commit of a node is answered once and delivered to the work once."""

import asyncio
from pathlib import Path

import pytest

from agiraph.domain.agents import Agent
from agiraph.domain.messages import Message
from agiraph.domain.work import WorkNode
from agiraph.providers.base import Request
from agiraph.services.board import planning
from agiraph.store import nodes
from agiraph.store.tx import Aftermath, Tx
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.runtime.waiting import Gate, until

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
