"""Triggers fire once a slot, wake nobody for nothing, and keep within their limits."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.ids import HUMAN, AgentId
from agiraph.domain.triggers import Firing, Trigger
from agiraph.domain.work import Budget, NodeStatus, StopReason, WorkNode
from agiraph.services import board, people, ringing, teams, triggers
from agiraph.services.teams import Founded
from agiraph.store import nodes
from agiraph.store import triggers as rows
from agiraph.store.tx import Tx
from agiraph.testing import World, call, says
from tests.services.staging import pass_time

OK = says(call("finish", summary="HEARTBEAT_OK"))
DONE = says(call("finish", summary="done"))


async def resting(world: World, *lines: Any, **more: Any) -> Founded:
    """An infinite team whose coordinator has nothing to do."""
    world.script("ada", *lines)
    return await world.found("Keep watch", mode="infinite", start=False, **more)


async def make(world: World, founded: Founded, type: str, config: Any, **more: Any) -> Trigger:
    payload = more.pop("payload", {"task": "Look around"})
    made = await world.store.write(
        triggers.create,
        agent_id=founded.coordinator.id,
        type=type,
        config=config,
        payload=payload,
        **more,
    )
    return made.trigger


async def now_of(world: World, trigger: Trigger) -> Trigger:
    return await world.store.read(rows.TRIGGERS.get, trigger.id)


async def firings(world: World, trigger: Trigger) -> list[tuple[str, str, str]]:
    found: list[Firing] = await world.store.read(rows.firings, trigger.id)
    return [(f.slot, f.outcome, f.reason) for f in reversed(found)]


async def woken(world: World, trigger: Trigger) -> list[WorkNode]:
    return [n for n in await world.board(trigger.team_id) if n.trigger_id == trigger.id]


# ---- the seed's tests, by name --------------------------------------------------------------


def _work(tx: Tx, team_id: Any, agent_id: AgentId, task: str) -> WorkNode:
    return board.create(tx, team_id=team_id, task=task, source="user", assignee_id=agent_id)


def _due(tx: Tx) -> list[AgentId]:
    """Agents whose triggers have come due: the seed's getAgentsDueToRun."""
    found = rows.overdue(tx, since=tx.now + timedelta(microseconds=1))
    return [trigger.agent_id for trigger in found]


async def test_picks_up_agent_with_pending_tasks(world: World) -> None:
    founded = await resting(world, DONE)
    await world.store.write(_work, founded.team.id, founded.coordinator.id, "Process this")
    queued = await world.store.read(nodes.queues)
    assert founded.coordinator.id in [queue.agent_id for queue in queued]
    await world.settle()


async def test_picks_up_team_lead_when_next_run_at_reached(world: World) -> None:
    founded = await resting(world, OK, heartbeat=3600)
    world.clock.advance(seconds=3601)
    assert await world.store.read(_due) == [founded.coordinator.id]
    await pass_time(world, 0)
    [node] = await world.board(founded.team.id)
    assert (node.source, node.status) == ("trigger", NodeStatus.COMPLETED)


async def test_does_not_pick_up_worker_when_no_tasks_purely_reactive(world: World) -> None:
    founded = await resting(world, heartbeat=None)
    worker = await world.store.write(
        people.hire, founded.team.id, name="bob", role="worker", model="scripted/ada"
    )
    await pass_time(world, 30 * 86_400)
    assert await world.store.read(nodes.queues) == []
    assert await world.store.read(rows.active_of_agent, worker.id) == []
    assert await world.board(founded.team.id) == []


async def test_schedules_team_lead_for_1_hour_after_completion(world: World) -> None:
    founded = await resting(world, DONE, heartbeat=3600)
    world.clock.advance(minutes=17)
    await world.store.write(_work, founded.team.id, founded.coordinator.id, "Work")
    await world.settle()
    [heartbeat] = await world.store.read(rows.active_of_agent, founded.coordinator.id)
    assert heartbeat.due_at == world.clock.now() + timedelta(hours=1)


