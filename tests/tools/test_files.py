"""File tools: read, write, edit and list within an agent's scope."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from agiraph import faultpoints
from agiraph.models.base import Request
from agiraph.testing import PowerCut, Says, World, call, says
from tests.tools.tool_calls import ToolAnswer, node_folder, refused, run_calls

MAY_READ = (
    "You may read these: scratch/…, agents/coordinator/…, PLAN.md, MEMORY.md, memory/…, "
    "_spec.md, _refs.json, published/…, nodes/<node>/published/…, nodes/<node>/…, "
    "SOUL.md, GOAL.md."
)
MAY_WRITE = "You may write these: scratch/…, agents/coordinator/…, PLAN.md, MEMORY.md, memory/…."


async def test_files_are_written_read_edited_and_listed(world: World) -> None:
    goal, told = await run_calls(
        world,
        call("list_files"),
        call("write_file", path="a.md", content="Grüße"),
        call("write_file", path="notes/deep/b.md", content=""),
        call("edit_file", path="a.md", old="Grüße", new="Viele Grüße"),
        call("read_file", path="scratch/a.md"),
        call("read_file", path="notes/deep/b.md"),
        call("list_files", path="."),
        call("list_files", path="notes"),
        call("read_file", path="_spec.md"),
        call("write_file", path="agents/coordinator/NOTEBOOK.md", content="Mine."),
        call("write_file", path="PLAN.md", content="First this."),
    )

    assert told == [
        ToolAnswer("(empty)"),
        ToolAnswer("Wrote a.md (7 bytes)."),
        ToolAnswer("Wrote notes/deep/b.md (0 bytes)."),
        ToolAnswer("Edited a.md."),
        ToolAnswer("Viele Grüße"),
        ToolAnswer("(empty)"),
        ToolAnswer("a.md  13 bytes\nnotes/"),
        ToolAnswer("deep/"),
        ToolAnswer("# Get to work on the goal\n\nUse the tools\n"),
        ToolAnswer("Wrote agents/coordinator/NOTEBOOK.md (5 bytes)."),
        ToolAnswer("Wrote PLAN.md (11 bytes)."),
    ]
    assert world.published(goal) == {"a.md": "Viele Grüße", "notes/deep/b.md": ""}


async def test_a_path_out_of_the_folder_is_refused_with_what_to_do_instead(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("canary")
    absolute = str(tmp_path / "secret")
    lay = f"ln -s {absolute} link; ln -s {tmp_path} out; mkfifo pipe; ln a.md twin"
    goal, told = await run_calls(
        world,
        call("write_file", path="a.md", content="Hello."),
        call("bash", command=lay),
        call("read_file", path=absolute),
        call("read_file", path="../../../secret"),
        call("read_file", path="notes/../../_spec.md"),
        call("read_file", path="a\0.md"),
        call("read_file", path="link"),
        call("read_file", path="out/secret"),
        call("write_file", path="out/secret", content="mine"),
        call("list_files", path="out"),
        call("read_file", path="pipe"),
        call("read_file", path="."),
        call("read_file", path="a.md/b"),
        call("read_file", path="b.md"),
        call("list_files", path="a.md"),
        call("list_files", path="nowhere"),
        call("write_file", path="", content="x"),
        call("write_file", path="x" * 256, content="x"),
        call("edit_file", path="link", old="canary", new="mine"),
    )

    up = "goes up with '..'; name the file from its folder down."
    link = "leads through a symbolic link; name the file itself."
    looked = f"It was looked for in 'nodes/{goal.id}/scratch'; list_files shows what there is."
    a_folder = "is a folder; name a file in it, or use list_files."
    a_file = "uses a file as a folder; list_files shows what there is."
    assert told[2:] == [
        refused(f"{absolute!r} is absolute; give a path relative to your own folder."),
        refused(f"'../../../secret' {up}"),
        refused(f"'notes/../../_spec.md' {up}"),
        refused("A path cannot hold a NUL character; leave it out."),
        refused(f"'link' {link}"),
        refused(f"'out/secret' {link}"),
        refused(f"'out/secret' {link}"),
        refused(f"'out' {link}"),
        refused("'pipe' is not a regular file; only regular files can be opened."),
        refused(f"'' {a_folder}"),
        refused(f"'a.md/b' {a_file}"),
        refused(f"There is no file 'b.md'. {looked}"),
        refused(f"'a.md' {a_file}"),
        refused(f"There is no folder 'nowhere'. {looked}"),
        refused(f"'' {a_folder}"),
        refused(f"A name in {'x' * 60!r}… is longer than 255 bytes."),
        refused(f"'link' {link}"),
    ]
    assert (tmp_path / "secret").read_text() == "canary"
    assert (node_folder(world, goal) / "scratch" / "a.md").read_text() == "Hello."


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_files_of_others_are_refused_with_what_is_allowed(world: World) -> None:
    _, told = await run_calls(
        world,
        call("read_file", path="agents/bob/MEMORY.md"),
        call("write_file", path="GOAL.md", content="Another goal"),
        call("write_file", path="_spec.md", content="Another task"),
        call("write_file", path="published/a.md", content="x"),
        call("write_file", path="nodes/node_other/scratch/a.md", content="x"),
    )

    assert told == [
        refused(f"You may not read 'agents/bob/MEMORY.md'. {MAY_READ}"),
        refused(f"You may not write 'GOAL.md'. {MAY_WRITE}"),
        refused(f"You may not write '_spec.md'. {MAY_WRITE}"),
        refused(f"You may not write 'published/a.md'. {MAY_WRITE}"),
        refused(f"You may not write 'nodes/node_other/scratch/a.md'. {MAY_WRITE}"),
    ]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_long_file_is_read_in_pages_that_split_no_character(world: World) -> None:
    text = "".join(f"Zeile {n}: Grüße, 漢字, 🙂\n" for n in range(2000))
    pages: list[str] = []
    offsets = [0]

    def read_on(request: Request) -> Says:
        *_, last = request.transcript.spoken()
        page = last.text
        if found := re.fullmatch(r"(.*)\n… there is more: .*offset=(\d+)\)", page, re.DOTALL):
            pages.append(found[1])
            offsets.append(int(found[2]))
            return says(call("read_file", path="long.txt", offset=offsets[-1]))
        pages.append(page)
        return says(call("finish", summary="read"))

    world.script(
        "ada",
        says(call("write_file", path="long.txt", content=text)),
        says(call("read_file", path="long.txt")),
        *[read_on] * 10,
    )
    await world.found("Read it all")
    await world.settle()

    assert "".join(pages) == text
    assert [later - earlier for earlier, later in pairwise(offsets)] == [
        len(page.encode()) for page in pages[:-1]
    ]
    assert all(len(page.encode()) <= 16 * 1024 for page in pages)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_reading_beyond_the_end_of_a_file_is_answered(world: World) -> None:
    page = "x" * 16 * 1024
    _, told = await run_calls(
        world,
        call("write_file", path="full.txt", content=page),
        call("read_file", path="full.txt"),
        call("read_file", path="full.txt", offset=len(page)),
        call("read_file", path="full.txt", offset=10**12),
        call("read_file", path="full.txt", offset=len(page) - 1),
        call("read_file", path="full.txt", offset=-1),
    )

    usage = "It takes: path, offset (optional)."
    assert told[1:] == [
        ToolAnswer(page),
        ToolAnswer(f"(nothing from byte {len(page)} on)"),
        ToolAnswer("(nothing from byte 1000000000000 on)"),
        ToolAnswer("x"),
        refused(
            "read_file: 'offset' is wrong (Input should be greater than or equal to 0). " + usage
        ),
    ]


async def test_bytes_that_are_not_text_are_replaced(world: World) -> None:
    _, told = await run_calls(
        world,
        call("bash", command=r"printf 'a\0b\377c' > raw; printf '\0\1\377'"),
        call("read_file", path="raw"),
    )

    assert told == [ToolAnswer("[exit code 0]\n�\x01�"), ToolAnswer("a�b�c")]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_an_ambiguous_edit_is_refused_with_the_number_of_matches(world: World) -> None:
    goal, told = await run_calls(
        world,
        call("write_file", path="a.md", content="one two two"),
        call("edit_file", path="a.md", old="three", new="3"),
        call("edit_file", path="a.md", old="two", new="2"),
        call("edit_file", path="a.md", old="", new="x"),
        call("edit_file", path="a.md", old="one two", new="1 two"),
        call("edit_file", path="b.md", old="one", new="1"),
    )

    # The coordinator sees this tool only by name, so the refusal shows its whole form.
    usage = (
        'Its arguments, as a JSON schema: {"properties":{"path":{"description":"In scratch/, or '
        'agents/<you>/…","type":"string"},"old":{"type":"string"},"new":{"type":"string"}},"required":'
        '["path","old","new"],"type":"object"}'
    )
    assert told[1:] == [
        refused(
            "'three' does not stand in a.md, so nothing was changed. Nothing in it is much like "
            "it. Read the file and copy the piece."
        ),
        refused(
            "'two' stands 2 times in a.md, at lines 1, 1, so nothing was changed. Take more of the "
            "lines around the one that you mean, so that it is the only one. Around the first:\n"
            "    1 | one two two"
        ),
        refused(f"edit_file: 'old' is wrong (String should have at least 1 character). {usage}"),
        ToolAnswer("Edited a.md."),
        refused(
            f"There is no file 'b.md'. It was looked for in 'nodes/{goal.id}/scratch'; "
            "list_files shows what there is."
        ),
    ]
    assert world.published(goal) == {"a.md": "1 two two"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_an_edit_changes_only_the_matched_text(world: World) -> None:
    goal, told = await run_calls(
        world,
        call("bash", command=r"printf 'x \377 y' > raw; yes abcdefg | head -c 5000000 > big"),
        call("edit_file", path="raw", old="y", new="z"),
        call("edit_file", path="raw", old="\ufffd", new="?"),
        call("bash", command="echo the end >> big"),
        call("edit_file", path="big", old="the end", new="no end"),
    )

    assert told[1:3] == [
        ToolAnswer("Edited raw."),
        refused(
            "'�' does not stand in raw, so nothing was changed. Nothing in it is much like it. "
            "Read the file and copy the piece."
        ),
    ]
    assert told[4] == refused("big is longer than 4 MiB; change it with bash, say sed.")
    published = node_folder(world, goal) / "published"
    assert (published / "raw").read_bytes() == b"x \xff z"
    assert (published / "big").stat().st_size == 5_000_008


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_file_that_is_too_long_is_refused_before_it_is_written(world: World) -> None:
    goal, told = await run_calls(
        world, call("write_file", path="big", content="x" * (4 * 2**20 + 1))
    )

    assert told == [
        refused(
            "write_file: not called, because its arguments have 4,194,332 bytes, and 262,144 is "
            "the most. Only their beginning was kept. Write it in smaller pieces, each in a call "
            "of its own."
        )
    ]
    assert world.published(goal) == {}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_edit_interrupted_by_a_crash_is_made_once(world: World, moment: str) -> None:
    def crash_once(point: str) -> None:
        if point == f"fx:{moment}:write" and armed:
            armed.clear()
            raise PowerCut

    def arm(_: Request) -> Says:
        faultpoints.armed = crash_once
        return says(call("edit_file", path="a.md", old="old,", new="old, old,"))

    armed = ["the edit"]
    ada = world.script(
        "ada",
        says(call("write_file", path="a.md", content="old, and old enough")),
        arm,
        says(call("finish", summary="edited")),
    )
    try:
        founded = await world.found("Edit")
        await world.settle()
    finally:
        faultpoints.armed = None
    await world.restart()
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert (goal.result, ada.heard) == ("edited", "Edited a.md.")
    assert world.published(goal) == {"a.md": "old, old, and old enough"}
    assert [file.name for file in (node_folder(world, goal) / "scratch").iterdir()] == ["a.md"]
