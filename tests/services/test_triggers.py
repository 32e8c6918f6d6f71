"""Triggers fire once per slot, and end with their team."""

from datetime import UTC, datetime, timedelta

import pytest

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import AgentId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle import teams
from agiraph.core.services.members import roster
from agiraph.core.services.triggers import definitions, due
from agiraph.core.store import nodes
from agiraph.core.store import triggers as rows
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

# ---- tests named by the specification ------------------------------------------------------


def _due(tx: Tx, after: timedelta) -> list[AgentId]:
    """Return the agents whose trigger is due then: `getAgentsDueToRun` of the specification."""
    return [trigger.agent_id for trigger in rows.overdue(tx, since=tx.now + after)]


async def test_picks_up_agent_with_pending_tasks(world: World) -> None:
    founded = await found_idle_team(world, DONE)
    await world.store.write(create_task, founded.team.id, founded.coordinator.id, "Process this")
    queued = await world.store.read(nodes.queues)
    assert founded.coordinator.id in [queue.agent_id for queue in queued]
    await world.settle()


async def test_picks_up_team_lead_when_next_run_at_reached(world: World) -> None:
    founded = await found_idle_team(world, OK, heartbeat=3600)
    # Asked before the time comes: the worker fires the trigger as soon as it is due.
    assert await world.store.read(_due, timedelta(seconds=3599)) == []
    assert await world.store.read(_due, timedelta(seconds=3601)) == [founded.coordinator.id]
    await pass_time(world, 3601)
    [node] = await world.board(founded.team.id)
    assert (node.source, node.status) == ("trigger", NodeStatus.COMPLETED)


async def test_does_not_pick_up_worker_when_no_tasks_purely_reactive(world: World) -> None:
    founded = await found_idle_team(world, heartbeat=None)
    worker = await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/ada"
    )
    await pass_time(world, 30 * 86_400)
    assert await world.store.read(nodes.queues) == []
    assert await world.store.read(rows.active_of_agent, worker.id) == []
    assert await world.board(founded.team.id) == []


async def test_schedules_team_lead_for_1_hour_after_completion(world: World) -> None:
    founded = await found_idle_team(world, DONE, heartbeat=3600)
    world.clock.advance(minutes=17)
    await world.store.write(create_task, founded.team.id, founded.coordinator.id, "Work")
    await world.settle()
    [heartbeat] = await world.store.read(rows.active_of_agent, founded.coordinator.id)
    assert heartbeat.due_at == world.clock.now() + timedelta(hours=1)


async def test_does_not_schedule_worker_after_completion(world: World) -> None:
    founded = await found_idle_team(world, says(call("publish", summary="done")), heartbeat=3600)
    worker = await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/ada"
    )
    await world.store.write(create_task, founded.team.id, worker.id, "Work")
    await world.settle()
    assert [n.status for n in await world.board(founded.team.id)] == [NodeStatus.COMPLETED]
    assert await world.store.read(rows.active_of_agent, worker.id) == []


async def test_notify_task_queued_triggers_immediate_processing(world: World) -> None:
    founded = await found_idle_team(
        world, says(call("finish", summary="Processed")), heartbeat=3600
    )
    await world.store.write(create_task, founded.team.id, founded.coordinator.id, "Urgent task")
    await world.settle()  # no time has passed
    [node] = await world.board(founded.team.id)
    assert (node.status, node.result) == (NodeStatus.COMPLETED, "Processed")


async def test_a_new_coordinator_has_an_hourly_heartbeat(world: World) -> None:
    founded = await world.store.write(
        teams.create, owner_id=OWNER, goal="Go", model="scripted/ada", start=False
    )
    [born] = await world.triggers(founded.team.id)
    assert (born.type, born.made_by, born.due_at) == (
        "heartbeat",
        "system",
        world.clock.now() + timedelta(hours=1),
    )
    assert born.config == {"interval_seconds": 3600.0, "when": "always"}


# ---- once per slot --------------------------------------------------------------------------


