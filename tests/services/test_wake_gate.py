"""The wake gate: a heartbeat without news starts no work; a firing takes effect once."""

from datetime import UTC, datetime, timedelta

import pytest

from agiraph.core.domain.ids import TriggerId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import Budget, Extension, NodeStatus, StopReason
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import continuations, teams
from agiraph.core.services.members import roster
from agiraph.core.services.triggers import due
from agiraph.core.services.triggers.kinds.heartbeat import AT_ONCE
from agiraph.core.store import triggers as rows
from agiraph.core.store import waits
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from tests.services.stages import pass_time
from tests.services.triggers import (
    DONE,
    OK,
    create_task,
    create_trigger,
    firings,
    found_idle_team,
    nodes_of,
    reload,
)

# ---- effects of a firing ---------------------------------------------------------------------


async def test_a_trigger_can_send_a_message_or_start_a_node(world: World) -> None:
    founded = await found_idle_team(world, says(call("publish", summary="synthesised")))
    node = await world.store.write(
        planning.create, team_id=founded.team.id, task="Synthesise", source="user"
    )
    words = {"to": "Human", "content": "Build should be done."}
    in_a_minute, in_two = {"delay_seconds": 60}, {"delay_seconds": 120}
    await create_trigger(
        world, founded, "delayed", in_a_minute, action="send_message", payload=words
    )
    runs = {"action": "run_node", "payload": {"node_id": node.id}}
    later = await create_trigger(world, founded, "delayed", in_two, **runs)
    await pass_time(world, 60)
    said = await world.conversation(founded.coordinator)
    assert [(m.sender, m.text) for m in said] == [(founded.coordinator.id, words["content"])]
    assert (await world.node(node.id)).status is NodeStatus.PENDING
    await pass_time(world, 60)
    assert (await world.node(node.id)).result == "synthesised"
    again = await create_trigger(world, founded, "delayed", in_a_minute, **runs)
    await pass_time(world, 60)
    assert [o for _, o, _ in await firings(world, later)] == ["fired"]
    assert [(o, r) for _, o, r in await firings(world, again)] == [
        ("skipped", f"{node.id} is completed, it cannot be started any more.")
    ]


@pytest.mark.slow
async def test_the_result_of_a_triggered_node_goes_to_the_triggers_creator(world: World) -> None:
    founded = await found_idle_team(world, says(call("finish", summary="All quiet.")))
    trigger = await create_trigger(world, founded, "scheduled", {"cron": "@hourly"}, made_by=OWNER)
    await pass_time(world, 3600)
    assert [(m.kind, m.text) for m in await world.inbox()] == [("result", "All quiet.")]
    [node] = await nodes_of(world, trigger)
    assert node.source == "trigger"
    assert node.task.startswith("Look around\n\n[Runtime] Nobody asked for this just now: ")


async def test_cost_is_summed_per_trigger(world: World) -> None:
    founded = await found_idle_team(world, OK, OK, OK)
    trigger = await create_trigger(world, founded, "scheduled", {"cron": "@hourly"})
    other = await create_trigger(world, founded, "delayed", {"delay_seconds": 60})
    for _ in range(2):
        await pass_time(world, 3600)
    assert (await world.store.read(rows.cost, trigger.id)).calls == 2
    assert (await world.store.read(rows.cost, other.id)).calls == 1


# ---- the wake gate ---------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_heartbeat_with_nothing_new_costs_no_call_and_no_rows(world: World) -> None:
    founded = await found_idle_team(world)
    trigger = await create_trigger(world, founded, "heartbeat", {"interval_seconds": 60})
    events = await world.events(founded.team.id)

    def day(tx: Tx) -> None:
        for _ in range(1440):
            tx.now += timedelta(minutes=1)
            due.fire_due(tx, trigger.id)

    await world.store.write(day)
    kept = await reload(world, trigger)
    assert (kept.fired, kept.gated, kept.gate) == (0, 1440, "nothing new")
    assert await firings(world, trigger) == []
    assert await world.events(founded.team.id) == events
    assert await world.board(founded.team.id) == []


