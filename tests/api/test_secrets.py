"""Secrets that a person marks: kept by name, and never shown, in any language."""

import logging

import pytest

from agiraph.testing import call, says
from tests.api.serving import TOKEN, Served

PASSWORD = "我家的猫叫小黑不叫小白"
"""A password that no pattern recognises."""
KEPT = "keys.json"


async def places_with(served: Served, value: str) -> list[str]:
    """Return the files of the home that hold a text, as it is or as JSON writes it."""
    forms = (value.encode(), value.encode("unicode-escape"), value.encode("utf-16-le"))
    home = served.world.path
    files = [path for path in home.rglob("*") if path.is_file()]
    return [
        str(path.relative_to(home))
        for path in files
        if any(form in path.read_bytes() for form in forms)
    ]


async def test_a_password_in_chinese_that_was_marked_appears_nowhere(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ada = served.world.script(
        "ada",
        says(f"好的 {PASSWORD}", call("start_work", task=f"登录 {PASSWORD}")),
        says(call("remember", about="work", content=f"银行的密码是 {PASSWORD}")),
        says(call("finish", summary=f"密码是 {PASSWORD}")),
    )
    founded = await served.world.found("Log in", start=False)
    agent = f"/agents/{founded.coordinator.id}"
    assert (await served.ask("PUT", "/secrets/bank", {"value": PASSWORD}))[0] == 204
    sent = await served.ask("POST", f"{agent}/send", {"message": f"请用密码 {PASSWORD} 登录"})
    everyone = f"/teams/{founded.team.id}/broadcast"
    told = await served.ask("POST", everyone, {"message": f"密码 {PASSWORD}"})
    assert (sent[1]["text"], told[1][0]["text"]) == ("请用密码 [hidden] 登录", "密码 [hidden]")
    await served.world.settle()
    _, said = await served.ask("GET", f"{agent}/conversation")
    assert said[0]["text"] == "请用密码 [hidden] 登录"
    _, events = await served.ask("GET", f"/teams/{founded.team.id}/events?limit=500")
    _, inbox = await served.ask("GET", "/inbox")
    asked = [turn.text for request in ada.requests for turn in request.turns]
    for shown in (
        sent,
        told,
        said,
        events,
        inbox,
        asked,
        [r.system for r in ada.requests],
        caplog.text,
    ):
        assert PASSWORD not in str(shown)
    await served.world.stop()
    assert await places_with(served, PASSWORD) == [KEPT]
    assert (served.world.path / KEPT).stat().st_mode & 0o777 == 0o600
    await served.world.start()


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("bank", "short", "A secret has at least 8 characters"),
        ("bank", "00000000", "A secret has at least 8 characters"),
        ("my bank", PASSWORD, "A secret's name is made of letters"),
    ],
)
async def test_what_cannot_be_hidden_is_refused_without_showing_it(
    served: Served, name: str, value: str, sentence: str
) -> None:
    status, problem = await served.ask("PUT", f"/secrets/{name}", {"value": value})
    assert status == 422
    assert problem["detail"].startswith(sentence)
    status, problem = await served.ask("PUT", "/secrets/bank", {"value": [PASSWORD]})
    assert (status, PASSWORD in str(problem)) == (422, False)


async def test_a_reader_may_enter_no_secret(served: Served) -> None:
    issued = await served.ask("POST", "/tokens", {"name": "r", "scope": "read"})
    bearer = {"Authorization": f"Bearer {issued[1]['secret']}"}
    assert TOKEN not in str(bearer)
    assert (await served.ask("PUT", "/secrets/bank", {"value": PASSWORD}, **bearer))[0] == 403
