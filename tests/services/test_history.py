"""History: spans and boards that are folded from events."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agiraph.core.domain.events import Event, EventType
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle import settings
from agiraph.core.store import events
from agiraph.features.history import boards, routes
from agiraph.features.history.boards import CHECKPOINT, BoardFold
from agiraph.features.history.routes import LogFilter, log_page
from agiraph.features.history.spans import Span, SpanFold, wait_phase
from agiraph.testing import World, call, says
from tests.folding import folded_differences

BEGIN = datetime(2026, 11, 17, 9, tzinfo=UTC)
TEAM = TeamId("team_1")


class Told:
    """Events of one node, each some seconds after the one before."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._at = BEGIN

    def __call__(self, seconds: float, type: EventType, **data: Any) -> "Told":
        self._at += timedelta(seconds=seconds)
        seq = len(self.events) + 1
        data = {"node_id": "node_1", **data}
        self.events.append(Event(team_id=TEAM, seq=seq, type=type, at=self._at, data=data))
        return self

    def start(self, seconds: float, attempt: int = 1) -> "Told":
        return self(seconds, "node.started", agent_id="agent_a", attempt=attempt)

    def reply(self, seconds: float, *calls: str, usd: float = 0.01) -> "Told":
        called = [{"id": f"call_{name}", "name": name} for name in calls]
        return self(seconds, "turn.added", calls=called, tokens=100, usd=usd)

    def result(self, seconds: float, name: str, *, failed: bool = False) -> "Told":
        return self(seconds, "tool.result", call_id=f"call_{name}", tool=name, failed=failed)

    def wait(self, *on: str, reason: str = "") -> "Told":
        return self(0, "node.waiting", on=list(on), reason=reason)

    def queue(self, seconds: float) -> "Told":
        return self(seconds, "node.assigned", agent_id="agent_a")

    def folded(self) -> SpanFold:
        fold = SpanFold()
        for event in self.events:
            fold.add(event)
        return fold


def lengths(spans: list[Span]) -> list[tuple[str, float]]:
    return [(s.phase, (s.end - s.start).total_seconds()) for s in spans if s.end is not None]


def test_a_nodes_time_is_cut_into_queue_model_tools_and_waits() -> None:
    told = Told().queue(0).start(2).reply(3, "shell", "look").result(1, "look").result(4, "shell")
    told.reply(2, "ask").wait("answer:msg_1", "time:timer_1").queue(60).start(1)
    told.result(0, "ask").reply(5)(0, "node.completed", reason=None, result="Done.")
    fold = told.folded()

    assert lengths(fold.closed) == [
        ("queued", 2), ("model", 3), ("tool", 5), ("model", 2), ("person", 60), ("queued", 1),
        ("model", 5),
    ]  # fmt: skip
    assert [span.label for span in fold.closed if span.phase == "tool"] == ["shell, look"]
    assert [span.usd for span in fold.closed if span.phase == "model"] == [0.01] * 3
    assert [tick.label for tick in fold.ticks] == ["look", "shell", "ask"]
    assert fold.open_spans() == []


def test_a_crash_shows_as_an_interruption_with_the_cost_of_the_lost_call() -> None:
    told = Told().queue(0).start(0).reply(3, "shell").result(1, "shell").start(600, attempt=2)
    told(0, "call.lost", tokens=900, usd=0.5).reply(4)
    fold = told.folded()

    assert lengths(fold.closed) == [("model", 3), ("tool", 1), ("interrupted", 600), ("model", 4)]
    assert [(s.attempt, s.usd, s.tokens) for s in fold.closed[2:]] == [
        (1, 0.5, 900),
        (2, 0.01, 100),
    ]
    assert [(s.phase, s.end) for s in fold.open_spans()] == [("model", None)]


def test_a_stop_of_all_work_lasts_until_it_is_resumed() -> None:
    told = Told().queue(0).start(2)(5, "work.stopped", by="admin").queue(1)
    told(30, "work.resumed", by="admin")(60, "work.stopped", by="admin")
    first, last = told.folded().stops

    assert first.end is not None
    assert ((first.end - first.start).total_seconds(), last.end) == (31, None)


def test_a_model_call_that_a_stop_interrupts_was_thinking_until_then_and_costs_what_was_lost() -> (
    None
):
    told = Told().queue(0).start(2)(5, "work.stopped", by="admin").queue(1)
    told(30, "work.resumed", by="admin").start(4)(0, "call.lost", tokens=900, usd=0.5).reply(3)
    spans = told.folded().closed

    assert lengths(spans) == [("queued", 2), ("model", 6), ("queued", 34), ("model", 3)]
    assert [(s.tokens, s.usd) for s in spans] == [(0, None), (900, 0.5), (0, None), (100, 0.01)]


def test_the_end_of_a_stop_that_a_team_was_not_told_of_changes_no_earlier_stop() -> None:
    told = Told()(0, "work.resumed")(5, "work.stopped", by="admin")(30, "work.resumed")
    [only] = told(600, "work.resumed").folded().stops

    assert only.end is not None
    assert (only.end - only.start).total_seconds() == 30