async def test_heartbeats_due_together_are_spread_over_their_interval(world: World) -> None:
    founded = [await found_idle_team(world) for _ in range(AT_ONCE + 10)]
    made = [await create_trigger(world, f, "heartbeat", {"interval_seconds": 600}) for f in founded]

    def fire(tx: Tx) -> None:
        for timer in waits.due(tx, limit=1000):
            waits.take_due_timer(tx, timer)
            due.fire_due(tx, TriggerId(timer.subject))

    world.clock.advance(seconds=660)
    began = world.clock.now()
    await world.store.write(fire)
    kept = [await reload(world, trigger) for trigger in made]
    put_off = [t for t in kept if t.gate == "much else was due at the same time"]
    late = [t.due_at - began for t in put_off if t.due_at is not None]
    assert len(late) == 10  # the others were due with fewer
    assert all(timedelta() <= each < timedelta(minutes=10) for each in late)
    assert len({each // timedelta(seconds=1) for each in late}) > 5

    world.clock.advance(seconds=600)
    await world.store.write(fire)  # nothing is put off twice
    kept = [await reload(world, trigger) for trigger in made]
    assert [t.gate for t in kept if t.gate != "nothing new"] == []


async def test_an_unread_message_lets_a_heartbeat_fire(world: World) -> None:
    founded = await found_idle_team(world, OK)
    trigger = await create_trigger(world, founded, "heartbeat", {"interval_seconds": 60})
    await pass_time(world, 60)
    await world.say(founded.coordinator.id, "bob is done", team_id=founded.team.id, kind="notice")
    await pass_time(world, 60)
    [node] = await nodes_of(world, trigger)
    assert "- 1 unread message, which follows" in node.task
    assert node.stop_reason is StopReason.NOTHING_TO_DO
    kept = await reload(world, trigger)
    assert (kept.fired, kept.gated, kept.quiet) == (1, 1, 1)


async def test_a_teammates_finished_node_lets_a_heartbeat_fire(world: World) -> None:
    founded = await found_idle_team(world, says(call("publish", summary="done")), OK)
    trigger = await create_trigger(world, founded, "heartbeat", {"interval_seconds": 60})
    bob = await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/ada"
    )
    world.clock.advance(seconds=1)
    await world.store.write(create_task, founded.team.id, bob.id, "Count")
    await world.settle()
    await pass_time(world, 60)
    [node] = await nodes_of(world, trigger)
    [ended] = [n for n in await world.board(founded.team.id) if n.assignee_id == bob.id]
    assert f"- Count ({ended.id}) is completed" in node.task


async def test_a_changed_watched_file_lets_a_heartbeat_fire(world: World) -> None:
    founded = await found_idle_team(world, OK, OK)
    config = {"interval_seconds": 60, "watch": ["memory/inbox.md", "memory/none.md"]}
    trigger = await create_trigger(world, founded, "heartbeat", config)
    folder = world.path / "teams" / founded.team.id / "memory"
    folder.mkdir(parents=True)
    (folder / "inbox.md").write_text("one")
    for _ in range(2):
        await pass_time(world, 60)
    assert (await reload(world, trigger)).fired == 0
    (folder / "inbox.md").write_text("two")
    await pass_time(world, 60)
    [node] = await nodes_of(world, trigger)
    assert "- memory/inbox.md has changed" in node.task
    await pass_time(world, 60)
    assert (await reload(world, trigger)).fired == 1


async def test_a_heartbeat_sleeps_outside_its_hours(world: World) -> None:
    founded = await found_idle_team(world, OK)
    config = {"interval_seconds": 60, "when": "always", "hours": "08:00-09:30",
              "zone": "America/New_York"}  # fmt: skip
    trigger = await create_trigger(world, founded, "heartbeat", config)  # it is 04:00 in New York
    await pass_time(world, 60)
    kept = await reload(world, trigger)
    assert kept.gate == "outside of 08:00-09:30"
    assert kept.due_at == datetime(2026, 1, 5, 13, tzinfo=UTC)
    await pass_time(world, 4 * 3600)
    assert (await reload(world, trigger)).fired == 1


async def test_a_heartbeat_does_not_fire_when_the_envelope_is_empty(world: World) -> None:
    world.script("ada", DONE)
    budget = Budget(model_calls=1)
    founded = await world.found("Watch", mode="infinite", budget=budget, heartbeat=3600)
    await world.settle()
    await pass_time(world, 3600)
    [heartbeat] = await world.triggers(founded.team.id)
    assert (heartbeat.fired, heartbeat.gate) == (0, "budget: calls_spent")


async def test_a_trigger_for_one_time_waits_for_its_budget_and_fires_once(world: World) -> None:
    world.script("ada", DONE, *[DONE] * 3)
    founded = await world.found("Count", budget=Budget(model_calls=1))
    await world.settle()
    [goal] = await world.board(founded.team.id)
    made = {"made_in": goal, "made_by": founded.coordinator.id}
    waits = await create_trigger(world, founded, "delayed", {"delay_seconds": 3600}, **made)
    late = {"delay_seconds": 3600, "misfire": "skip"}
    never = await create_trigger(world, founded, "delayed", late, **made)
    await pass_time(world, 3600)
    found = await reload(world, waits)
    assert (found.status, found.gate, await firings(world, waits)) == (
        "active",
        "budget: calls_spent",
        [],
    )
    assert (await reload(world, never)).status == "expired"

    more = Extension(turns=20)
    await world.store.write(continuations.extend_for_person, goal.id, more, by="human")
    await world.settle()
    await pass_time(world, 1)
    assert [outcome for _, outcome, _ in await firings(world, waits)] == ["fired"]
    assert [node.status for node in await nodes_of(world, waits)] == [NodeStatus.COMPLETED]
    await pass_time(world, 2 * 3600)
    found = await reload(world, waits)
    assert (found.status, found.fired, found.gate) == ("expired", 1, None)


@pytest.mark.slow
async def test_a_heartbeat_that_finds_nothing_to_do_backs_off(world: World) -> None:
    world.script("ada", *[OK] * 9)
    founded = await world.found("Go", start=False, heartbeat=3600)
    [heartbeat] = await world.triggers(founded.team.id)
    woken_at: list[int] = []
    for hour in range(1, 100):
        await pass_time(world, 3600)
        if (await reload(world, heartbeat)).fired > len(woken_at):
            woken_at.append(hour)
    assert woken_at == [1, 3, 7, 15, 31, 55, 79]
    team = (await world.store.read(teams.teams.TEAMS.get, founded.team.id)).status
    assert team == "active"  # finding nothing to do is not reaching the goal
    await world.say(founded.coordinator.id, "psst", team_id=founded.team.id, kind="notice")
    await pass_time(world, 3600)
    assert (await reload(world, heartbeat)).fired == 8


async def test_on_idle_fires_after_the_idle_time_and_work_resets_it(world: World) -> None:
    founded = await found_idle_team(world, DONE, DONE)
    trigger = await create_trigger(world, founded, "on_idle", {"idle_seconds": 3600})
    await pass_time(world, 3000)
    await world.store.write(create_task, founded.team.id, founded.coordinator.id, "Work")
    await world.settle()
    await pass_time(world, 3000)
    assert (await reload(world, trigger)).fired == 0
    await pass_time(world, 600)
    assert (await reload(world, trigger)).fired == 1


async def test_overdue_triggers_are_listed(world: World) -> None:
    founded = await found_idle_team(world)
    trigger = await create_trigger(world, founded, "scheduled", {"cron": "@hourly"})

    def late(tx: Tx, minutes: int) -> list[str]:
        tx.now = datetime(2026, 1, 5, 10, minutes, tzinfo=UTC)  # and no process has fired it
        return [t.id for t in due.overdue(tx, founded.team.id)]

    assert await world.store.read(late, 2) == []
    assert await world.store.read(late, 3) == [trigger.id]


async def test_a_heartbeat_that_finds_nothing_to_do_causes_no_reflection(world: World) -> None:
    model = world.script("ada", OK)
    founded = await world.found("Watch", start=False, heartbeat=3600, learns=True)
    await pass_time(world, 3600)
    [node] = await world.board(founded.team.id)
    assert node.stop_reason is StopReason.NOTHING_TO_DO
    assert len(model.requests) == 1


async def test_a_trigger_whose_config_became_invalid_expires_without_affecting_others(
    world: World,
) -> None:
    founded = await found_idle_team(world, DONE, DONE)
    lost = await create_trigger(world, founded, "scheduled", {"cron": "@hourly"})
    beat = await create_trigger(world, founded, "heartbeat", {"interval_seconds": 7200})
    sound = await create_trigger(world, founded, "scheduled", {"cron": "@hourly"})

    def lose_zone(tx: Tx) -> None:
        for trigger in (lost, beat):
            config = {**trigger.config, "zone": "Atlantis/Capital"}
            rows.TRIGGERS.update(tx, trigger.id, config=config)

    await world.store.write(lose_zone)
    await pass_time(world, 3600)
    assert [(await reload(world, t)).status for t in (lost, beat, sound)] == [
        "expired",
        "expired",
        "active",
    ]
    said = "it makes no sense any more: 'Atlantis/Capital' is not a time zone"
    assert ((await reload(world, lost)).ended or "").startswith(said)
    assert (await reload(world, sound)).fired == 1
