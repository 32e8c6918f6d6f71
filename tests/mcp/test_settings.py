"""MCP settings: agiraph.toml, `.mcp.json` files as they are, and secrets by name alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from agiraph import config
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.home.named_secrets import NamedSecrets, SecretSource
from agiraph.features.mcp.settings import McpServer, expanded, servers, servers_of
from tests.wording import Wording, refusals

EVERYTHING: dict[str, Any] = {
    "files": {
        "command": ["npx", "-y", "server"],
        "env": {"TOKEN": "${GITHUB}"},
        "tools": ["read_*"],
        "roles": {"researcher": ["read_file"]},
        "effects": {"read_*": "reads"},
        "teams": ["alpha"],
        "folders": ["~/notes:rw"],
        "timeout_s": 5,
    },
    "web": {"url": "https://mcp.example/mcp", "headers": {"Authorization": "Bearer ${GITHUB}"}},
}


def read(home: Path, written: Any = None, files: Any = (), **secrets: str) -> dict[str, McpServer]:
    """Return the servers, with the values of the declared secrets."""
    found = servers(home / "agiraph.toml", written or {}, list(files), secrets)
    places = {name: SecretSource(kind="env", place=name) for name in secrets}
    known = NamedSecrets(sources=places, environ=secrets)
    return {name: expanded(server, known) for name, server in found.items()}


def test_a_table_of_agiraph_toml_is_a_server(tmp_path: Path) -> None:
    found = read(tmp_path, EVERYTHING, GITHUB="ghp_12345678")
    files, web = found["files"], found["web"]
    assert (files.command, files.env, files.network) == (
        ("npx", "-y", "server"),
        {"TOKEN": "ghp_12345678"},
        "packages",
    )
    assert (web.kind, web.headers) == ("http", {"Authorization": "Bearer ghp_12345678"})
    assert "ghp_12345678" not in f"{found}{files.description}{web.description}"


def test_tools_are_filtered_by_role_and_team_and_sends_unless_a_person_says_otherwise(
    tmp_path: Path,
) -> None:
    files = read(tmp_path, EVERYTHING, GITHUB="ghp_12345678")["files"]
    assert [files.allows("read_file", role) for role in ("researcher", "coordinator")] == [
        True,
        False,
    ]
    assert not files.allows("write_file", "researcher")
    assert [files.reach_of(tool) for tool in ("read_file", "write_file")] == ["reads", "sends"]
    assert files.serves("team_1", "alpha")
    assert not files.serves("team_1", "beta")


def test_a_secret_that_is_not_declared_makes_one_server_unusable(tmp_path: Path) -> None:
    found = read(tmp_path, EVERYTHING | {"plain": {"command": "own"}})
    assert found["files"].fault == (
        "it uses ${GITHUB}, which [secrets] in agiraph.toml does not declare"
    )
    assert found["plain"] == McpServer(
        name="plain", command=("own",), origin=str(tmp_path / "agiraph.toml")
    )


def test_a_file_of_other_clients_loads_as_it_is_and_the_toml_adds_what_is_ours(
    tmp_path: Path,
) -> None:
    (tmp_path / ".mcp.json").write_text(
        json.dumps(
            {
                "mcpServers": {
                    "My Files": {
                        "type": "stdio",
                        "command": "npx",
                        "args": ["-y", "s", "${DIR:-/tmp}"],
                        "env": {},
                        "unknown": {"to": "us"},
                    },
                    "remote": {"type": "http", "url": "https://a.example/mcp"},
                    "old": {"type": "sse", "url": "https://a.example/sse"},
                    "wrong": {"command": 7},
                }
            }
        )
    )
    named = tmp_path / "other.json"
    named.write_text('{"mcpServers": {"more": {"command": "more"}}}')
    found = read(tmp_path, {"remote": {"effects": {"*": "reads"}}}, [str(named)])
    mine = found.pop("my-files")
    assert (mine.name, mine.command, mine.network) == (
        "my-files",
        ("npx", "-y", "s", "/tmp"),
        "packages",
    )
    assert {name: one.kind for name, one in found.items()} == {
        "more": "stdio",
        "old": "sse",
        "remote": "http",
        "wrong": "stdio",
    }
    assert found["remote"].reach_of("anything") == "reads"
    assert found["wrong"].fault.startswith("command in ")


WRONG_TABLES = [
    {"x": {"command": []}},
    {"x": {"commands": ["a"]}},
    {"X Y": {"command": "a"}},
    {"a__b": {"command": "a"}},
    {"x": {"tools": ["a"]}},
    {"x": {"command": "a", "effects": {"t": "nothing"}}},
    ["a"],
]


def test_a_wrong_table_is_refused_with_what_to_write(tmp_path: Path, wording: Wording) -> None:
    wording(refusals(WRONG_TABLES, lambda written: read(tmp_path, written), Misconfigured))


def test_a_file_in_a_folder_that_agents_may_write_to_is_refused(tmp_path: Path) -> None:
    app = tmp_path / "app"
    for folder in (app, tmp_path / "teams" / "team_1"):
        folder.mkdir(parents=True)
        (folder / ".mcp.json").write_text('{"mcpServers": {}}')
    (tmp_path / "link.json").symlink_to(app / ".mcp.json")

    def load(file: Path, access: str = "rw") -> object:
        settings = f'mcp_files = ["{file}"]\n[folders]\napp = "{app}:{access}"\n'
        (tmp_path / "agiraph.toml").write_text(settings)
        return servers_of(config.load({"AGIRAPH_HOME": str(tmp_path)}))

    for file in (
        app / ".mcp.json",
        tmp_path / "link.json",
        tmp_path / "teams" / "team_1" / ".mcp.json",
    ):
        with pytest.raises(Misconfigured, match=r"agents may write there.* Move the file"):
            load(file)
    assert load(app / ".mcp.json", "ro") == {}


def test_a_file_that_is_no_list_of_servers_is_named(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text("[]")
    with pytest.raises(Misconfigured, match=r"\.mcp\.json is not a list of MCP servers"):
        read(tmp_path)