async def test_does_not_schedule_worker_after_completion(world: World) -> None:
    founded = await resting(world, says(call("publish", summary="done")), heartbeat=3600)
    worker = await world.store.write(
        people.hire, founded.team.id, name="bob", role="worker", model="scripted/ada"
    )
    await world.store.write(_work, founded.team.id, worker.id, "Work")
    await world.settle()
    assert [n.status for n in await world.board(founded.team.id)] == [NodeStatus.COMPLETED]
    assert await world.store.read(rows.active_of_agent, worker.id) == []


async def test_notify_task_queued_triggers_immediate_processing(world: World) -> None:
    founded = await resting(world, says(call("finish", summary="Processed")), heartbeat=3600)
    await world.store.write(_work, founded.team.id, founded.coordinator.id, "Urgent task")
    await world.settle()  # no time has passed
    [node] = await world.board(founded.team.id)
    assert (node.status, node.result) == (NodeStatus.COMPLETED, "Processed")


async def test_a_coordinator_is_born_with_a_heartbeat_of_an_hour(world: World) -> None:
    founded = await world.store.write(teams.found, goal="Go", model="scripted/ada", start=False)
    [born] = await world.store.read(rows.of_team, founded.team.id)
    assert (born.type, born.made_by, born.due_at) == (
        "heartbeat",
        "system",
        world.clock.now() + timedelta(hours=1),
    )
    assert born.config == {"interval_seconds": 3600.0, "when": "always"}


# ---- once a slot ----------------------------------------------------------------------------


async def test_a_schedule_fires_once_a_slot_across_restarts(world: World) -> None:
    founded = await resting(world, *[DONE] * 3)
    trigger = await make(world, founded, "scheduled", {"cron": "0 */8 * * *"})
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
    assert [n.status for n in await woken(world, trigger)] == [NodeStatus.COMPLETED] * 3


MISSED = {
    "once": [
        ("2026-01-05T10:00:00+00:00", "skipped", "misfire"),
        ("2026-01-05T13:00:00+00:00", "fired", ""),
    ],
    "skip": [("2026-01-05T10:00:00+00:00", "skipped", "misfire")],
    "all": [(f"2026-01-05T{hour}:00:00+00:00", "fired", "") for hour in (10, 11, 12, 13)],
}


@pytest.mark.parametrize("misfire", list(MISSED))
async def test_slots_nobody_was_there_for_are_treated_as_their_policy_says(
    world: World, misfire: str
) -> None:
    founded = await resting(world, *[DONE] * 4)
    trigger = await make(world, founded, "scheduled", {"cron": "@hourly", "misfire": misfire})
    await world.stop()
    world.clock.advance(hours=4, minutes=30)
    await world.start()
    await pass_time(world, 0)
    assert sorted(await firings(world, trigger)) == MISSED[misfire]
    kept = await now_of(world, trigger)
    missed = {"once": 3, "skip": 4, "all": 0}[misfire]
    assert (kept.skipped, kept.due_at) == (missed, datetime(2026, 1, 5, 14, tzinfo=UTC))
    assert await world.store.read(rows.missed, trigger.id) == missed


async def test_a_clock_set_back_fires_nothing_again(world: World) -> None:
    founded = await resting(world, DONE, DONE)
    trigger = await make(world, founded, "scheduled", {"cron": "@hourly"})
    await pass_time(world, 3600)
    world.clock.advance(hours=-1)
    await pass_time(world, 3600)
    assert len(await firings(world, trigger)) == 1
    await pass_time(world, 3600)
    assert len(await firings(world, trigger)) == 2


async def test_a_slot_is_skipped_while_the_work_of_the_last_one_goes_on(world: World) -> None:
    founded = await resting(world, says(call("ask_human", question="May I?")), DONE, DONE)
    trigger = await make(world, founded, "scheduled", {"cron": "@hourly"})
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


