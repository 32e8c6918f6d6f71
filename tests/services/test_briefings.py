"""Briefings: unasked news reaches the person if it is important and new, outside quiet hours."""

from datetime import UTC, datetime

import pytest

from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.domain.text.fence import without_fences
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import deliveries, inbox
from agiraph.core.store import messages
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.teams import TEAMS
from agiraph.testing import World
from tests.runtime.reflecting_model import ReflectingModel, briefing, create_node

RATES = briefing("Rates rose", "The central bank raised rates by 1 % today, more than expected.")


async def found_team(world: World, *verdicts: str) -> tuple[NewTeam, ReflectingModel]:
    """Found a team whose coordinator gives these verdicts about its finished work."""
    model = ReflectingModel(verdict=list(verdicts))
    world.model("ada", model)
    founded = await world.found("Watch", learns=True, start=False, mode="infinite")
    return founded, model


async def do_task(world: World, founded: NewTeam, **more: str) -> None:
    await create_node(world, founded.team.id, founded.coordinator.id, **more)  # type: ignore[arg-type]
    await world.settle()


async def decisions(world: World, founded: NewTeam) -> list[tuple[bool, str]]:
    events = await world.events(founded.team.id)
    data = [e.data for e in events if e.type == "briefing.decided"]
    return [(d["sent"], d["reason"].partition(":")[0]) for d in data]


async def test_creates_inbox_item_when_llm_decides_to_brief(world: World) -> None:
    founded, _ = await found_team(world, RATES)
    await do_task(world, founded)
    [item] = await world.inbox()
    assert (item.kind, item.title, item.sender) == (
        "briefing", "Rates rose", founded.coordinator.id,
    )  # fmt: skip
    [event] = [e for e in await world.events(founded.team.id) if e.type == "briefing.decided"]
    assert event.data["score"] == 0.9
    assert event.data["threshold"] == 0.6
    assert event.data["message_id"] == item.id


async def test_does_not_create_inbox_item_when_llm_decides_not_to_brief(world: World) -> None:
    founded, _ = await found_team(world, briefing("Nothing new", "All is as it was.", score=0.59))
    await do_task(world, founded)
    assert await world.inbox() == []
    assert await decisions(world, founded) == [(False, "not worth it")]


async def test_a_requested_result_that_was_delivered_is_not_briefed_again(world: World) -> None:
    founded, model = await found_team(world, RATES)
    await do_task(world, founded, source="user", creator_id=OWNER)
    assert [m.kind for m in await world.inbox()] == ["result"]
    assert model.questions() == ["harvest"]  # no model call for a briefing
    assert await decisions(world, founded) == [(False, "already delivered")]


async def test_unrequested_work_is_briefed_even_beside_a_requested_result(world: World) -> None:
    founded, _ = await found_team(world, RATES)
    await create_node(
        world, founded.team.id, founded.coordinator.id, source="user", creator_id=OWNER
    )
    await create_node(world, founded.team.id, founded.coordinator.id, "Something else")
    await world.settle()
    assert [m.kind for m in await world.inbox()] == ["result", "briefing"]


async def test_the_same_news_is_not_briefed_twice(world: World) -> None:
    again = briefing(
        "Rates rose", "The central bank raised rates by 1 % today, more than expected!"
    )
    other = briefing("Rates fell", "Surprisingly, the bank took back its decision this evening.")
    founded, model = await found_team(world, RATES, again, other)
    for task in ("One", "Two", "Three"):
        await do_task(world, founded, task=task)
    assert [m.title for m in await world.inbox()] == ["Rates rose", "Rates fell"]
    assert await decisions(world, founded) == [
        (True, "worth it"), (False, "told before"), (True, "worth it"),
    ]  # fmt: skip
    asked = [turns[-1].text for name, turns, _ in model.asked if name == "briefing"]
    assert ["Rates rose" in text for text in asked] == [False, True, True]


async def test_news_that_differ_only_in_a_number_are_the_same(world: World) -> None:
    later = briefing("Rates rose", RATES_AT.format("2.25"))
    founded, _ = await found_team(world, briefing("Rates rose", RATES_AT.format("1")), later)
    for task in ("One", "Two"):
        await do_task(world, founded, task=task)
    assert await decisions(world, founded) == [(True, "worth it"), (False, "told before")]


async def test_a_briefing_without_text_is_not_sent(world: World) -> None:
    founded, _ = await found_team(world, briefing("Important!", "  "))
    await do_task(world, founded)
    assert (await world.inbox(), await decisions(world, founded)) == ([], [(False, "nothing said")])


RATES_AT = "The bank raised its rate to {} % today."


async def found_briefed_team(world: World) -> tuple[NewTeam, Message]:
    founded, _ = await found_team(world, RATES)
    await do_task(world, founded)
    [item] = await world.inbox()
    return founded, item


async def threshold(world: World, founded: NewTeam) -> float:
    return (await world.team(founded.team.id)).briefing_threshold


