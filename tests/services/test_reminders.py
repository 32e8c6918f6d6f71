"""Reminders and quiet firings: what a person hears of work that nobody has just asked for."""

from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.messages import INBOX, MessageKind
from agiraph.core.domain.records.deliveries import OutgoingMessage
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.services.triggers import promises
from agiraph.testing import World, call, says
from tests.habits.kit import assign
from tests.services.stages import pass_time
from tests.services.triggers import create_trigger, found_idle_team, nodes_of
from tests.tools.test_scheduling import DONE, run_team, schedule_call

HOUR_S = 3600
Said = tuple[str, str, str]
"""Kind, title and text of a message."""


class Phone:
    """A channel that records what it is given."""

    kinds: frozenset[MessageKind] = INBOX
    description = "a phone"

    def __init__(self) -> None:
        self.got: list[Said] = []

    async def send(self, outgoing: OutgoingMessage) -> None:
        said = outgoing.message
        self.got.append((said.kind, said.title, said.text))


@pytest.fixture
def phone() -> Phone:
    return Phone()


@pytest.fixture
async def world(tmp_path: Path, database_url: str, phone: Phone) -> Any:
    more: Any = {"features": {"channels": {"phone": phone}}, "easy_endings": True}
    async with World(tmp_path / "home", database_url=database_url, **more) as opened:
        yield opened


async def in_inbox(world: World) -> list[Said]:
    return [(m.kind, m.title, m.text) for m in await world.inbox()]


async def test_a_scheduled_message_reaches_inbox_channel_and_conversation(
    world: World, phone: Phone
) -> None:
    remind = {"type": "send_message", "to": "human", "content": "Call the dentist"}
    later = schedule_call("delayed", {"delay_seconds": HOUR_S}, remind)
    founded = await run_team(world, says(later), DONE)
    before = await in_inbox(world)
    await world.restart()
    await pass_time(world, HOUR_S)

    reminder = ("report", "Reminder", "Call the dentist")
    assert [said for said in await in_inbox(world) if said not in before] == [reminder]
    assert phone.got[-1] == reminder
    assert (await world.conversation(founded.coordinator))[-1].text == "Call the dentist"


async def test_a_message_in_work_that_an_agent_scheduled_for_itself_reaches_the_inbox(
    world: World, phone: Phone
) -> None:
    later = schedule_call("delayed", {"delay_seconds": HOUR_S}, "Remind them of the dentist")
    said = says(call("send_message", to="human", content="The dentist, at four."))
    await run_team(world, says(later), DONE, said, DONE)
    before = await in_inbox(world)
    await pass_time(world, HOUR_S)

    reminder = ("report", "Reminder", "The dentist, at four.")
    assert [said for said in await in_inbox(world) if said not in before] == [reminder]
    assert phone.got[-1] == reminder


async def test_an_agent_is_told_that_nobody_hears_the_result_of_its_own_schedule(
    world: World,
) -> None:
    later = schedule_call("delayed", {"delay_seconds": HOUR_S}, "Remind them of the dentist")
    founded = await run_team(world, says(later), DONE, DONE, DONE)
    hour = {"delay_seconds": HOUR_S}
    await create_trigger(world, founded, "delayed", hour, made_by="human")
    await pass_time(world, HOUR_S)

    tasks = [n.task for n in await world.board(founded.team.id) if n.source == "trigger"]
    unheard = "Nobody is told it: `send_message` to the human what they should know."
    assert [unheard in task for task in tasks] == [True, False]


async def test_a_message_of_ordinary_work_stays_in_the_conversation(
    world: World, phone: Phone
) -> None:
    founded = await run_team(world, says(call("send_message", to="human", content="Begun.")), DONE)
    assert "Begun." in [m.text for m in await world.conversation(founded.coordinator)]
    assert [kind for kind, *_ in await in_inbox(world)] == ["result"]
    assert [kind for kind, *_ in phone.got] == ["result"]