async def test_with_overlap_queue_the_next_one_waits_its_turn(world: World) -> None:
    founded = await resting(world, says(call("ask_human", question="May I?")), DONE)
    config = {"cron": "@hourly", "overlap": "queue"}
    trigger = await make(world, founded, "scheduled", config)
    await pass_time(world, 3600)
    await pass_time(world, 3600)
    statuses = [n.status for n in await woken(world, trigger)]
    assert statuses == [NodeStatus.WAITING, NodeStatus.COMPLETED]


async def test_single_times_fire_once_and_are_over(world: World) -> None:
    founded = await resting(world, DONE, DONE)
    delayed = await make(world, founded, "delayed", {"delay_seconds": 5})
    at = {"at": "2026-01-05T11:00", "zone": "Europe/Berlin"}
    alarm = await make(world, founded, "at_time", at)
    assert alarm.due_at == datetime(2026, 1, 5, 10, tzinfo=UTC)
    for _ in range(3):
        await pass_time(world, 1800)
    for trigger in (delayed, alarm):
        kept = await now_of(world, trigger)
        assert (kept.status, kept.fired, kept.due_at) == ("expired", 1, None)
    ended = [e for e in await world.events(founded.team.id) if e.type == "trigger.ended"]
    assert [e.data["trigger_id"] for e in ended] == [delayed.id, alarm.id]


async def test_max_fires_and_until_end_a_trigger(world: World) -> None:
    founded = await resting(world, *[DONE] * 4)
    twice = await make(world, founded, "scheduled", {"cron": "@hourly", "max_fires": 2})
    short = {"cron": "30 * * * *", "until": "2026-01-05T11:00"}
    until = await make(world, founded, "scheduled", short)
    for _ in range(10):
        await pass_time(world, 1800)
    assert [(await now_of(world, t)).fired for t in (twice, until)] == [2, 2]
    assert [(await now_of(world, t)).status for t in (twice, until)] == ["expired"] * 2


# ---- teams that pause, stop and go on --------------------------------------------------------


async def test_a_paused_team_is_left_alone_and_misses_by_policy(world: World) -> None:
    founded = await resting(world, DONE)
    trigger = await make(world, founded, "scheduled", {"cron": "@hourly"})
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


async def test_triggers_end_with_their_team_and_come_back_with_it(world: World) -> None:
    founded = await resting(world, DONE, heartbeat=3600)
    trigger = await make(world, founded, "scheduled", {"cron": "@hourly"})
    gone = await make(world, founded, "scheduled", {"cron": "@hourly"})
    await world.store.write(triggers.cancel, gone.id)
    await world.store.write(teams.stop, founded.team.id)
    await pass_time(world, 86_400)
    assert await world.board(founded.team.id) == []
    assert (await now_of(world, trigger)).status == "expired"
    with pytest.raises(Refused, match="is stopped; nothing can be scheduled"):
        await make(world, founded, "delayed", {"delay_seconds": 60})
    await world.store.write(teams.aim, founded.team.id, "Watch something else")
    await world.settle()
    assert (await now_of(world, trigger)).status == "active"
    assert (await now_of(world, gone)).status == "cancelled"


async def test_a_trigger_can_be_paused_and_resumed_by_itself(world: World) -> None:
    founded = await resting(world, DONE)
    trigger = await make(world, founded, "scheduled", {"cron": "@hourly", "misfire": "skip"})
    await world.store.write(triggers.pause, trigger.id)
    await pass_time(world, 3 * 3600 + 600)
    await world.store.write(triggers.resume, trigger.id)
    await pass_time(world, 0)
    assert [(o, r) for _, o, r in await firings(world, trigger)] == [("skipped", "misfire")]
    await pass_time(world, 3000)
    assert (await now_of(world, trigger)).fired == 1


# ---- what a firing does ----------------------------------------------------------------------