async def test_a_schedule_fires_once_a_slot_across_restarts(world: World) -> None:
    founded = await found_idle_team(world, *[DONE] * 3)
    trigger = await create_trigger(world, founded, "scheduled", {"cron": "0 */8 * * *"})
    for _ in range(3):
        await pass_time(world, 4 * 3600)
        await world.restart()
        await pass_time(world, 4 * 3600)
        await pass_time(world, 0)
    assert await firings(world, trigger) == [
        ("2026-01-05T16:00:00+00:00", "fired", ""),
        ("2026-01-06T00:00:00+00:00", "fired", ""),
        ("2026-01-06T08:00:00+00:00", "fired", ""),
    ]
    assert [n.status for n in await nodes_of(world, trigger)] == [NodeStatus.COMPLETED] * 3


MISSED = {
    "once": [
        ("2026-01-05T10:00:00+00:00", "skipped", "misfire"),
        ("2026-01-05T13:00:00+00:00", "fired", ""),
    ],
    "skip": [("2026-01-05T10:00:00+00:00", "skipped", "misfire")],
    "all": [(f"2026-01-05T{hour}:00:00+00:00", "fired", "") for hour in (10, 11, 12, 13)],
}


@pytest.mark.parametrize("misfire", list(MISSED))
async def test_slots_missed_during_a_downtime_follow_the_misfire_policy(
    world: World, misfire: str
) -> None:
    founded = await found_idle_team(world, *[DONE] * 4)
    trigger = await create_trigger(
        world, founded, "scheduled", {"cron": "@hourly", "misfire": misfire}
    )
    await world.stop()
    world.clock.advance(hours=4, minutes=30)
    await world.start()
    await pass_time(world, 0)
    assert sorted(await firings(world, trigger)) == MISSED[misfire]
    kept = await reload(world, trigger)
    missed = {"once": 3, "skip": 4, "all": 0}[misfire]
    assert (kept.skipped, kept.missed) == (missed, missed)
    assert kept.due_at == datetime(2026, 1, 5, 14, tzinfo=UTC)


async def test_a_clock_set_back_fires_nothing_again(world: World) -> None:
    founded = await found_idle_team(world, DONE, DONE)
    trigger = await create_trigger(world, founded, "scheduled", {"cron": "@hourly"})
    await pass_time(world, 3600)
    world.clock.advance(hours=-1)
    await pass_time(world, 3600)
    assert len(await firings(world, trigger)) == 1
    await pass_time(world, 3600)
    assert len(await firings(world, trigger)) == 2


async def test_a_slot_is_skipped_while_the_previous_firings_work_runs(world: World) -> None:
    founded = await found_idle_team(world, says(call("ask_human", question="May I?")), DONE, DONE)
    trigger = await create_trigger(world, founded, "scheduled", {"cron": "@hourly"})
    await pass_time(world, 3600)
    await pass_time(world, 3600)
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Yes.")
    await world.settle()
    await pass_time(world, 3600)
    assert [(o, r) for _, o, r in await firings(world, trigger)] == [
        ("fired", ""),
        ("skipped", "overlap"),
        ("fired", ""),
    ]


async def test_with_overlap_queue_the_next_firing_is_queued(world: World) -> None:
    founded = await found_idle_team(world, says(call("ask_human", question="May I?")), DONE)
    config = {"cron": "@hourly", "overlap": "queue"}
    trigger = await create_trigger(world, founded, "scheduled", config)
    await pass_time(world, 3600)
    await pass_time(world, 3600)
    statuses = [n.status for n in await nodes_of(world, trigger)]
    assert statuses == [NodeStatus.WAITING, NodeStatus.COMPLETED]


async def test_delayed_and_at_time_triggers_fire_once_and_expire(world: World) -> None:
    founded = await found_idle_team(world, DONE, DONE)
    delayed = await create_trigger(world, founded, "delayed", {"delay_seconds": 5})
    at = {"at": "2026-01-05T11:00", "zone": "Europe/Berlin"}
    alarm = await create_trigger(world, founded, "at_time", at)
    assert alarm.due_at == datetime(2026, 1, 5, 10, tzinfo=UTC)
    for _ in range(3):
        await pass_time(world, 1800)
    for trigger in (delayed, alarm):
        kept = await reload(world, trigger)
        assert (kept.status, kept.fired, kept.due_at) == ("expired", 1, None)
    ended = [e for e in await world.events(founded.team.id) if e.type == "trigger.ended"]
    assert [e.data["trigger_id"] for e in ended] == [delayed.id, alarm.id]