def test_waits_for_a_person_a_child_a_timer_and_a_dead_provider_are_told_apart() -> None:
    assert wait_phase(["approval:msg_1"], "") == "person"
    assert wait_phase(["answer:msg_1", "time:timer_1"], "") == "person"
    assert wait_phase(["node:node_2"], "") == "child"
    assert wait_phase(["stage:stage_1", "time:timer_1"], "") == "child"
    assert wait_phase(["reply:msg_1"], "") == "teammate"
    assert wait_phase(["time:timer_1"], "waiting 5 minutes") == "timer"
    assert wait_phase(["time:day:2026-11-17"], "") == "budget"
    assert wait_phase(["time:timer_1"], "the model cannot be reached: no route") == "provider"
    assert wait_phase(["something:new"], None) == "other"
    told = Told().queue(0).start(0)(7, "model.failed", reason="503").wait("time:timer_1")
    fold = told.queue(30).folded()
    assert lengths(fold.closed) == [("model", 7), ("provider", 30)]
    assert [(tick.kind, tick.failed) for tick in fold.ticks] == [("failure", True)]


def test_a_late_moment_of_a_long_history_is_the_fold_of_all_events_before_it() -> None:
    told = Told()(0, "node.created", title="Long", parent_id=None, lane="work", needs=[])
    told.queue(1).start(1)
    for n in range(CHECKPOINT + 50):
        told.reply(1, usd=0.001 if n % 2 else 0.0)
    told(1, "node.completed", reason=None, result="Done.")
    kept = BoardFold()
    for event in told.events:
        kept.add(event)

    for seq in (0, 1, 3, CHECKPOINT - 1, CHECKPOINT, CHECKPOINT + 1, len(told.events)):
        assert kept.moment(seq).nodes == boards.fold(told.events[:seq]).nodes
    assert kept.moment(len(told.events)).nodes["node_1"].status is NodeStatus.COMPLETED
    assert kept.moment(3).nodes["node_1"].status is NodeStatus.RUNNING


def test_a_status_or_reason_of_a_later_version_is_ignored() -> None:
    told = Told()(0, "node.created", title="New", parent_id=None, lane="work", needs=[]).queue(1)
    told(1, "node.changed", changed={"status": "frozen"})
    assert boards.fold(told.events).nodes["node_1"].status is NodeStatus.ASSIGNED
    told(1, "node.failed", reason="of_a_later_version", result=None)
    ended = boards.fold(told.events).nodes["node_1"]
    assert (ended.status, ended.stop_reason) == (NodeStatus.FAILED, None)


@pytest.mark.slow
def test_a_board_of_many_nodes_is_kept_less_often() -> None:
    told = Told()
    for n in range(2 * CHECKPOINT):
        told(0, "node.created", node_id=f"node_{n}", title="", parent_id=None, lane="work")
    told.start(1)
    kept = BoardFold()
    for event in told.events:
        kept.add(event)
    for seq in (CHECKPOINT - 1, CHECKPOINT, 2 * CHECKPOINT, len(told.events)):
        assert kept.moment(seq).nodes == boards.fold(told.events[:seq]).nodes


async def test_a_request_of_the_event_log_looks_at_a_bounded_number_of_events(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MOST_SCANNED", 3)
    founded = await world.found("Measure the tower", start=False)
    team = founded.team.id
    for n in range(6):
        await world.store.write(settings.change, team, name=f"Tower {n}")
    head = await world.store.read(events.head, team)
    created = LogFilter(types=("team.created",))
    found: list[int] = []
    nexts: list[int | None] = [0]
    while (before := nexts[-1]) is not None:
        listed = await world.store.read(log_page, team, created, before=before, limit=9)
        found += [event.seq for event in listed.events]
        nexts.append(listed.next)
    assert (found, nexts[:2]) == ([1], [0, head - 2])
    # Events before `since` are not looked at: there is no next page of them.
    late = LogFilter(types=("team.created",), since=world.clock.now() + timedelta(days=1))
    assert (await world.store.read(log_page, team, late, before=0, limit=9)).next is None


async def test_the_event_log_is_filtered_by_type_agent_node_text_and_time(world: World) -> None:
    noted = says(call("checkpoint", summary="Halfway, “Größe” 100%"))
    world.script("ada", noted, says(call("finish", summary="It is done.")))
    founded = await world.found("Measure the tower")
    await world.settle()
    team, agent = founded.team.id, founded.coordinator.id
    [node] = await world.board(team)
    whole = await world.store.read(events.after, team, 0)

    async def listed(limit: int = 100, before: int = 0, **which: Any) -> list[int]:
        found = await world.store.read(
            log_page, team, LogFilter(**which), before=before, limit=limit
        )
        return [event.seq for event in found.events]

    numbers = [event.seq for event in reversed(whole)]
    assert await listed() == numbers
    assert await listed(limit=3) == numbers[:3]
    assert await listed(limit=3, before=numbers[2]) == numbers[3:6]
    ended = [event.seq for event in whole if event.type == "node.completed"]
    assert await listed(types=("node.completed",)) == ended
    about = [e.seq for e in reversed(whole) if e.type.startswith("node.")]
    assert await listed(types=("node",), agent_id=agent, node_id=node.id) == about
    assert await listed(agent_id="agent_nobody") == []
    assert len(await listed(text="“GRÖßE”", types=("node",))) == 1
    assert await listed(text="no such words") == []
    assert await listed(since=world.clock.now() + timedelta(days=1)) == []
    assert await listed(until=BEGIN.replace(year=1999)) == []
    assert await world.store.read(events.number_at, team, world.clock.now()) == len(whole)
    assert await world.store.read(folded_differences) == []
