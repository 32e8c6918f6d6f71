"""docs/mcp.md: its server, its commands and its settings work as they are written there."""

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from agiraph.features.mcp import pins
from agiraph.features.mcp.settings import servers
from agiraph.testing import World, call
from tests.cli.shell import Shell
from tests.tools.tool_calls import run_calls

pytestmark = pytest.mark.slow
TEXT = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text()


def block(kind: str) -> str:
    """Return the first block of this kind."""
    found = re.search(rf"^```{kind}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


async def test_the_server_of_the_document_is_added_and_used_by_a_team(tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text(block("python"))
    agiraph = Shell(tmp_path / "home")
    for line in block("sh").splitlines():
        words = shlex.split(line.replace("/path/to", str(tmp_path)))
        words = [sys.executable if word == "python3" else word for word in words]
        ended = await agiraph(*words[1:])
        assert (ended.code, ended.err) == (0, ""), line
        assert "forecast" in ended.out or "weather" in ended.out
    settings = tomllib.loads((tmp_path / "home" / "agiraph.toml").read_text())
    found = servers(tmp_path / "home" / "agiraph.toml", settings["mcp"], [], {})
    async with World(tmp_path / "home", features={"mcp": found}, easy_endings=True) as world:
        given = {"name": "mcp__weather__forecast", "arguments": {"city": "Graz"}}
        _, [answer] = await run_calls(world, call("call_tool", **given))
        known = pins.load(world.runtime.home.folder, "weather")
    assert "Graz: sunny, 21 °C" in answer.text
    assert known is not None
    assert known.is_seen


def test_the_settings_and_the_file_of_the_document_are_valid(tmp_path: Path) -> None:
    written = tomllib.loads(block("toml"))
    secrets = dict.fromkeys(written["secrets"], "x")
    found = servers(tmp_path / "agiraph.toml", written["mcp"], [], secrets)
    assert {name: one.fault for name, one in found.items()} == {"weather": "", "issues": ""}
    (tmp_path / ".mcp.json").write_text(block("json"))
    json.loads(block("json"))
    assert servers(tmp_path / "agiraph.toml", {}, [], {})["agiraph"].command == (
        "agiraph",
        "mcp",
        "serve",
    )
