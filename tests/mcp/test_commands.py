"""`agiraph mcp`: add, list, test, confirm and remove; nothing runs before a person has added it."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.mcp.kit import RUDE, behave, pids

pytestmark = pytest.mark.slow
COMMAND = (sys.executable, "-I", "-S", str(RUDE))


async def test_a_server_is_added_shown_changed_confirmed_and_removed(tmp_path: Path) -> None:
    agiraph = Shell(tmp_path / "home")
    (tmp_path / "home").mkdir()
    settings = tmp_path / "home" / "agiraph.toml"
    settings.write_text('model = "demo"\n')

    added = await agiraph("mcp", "add", "rude", "--reads", "echo", "--", *COMMAND)
    assert (added.code, added.err) == (0, "")
    assert "  echo (reads; it says that it only reads)\n    Say it again.\n" in added.out
    assert "  hang (sends)\n" in added.out
    again = await agiraph("mcp", "add", "rude", "--", "true")
    assert (again.code, "already" in again.err) == (1, True)

    listed = json.loads((await agiraph("mcp", "list", "--json")).out)
    assert [(one["name"], one["state"], one["tools"]["echo"]) for one in listed] == [
        ("rude", "ready", "reads")
    ]

    behave(tmp_path / "home", descriptions={"echo": "Other words.\u202e"})
    tested = await agiraph("mcp", "test", "rude")
    assert (tested.code, "Changed: 'echo'." in tested.out) == (1, True)
    shown = await agiraph.piped(b"n\n", "mcp", "confirm", "rude")
    assert "  - Say it again.\n" in shown.out
    assert "  + Other words.⟨U+202E⟩\n" in shown.out
    assert "Nothing was accepted." in shown.out
    confirmed = await agiraph("mcp", "confirm", "rude", "--yes")
    assert (confirmed.code, "Accepted." in confirmed.out) == (0, True)
    assert "ready" in (await agiraph("mcp", "list")).out

    removed = await agiraph("mcp", "remove", "rude")
    assert removed.code == 0
    assert settings.read_text().strip() == 'model = "demo"'
    assert not (tmp_path / "home" / "mcp" / "rude.json").exists()


async def test_a_server_of_a_file_is_shown_and_confirmed_before_it_runs(tmp_path: Path) -> None:
    agiraph = Shell(tmp_path / "home")
    (tmp_path / "home").mkdir()
    server = {"command": COMMAND[0], "args": [*COMMAND[1:]], "env": {"OWN": "1"}}
    file = tmp_path / "home" / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"rude": server}}))
    tested = await agiraph("mcp", "test", "rude")
    assert (tested.code, "agiraph mcp confirm rude" in tested.err) == (1, True)
    refused = await agiraph.piped(b"n\n", "mcp", "confirm", "rude")
    assert f"  argument: {RUDE}\n  variable: OWN=1\n" in refused.out
    assert pids(tmp_path / "home") == []
    confirmed = await agiraph("mcp", "confirm", "rude", "--yes")
    assert (confirmed.code, "echo: new\n  + Say it again.\n" in confirmed.out) == (0, True)
    assert "ready" in (await agiraph("mcp", "list")).out
    file.write_text(json.dumps({"mcpServers": {"rude": server | {"env": {"OWN": "2"}}}}))
    assert "needs review" in (await agiraph("mcp", "list")).out


async def test_adding_a_server_accepts_what_was_shown_and_no_tool_that_came_after(
    tmp_path: Path,
) -> None:
    agiraph = Shell(tmp_path / "home")
    long = "Say it again. Then\nread this, too."
    behave(
        tmp_path / "home",
        descriptions={"echo": long},
        later={"inputSchema": {"type": "object"}},
    )
    added = await agiraph("mcp", "add", "rude", "--", *COMMAND)
    assert (added.code, "    Say it again. Then\n    read this, too.\n" in added.out) == (0, True)
    [listed] = json.loads((await agiraph("mcp", "list", "--json")).out)
    assert (listed["to_confirm"], "late" in listed["tools"]) == (["late"], False)


async def test_a_server_that_does_not_start_is_named_with_what_it_said(tmp_path: Path) -> None:
    agiraph = Shell(tmp_path / "home")
    ended = await agiraph("mcp", "add", "broken", "--", "bash", "-c", "echo no key >&2; exit 4")
    assert ended.code == 1
    assert "It ended (exit code 4). no key\n" in ended.err
    assert (
        "agiraph: The MCP server 'broken' could not be started. It is in agiraph.toml" in ended.err
    )
    assert "`agiraph mcp remove broken`.\n" in ended.err
    away = await agiraph("mcp", "add", "away", "http://127.0.0.1:9/mcp")
    assert "agiraph: The MCP server 'away' could not be reached. It is" in away.err
    assert (await agiraph("mcp", "remove", "away")).out == "Removed.\n"


async def test_nothing_of_a_given_folder_is_started_or_read_as_a_server(tmp_path: Path) -> None:
    agiraph = Shell(tmp_path / "home")
    given = tmp_path / "project"
    given.mkdir()
    mark = tmp_path / "planted"
    server = {"command": "touch", "args": [str(mark)]}
    (given / ".mcp.json").write_text(json.dumps({"mcpServers": {"evil": server}}))
    ended = await agiraph("run", "--folder", f"{given}:rw", "Show it")
    assert ended.code == 0
    assert "There are no MCP servers." in (await agiraph("mcp", "list")).out
    assert (mark.exists(), pids(tmp_path / "home", "evil")) == (False, [])
