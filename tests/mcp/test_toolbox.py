"""Which tools of MCP servers an agent gets: by role, by its own list, and never in sight."""

from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.agents import Agent, Team
from agiraph.core.domain.ids import TeamId
from agiraph.core.runtime.parts import OfferedTools
from agiraph.core.tools.toolsets import Toolset
from agiraph.features.mcp import pins
from agiraph.features.mcp.pins import PinnedTool, Pins
from agiraph.features.mcp.toolbox import MOST_CHARACTERS, McpTools, tool_name
from agiraph.testing import ManualClock
from tests.mcp.kit import opened, rude

TEAM = Team(id=TeamId("team_1"), name="alpha", goal="Do it", created_at=ManualClock().now())
SCHEMA = {"type": "object", "properties": {}}


def agent(role: str, *tools: str) -> Agent:
    fields: Any = {"id": "agent_1", "team_id": "team_1", "name": "ada", "model": "demo"}
    return Agent(role=role, created_at=ManualClock().now(), tools=tools, **fields)


async def given(path: Path, wanted: Agent, **settings: Any) -> Toolset:
    """Return the tools that an agent gets from a server with three tools."""
    named = ("read", "write", "send it!")
    known = {one: PinnedTool.of(one, "Words.", SCHEMA, says_it_reads=False) for one in named}
    async with opened(path, rude(**settings)) as servers:
        pins.save(servers._home.folder, "rude", Pins(tools=known))
        tools = OfferedTools(sources=(McpTools(servers),))
        first, again = await tools.of_team(TEAM), await tools.of_team(TEAM)
        assert all(one is other for one, other in zip(first, again, strict=True))
        return tools.toolset(wanted, first, is_lean=False)


def served(tools: Toolset) -> list[str]:
    assert [spec.name for spec in tools.shown if "mcp__rude__" in spec.name] == []
    return [name for name in tools.tools if name.startswith("mcp__")]


ALL = ["mcp__rude", "mcp__rude__read", "mcp__rude__send_it__1e52c219", "mcp__rude__write"]


@pytest.mark.parametrize(
    ("wanted", "settings", "found"),
    [
        (agent("coordinator"), {}, ALL),
        (agent("worker"), {"tools": ("read",)}, ["mcp__rude", "mcp__rude__read"]),
        (agent("worker"), {"roles": {"coordinator": ("*",)}}, []),
        (agent("worker"), {"teams": ("beta",)}, []),
        (agent("poet", "read_file"), {}, []),
        (agent("poet", "mcp__rude__read"), {}, ["mcp__rude", "mcp__rude__read"]),
        (agent("poet", "mcp__rude"), {}, ALL),
        (agent("poet", "mcp__rude"), {"roles": {"poet": ("write",)}}, [ALL[0], ALL[3]]),
    ],
)
async def test_an_agent_gets_the_tools_of_its_role_and_list(
    tmp_path: Path, wanted: Agent, settings: dict[str, Any], found: list[str]
) -> None:
    tools = await given(tmp_path, wanted, **settings)
    assert served(tools) == found
    assert [name for name in tools.listed if "mcp__" in name] == (
        ["mcp__rude"] if found and not wanted.tools else []
    )


def test_a_long_or_odd_name_fits_what_vendors_take() -> None:
    long = [tool_name("rude", f"{'x' * 80}{end}") for end in "ab"]
    assert [len(name) for name in long] == [MOST_CHARACTERS] * 2
    assert long[0] != long[1]
    odd = [tool_name("rude", name) for name in ("a/b c", "a.b.c", "a_b_c")]
    assert (odd[0], odd[2]) == ("mcp__rude__a_b_c_0af99a60", "mcp__rude__a_b_c")
    assert len(set(odd)) == 3