async def test_a_message_is_sent_and_a_node_is_handed_out(world: World) -> None:
    founded = await resting(world, says(call("publish", summary="synthesised")))
    node = await world.store.write(
        board.create, team_id=founded.team.id, task="Synthesise", source="user"
    )
    words = {"to": "Human", "content": "Build should be done."}
    await make(world, founded, "delayed", {"delay_seconds": 60}, action="send_message",
               payload=words)  # fmt: skip
    later = await make(world, founded, "delayed", {"delay_seconds": 120}, action="run_node",
                       payload={"node_id": node.id})  # fmt: skip
    await pass_time(world, 60)
    said = await world.conversation(founded.coordinator)
    assert [(m.sender, m.text) for m in said] == [(founded.coordinator.id, words["content"])]
    assert (await world.node(node.id)).status is NodeStatus.PENDING
    await pass_time(world, 60)
    assert (await world.node(node.id)).result == "synthesised"
    again = await make(world, founded, "delayed", {"delay_seconds": 60}, action="run_node",
                       payload={"node_id": node.id})  # fmt: skip
    await pass_time(world, 60)
    assert [o for _, o, _ in await firings(world, later)] == ["fired"]
    assert [(o, r) for _, o, r in await firings(world, again)] == [
        ("skipped", f"{node.id} is completed, it cannot be started any more.")
    ]


async def test_who_set_it_up_is_told_how_it_ended(world: World) -> None:
    founded = await resting(world, says(call("finish", summary="All quiet.")))
    trigger = await make(world, founded, "scheduled", {"cron": "@hourly"}, made_by=HUMAN)
    await pass_time(world, 3600)
    assert [(m.kind, m.text) for m in await world.inbox()] == [("result", "All quiet.")]
    [node] = await woken(world, trigger)
    assert node.source == "trigger"
    assert node.task.startswith("Look around\n\n[Runtime] Nobody asked for this just now: ")


async def test_cost_is_summed_per_trigger(world: World) -> None:
    founded = await resting(world, DONE, DONE, DONE)
    trigger = await make(world, founded, "scheduled", {"cron": "@hourly"})
    other = await make(world, founded, "delayed", {"delay_seconds": 60})
    for _ in range(2):
        await pass_time(world, 3600)
    assert (await world.store.read(rows.cost, trigger.id)).calls == 2
    assert (await world.store.read(rows.cost, other.id)).calls == 1


# ---- the gate --------------------------------------------------------------------------------


async def test_a_heartbeat_with_nothing_new_costs_no_call_and_no_rows(world: World) -> None:
    founded = await resting(world)
    trigger = await make(world, founded, "heartbeat", {"interval_seconds": 60})
    events = await world.events(founded.team.id)

    def day(tx: Tx) -> None:
        for _ in range(1440):
            tx.now += timedelta(minutes=1)
            ringing.ring(tx, trigger.id)

    await world.store.write(day)
    kept = await now_of(world, trigger)
    assert (kept.fired, kept.gated, kept.gate) == (0, 1440, "nothing new")
    assert await firings(world, trigger) == []
    assert await world.events(founded.team.id) == events
    assert await world.board(founded.team.id) == []


async def test_news_wakes_a_heartbeat(world: World) -> None:
    founded = await resting(world, OK)
    trigger = await make(world, founded, "heartbeat", {"interval_seconds": 60})
    await pass_time(world, 60)
    await world.say(founded.coordinator.id, "bob is done", team_id=founded.team.id, kind="notice")
    await pass_time(world, 60)
    [node] = await woken(world, trigger)
    assert "- 1 unread messages, which follow" in node.task
    assert node.stop_reason is StopReason.NOTHING_TO_DO
    kept = await now_of(world, trigger)
    assert (kept.fired, kept.gated, kept.quiet) == (1, 1, 1)


