"""Invalid triggers are refused with advice; a webhook requires its secret."""

import asyncio
from typing import Any

import pytest

from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.provenance.labels import HOOK
from agiraph.core.services.triggers import definitions, due
from agiraph.testing import World
from tests.services.triggers import DONE, create_trigger, found_idle_team, nodes_of, reload

# ---- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type", "config", "said"),
    [
        ("sometimes", {}, "There is no trigger of type 'sometimes'; there are delayed, at_time"),
        ("scheduled", {}, "config: 'cron' is missing. A scheduled trigger takes {\"cron\""),
        ("scheduled", {"cron": "99 * * * *"}, "'99' in '99 * * * *' cannot be the minute"),
        ("scheduled", {"cron": "* * * * *", "zone": "Mars"}, "'Mars' is not a time zone"),
        ("scheduled", {"cron": "* * * * *", "misfire": "maybe"}, "config: 'misfire' is wrong"),
        ("scheduled", {"cron": "* * * * *", "misfire": "all", "overlap": "skip"}, "needs overlap"),
        ("scheduled", {"cron": "* * * * *", "until": "soon"}, "'soon' is not a time; write it as"),
        ("scheduled", {"cron": "* * * * *", "max_fires": 0}, "config: 'max_fires' is wrong"),
        ("delayed", {"delay_seconds": -1}, "config: 'delay_seconds' is wrong"),
        ("delayed", {"delay_seconds": "60"}, "config: 'delay_seconds' is wrong"),
        ("delayed", {"seconds": 60}, "config: 'delay_seconds' is missing"),
        ("delayed", {"delay_seconds": 60, "often": True}, "config: 'often' is not known"),
        ("at_time", {"at": "2020-01-01T00:00"}, "'2020-01-01T00:00' is in the past: it is 2026"),
        ("at_time", {"at": "tomorrow"}, "'tomorrow' is not a time"),
        ("at_time", {"at": "2126-01-01T00:00"}, "is too far away"),
        ("heartbeat", {"interval_seconds": 0}, "config: 'interval_seconds' is wrong"),
        ("heartbeat", {"interval_seconds": 60, "hours": "8-20"}, "is not a span of hours"),
        ("on_event", {"event_pattern": "message.received"}, "There are message.sent, message.seen"),
        ("webhook", {"secret": "short"}, "config: 'secret' is wrong"),
    ],
)
async def test_an_invalid_trigger_config_is_refused_with_advice(
    world: World, type: str, config: Any, said: str
) -> None:
    founded = await found_idle_team(world)
    with pytest.raises(Refused) as refused:
        await create_trigger(world, founded, type, config)
    assert said in str(refused.value)
    assert await world.triggers(founded.team.id) == []


@pytest.mark.parametrize(
    ("action", "payload", "said"),
    [
        ("send_message", {"content": "x"}, "action: 'to' must be given, as text."),
        ("send_message", {"to": "bob", "content": "x"}, "There is no teammate 'bob'."),
        ("send_message", {"to": "human"}, "action: 'content' must be given"),
        ("run_node", {"node_id": "node_1"}, "There is no node 'node_1'."),
        ("run_callback", {}, "action: 'callback' must be given"),
        ("wake_agent", {"task": 5}, "action: 'task' must be given, as text."),
    ],
)
async def test_an_invalid_trigger_action_is_refused(
    world: World, action: Any, payload: Any, said: str
) -> None:
    founded = await found_idle_team(world)
    with pytest.raises(Refused) as refused:
        await create_trigger(
            world, founded, "delayed", {"delay_seconds": 60}, action=action, payload=payload
        )
    assert said in str(refused.value)


async def test_equal_deliveries_at_the_same_time_fire_a_webhook_once(world: World) -> None:
    founded = await found_idle_team(world, DONE)
    trigger, secret = await world.store.write(
        definitions.create,
        agent_id=founded.coordinator.id,
        type="webhook",
        config={},
        payload={"task": "See what they want"},
    )
    deliver = (due.receive_request, trigger.id, secret, "{}")
    firings = await asyncio.gather(*(world.store.write(*deliver, delivery="d1") for _ in range(8)))
    await world.settle()
    assert len(set(firings)) == 1
    assert len(await nodes_of(world, trigger)) == 1


async def test_a_webhook_accepts_only_requests_with_its_secret(world: World) -> None:
    founded = await found_idle_team(world, DONE)
    made = await world.store.write(
        definitions.create,
        agent_id=founded.coordinator.id,
        type="webhook",
        config={},
        payload={"task": "See what they want"},
    )
    trigger, secret = made
    assert secret is not None
    assert secret not in str(await reload(world, trigger))
    for wrong in ("", "guess", secret + "x"):
        with pytest.raises(NotFound, match="its secret is wrong"):
            await world.store.write(due.receive_request, trigger.id, wrong, "{}")
    first = await world.store.write(
        due.receive_request, trigger.id, secret, '{"a": 1}', delivery="d1"
    )
    again = await world.store.write(
        due.receive_request, trigger.id, secret, '{"a": 1}', delivery="d1"
    )
    await world.settle()
    assert first == again
    [node] = await nodes_of(world, trigger)
    assert '{"a": 1}' in node.task
    assert node.label == HOOK
    with pytest.raises(Refused, match="A webhook takes 100,000 characters"):
        await world.store.write(due.receive_request, trigger.id, secret, "x" * 100_001)
    await world.store.write(definitions.cancel, trigger.id)
    with pytest.raises(Refused, match="accepts no requests now"):
        await world.store.write(due.receive_request, trigger.id, secret, "{}")
