"""`agiraph doctor` names the MCP servers that cannot be used, and what a person has to do."""

from pathlib import Path

from agiraph import config
from agiraph.core.home.layout import Home
from agiraph.doctor.checkup import Checkup
from agiraph.features.backup.commands import is_setting
from agiraph.features.mcp import commands, pins
from agiraph.features.mcp.pins import PinnedTool, Pins

SETTINGS = """
[mcp.broken]
url = "https://a.example/mcp"
headers = { Authorization = "Bearer ${nowhere}" }
[mcp.changed]
command = ["changed"]
[mcp.ready]
command = ["ready"]
[mcp.unknown]
command = ["unknown"]
[mcp.damaged]
command = ["damaged"]
"""


def tool(name: str, description: str) -> PinnedTool:
    return PinnedTool.of(name, description, {"type": "object"}, says_it_reads=False)


async def test_each_server_has_a_line_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "agiraph.toml").write_text(SETTINGS)
    home = Home.open(tmp_path)
    known = Pins(tools={"a": tool("a", "First.")})
    pins.save(home.folder, "ready", known)
    pins.save(home.folder, "changed", known.compared([tool("a", "Second.")]))
    home.folder.write("mcp/damaged.json", b"{}")
    checkup = Checkup(config.load({"AGIRAPH_HOME": str(tmp_path)}), online=False)
    await commands.check(checkup)
    assert [(f.name, f.verdict, f.what) for f in checkup.findings] == [
        (
            "mcp broken",
            "problem",
            f"{tmp_path / 'agiraph.toml'}: cannot be used: it uses ${{nowhere}}, which [secrets] "
            "in agiraph.toml does not declare.",
        ),
        (
            "mcp changed",
            "note",
            "Changed: 'a'. They are off until you have looked at them: on the page Operations, or "
            "with agiraph mcp confirm changed",
        ),
        (
            "mcp damaged",
            "problem",
            "mcp/damaged.json in the home is damaged. Remove it, and accept the tools again with "
            "`agiraph mcp confirm damaged`.",
        ),
        ("mcp ready", "fine", "It is started when it is used; 1 tool."),
        ("mcp unknown", "note", "Its tools are not known yet: agiraph mcp test unknown"),
    ]


def test_servers_and_accepted_tools_of_a_backup_are_settings_that_are_put_aside() -> None:
    names = (".mcp.json", "mcp/files.json", "mcp/files/notes.txt", "teams/t/.mcp.json")
    assert [name for name in names if is_setting(name)] == [".mcp.json", "mcp/files.json"]
