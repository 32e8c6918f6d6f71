"""Reaching people: absence, quiet hours, channel and time limit over HTTP."""

from typing import Any

import pytest

from agiraph.core.domain.messages import INBOX
from agiraph.core.domain.persons import OWNER
from agiraph.core.store import channels
from tests.api.serving import Served


async def test_a_person_says_that_they_are_away_and_back(served: Served) -> None:
    status, me = await served.ask("GET", "/persons/me")
    assert (status, me["id"], me["away_until"], me["channels"]) == (200, OWNER, None, [])
    until = "2030-05-20T09:00:00+02:00"
    status, me = await served.ask("PATCH", "/persons/me", {"away_until": until})
    assert (status, me["away_until"]) == (200, "2030-05-20T07:00:00Z")
    assert (await served.ask("GET", "/persons/me"))[1] == me
    status, me = await served.ask("PATCH", "/persons/me", {"away_until": None})
    assert (status, me["away_until"]) == (200, None)


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({"away_until": "2001-01-01T00:00:00Z"}, 422, "is past"),
        ({"away_until": "2030-05-20T09:00:00"}, 422, "timezone"),
        ({"away_until": "tomorrow"}, 422, "away_until"),
        ({"name": "Zoe"}, 422, "name"),
        ({}, 422, "away_until"),
    ],
)
async def test_a_wrong_absence_is_answered_with_what_is_wrong(
    served: Served, body: dict[str, Any], status: int, why: str
) -> None:
    got, problem = await served.ask("PATCH", "/persons/me", body)
    assert (got, why in str(problem)) == (status, True)


async def test_quiet_hours_channel_and_time_limit_of_a_team_are_set_over_http(
    served: Served,
) -> None:
    await served.world.store.write(channels.add, {"phone": INBOX}, person_id=OWNER)
    served.world.script("ada")
    _, team = await served.ask("POST", "/teams", {"goal": "Watch", "start": False})
    names = ("quiet_hours", "quiet_zone", "channel", "answer_within")
    assert [team[name] for name in names] == ["", "UTC", "", 0]
    wanted = ["22:00-07:00", "Europe/Berlin", "phone", 14400]
    path = f"/teams/{team['id']}"
    _, team = await served.ask("PATCH", path, dict(zip(names, wanted, strict=True)))
    assert [team[name] for name in names] == wanted
    # What is left out stays, and an empty value takes the setting away.
    _, team = await served.ask("PATCH", path, {"quiet_hours": "", "channel": ""})
    assert [team[name] for name in names] == ["", "Europe/Berlin", "", 14400]
    _, team = await served.ask("PATCH", path, {"answer_within": 0})
    assert team["answer_within"] == 0


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({"quiet_hours": "late"}, 422, "08:00-20:00"),
        ({"quiet_zone": "Mars"}, 422, "is not a time zone"),
        ({"channel": "fax"}, 422, "There is no channel 'fax'. None is set up"),
        ({"answer_within": 3}, 422, "at least 60 seconds"),
        ({"answer_within": -1}, 422, "answer_within"),
    ],
)
async def test_a_wrong_setting_is_answered_with_what_is_wrong(
    served: Served, body: dict[str, Any], status: int, why: str
) -> None:
    served.world.script("ada")
    _, team = await served.ask("POST", "/teams", {"goal": "Watch", "start": False})
    got, problem = await served.ask("PATCH", f"/teams/{team['id']}", body)
    assert (got, why in str(problem)) == (status, True)