async def test_max_fires_and_until_end_a_trigger(world: World) -> None:
    founded = await found_idle_team(world, *[DONE] * 4)
    twice = await create_trigger(world, founded, "scheduled", {"cron": "@hourly", "max_fires": 2})
    short = {"cron": "30 * * * *", "until": "2026-01-05T11:00"}
    until = await create_trigger(world, founded, "scheduled", short)
    await pass_time(world, 3600)
    config = {"cron": "@hourly", "max_fires": 1}
    with pytest.raises(Refused, match=r"^It has fired once; 'max_fires' must be more\.$"):
        await world.store.write(definitions.change, twice.id, config=config)
    for _ in range(8):
        await pass_time(world, 1800)
    assert [(await reload(world, t)).fired for t in (twice, until)] == [2, 2]
    assert [(await reload(world, t)).status for t in (twice, until)] == ["expired"] * 2


# ---- teams that pause, stop and resume -------------------------------------------------------


async def test_what_a_trigger_ended_with_decides_whether_it_comes_back_and_not_why(
    world: World,
) -> None:
    founded = await found_idle_team(world)
    cancelled, alarm = [
        await create_trigger(world, founded, "scheduled", {"cron": "@hourly"}) for _ in "ab"
    ]
    await world.store.write(definitions.cancel, cancelled.id)
    await world.store.write(teams.stop, founded.team.id)

    def reword(tx: Tx) -> None:
        words = {"status": "expired", "ended": "the team was stopped"}
        rows.TRIGGERS.update(tx, cancelled.id, **words)
        rows.TRIGGERS.update(tx, alarm.id, ended="l'équipe a été arrêtée")

    await world.store.write(reword)
    await world.store.write(teams.reactivate, founded.team.id)
    assert [(await reload(world, t)).status for t in (cancelled, alarm)] == ["expired", "active"]


async def test_a_paused_teams_triggers_do_not_fire_and_follow_the_misfire_policy(
    world: World,
) -> None:
    founded = await found_idle_team(world, DONE)
    trigger = await create_trigger(world, founded, "scheduled", {"cron": "@hourly"})
    await world.store.write(teams.pause, founded.team.id)
    await pass_time(world, 3 * 3600)
    await world.restart()
    await pass_time(world, 0)
    assert await firings(world, trigger) == []
    await world.store.write(teams.resume, founded.team.id)
    await pass_time(world, 0)
    assert [(o, r) for _, o, r in await firings(world, trigger)] == [
        ("skipped", "misfire"),
        ("fired", ""),
    ]


async def test_triggers_expire_with_their_team_and_are_reactivated_with_it(world: World) -> None:
    founded = await found_idle_team(world, DONE, heartbeat=3600)
    trigger = await create_trigger(world, founded, "scheduled", {"cron": "@hourly"})
    gone = await create_trigger(world, founded, "scheduled", {"cron": "@hourly"})
    await world.store.write(definitions.cancel, gone.id)
    await world.store.write(teams.stop, founded.team.id)
    await pass_time(world, 86_400)
    assert await world.board(founded.team.id) == []
    assert (await reload(world, trigger)).status == "expired"
    with pytest.raises(Refused, match="is stopped; nothing can be scheduled"):
        await create_trigger(world, founded, "delayed", {"delay_seconds": 60})
    await world.store.write(teams.set_goal, founded.team.id, "Watch something else")
    await world.settle()
    assert (await reload(world, trigger)).status == "active"
    assert (await reload(world, gone)).status == "cancelled"


async def test_a_trigger_can_be_paused_and_resumed_by_itself(world: World) -> None:
    founded = await found_idle_team(world, DONE)
    trigger = await create_trigger(
        world, founded, "scheduled", {"cron": "@hourly", "misfire": "skip"}
    )
    await world.store.write(definitions.pause, trigger.id)
    await pass_time(world, 3 * 3600 + 600)
    await world.store.write(definitions.resume, trigger.id)
    await pass_time(world, 0)
    assert [(o, r) for _, o, r in await firings(world, trigger)] == [("skipped", "misfire")]
    await pass_time(world, 3000)
    assert (await reload(world, trigger)).fired == 1


