"""docs/skills.md: what its reader writes by following it works, to the letter."""

from agiraph import World, call
from tests.cli.shell import Shell
from tests.docs.blocks import markdown_file
from tests.tools.tool_calls import run_calls


async def test_a_skill_is_written_enabled_and_followed(agiraph: Shell) -> None:
    folder = agiraph.home / "skills" / "release-notes"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(markdown_file("skills.md"))
    (folder / "check.py").write_text("print('checked')\n")
    listed = await agiraph("skills")
    assert "skills/release-notes" in listed.out
    assert "off" in listed.out
    ended = await agiraph("skills", "enable", "release-notes")
    assert (ended.code, ended.err) == (0, ""), ended
    async with World(agiraph.home, easy_endings=True) as world:
        _, told = await run_calls(
            world,
            call("use_skill", name="release-notes"),
            call("write_file", path="notes.md", content="# 1.0"),
            call("bash", command="python3 /skills/release-notes/check.py notes.md"),
        )
    assert told[0].text.startswith("# Release notes\n\n1. Group the changes")
    assert told[2].text.endswith("checked")
