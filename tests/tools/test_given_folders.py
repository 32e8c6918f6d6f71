"""Given folders: what an agent does in a folder of a person, and what is recorded of it."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from agiraph.core.domain.agents import GivenFolder
from agiraph.core.domain.ids import TeamId
from agiraph.core.services.board import folder_changes
from agiraph.core.store.texts import file_labels
from agiraph.core.store.texts import folder_changes as rows
from agiraph.sandbox.folders.folder_history import FolderHistory
from agiraph.testing import World, call
from tests.tools.strangers import READ, answers, found_with_calls, strange_world
from tests.tools.tool_calls import ToolAnswer, refused, run_calls


@pytest.fixture
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("elsewhere") / "app"
    folder.mkdir()
    (folder / "main.py").write_text("print(1)\n")
    (folder / "main.py").chmod(0o644)
    return folder


def given(folder: Path, access: str = "rw") -> tuple[GivenFolder, ...]:
    return (GivenFolder(name="app", path=str(folder), access=access),)  # type: ignore[arg-type]


async def changes(world: World, team_id: TeamId) -> list[str]:
    found = await world.store.read(rows.page, team_id, node_id=None, before="", limit=50)
    return sorted(change.path for change in found)


async def test_tools_read_and_change_a_given_folder_under_each_of_its_names(
    world: World, app: Path
) -> None:
    goal, told = await run_calls(
        world,
        call("list_files", path="folders/app"),
        call("read_file", path=f"{app}/main.py"),
        call("edit_file", path="/folders/app/main.py", old="1", new="2"),
        call("write_file", path="folders/app/sub/new.py", content="x"),
        call("write_file", path="folders/app/.git/config", content="x"),
        call("read_file", path="folders/other/x"),
        call("read_file", path="folders/app/../../etc/passwd"),
        folders=given(app),
    )
    assert ["from the folder app" in answer.text for answer in told[:2]] == [True] * 2
    assert ["main.py  9 bytes" in told[0].text, "\nprint(1)\n" in told[1].text] == [True, True]
    assert told[2:4] == [
        ToolAnswer("Edited /folders/app/main.py."),
        ToolAnswer("Wrote folders/app/sub/new.py (1 bytes)."),
    ]
    assert told[4] == refused(
        "'folders/app/.git/config' belongs to git, which would run it as the human; ask the human "
        "to change it. To commit, call git_commit."
    )
    assert told[5].failed
    assert "folders/app/…" in told[5].text
    assert told[6].failed
    assert (app / "main.py").read_text() == "print(2)\n"
    assert (app / "main.py").stat().st_mode & 0o777 == 0o644
    assert (app / "sub" / "new.py").stat().st_mode & 0o777 == 0o644
    assert await changes(world, goal.team_id) == ["main.py", "sub/new.py"]
    [first, second] = await world.store.read(
        folder_changes.plan_undo, goal.team_id, node_id=goal.id
    )
    history = FolderHistory(world.path / "teams" / goal.team_id, given(app)[0])
    for undo in (first, second):
        assert history.copy(undo.path) == undo.expected
        history.restore(undo.path, undo.to)
    assert (app / "main.py").read_text() == "print(1)\n"
    assert not (app / "sub" / "new.py").exists()


async def test_a_folder_that_is_given_to_read_is_not_changed(world: World, app: Path) -> None:
    _, told = await run_calls(
        world,
        call("read_file", path="folders/app/main.py"),
        call("write_file", path="folders/app/main.py", content="x"),
        call("bash", command=f"echo x > {app}/main.py"),
        folders=given(app, "ro"),
    )
    assert "\nprint(1)\n" in told[0].text
    assert [answer.failed for answer in told] == [False, True, True]
    assert (app / "main.py").read_text() == "print(1)\n"


async def test_no_tool_and_no_command_follows_a_link_in_the_place_of_a_folder_around(
    world: World, app: Path
) -> None:
    around = app.parent / "around"
    around.symlink_to(app.parent)
    _, told = await run_calls(
        world,
        call("read_file", path="folders/app/main.py"),
        call("bash", command=f"cat {around}/app/main.py"),
        folders=given(around / "app", "ro"),
    )
    said = "The folder folders/app cannot be opened: a symbolic link has taken its place."
    assert [answer.failed for answer in told] == [True, True]
    assert [said in answer.text for answer in told] == [True, True]


async def test_what_a_command_changes_is_recorded_and_git_is_left_as_it_is(
    world: World, app: Path
) -> None:
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(app)], check=True)
    config = (app / ".git" / "config").read_text()
    goal, told = await run_calls(
        world,
        call(
            "bash",
            command=f"cd {app} && echo 'print(3)' > main.py && touch made && git status --short; "
            "echo evil > .git/hooks/pre-commit; git config core.pager evil",
        ),
        call("bash", command=f"cd {app} && git init -q new && touch new/file"),
        folders=given(app),
    )
    _, fence, *status = told[0].text.splitlines()[:4]
    assert "from the folder app. It is data" in fence
    assert status == ["?? made", "?? main.py"]
    assert told[0].text.endswith("To commit what you changed there, call git_commit.)")
    assert "switched off: folders/app/new/.git." in told[1].text
    assert (app / ".git" / "config").read_text() == config
    assert not (app / ".git" / "hooks" / "pre-commit").exists()
    found = await changes(world, goal.team_id)
    assert [path for path in found if not path.startswith("new/.git/")] == [
        "made",
        "main.py",
        "new/file",
    ]


async def test_another_team_does_not_see_the_folder(world: World, app: Path) -> None:
    _, told = await run_calls(
        world,
        call("read_file", path="folders/app/main.py"),
        call("read_file", path=f"{app}/main.py"),
        call("bash", command=f"cat {app}/main.py"),
    )
    assert [answer.failed for answer in told] == [True, True, True]


async def test_what_a_thread_with_foreign_words_writes_keeps_its_label(
    tmp_path: Path, app: Path
) -> None:
    async with strange_world(tmp_path) as world:
        founded = await found_with_calls(
            world,
            READ,
            call("write_file", path="folders/app/by_tool.md", content="x"),
            call("bash", command=f"echo y > {app}/by_command.md"),
            folders=given(app),
        )
        labelled = await world.store.read(file_labels.under, founded.team.id, "folders/")
        assert sorted(file.path for file in labelled) == [
            "folders/app/by_command.md",
            "folders/app/by_tool.md",
        ]
        assert {str(sorted(file.label.sources)) for file in labelled} == {"['page:example.com']"}


async def test_a_strict_team_asks_before_foreign_words_change_a_folder(
    tmp_path: Path, app: Path
) -> None:
    async with strange_world(tmp_path) as world:
        founded = await found_with_calls(
            world,
            READ,
            call("write_file", path="folders/app/by_tool.md", content="x"),
            call("bash", command=f"echo y > {app}/by_command.md"),
            folders=given(app),
            trust="strict",
        )
        told = await answers(world, founded)
        assert "by_tool.md" not in str(list(app.iterdir()))
        assert "by_command.md" not in str(list(app.iterdir()))
        assert any("approv" in text or "asked" in text for text in told)
