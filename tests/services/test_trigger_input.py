"""Invalid triggers are refused with advice; a webhook requires its secret."""

import asyncio
from functools import partial

import pytest

from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.provenance.labels import HOOK
from agiraph.core.services.triggers import definitions, due
from agiraph.testing import World
from tests.services.triggers import DONE, create_trigger, found_idle_team, nodes_of, reload
from tests.wording import Wording, refusals_of

# ---- bad input -------------------------------------------------------------------------------


WRONG_CONFIGS = [
    ("sometimes", {}),
    ("scheduled", {}),
    ("scheduled", {"cron": "99 * * * *"}),
    ("scheduled", {"cron": "* * * * *", "zone": "Mars"}),
    ("scheduled", {"cron": "* * * * *", "misfire": "maybe"}),
    ("scheduled", {"cron": "* * * * *", "misfire": "all", "overlap": "skip"}),
    ("scheduled", {"cron": "* * * * *", "until": "soon"}),
    ("scheduled", {"cron": "* * * * *", "max_fires": 0}),
    ("delayed", {"delay_seconds": -1}),
    ("delayed", {"delay_seconds": "60"}),
    ("delayed", {"seconds": 60}),
    ("delayed", {"delay_seconds": 60, "often": True}),
    ("at_time", {"at": "2020-01-01T00:00"}),
    ("at_time", {"at": "tomorrow"}),
    ("at_time", {"at": "2126-01-01T00:00"}),
    ("heartbeat", {"interval_seconds": 0}),
    ("heartbeat", {"interval_seconds": 60, "hours": "8-20"}),
    ("on_event", {"event_pattern": "message.received"}),
    ("webhook", {"secret": "short"}),
]


async def test_an_invalid_trigger_config_is_refused_with_advice(
    world: World, wording: Wording
) -> None:
    founded = await found_idle_team(world)
    wording(await refusals_of(WRONG_CONFIGS, partial(create_trigger, world, founded)))
    assert await world.triggers(founded.team.id) == []


WRONG_ACTIONS = [
    ("send_message", {"content": "x"}),
    ("send_message", {"to": "bob", "content": "x"}),
    ("send_message", {"to": "human"}),
    ("run_node", {"node_id": "node_1"}),
    ("run_callback", {}),
    ("wake_agent", {"task": 5}),
]


async def test_an_invalid_trigger_action_is_refused(world: World, wording: Wording) -> None:
    soon = (world, await found_idle_team(world), "delayed", {"delay_seconds": 60})
    wording(
        await refusals_of(
            WRONG_ACTIONS, lambda one, more: create_trigger(*soon, action=one, payload=more)
        )
    )


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
