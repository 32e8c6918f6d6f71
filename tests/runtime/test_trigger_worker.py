"""Event triggers fire once per event; callbacks are called despite stops and restarts."""

import asyncio
from pathlib import Path
from typing import Any

from agiraph.core.domain.ids import AgentId
from agiraph.core.domain.provenance.labels import CLEAN, HOOK, Label
from agiraph.core.domain.triggers import CallbackRequest, Trigger
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.core.services.triggers import definitions
from agiraph.core.store import teams
from agiraph.core.store import triggers as rows
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from tests.services.stages import pass_time

DONE = says(call("finish", summary="done"))
PUBLISHED = says(call("publish", summary="done"))


async def found_team_with_event_trigger(
    world: World, config: Any, *lines: Any, **more: Any
) -> tuple[NewTeam, Trigger]:
    """Found a team whose coordinator has an event trigger, with a worker that causes events."""
    world.script("ada", *lines)
    world.script("bob", *[PUBLISHED] * 20)
    founded = await world.found("Keep watch", mode="infinite", start=False)
    made = await world.store.write(
        definitions.create,
        agent_id=founded.coordinator.id,
        type="on_event",
        config=config,
        payload={"task": "See what happened"},
        **more,
    )
    await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/bob"
    )
    return founded, made.trigger


def _create_node(tx: Tx, founded: NewTeam, task: str) -> WorkNode:
    bob = teams.by_name(tx, founded.team.id, "bob")
    return planning.create(
        tx, team_id=founded.team.id, task=task, source="user", assignee_id=AgentId(bob.id)
    )


async def do_task(world: World, founded: NewTeam, task: str = "Count") -> WorkNode:
    node = await world.store.write(_create_node, founded, task)
    await world.settle()
    return node


async def firings_of(world: World, trigger: Trigger) -> list[str]:
    found = await world.firings(trigger.id)
    return [f"{f.outcome}: {f.slot.split()[0]}" for f in reversed(found)]


async def test_an_event_fires_a_trigger_once_and_its_own_work_does_not_fire_it_again(
    world: World,
) -> None:
    config = {"event_pattern": "node.completed", "min_seconds": 0}
    founded, trigger = await found_team_with_event_trigger(world, config, *[DONE] * 3)
    node = await do_task(world, founded)
    assert await firings_of(world, trigger) == ["fired: event"]
    [woken] = [n for n in await world.board(founded.team.id) if n.trigger_id == trigger.id]
    assert woken.status is NodeStatus.COMPLETED  # its own node.completed must not fire it
    assert f'"node_id":"{node.id}"' in woken.task
    await world.restart()
    await world.settle()
    await do_task(world, founded)
    assert await firings_of(world, trigger) == ["fired: event"] * 2


async def test_a_filter_passes_only_matching_events(world: World) -> None:
    world.script("ada", DONE)
    founded = await world.found("Keep watch", mode="infinite", start=False)
    bob = await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/bob"
    )
    config = {"event_pattern": "message.*", "filter": {"recipient": "Bob"}, "min_seconds": 0}
    made = await world.store.write(
        definitions.create, agent_id=founded.coordinator.id, type="on_event", config=config,
        payload={"task": "See"},
    )  # fmt: skip
    await world.say(founded.coordinator.id, "hm", team_id=founded.team.id, kind="notice")
    await world.settle()
    assert await firings_of(world, made.trigger) == []
    await world.say(bob.id, "hm", team_id=founded.team.id, kind="notice")
    await world.settle()
    assert await firings_of(world, made.trigger) == ["fired: event"]


async def test_the_words_of_a_labelled_message_label_the_work_that_its_event_starts(
    world: World,
) -> None:
    config = {"event_pattern": "message.sent", "min_seconds": 0}
    founded, trigger = await found_team_with_event_trigger(world, config, *[DONE] * 2)
    bob = await world.store.read(teams.by_name, founded.team.id, "bob")
    labels: list[Label] = []
    for label in (HOOK, CLEAN):
        given: Any = {"team_id": founded.team.id, "kind": "notice", "sets_to_work": False}
        await world.say(bob.id, f"words of {label.sources}", **given, label=label)
        await world.settle()
        woken = [n for n in await world.board(founded.team.id) if n.trigger_id == trigger.id]
        labels.append((await world.thread(woken[-1].id)).label)
    assert labels == [HOOK, CLEAN]


