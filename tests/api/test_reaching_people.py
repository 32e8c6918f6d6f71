"""Reaching people: absence, quiet hours, channel and time limit over HTTP."""

from agiraph.core.domain.messages import INBOX
from agiraph.core.domain.persons import OWNER
from agiraph.core.store import channels
from tests.api.serving import Served
from tests.wording import Wording


async def test_a_person_says_that_they_are_away_and_back(served: Served) -> None:
    status, me = await served.ask("GET", "/persons/me")
    assert (status, me["id"], me["away_until"], me["channels"]) == (200, OWNER, None, [])
    until = "2030-05-20T09:00:00+02:00"
    status, me = await served.ask("PATCH", "/persons/me", {"away_until": until})
    assert (status, me["away_until"]) == (200, "2030-05-20T07:00:00Z")
    assert (await served.ask("GET", "/persons/me"))[1] == me
    status, me = await served.ask("PATCH", "/persons/me", {"away_until": None})
    assert (status, me["away_until"]) == (200, None)


WRONG_ABSENCES = [
    {"away_until": "2001-01-01T00:00:00Z"},
    {"away_until": "2030-05-20T09:00:00"},
    {"away_until": "tomorrow"},
    {"name": "Zoe"},
    {},
]


async def test_a_wrong_absence_is_answered_with_what_is_wrong(
    served: Served, wording: Wording
) -> None:
    told = [await served.ask("PATCH", "/persons/me", body) for body in WRONG_ABSENCES]
    assert {status for status, _ in told} == {422}
    wording(
        {str(b): problem["detail"] for b, (_, problem) in zip(WRONG_ABSENCES, told, strict=True)}
    )


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


WRONG_SETTINGS = [
    {"quiet_hours": "late"},
    {"quiet_zone": "Mars"},
    {"channel": "fax"},
    {"answer_within": 3},
    {"answer_within": -1},
]


async def test_a_wrong_setting_is_answered_with_what_is_wrong(
    served: Served, wording: Wording
) -> None:
    served.world.script("ada")
    _, team = await served.ask("POST", "/teams", {"goal": "Watch", "start": False})
    told = [await served.ask("PATCH", f"/teams/{team['id']}", body) for body in WRONG_SETTINGS]
    assert {status for status, _ in told} == {422}
    wording(
        {str(b): problem["detail"] for b, (_, problem) in zip(WRONG_SETTINGS, told, strict=True)}
    )