# ---- run by hand ---------------------------------------------------------------------------


async def test_a_trigger_that_is_run_by_hand_keeps_its_schedule(world: World) -> None:
    founded = await found_idle_team(world, DONE, DONE, DONE)
    config = {"cron": "0 * * * *", "max_fires": 1}
    trigger = await create_trigger(world, founded, "scheduled", config)
    await pass_time(world, 600)
    done = await world.store.write(due.run_now, trigger.id)
    await world.settle()
    after = await reload(world, trigger)
    assert (after.due_at, after.status, after.fired) == (trigger.due_at, "active", 1)
    [node] = await nodes_of(world, trigger)
    assert (node.id, node.status) == (done.node_id, NodeStatus.COMPLETED)
    assert (done.outcome, done.reason, due.BY_HAND in node.task) == ("fired", due.BY_HAND, True)
    await pass_time(world, 3600)  # its own one firing comes nevertheless
    found = [(outcome, reason) for _, outcome, reason in await firings(world, trigger)]
    assert found == [("fired", due.BY_HAND), ("fired", "")]
    assert (await reload(world, trigger)).status == "expired"
    fired = [e for e in await world.events(founded.team.id) if e.type == "trigger.fired"]
    assert [event.data["slot"] for event in fired] == [
        slot for slot, _, _ in await firings(world, trigger)
    ]


async def test_a_trigger_of_every_kind_can_be_run_by_hand(world: World) -> None:
    founded = await found_idle_team(world, *[DONE] * 7)
    kinds: dict[str, dict[str, object]] = {
        "delayed": {"delay_seconds": 3600},
        "at_time": {"at": "2030-05-20T09:00"},
        "heartbeat": {"interval_seconds": 3600, "hours": "01:00-02:00"},
        "on_event": {"event_pattern": "stage.ended"},
        "on_idle": {"idle_seconds": 3600},
        "webhook": {},
    }
    for type, config in kinds.items():
        trigger = await create_trigger(world, founded, type, config)
        done = await world.store.write(due.run_now, trigger.id)
        await world.settle()
        after = await reload(world, trigger)
        assert (type, done.outcome, after.status) == (type, "fired", "active")


async def test_a_paused_trigger_runs_by_hand_and_stays_paused(world: World) -> None:
    founded = await found_idle_team(world, DONE)
    trigger = await create_trigger(world, founded, "scheduled", {"cron": "0 * * * *"})
    await world.store.write(definitions.pause, trigger.id)
    done = await world.store.write(due.run_now, trigger.id)
    await world.settle()
    await pass_time(world, 2 * 3600)
    assert await firings(world, trigger) == [(done.slot, "fired", due.BY_HAND)]
    assert (await reload(world, trigger)).status == "paused"


async def test_a_trigger_is_not_run_by_hand_while_its_work_goes_on(world: World) -> None:
    founded = await found_idle_team(world, DONE)
    trigger = await create_trigger(world, founded, "scheduled", {"cron": "0 * * * *"})
    await world.store.write(due.run_now, trigger.id)
    again = await world.store.write(due.run_now, trigger.id)
    await world.settle()
    assert (again.outcome, again.reason) == ("skipped", "overlap")


async def test_a_trigger_that_has_ended_or_whose_team_rests_is_not_run(world: World) -> None:
    founded = await found_idle_team(world)
    trigger = await create_trigger(world, founded, "webhook", {})
    await world.store.write(teams.pause, founded.team.id)
    with pytest.raises(Refused, match="is paused; resume it"):
        await world.store.write(due.run_now, trigger.id)
    await world.store.write(teams.resume, founded.team.id)
    await world.store.write(definitions.cancel, trigger.id)
    with pytest.raises(Refused, match="is cancelled; make a new one"):
        await world.store.write(due.run_now, trigger.id)
    assert await firings(world, trigger) == []