async def test_events_in_a_row_fire_one_at_a_time(world: World) -> None:
    founded, trigger = await found_team_with_event_trigger(
        world, {"event_pattern": "node.completed"}, *[DONE] * 3
    )
    for _ in range(3):
        await do_task(world, founded)
    assert len(await firings_of(world, trigger)) == 1
    for count in (2, 3, 3):
        await pass_time(world, 60)
        assert len(await firings_of(world, trigger)) == count


async def test_events_from_a_downtime_fire_the_trigger_at_the_next_start(world: World) -> None:
    founded, trigger = await found_team_with_event_trigger(
        world, {"event_pattern": "node.created", "min_seconds": 0}, DONE
    )
    await world.runtime.trigger_worker.stop()
    await world.store.write(_create_node, founded, "Count")
    await world.runtime.engine.idle()
    assert await firings_of(world, trigger) == []
    await world.restart()
    await world.settle()
    assert await firings_of(world, trigger) == ["fired: event"]


async def test_a_callback_is_called_once_and_its_outcome_is_kept(
    tmp_path: Path, database_url: str
) -> None:
    calls: list[CallbackRequest] = []

    async def ring_the_bell(made: CallbackRequest) -> str:
        calls.append(made)
        return "rung"

    async def break_down(made: CallbackRequest) -> None:
        raise ValueError("no bell")

    names = {"bell": ring_the_bell, "broken": break_down}
    async with World(
        tmp_path / "home", database_url=database_url, callbacks=names, easy_endings=True
    ) as world:
        world.script("ada")
        founded = await world.found("Ring", mode="infinite", start=False)
        made = [
            (await world.store.write(
                definitions.create, agent_id=founded.coordinator.id, type="scheduled",
                config={"cron": "@hourly"}, action="run_callback",
                payload={"callback": name, "tone": "c"},
            )).trigger
            for name in names
        ]  # fmt: skip
        await pass_time(world, 3600)
        found = [await world.firings(trigger.id) for trigger in made]
    slot = "2026-01-05T10:00:00+00:00"
    assert calls == [
        CallbackRequest(
            key=f"{made[0].id}:{slot}", trigger_id=made[0].id, team_id=founded.team.id, slot=slot,
            payload={"callback": "bell", "tone": "c"},
        )
    ]  # fmt: skip
    assert [(f.outcome, f.reason) for [f] in found] == [
        ("fired", "rung"),
        ("failed", "ValueError('no bell')"),
    ]


async def test_a_callback_interrupted_by_a_stop_is_called_again_with_the_same_key(
    tmp_path: Path,
) -> None:
    keys: list[str] = []
    begun = asyncio.Event()

    async def hang_the_first_time(made: CallbackRequest) -> None:
        keys.append(made.key)
        begun.set()
        if len(keys) == 1:
            await asyncio.Event().wait()

    world = World(tmp_path / "home", callbacks={"bell": hang_the_first_time}, easy_endings=True)
    world.script("ada")
    await world.start()
    founded = await world.found("Ring", mode="infinite", start=False)
    made = await world.store.write(
        definitions.create, agent_id=founded.coordinator.id, type="delayed",
        config={"delay_seconds": 60}, action="run_callback", payload={"callback": "bell"},
    )  # fmt: skip
    world.clock.advance(seconds=60)
    await begun.wait()
    [firing] = await world.firings(made.trigger.id)
    assert firing.outcome == "calling"
    await world.restart()
    await world.settle()
    [firing] = await world.firings(made.trigger.id)
    assert (firing.outcome, len(keys), len(set(keys))) == ("fired", 2, 1)
    await world.stop()


async def test_an_unknown_callback_waits_for_a_process_that_has_it(tmp_path: Path) -> None:
    world = World(tmp_path / "home", easy_endings=True)
    world.script("ada")
    await world.start()
    founded = await world.found("Ring", mode="infinite", start=False)
    made = await world.store.write(
        definitions.create, agent_id=founded.coordinator.id, type="delayed",
        config={"delay_seconds": 60}, action="run_callback", payload={"callback": "bell"},
    )  # fmt: skip
    await pass_time(world, 60)
    await world.stop()
    calls: list[str] = []

    async def ring(made: CallbackRequest) -> None:
        calls.append(made.key)

    async with World(
        tmp_path / "home", callbacks={"bell": ring}, clock=world.clock, easy_endings=True
    ) as later:
        await later.settle()
        [firing] = await later.store.read(rows.firings, made.trigger.id)
    assert (firing.outcome, len(calls)) == ("fired", 1)
