"""MCP servers over HTTP: every client sees how they stand, the owner alone confirms them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agiraph.features.mcp.settings import McpServer
from agiraph.features.mcp.toolbox import McpTools
from tests.api.serving import serving
from tests.mcp.kit import behave, pids, rude

pytestmark = pytest.mark.slow
NAME = "/mcp-servers/rude"


def of_a_file(**more: Any) -> McpServer:
    return replace(rude(**more), is_from_file=True, origin="/home/me/.mcp.json")


async def test_the_owner_confirms_how_a_server_is_reached_and_then_its_tools(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    server = of_a_file(env={"OWN": "a\u202eb"}, tools=("echo", "late"), effects={"echo": "reads"})
    async with serving(home, features={"mcp": {"rude": server}}) as served:
        status, [listed] = await served.ask("GET", "/mcp-servers")
        assert (status, listed["state"], listed["summary"], listed["tools"]) == (
            200,
            "off",
            "It is new in /home/me/.mcp.json and has not been confirmed.",
            [],
        )
        _, shown = await served.ask("GET", NAME)
        assert shown["reached"][-1] == "variable: OWN=a⟨U+202E⟩b"
        status, problem = await served.ask("POST", f"{NAME}/confirm", {"sha256": "0" * 64})
        assert (status, "look again" in problem["detail"], pids(home)) == (409, True, [])
        status, problem = await served.ask("POST", f"{NAME}/ask")
        assert (status, "agiraph mcp confirm rude" in problem["detail"]) == (422, True)

        reached = {"sha256": shown["sha256"]}
        status, asked = await served.ask("POST", f"{NAME}/confirm", reached)
        assert (status, asked["state"], asked["tools"]) == (200, "changed", [])
        assert (await served.ask("POST", f"{NAME}/confirm", reached))[0] == 409
        news = {one["name"]: one for one in asked["shown_tools"]}
        assert (news["echo"]["state"], news["echo"]["touches"], news["hang"]["touches"]) == (
            "new",
            "reads",
            "sends",
        )
        status, ready = await served.ask("POST", f"{NAME}/confirm", {"sha256": asked["sha256"]})
        assert (status, ready["state"], ready["summary"], ready["tools"]) == (
            200,
            "on",
            "1 tool",
            ["echo"],
        )

        behave(home, descriptions={"echo": "Other words."}, gone=["hang"])
        await served.world.runtime.part(McpTools).servers.connection("rude").close()
        _, changed = await served.ask("POST", f"{NAME}/ask")
        first, second, *_ = changed["shown_tools"]
        assert (first["name"], first["state"], first["description"]) == (
            "echo",
            "changed",
            "Other words.",
        )
        assert (first["old_description"], second["name"], second["state"]) == (
            "Say it again.",
            "hang",
            "gone",
        )


async def test_a_damaged_file_of_one_server_hides_no_other(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "mcp").mkdir(parents=True)
    (home / "mcp" / "broken.json").write_text("{}")
    servers = {one.name: one for one in (of_a_file(), of_a_file(name="broken"))}
    async with serving(home, features={"mcp": servers}) as served:
        _, listed = await served.ask("GET", "/mcp-servers")
        assert [(one["name"], one["state"]) for one in listed] == [
            ("rude", "off"),
            ("broken", "faulty"),
        ]
        assert "mcp/broken.json in the home is damaged. Remove it" in listed[1]["summary"]
        _, shown = await served.ask("GET", "/mcp-servers/broken")
        body = {"sha256": shown["sha256"]}
        assert (await served.ask("POST", "/mcp-servers/broken/confirm", body))[0] == 422


async def test_a_server_that_fails_is_named_with_what_it_said(tmp_path: Path) -> None:
    server = McpServer(name="broken", command=("bash", "-c", "echo no key >&2; exit 4"))
    async with serving(tmp_path / "home", features={"mcp": {"broken": server}}) as served:
        await served.world.runtime.part(McpTools).servers.close()  # it was asked at the start, too
        status, problem = await served.ask("POST", "/mcp-servers/broken/ask")
        assert (status, (await served.ask("GET", "/mcp-servers/other"))[0]) == (422, 404)
    assert problem["detail"].endswith(
        "could not be started. It said: It ended (exit code 4). no key"
    )


async def test_a_token_that_is_not_the_owners_sees_no_details_and_confirms_nothing(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with serving(home, features={"mcp": {"rude": of_a_file()}}) as served:
        _, shown = await served.ask("GET", NAME)
        for scope in ("read", "talk", "operate"):
            _, made = await served.ask("POST", "/tokens", {"name": scope, "scope": scope})
            token = {"Authorization": f"Bearer {made['secret']}"}
            body = {"sha256": shown["sha256"]}
            asked = [
                (await served.ask("GET", "/mcp-servers", **token))[0],
                (await served.ask("GET", NAME, **token))[0],
                (await served.ask("POST", f"{NAME}/confirm", body, **token))[0],
                (await served.ask("POST", f"{NAME}/ask", **token))[0],
            ]
            assert (scope, asked) == (scope, [200, 403, 403, 403])
    assert pids(home) == []
