"""History over HTTP: a timeline in pages, the board at a moment, and the event log."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agiraph.client import Client
from agiraph.core.domain.events import Event
from agiraph.core.domain.ids import TeamId
from agiraph.features.history import routes
from agiraph.testing import call, says
from tests.api.serving import TOKEN, Served


async def test_a_team_that_asked_and_was_answered_is_told_from_its_events(served: Served) -> None:
    served.world.script(
        "ada",
        says(call("ask_human", question="Which tower?")),
        says(call("finish", summary="The tower is 300 m high.")),
    )
    founded = await served.world.found("Measure the tower", review="never", acceptance=["answer"])
    team = founded.team.id
    await served.world.settle()
    served.world.clock.advance(minutes=20)
    [question] = await served.world.questions(team)
    await served.world.answer(question, "The one in Paris")
    await served.world.settle()

    async with Client(served.origin, TOKEN) as client:
        timeline = await client.timeline(team)
        first = await client.timeline(team, limit=1)
        assert first.next_seq is not None
        rest = await client.timeline(team, after=first.next_seq)
        assert [*first.spans, *rest.spans] == timeline.spans
        assert [*first.ticks, *rest.ticks] == timeline.ticks
        [waited] = [span for span in timeline.spans if span.phase == "person"]
        assert waited.end is not None
        assert (waited.end - waited.start).total_seconds() == 1200
        assert [node.title for node in timeline.nodes] != []

        last = await client.board_at(team)
        _, board = await served.ask("GET", f"/teams/{team}/board")
        assert [_place(node.model_dump(mode="json")) for node in last.nodes] == [
            _place(node) for node in board
        ]
        asked = await client.board_at(team, at=waited.start)
        assert {node.status for node in asked.nodes} == {"waiting"}
        assert (asked.head, asked.at) == (last.head, waited.start)
        assert (await client.board_at(team, seq=0)).nodes == []

        log = await client.event_log(team, types=["question"], agent=founded.coordinator.id)
        assert [event.type for event in log.events] == ["question.answered", "question.asked"]
        assert (log.next, log.head) == (None, timeline.last_seq)


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_question_that_closed_with_its_work_is_not_told_as_answered(
    served: Served, is_cancelled: bool
) -> None:
    end = says(call("finish", summary="The tower is high."))
    served.world.script("ada", says(call("ask_human", question="Which tower?")), end)
    founded = await served.world.found("Measure the tower", acceptance=["answer"])
    assert founded.node is not None
    await served.world.settle()
    if is_cancelled:
        await served.ask("POST", f"/nodes/{founded.node.id}/cancel")
    else:
        await served.world.say(founded.coordinator.id, "Just finish.", team_id=founded.team.id)
    await served.world.settle()

    async with Client(served.origin, TOKEN) as client:
        log = await client.event_log(founded.team.id, types=["question"])
        timeline = await client.timeline(founded.team.id)
    assert [(event.type, event.data.get("is_closed")) for event in log.events] == [
        ("question.answered", True),
        ("question.asked", None),
    ]
    assert [tick.kind for tick in timeline.ticks if tick.kind in ("question", "answer")] == [
        "question"
    ]


async def test_a_long_history_begins_later_and_is_begun_anew_when_it_has_grown(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MOST_EVENTS", 4)
    founded = await served.world.found("Measure the tower", start=False)
    path = f"/teams/{founded.team.id}"

    async def grow() -> tuple[int, int]:
        await served.ask("PATCH", path, {"name": "Tower"})
        _, board = await served.ask("GET", f"{path}/board/at")
        return board["first_seq"], board["head"]

    first, head = await grow()
    while first == 1:
        first, head = await grow()
    assert first == head - 3
    assert await grow() == (first, head + 1)
    assert await grow() == (first + 2, head + 2)
    status, problem = await served.ask("GET", f"{path}/board/at?seq=1")
    assert (status, problem["detail"]) == (409, f"The board is known from event {first + 2} on.")


def test_an_event_that_cannot_be_folded_is_not_tried_again() -> None:
    history = routes.TeamHistory()
    data = {"node_id": "node_1", "agent_id": "agent_a", "attempt": "many"}
    now = datetime(2026, 11, 17, tzinfo=UTC)
    with pytest.raises(ValueError, match="many"):
        history.add(Event(team_id=TeamId("team_1"), seq=1, type="node.started", at=now, data=data))
    assert history.last == 1


def _place(node: dict[str, Any]) -> dict[str, Any]:
    kept = ("id", "title", "status", "assignee_id", "attempt", "stop_reason", "ended_at", "lane")
    return {name: node[name] for name in kept}


async def test_a_time_without_a_zone_and_an_unknown_team_are_refused(served: Served) -> None:
    founded = await served.world.found("Measure the tower", start=False)
    path = f"/teams/{founded.team.id}"
    status, told = await served.ask("GET", f"{path}/timeline?since=2026-11-17T09:00:00")
    assert (status, "timezone" in str(told)) == (422, True)
    status, told = await served.ask("GET", f"{path}/timeline?since=0.5")
    assert (status, "such as 2026-11-17T09:00:00Z" in str(told)) == (422, True)
    assert (await served.ask("GET", "/teams/team_none/timeline"))[0] == 404
    assert (await served.ask("GET", "/teams/team_none/board/at"))[0] == 404
    assert (await served.ask("GET", "/teams/team_none/event-log"))[0] == 404
    assert (await served.ask("GET", f"{path}/event-log?limit=100000"))[0] == 422
