"""MCP servers added over HTTP: shown first, started on consent, and never left behind half."""

import asyncio
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.home.named_secrets import NamedSecrets, SecretSource
from agiraph.testing import World, call, says
from tests.api.serving import Served, serving
from tests.mcp.kit import RUDE, behave, pids
from tests.mcp.test_sign_in import browse, protected

pytestmark = pytest.mark.slow
COMMAND = f"{sys.executable} -I -S '{RUDE}'"
SECRETS = NamedSecrets(
    sources={"rude_token": SecretSource(kind="env", place="RUDE")},
    environ={"RUDE": "a long secret 123"},
)
DRAFT: dict[str, Any] = {"name": "rude", "command": COMMAND, "reads": ["echo"]}


def settings(served: Served) -> dict[str, Any]:
    path = served.world.path / "agiraph.toml"
    return tomllib.loads(path.read_text()) if path.exists() else {}


async def added(served: Served, draft: dict[str, Any]) -> tuple[int, Any]:
    """Add a server as a person does: look at it, then consent to what was shown."""
    _, shown = await served.ask("POST", "/mcp-servers/draft", draft)
    return await served.ask("POST", "/mcp-servers", draft | {"sha256": shown["sha256"]})


async def test_a_server_is_shown_added_accepted_used_and_removed_while_the_server_runs(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with serving(home, secrets=SECRETS) as served:
        draft = DRAFT | {"env": {"OWN": "${rude_token}"}}
        status, shown = await served.ask("POST", "/mcp-servers/draft", draft)
        words = (sys.executable, "-I", "-S", str(RUDE))
        assert (status, shown["reached"], shown["secrets"], shown["notes"]) == (
            200,
            [*(f"argument: {word}" for word in words), "variable: OWN=${rude_token}"],
            ["rude_token"],
            ["Its program reaches no network."],
        )
        assert (shown["question"], "This is your consent to start it." in shown["consent"]) == (
            "Start it, and ask for its tools?",
            True,
        )
        assert (pids(home), settings(served), await served.ask("GET", "/mcp-servers")) == (
            [],
            {},
            (200, []),
        )

        changed = draft | {"command": f"{COMMAND} more", "sha256": shown["sha256"]}
        status, problem = await served.ask("POST", "/mcp-servers", changed)
        assert (status, "look again" in problem["detail"], pids(home)) == (409, True, [])

        status, made = await served.ask("POST", "/mcp-servers", draft | {"sha256": shown["sha256"]})
        assert (status, made["state"], made["tools"], made["question"]) == (
            201,
            "changed",
            [],
            "Accept this?",
        )
        assert settings(served)["mcp"]["rude"] == {
            "command": list(words),
            "env": {"OWN": "${rude_token}"},
            "effects": {"echo": "reads"},
        }
        assert (await served.ask("POST", "/mcp-servers", draft | {"sha256": "0" * 64}))[0] == 409
        body = {"sha256": made["sha256"]}
        _, ready = await served.ask("POST", "/mcp-servers/rude/confirm", body)
        assert (ready["state"], "echo" in ready["tools"], ready["can_remove"]) == ("on", True, True)

        assert "hello" in await echoed(served.world)
        [listed] = (await served.ask("GET", "/mcp-servers"))[1]
        assert (listed["is_running"], listed["problem"]) == (True, "")

        assert (await served.ask("DELETE", "/mcp-servers/rude"))[0] == 204
        assert (settings(served), await served.ask("GET", "/mcp-servers")) == ({}, (200, []))
        assert not (home / "mcp" / "rude.json").exists()
        assert (await served.ask("DELETE", "/mcp-servers/rude"))[0] == 404


async def echoed(world: World) -> str:
    """Return what an agent hears of the tool `echo` of the server `rude`."""
    say = call("call_tool", name="mcp__rude__echo", arguments={"text": "hello"})
    world.script("ada", says(say), says(call("finish", summary="done")))
    founded = await world.found("Use the tools", model="scripted/ada")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    return "\n".join(turn.text for turn in await world.turns(goal.id) if turn.role == "tool")


async def test_what_was_not_accepted_is_off_and_what_changed_is_asked_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with serving(home) as served:
        _, made = await added(served, DRAFT)
        assert "hello" not in await echoed(served.world)
        await served.ask("POST", "/mcp-servers/rude/confirm", {"sha256": made["sha256"]})
        behave(home, descriptions={"echo": "Other words."})
        await served.ask("DELETE", "/mcp-servers/rude")
        _, again = await added(served, DRAFT)
        assert (again["state"], again["tools"]) == ("changed", [])
        [echo] = [one for one in again["shown_tools"] if one["name"] == "echo"]
        assert (echo["state"], echo["description"]) == ("new", "Other words.")


@pytest.mark.parametrize(
    ("draft", "says_why"),
    [
        ({"command": "bash -c 'echo no key >&2; exit 4'"}, "It ended (exit code 4). no key"),
        ({"url": "http://127.0.0.1:9/mcp"}, "could not be reached"),
    ],
    ids=["program", "address"],
)
async def test_a_server_that_fails_leaves_nothing(
    tmp_path: Path, draft: dict[str, Any], says_why: str
) -> None:
    async with serving(tmp_path / "home") as served:
        status, problem = await added(served, {"name": "broken"} | draft)
        assert (status, says_why in problem["detail"]) == (422, True)
        assert (settings(served), (await served.ask("GET", "/mcp-servers"))[1]) == ({}, [])
        assert not (tmp_path / "home" / "mcp" / "broken.json").exists()


@pytest.mark.parametrize(
    ("draft", "says_why"),
    [
        ({"name": "Rude one"}, "cannot name a server"),
        ({"command": ""}, "either a command or an address"),
        ({"command": "echo 'x"}, "without its other half"),
        ({"command": "", "url": "example.com/mcp"}, "begins with https://"),
        ({"env": {"TOKEN": "sk-proj-0123456789abcdef01"}}, "may be a secret: variable TOKEN"),
        ({"env": {"TOKEN": "${nobody_has}"}}, "${nobody_has}"),
        ({"network": "hosts"}, None),
    ],
)
async def test_a_draft_that_cannot_be_is_refused_with_the_reason(
    tmp_path: Path, draft: dict[str, Any], says_why: str | None
) -> None:
    async with serving(tmp_path / "home") as served:
        status, said = await served.ask("POST", "/mcp-servers/draft", DRAFT | draft)
        if says_why is None:
            assert status == 200
        else:
            assert (status, says_why in said["detail"]) == (422, True), said
            assert "sk-proj" not in said["detail"]


async def test_nobody_but_the_owner_in_this_site_adds_removes_or_signs_in(tmp_path: Path) -> None:
    async with serving(tmp_path / "home") as served:
        _, made = await added(served, DRAFT)
        new = DRAFT | {"name": "other", "sha256": "0" * 64}
        requests = (
            ("POST", "/mcp-servers/draft", DRAFT),
            ("POST", "/mcp-servers", new),
            ("DELETE", "/mcp-servers/rude", None),
            ("POST", "/mcp-servers/rude/sign-in", None),
        )
        for scope in ("read", "talk", "operate"):
            _, token = await served.ask("POST", "/tokens", {"name": scope, "scope": scope})
            headers = {"Authorization": f"Bearer {token['secret']}"}
            asked = [(await served.ask(*one, **headers))[0] for one in requests]
            assert (scope, asked) == (scope, [403] * 4)
        evil = {"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site"}
        assert [(await served.ask(*one, **evil))[0] for one in requests] == [403] * 4
        _, listed = await served.ask("GET", "/mcp-servers")
        assert [one["name"] for one in listed] == ["rude"]
        _, audit = await served.ask("GET", "/audit?path=/api/mcp-servers")
        assert {"POST", "DELETE"} <= {entry["method"] for entry in audit}
        assert made["state"] == "changed"


async def test_a_server_that_wants_a_sign_in_is_kept_and_used_after_it(tmp_path: Path) -> None:
    async with protected() as (url, _), serving(tmp_path / "home") as served:
        status, made = await added(served, {"name": "safe", "url": url})
        assert (status, made["state"], made["needs_sign_in"]) == (201, "unknown", True)
        _, begun = await served.ask("POST", "/mcp-servers/safe/sign-in")
        await browse(begun["url"])
        async with asyncio.timeout(30):
            while (found := (await served.ask("GET", "/mcp-servers/safe"))[1])["needs_sign_in"]:
                await served.ask("GET", "/healthz")
        body = {"sha256": found["sha256"]}
        _, ready = await served.ask("POST", "/mcp-servers/safe/confirm", body)
        assert (ready["state"], ready["tools"]) == ("on", ["whoami"])
        assert (await served.ask("DELETE", "/mcp-servers/safe"))[0] == 204
        assert "safe" not in (tmp_path / "home" / "mcp-tokens.json").read_text()