async def test_what_others_ended_is_news(world: World) -> None:
    founded = await resting(world, says(call("publish", summary="done")), OK)
    trigger = await make(world, founded, "heartbeat", {"interval_seconds": 60})
    bob = await world.store.write(
        people.hire, founded.team.id, name="bob", role="worker", model="scripted/ada"
    )
    world.clock.advance(seconds=1)
    await world.store.write(_work, founded.team.id, bob.id, "Count")
    await world.settle()
    await pass_time(world, 60)
    [node] = await woken(world, trigger)
    [ended] = [n for n in await world.board(founded.team.id) if n.assignee_id == bob.id]
    assert f"- Count ({ended.id}) is completed" in node.task


async def test_a_watched_file_wakes_when_it_changes(world: World) -> None:
    founded = await resting(world, OK, OK)
    config = {"interval_seconds": 60, "watch": ["memory/inbox.md", "memory/none.md"]}
    trigger = await make(world, founded, "heartbeat", config)
    folder = world.path / "teams" / founded.team.id / "memory"
    folder.mkdir(parents=True)
    (folder / "inbox.md").write_text("one")
    for _ in range(2):
        await pass_time(world, 60)
    assert (await now_of(world, trigger)).fired == 0
    (folder / "inbox.md").write_text("two")
    await pass_time(world, 60)
    [node] = await woken(world, trigger)
    assert "- memory/inbox.md has changed" in node.task
    await pass_time(world, 60)
    assert (await now_of(world, trigger)).fired == 1


async def test_a_heartbeat_sleeps_outside_its_hours(world: World) -> None:
    founded = await resting(world, OK)
    config = {"interval_seconds": 60, "when": "always", "hours": "08:00-09:30",
              "zone": "America/New_York"}  # fmt: skip
    trigger = await make(world, founded, "heartbeat", config)  # it is 04:00 there
    await pass_time(world, 60)
    kept = await now_of(world, trigger)
    assert kept.gate == "outside of 08:00-09:30"
    assert kept.due_at == datetime(2026, 1, 5, 13, tzinfo=UTC)
    await pass_time(world, 4 * 3600)
    assert (await now_of(world, trigger)).fired == 1


async def test_an_empty_envelope_wakes_nobody(world: World) -> None:
    world.script("ada", DONE)
    budget = Budget(model_calls=1)
    founded = await world.found("Watch", mode="infinite", budget=budget, heartbeat=3600)
    await world.settle()
    await pass_time(world, 3600)
    [heartbeat] = await world.store.read(rows.of_team, founded.team.id)
    assert (heartbeat.fired, heartbeat.gate) == (0, "budget: calls_spent")


async def test_one_who_finds_nothing_to_do_is_woken_ever_more_seldom(world: World) -> None:
    world.script("ada", *[OK] * 9)
    founded = await world.found("Go", start=False, heartbeat=3600)
    [heartbeat] = await world.store.read(rows.of_team, founded.team.id)
    woken_at: list[int] = []
    for hour in range(1, 100):
        await pass_time(world, 3600)
        if (await now_of(world, heartbeat)).fired > len(woken_at):
            woken_at.append(hour)
    assert woken_at == [1, 3, 7, 15, 31, 55, 79]
    team = (await world.store.read(teams.teams.TEAMS.get, founded.team.id)).status
    assert team == "active"  # finding nothing to do is not reaching the goal
    await world.say(founded.coordinator.id, "psst", team_id=founded.team.id, kind="notice")
    await pass_time(world, 3600)
    assert (await now_of(world, heartbeat)).fired == 8


async def test_an_agent_idle_for_too_long_is_woken_and_not_one_at_work(world: World) -> None:
    founded = await resting(world, DONE, DONE)
    trigger = await make(world, founded, "on_idle", {"idle_seconds": 3600})
    await pass_time(world, 3000)
    await world.store.write(_work, founded.team.id, founded.coordinator.id, "Work")
    await world.settle()
    await pass_time(world, 3000)
    assert (await now_of(world, trigger)).fired == 0
    await pass_time(world, 600)
    assert (await now_of(world, trigger)).fired == 1