async def test_a_rating_moves_the_threshold_once_and_can_be_changed(world: World) -> None:
    founded, item = await found_briefed_team(world)
    moved: list[float] = []
    for up in (False, False, True, True, False):
        await world.store.write(inbox.rate, item.id, up=up)
        moved.append(await threshold(world, founded))
    assert moved == [0.65, 0.65, 0.55, 0.55, 0.65]
    rated = [e.data for e in await world.events(founded.team.id) if e.type == "briefing.rated"]
    assert [(r["rating"], r["threshold"]) for r in rated] == [
        ("down", 0.65), ("up", 0.55), ("down", 0.65),
    ]  # fmt: skip


@pytest.mark.parametrize(("start", "up", "end"), [(0.2, True, 0.2), (0.93, False, 0.95)])
async def test_ratings_move_the_threshold_within_bounds(
    world: World, start: float, up: bool, end: float
) -> None:
    founded, item = await found_briefed_team(world)
    await world.store.write(TEAMS.update, founded.team.id, briefing_threshold=start)
    await world.store.write(inbox.rate, item.id, up=up)
    assert await threshold(world, founded) == end


async def test_a_bad_rating_stops_briefings_of_the_same_score(world: World) -> None:
    meagre = [briefing(f"Point {n}", f"Something {n} happened there.", 0.6) for n in (1, 2)]
    founded, _ = await found_team(world, *meagre)
    await do_task(world, founded, task="One")
    [item] = await world.inbox()
    await world.store.write(inbox.rate, item.id, up=False)
    await do_task(world, founded, task="Two")
    assert await world.inbox() == [await world.store.read(messages.MESSAGES.get, item.id)]


async def test_only_briefings_are_rated(world: World) -> None:
    founded, _ = await found_team(world, RATES)
    await do_task(world, founded, source="user", creator_id=OWNER)
    [result] = await world.inbox()
    with pytest.raises(Refused, match="is a result; only briefings are rated"):
        await world.store.write(inbox.rate, result.id, up=True)
    with pytest.raises(Refused, match="There is no message 'msg_0'"):
        await world.store.write(inbox.rate, "msg_0", up=True)


def end_of_quiet_at(hours: str, zone: str, *moment: int) -> datetime | None:
    made = datetime(2026, 1, 1, tzinfo=UTC)
    team = Team(
        id=TeamId("team_1"), name="T", goal="G", created_at=made, quiet_hours=hours, quiet_zone=zone
    )
    return deliveries.end_of_quiet(team, datetime(2026, *moment, tzinfo=UTC))


@pytest.mark.parametrize(
    ("hours", "zone", "moment", "end"),
    [
        ("", "UTC", (1, 5, 23, 0), None),
        ("22:00-07:00", "UTC", (1, 5, 21, 59), None),
        ("22:00-07:00", "UTC", (1, 5, 22, 0), (1, 6, 7, 0)),
        ("22:00-07:00", "UTC", (1, 6, 6, 59), (1, 6, 7, 0)),
        ("22:00-07:00", "UTC", (1, 6, 7, 0), None),
        ("12:00-14:00", "UTC", (1, 6, 13, 0), (1, 6, 14, 0)),
        ("12:00-14:00", "UTC", (1, 6, 14, 0), None),
        ("9:30 - 24:00", "UTC", (1, 6, 23, 59), (1, 7, 0, 0)),
        ("22:00-07:00", "Europe/Berlin", (1, 5, 21, 30), (1, 6, 6, 0)),
        # The nights of a time change: seven o'clock comes an hour sooner or later.
        ("22:00-07:00", "Europe/Berlin", (3, 28, 23, 0), (3, 29, 5, 0)),
        ("22:00-07:00", "Europe/Berlin", (10, 24, 23, 0), (10, 25, 6, 0)),
    ],
)
def test_quiet_hours_end_in_the_persons_time_zone(
    hours: str, zone: str, moment: tuple[int, ...], end: tuple[int, ...] | None
) -> None:
    expected = None if end is None else datetime(2026, *end, tzinfo=UTC)
    assert end_of_quiet_at(hours, zone, *moment) == expected


async def test_a_clean_reflection_is_not_shown_what_strangers_words_were_told(
    world: World,
) -> None:
    founded, model = await found_team(world, RATES, RATES, RATES)
    await do_task(world, founded)
    [told] = await world.inbox()
    await world.store.write(MESSAGES.update, told.id, label=of_page("https://example.org"))
    await do_task(world, founded)
    last = next(turns[-1].text for name, turns, _ in reversed(model.asked) if name == "briefing")
    assert "something about work with untrusted text" in last
    assert "Rates rose" not in last

    await create_node(
        world, founded.team.id, founded.coordinator.id, label=of_page("https://example.org")
    )
    await world.settle()
    last = next(turns[-1].text for name, turns, _ in reversed(model.asked) if name == "briefing")
    assert "Rates rose" in last
    assert "Rates rose" not in without_fences(last)
