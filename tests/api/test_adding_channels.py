"""Channels added over HTTP: shown first, tried on consent, used at once, and never left half."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.home.named_secrets import NamedSecrets, SecretSource
from agiraph.testing import ManualClock
from tests.api.serving import Served, serving
from tests.runtime.bot_api import TOKEN, BotApi
from tests.runtime.receivers import WebhookServer
from tests.runtime.test_outbox import idle_team, send_to_person, wait_for_status

SECRETS = NamedSecrets(
    sources={name: SecretSource(kind="env", place=name) for name in ("bot", "wrong", "signing")},
    environ={"bot": TOKEN, "wrong": f"{TOKEN}x", "signing": "a long secret 123"},
)
ADA = 7


def settings(served: Served) -> dict[str, Any]:
    path = served.world.path / "agiraph.toml"
    return tomllib.loads(path.read_text()) if path.exists() else {}


async def added(served: Served, draft: dict[str, Any]) -> tuple[int, Any]:
    """Add a channel as a person does: look at it, then consent to what was shown."""
    _, shown = await served.ask("POST", "/channels/draft", draft)
    return await served.ask("POST", "/channels", draft | {"sha256": shown["sha256"]})


async def test_a_webhook_is_shown_tried_used_and_removed_while_the_server_runs(
    tmp_path: Path, database_url: str
) -> None:
    web = WebhookServer()
    async with (
        web.open(),
        serving(tmp_path / "home", database_url=database_url, secrets=SECRETS) as served,
    ):
        draft = {"name": "hook", "type": "webhook", "url": web.url, "secret_secret": "signing"}
        draft |= {"kinds": ["report", "briefing"]}
        status, shown = await served.ask("POST", "/channels/draft", draft)
        assert (status, shown["description"], shown["secrets"], shown["kinds"]) == (
            200,
            f"webhook at 127.0.0.1:{web.port} (signed)",
            ["signing"],
            ["briefing", "report"],
        )
        assert (web.posts, settings(served)) == ([], {})
        other = draft | {"url": f"{web.url}/other", "sha256": shown["sha256"]}
        assert (await served.ask("POST", "/channels", other))[0] == 409
        status, listed = await served.ask("POST", "/channels", draft | {"sha256": shown["sha256"]})
        assert (status, [(one["name"], one["can_remove"]) for one in listed]) == (
            201,
            [("hook", True)],
        )
        assert [post.body["text"] for post in web.posts] == [
            "This is a test message of agiraph. Messages for you come here."
        ]
        assert "agiraph-signature" in web.posts[0].headers
        table = draft.copy()
        assert settings(served)["channels"] == {table.pop("name"): table}

        founded = await idle_team(served.world)
        message = await send_to_person(served.world, founded, "Rates rose. By 1 %.")
        await wait_for_status(served.world, message, "sent")
        assert web.posts[1].body["text"] == "Rates rose. By 1 %."

        assert (await served.ask("POST", "/channels/hook/test"))[0] == 204
        assert len(web.posts) == 3
        assert (await served.ask("DELETE", "/channels/hook"))[0] == 204
        assert (settings(served), await served.ask("GET", "/channels")) == ({}, (200, []))
        await send_to_person(served.world, founded, "Rates fell.")
        await served.world.settle()
        assert len(web.posts) == 3
        assert (await served.ask("DELETE", "/channels/hook"))[0] == 404


async def test_a_bot_is_asked_for_its_name_and_hears_whoever_is_paired(
    tmp_path: Path, database_url: str
) -> None:
    clock = ManualClock()
    async with (
        BotApi(now=clock.now()).open() as bot,
        serving(tmp_path / "home", database_url=database_url, secrets=SECRETS) as served,
    ):
        draft = {"name": "phone", "type": "telegram", "token_secret": "bot", "api_url": bot.url}
        status, [listed] = await added(served, draft)
        assert (status, listed["is_two_way"], listed["address"], bot.calls[0]) == (
            201,
            True,
            None,
            "getMe",
        )
        assert TOKEN not in (served.world.path / "agiraph.toml").read_text()
        _, made = await served.ask("POST", "/channels/phone/pair")
        await bot.write(ADA, f"/start {made['code']}")
        await bot.sent(1)
        assert (await served.ask("POST", "/channels/phone/test"))[0] == 204
        [_, test] = await bot.sent(2)
        assert "This is a test message" in test["text"]
        assert (await served.ask("DELETE", "/channels/phone"))[0] == 204
        assert (await served.ask("GET", "/channels"))[1] == []


@pytest.mark.parametrize(
    ("draft", "says_why"),
    [
        ({"name": "No name", "type": "terminal"}, "cannot name a channel"),
        ({"type": "pigeon"}, "is not one of terminal, webhook, smtp, telegram"),
        ({"type": "webhook"}, "needs either url or url_env."),
        ({"type": "webhook", "url": "https://u:p@example.com"}, "url contains a password"),
        ({"type": "telegram", "token_secret": "nobody_has"}, "no secret 'nobody_has'"),
        ({"type": "own:fax"}, "No enabled file in channels/"),
    ],
)
async def test_a_channel_that_cannot_be_is_refused_with_the_reason(
    tmp_path: Path, draft: dict[str, Any], says_why: str
) -> None:
    async with serving(tmp_path / "home", secrets=SECRETS) as served:
        status, said = await served.ask("POST", "/channels/draft", {"name": "mine"} | draft)
        assert (status, says_why in said["detail"]) == (422, True), said
        assert str(served.world.path) not in said["detail"]


async def test_a_channel_that_does_not_work_leaves_nothing(tmp_path: Path) -> None:
    web = WebhookServer(behaviours=["fail"])
    async with (
        web.open(),
        BotApi(now=ManualClock().now()).open() as bot,
        serving(tmp_path / "home", secrets=SECRETS) as served,
    ):
        status, said = await added(served, {"name": "hook", "type": "webhook", "url": web.url})
        assert (status, "The channel 'hook' does not work: " in said["detail"]) == (422, True)
        wrong = {"name": "phone", "type": "telegram", "token_secret": "wrong", "api_url": bot.url}
        status, said = await added(served, wrong)
        assert (status, "Unauthorized" in said["detail"]) == (422, True)
        assert (settings(served), (await served.ask("GET", "/channels"))[1]) == ({}, [])


async def test_nobody_but_the_owner_in_this_site_adds_tries_or_removes(tmp_path: Path) -> None:
    async with serving(tmp_path / "home") as served:
        log = {"name": "log", "type": "terminal"}
        requests = (
            ("POST", "/channels/draft", log),
            ("POST", "/channels", log | {"sha256": "0" * 64}),
            ("POST", "/channels/log/test", None),
            ("DELETE", "/channels/log", None),
        )
        for scope in ("read", "talk", "operate"):
            _, token = await served.ask("POST", "/tokens", {"name": scope, "scope": scope})
            headers = {"Authorization": f"Bearer {token['secret']}"}
            asked = [(await served.ask(*one, **headers))[0] for one in requests]
            assert (scope, asked) == (scope, [403] * 4)
        evil = {"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site"}
        assert [(await served.ask(*one, **evil))[0] for one in requests] == [403] * 4
        assert settings(served) == {}