async def test_overdue_is_visible(world: World) -> None:
    founded = await resting(world)
    trigger = await make(world, founded, "scheduled", {"cron": "@hourly"})

    def late(tx: Tx, minutes: int) -> list[str]:
        tx.now = datetime(2026, 1, 5, 10, minutes, tzinfo=UTC)  # and nobody has rung
        return [t.id for t in ringing.overdue(tx, founded.team.id)]

    assert await world.store.read(late, 2) == []
    assert await world.store.read(late, 3) == [trigger.id]


# ---- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type", "config", "said"),
    [
        ("sometimes", {}, "There is no trigger of type 'sometimes'; there are scheduled, delayed"),
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
async def test_what_makes_no_sense_is_refused_with_what_to_do(
    world: World, type: str, config: Any, said: str
) -> None:
    founded = await resting(world)
    with pytest.raises(Refused) as refused:
        await make(world, founded, type, config)
    assert said in str(refused.value)
    assert await world.store.read(rows.of_team, founded.team.id) == []


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
async def test_an_action_that_cannot_be_done_is_refused(
    world: World, action: Any, payload: Any, said: str
) -> None:
    founded = await resting(world)
    with pytest.raises(Refused) as refused:
        await make(world, founded, "delayed", {"delay_seconds": 60}, action=action, payload=payload)
    assert said in str(refused.value)


async def test_a_webhook_is_for_those_who_know_its_secret(world: World) -> None:
    founded = await resting(world, DONE)
    made = await world.store.write(
        triggers.create,
        agent_id=founded.coordinator.id,
        type="webhook",
        config={},
        payload={"task": "See what they want"},
    )
    trigger, secret = made
    assert secret is not None
    assert secret not in str(await now_of(world, trigger))
    for wrong in ("", "guess", secret + "x"):
        with pytest.raises(NotFound, match="its secret is wrong"):
            await world.store.write(ringing.hit, trigger.id, wrong, "{}")
    first = await world.store.write(ringing.hit, trigger.id, secret, '{"a": 1}', delivery="d1")
    again = await world.store.write(ringing.hit, trigger.id, secret, '{"a": 1}', delivery="d1")
    await world.settle()
    assert first == again
    [node] = await woken(world, trigger)
    assert '{"a": 1}' in node.task
    assert node.tainted_by == "whoever calls a webhook"
    with pytest.raises(Refused, match="A webhook takes 100,000 characters"):
        await world.store.write(ringing.hit, trigger.id, secret, "x" * 100_001)
    await world.store.write(triggers.cancel, trigger.id)
    with pytest.raises(Refused, match="takes nothing at present"):
        await world.store.write(ringing.hit, trigger.id, secret, "{}")


async def test_nobody_looks_back_on_finding_nothing_to_do(world: World) -> None:
    model = world.script("ada", OK)
    founded = await world.found("Watch", start=False, heartbeat=3600, learns=True)
    await pass_time(world, 3600)
    [node] = await world.board(founded.team.id)
    assert node.stop_reason is StopReason.NOTHING_TO_DO
    assert len(model.requests) == 1


async def test_a_trigger_that_makes_no_sense_any_more_ends_alone(world: World) -> None:
    founded = await resting(world, DONE, DONE)
    lost = await make(world, founded, "scheduled", {"cron": "@hourly"})
    beat = await make(world, founded, "heartbeat", {"interval_seconds": 7200})
    sound = await make(world, founded, "scheduled", {"cron": "@hourly"})

    def lose_zone(tx: Tx) -> None:
        for trigger in (lost, beat):
            config = {**trigger.config, "zone": "Atlantis/Capital"}
            rows.TRIGGERS.update(tx, trigger.id, config=config)

    await world.store.write(lose_zone)
    await pass_time(world, 3600)
    assert [(await now_of(world, t)).status for t in (lost, beat, sound)] == [
        "expired",
        "expired",
        "active",
    ]
    said = "it makes no sense any more: 'Atlantis/Capital' is not a time zone"
    assert ((await now_of(world, lost)).ended or "").startswith(said)
    assert (await now_of(world, sound)).fired == 1