async def test_a_kept_promise_reaches_the_person_once_in_inbox_channel_and_conversation(
    world: World, phone: Phone
) -> None:
    given = call("promise", what="Send the figures", when="in 2 hours")
    kept = says(call("finish", summary="Here are the figures: 3, 4, 5."))
    founded = await run_team(world, says(given), DONE, kept)
    before = await in_inbox(world)
    await world.restart()
    await pass_time(world, 2 * HOUR_S)

    told = ("result", "Send the figures", "Here are the figures: 3, 4, 5.")
    assert [said for said in await in_inbox(world) if said not in before] == [told]
    assert phone.got[-1] == told
    assert phone.got.count(told) == 1
    assert (await world.conversation(founded.coordinator))[-1].text == told[2]


async def test_a_broken_promise_is_told_to_the_person(world: World, phone: Phone) -> None:
    given = call("promise", what="Send the figures", when="in 2 hours")
    founded = await run_team(world, says(given), DONE, says("Hm."), says("Hm."), says("Hm."))
    await pass_time(world, 2 * HOUR_S)

    [promise] = await world.store.read(promises.of_agent, founded.coordinator.id)
    kind, title, _ = (await in_inbox(world))[-1]
    assert (promise.state, kind, title) == ("broken", "failure", "Send the figures")
    assert phone.got[-1][:2] == (kind, title)


async def test_a_promise_is_not_ended_with_nothing_to_do(world: World) -> None:
    given = call("promise", what="Send the figures", when="in 2 hours")
    quiet = says(call("finish", nothing_to_do=True))
    founded = await run_team(world, says(given), DONE, quiet, says(call("finish", summary="3")))
    await pass_time(world, 2 * HOUR_S)

    node = (await world.board(founded.team.id))[-1]
    refused = next(t.text for t in await world.turns(node.id) if t.role == "tool")
    assert "somebody waits for it" in refused
    assert (await in_inbox(world))[-1] == ("result", "Send the figures", "3")


async def test_a_firing_with_nothing_to_do_is_told_to_nobody_and_counted(
    world: World, phone: Phone
) -> None:
    quiet = says(call("finish", summary="All is well, nothing new.", nothing_to_do=True))
    founded = await found_idle_team(world, *[quiet] * 3)
    config = {"cron": "0 * * * *"}
    every_hour = await create_trigger(world, founded, "scheduled", config, made_by="human")
    for _ in range(3):
        await pass_time(world, HOUR_S)

    ended = await nodes_of(world, every_hour)
    assert [(n.status, n.stop_reason) for n in ended] == [
        (NodeStatus.COMPLETED, StopReason.NOTHING_TO_DO)
    ] * 3
    assert (await in_inbox(world), phone.got) == ([], [])
    assert await world.conversation(founded.coordinator) == []


@pytest.mark.parametrize("said", ["HEARTBEAT_OK", "HEARTBEAT_OK. Nothing new.", "Nothing to do."])
async def test_no_wording_of_a_result_makes_a_firing_quiet(
    world: World, phone: Phone, said: str
) -> None:
    founded = await found_idle_team(world, says(call("finish", summary=said)))
    alarm = await create_trigger(
        world, founded, "delayed", {"delay_seconds": HOUR_S}, made_by="human"
    )
    await pass_time(world, HOUR_S)

    [node] = await nodes_of(world, alarm)
    assert (node.stop_reason, node.result) == (StopReason.FINISHED, said)
    assert phone.got == await in_inbox(world) == [("result", "Look around", said)]


async def test_a_worker_that_a_trigger_woke_ends_quietly_by_its_own_call(world: World) -> None:
    later = schedule_call("delayed", {"delay_seconds": HOUR_S}, "Look at the build")
    quiet = says(call("publish", summary="Nothing.", nothing_to_do=True))
    world.script("bob", says(later), says(call("publish", summary="Set.")), quiet)
    founded = await run_team(world, says(assign("Watch the build")), DONE)
    before = await in_inbox(world)
    await pass_time(world, HOUR_S)

    node = (await world.board(founded.team.id))[-1]
    assert (node.status, node.stop_reason) == (NodeStatus.COMPLETED, StopReason.NOTHING_TO_DO)
    assert await in_inbox(world) == before
