"""The person's time zone: said once, used where times are read and shown."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agiraph.testing import call, says
from tests.api.serving import Served, serving

NO_WORK = call("no_work_needed")


@pytest.fixture
async def on_each(tmp_path: Path, database_url: str) -> AsyncIterator[Served]:
    """A served world, once on each database. Its clock shows 09:00 UTC, 10:00 in Berlin."""
    given: dict[str, Any] = {"database_url": database_url, "reply_model": "scripted/mouth"}
    async with serving(tmp_path / "home", **given) as opened:
        yield opened


async def test_a_person_says_their_time_zone_beside_their_absence(on_each: Served) -> None:
    assert (await on_each.ask("GET", "/persons/me"))[1]["zone"] == ""
    until = "2026-01-20T09:00:00+01:00"
    await on_each.ask("PATCH", "/persons/me", {"away_until": until})
    status, me = await on_each.ask("PATCH", "/persons/me", {"zone": "Europe/Berlin"})
    assert (status, me["zone"], me["away_until"][:10]) == (200, "Europe/Berlin", "2026-01-20")
    await on_each.ask("PATCH", "/persons/me", {"away_until": None})
    _, me = await on_each.ask("GET", "/persons/me")
    assert (me["zone"], me["away_until"]) == ("Europe/Berlin", None)
    status, wrong = await on_each.ask("PATCH", "/persons/me", {"zone": "Berlin"})
    assert (status, "is not a time zone" in wrong["detail"]) == (422, True)
    assert (await on_each.ask("PATCH", "/persons/me", {}))[0] == 422


async def test_times_without_a_zone_are_those_of_the_person(on_each: Served) -> None:
    world = on_each.world
    world.script("ada")
    founded = await world.found("Watch", start=False)
    team = f"/teams/{founded.team.id}"
    await on_each.ask("PATCH", "/persons/me", {"zone": "Europe/Berlin"})
    cron = {"type": "scheduled", "config": {"cron": "0 12 * * *"}, "action": "wake_agent"}
    made = []
    for config in ({"cron": "0 12 * * *"}, {"cron": "0 12 * * *", "zone": "UTC"}):
        body = {**cron, "config": config, "payload": {"task": f"Look, {config}"}}
        made.append((await on_each.ask("POST", f"{team}/triggers", body))[1])
    change = {"config": cron["config"]}
    _, changed = await on_each.ask("PATCH", f"{team}/triggers/{made[1]['id']}", change)
    _, quiet = await on_each.ask("PATCH", team, {"quiet_hours": "22:00-07:00"})
    dues = [(trigger["zone"], trigger["due_at"][11:16]) for trigger in (*made, changed)]
    assert dues == [("Europe/Berlin", "11:00"), ("UTC", "12:00"), ("Europe/Berlin", "11:00")]
    assert quiet["quiet_zone"] == "Europe/Berlin"


async def test_prompts_and_promises_use_the_time_of_the_person(on_each: Served) -> None:
    world = on_each.world
    promised = call("promise", what="The report", when="2026-01-05T18:00")
    mouth = world.script("mouth", says("At six.", promised, NO_WORK), says("Yes.", NO_WORK))
    work = world.script("ada", says(call("finish", summary="Done.")))
    await on_each.ask("PATCH", "/persons/me", {"zone": "Europe/Berlin"})
    founded = await world.found("Watch")
    await world.settle()
    for words in ("When do you report?", "Sure?"):
        await on_each.ask("POST", f"/agents/{founded.coordinator.id}/send", {"message": words})
        await world.settle()

    assert "The human's time zone is Europe/Berlin." in work.requests[0].system
    first, last = mouth.requests[0].system, mouth.requests[-1].system
    assert "Today is Monday, 05 January 2026, 10:00 (Europe/Berlin)." in first
    assert "[05 Jan 10:00] Human: When do you report?" in last
    assert "by 2026-01-05 18:00 Europe/Berlin: The report" in last
    _, triggers = await on_each.ask("GET", f"/teams/{founded.team.id}/triggers")
    assert [t["due_at"][:16] for t in triggers if t["type"] == "at_time"] == ["2026-01-05T17:00"]
