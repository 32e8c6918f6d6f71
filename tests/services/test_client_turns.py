"""Requests of chat clients: one message each, a conversation, and reports where they belong."""

from datetime import timedelta
from typing import Any

import pytest

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import of_client
from agiraph.core.services.lifecycle import conversation, teams
from agiraph.core.services.mail import bus
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.tx import Tx
from agiraph.features.chat_api import client_turns
from agiraph.features.chat_api.client_turns import ClientRequest
from agiraph.features.chat_api.rows import ClientTurn
from agiraph.testing import World, call, says

NO_WORK = call("no_work_needed")


async def say(world: World, agent: Agent, text: str, chat: str = "a", **more: Any) -> ClientTurn:
    asked = ClientRequest(digest=f"{chat}:{text}", conversation=chat, text=text, **more)
    turn = await world.store.write(
        client_turns.say, agent.id, asked, person_id=OWNER, client="editor"
    )
    await world.settle()
    return turn


async def reports(world: World, turn: ClientTurn) -> list[str]:
    return [report.text for report in await world.store.read(client_turns.reports, turn)]


async def test_a_request_that_is_sent_again_is_the_same_turn_until_its_time_is_over(
    world: World,
) -> None:
    world.script("ada", says("One.", NO_WORK), says("Two.", NO_WORK))
    founded = await world.found("Chat", start=False)
    first = await say(world, founded.coordinator, "Hello", same_for=timedelta(minutes=10))
    assert await say(world, founded.coordinator, "Hello", same_for=timedelta(minutes=10)) == first
    world.clock.advance(minutes=11)
    later = await say(world, founded.coordinator, "Hello", same_for=timedelta(minutes=10))
    assert later.id != first.id
    assert await say(world, founded.coordinator, "Hello") == later  # for ever
    replies = [await world.store.read(client_turns.reply, turn) for turn in (first, later)]
    assert [reply.text for reply in replies] == ["One.", "Two."]


async def test_a_turn_whose_message_was_edited_gets_the_reply_to_the_edited_one(
    world: World,
) -> None:
    world.script("ada", says("A pear.", NO_WORK))
    founded = await world.found("Chat", start=False)
    asked = ClientRequest(digest="a", conversation="a", text="An appel?")

    def say_and_edit(tx: Tx) -> ClientTurn:
        agent, about = founded.coordinator.id, {"person_id": OWNER}
        turn = client_turns.say(tx, agent, asked, client="editor", **about)
        conversation.say(tx, agent, "A pear?", edits=turn.message_id, **about)
        return turn

    turn = await world.store.write(say_and_edit)
    await world.settle()
    reply = await world.store.read(client_turns.reply, turn)
    assert reply.text == "A pear."


async def test_reports_are_shown_once_and_in_the_chat_that_asked_for_the_work(
    world: World,
) -> None:
    done = says(call("finish", summary="It is done."))
    world.script(
        "ada", says("I start."), done, *(says("Yes?", NO_WORK) for _ in range(4)), insists=True
    )
    founded = await world.found("Chat", start=False)
    ada = founded.coordinator
    first = await say(world, ada, "Do it", "a")
    assert await reports(world, first) == []
    elsewhere = await say(world, ada, "Hello", "b")
    assert await reports(world, elsewhere) == []  # begins now, and knows nothing of before
    await world.store.write(
        bus.send,
        Draft(team_id=ada.team_id, sender=ada.id, recipient=OWNER, kind="report", text="News."),
    )
    assert await reports(world, await say(world, ada, "And?", "a")) == [
        "It is done.",
        "News.",
    ]
    assert await reports(world, await say(world, ada, "And?", "b")) == ["News."]
    assert await reports(world, await say(world, ada, "More?", "a")) == []


async def test_a_model_is_found_by_the_names_of_team_and_agent(world: World) -> None:
    world.script("ada")
    old = await world.found("Old", name="Stocks", start=False)
    new = await world.found("New", name="Stocks", start=False)
    odd = await world.found("Odd", name="A/B tests", start=False)
    gone = await world.found("Gone", name="Gone", start=False)
    await world.store.write(teams.archive, gone.team.id)
    listed = [model.id for model in await world.store.read(client_turns.models)]
    assert listed == [
        *(old.team.id, f"{old.team.id}/coordinator"),
        *("Stocks", "Stocks/coordinator", "A/B tests", "A/B tests/coordinator"),
    ]
    for name, team in (
        ("Stocks", new),
        ("Stocks/Coordinator", new),
        (old.team.id, old),
        (f"{new.team.id}/coordinator", new),
        ("A/B tests/coordinator", odd),
    ):
        found = await world.store.read(client_turns.find_agent, name)
        assert found.id == team.coordinator.id, name
    for name in ("Gone", "Stocks/bob", "A", ""):
        with pytest.raises(NotFound, match="GET /v1/models"):
            await world.store.read(client_turns.find_agent, name)


async def test_side_calls_are_paid_by_the_last_reply(world: World) -> None:
    world.script("ada", says("Hi.", NO_WORK))
    founded = await world.found("Chat", start=False)
    ada = founded.coordinator
    assert await world.store.read(client_turns.payer, ada, OWNER) is None
    turn = await say(world, ada, "Hello")
    said = await world.store.read(MESSAGES.get, turn.message_id)
    assert said.label == of_client("editor")  # a program wrote it
    assert await world.store.read(client_turns.payer, ada, OWNER) == said.reply_id is not None
    assert await world.store.read(client_turns.has_money_today, 1.0)
    assert not await world.store.read(client_turns.has_money_today, 0.0)
