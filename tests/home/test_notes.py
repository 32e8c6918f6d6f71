"""Notes: Markdown files of an agent, with limits and an index, in its own folder only."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import NotFound, OutOfScope, Refused
from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.home.layout import Home, TeamFolder
from agiraph.core.home.scopes import Scope
from agiraph.features.knowledge import note_files as notes
from agiraph.features.knowledge.note_files import Notes

TODAY = date(2026, 2, 11)
TEAM = Team(
    id=TeamId("team_1"), name="T", goal="Know", created_at=datetime(2026, 2, 11, tzinfo=UTC)
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "teams" / "team_1"


@pytest.fixture
def team(tmp_path: Path) -> Iterator[TeamFolder]:
    opened = Home.open(tmp_path / "home").team(TEAM.id)
    opened.prepare(TEAM)
    opened.agent("ada").close()
    opened.agent("bob").close()
    with opened.folder:
        yield opened


def notes_of(team: TeamFolder, role: str = "coordinator") -> Notes:
    return Notes(Scope(role=role, agent="ada", node=NodeId("own"), team=team))


def files_in(path: Path) -> dict[str, str]:
    return {str(p.relative_to(path)): p.read_text() for p in path.rglob("*") if p.is_file()}


def test_the_coordinators_notes_are_in_the_team_folder(team: TeamFolder, path: Path) -> None:
    written = notes_of(team).write("knowledge/chips.md", "# Chips\n\nFast.", today=TODAY)
    assert written.path == "memory/knowledge/chips.md"
    assert (path / "memory/knowledge/chips.md").read_text() == "# Chips\n\nFast.\n"
    notes_of(team).write("MEMORY.md", "# Memory\n\nShort.", today=TODAY)
    assert (path / "MEMORY.md").read_text() == "# Memory\n\nShort.\n"
    assert notes_of(team).read("memory/knowledge/chips.md") == notes_of(team).read(
        "knowledge/chips.md"
    )


@pytest.mark.parametrize("role", ["worker", "researcher"])
def test_a_workers_notes_are_in_its_own_folder(team: TeamFolder, path: Path, role: str) -> None:
    before = files_in(path)
    kept = notes_of(team, role)
    kept.write("knowledge/chips.md", "Fast.", today=TODAY)
    kept.write("agents/ada/MEMORY.md", "Mine.", today=TODAY)
    kept.write(f"memory/{TODAY}.md", "Began.", today=TODAY)
    after = files_in(path)
    changed = {name for name in after if after[name] != before.get(name)}
    changed = {name for name in changed if not name.startswith("history/versions/")}
    assert changed == {
        "agents/ada/MEMORY.md",
        "agents/ada/memory/archive/earlier-MEMORY.md",
        "agents/ada/memory/index.md",
        "agents/ada/memory/knowledge/chips.md",
        f"agents/ada/memory/{TODAY}.md",
    }
    assert sorted(kept.files()) == [
        f"{TODAY}.md", "MEMORY.md", "knowledge/chips.md",
    ]  # fmt: skip
    assert "Fast" not in str(notes_of(team).files())


def test_the_index_has_one_line_for_each_file(team: TeamFolder, path: Path) -> None:
    kept = notes_of(team)
    kept.write("knowledge/chips.md", "# AI chips\n\nFast.", today=TODAY)
    kept.write("experiences/search.md", "Searching `twice` helps.", today=TODAY)
    kept.write("knowledge/chips.md", "# AI chips of 2026\n\nFaster.", today=TODAY)
    lines = [
        line for line in (path / "memory/index.md").read_text().splitlines() if line[:2] == "- "
    ]
    assert lines == [
        "- `experiences/search.md`: Searching 'twice' helps.",
        "- `knowledge/chips.md`: AI chips of 2026",
    ]
    (path / "memory/knowledge/chips.md").unlink()
    kept.update_index()
    assert "chips" not in (path / "memory/index.md").read_text()


def test_a_daily_log_is_appended_to_and_only_on_its_day(team: TeamFolder, path: Path) -> None:
    kept = notes_of(team)
    kept.write(f"{TODAY}.md", "First.", today=TODAY)
    kept.write(f"memory/{TODAY}.md", "Second.", today=TODAY)
    assert kept.write(f"{TODAY}.md", "Second.", today=TODAY).changed is False
    assert (path / f"memory/{TODAY}.md").read_text() == f"# {TODAY}\n\nFirst.\n\nSecond.\n"
    for day in (TODAY - timedelta(days=1), TODAY + timedelta(days=1)):
        with pytest.raises(Refused, match=f"today's is {TODAY}.md"):
            kept.write(f"{day}.md", "Not so.", today=TODAY)
    tomorrow = TODAY + timedelta(days=1)
    kept.write(f"{tomorrow}.md", "Third.", today=tomorrow)
    assert [name for name in kept.files() if name[0] == "2"] == [f"{TODAY}.md", f"{tomorrow}.md"]


def test_logs_older_than_a_month_are_archived(team: TeamFolder, path: Path) -> None:
    for role in ("coordinator", "worker"):
        kept = notes_of(team, role)
        for days in (0, 10, 40):
            day = TODAY - timedelta(days=days)
            kept.write(f"{day}.md", f"{days} days ago.", today=day)
        old = f"{TODAY - timedelta(days=40)}.md"
        assert kept.archive(TODAY) == [old]
        assert kept.archive(TODAY) == []
        assert "40 days ago." in kept.read(f"archive/{old}")
        assert old not in kept.read("index.md")
        assert f"archive/{old}" in kept.files()
        with pytest.raises(Refused, match="Notes in the archive cannot be changed"):
            kept.write(f"archive/{old}", "Never was.", today=TODAY)


HOSTILE = [
    "", ".", "/", "..", "../x.md", "/etc/passwd", "/etc/x.md", "memory/../../x.md", "a/../../b.md",
    "knowledge/../../SOUL.md", "agents/bob/MEMORY.md", "agents/bob/memory/x.md", "agents/x.md",
    "nodes/other/scratch/x.md", "nodes/own/_spec.md", "SOUL.txt", "x", "x.MD", "x.md.exe",
    "x.html", ".hidden.md", "knowledge/.git/x.md", "a/b/c/d.md", "\0.md", "x\0.md", "\ud800.md",
    "x" * 300 + ".md", "a/" * 3000 + "x.md", "memory", "memory/", "knowledge/",
    ".agiraph-part-x.md", "index.md", "memory/index.md",
]  # fmt: skip


@pytest.mark.parametrize("role", ["coordinator", "worker"])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_path_is_refused_and_writes_nothing(
    team: TeamFolder, path: Path, hostile: str, role: str
) -> None:
    before = files_in(path.parent.parent)
    with pytest.raises(Refused):
        notes_of(team, role).write(hostile, "owned", today=TODAY)
    assert files_in(path.parent.parent) == before


@pytest.mark.parametrize("name", ["SOUL.md", "GOAL.md", "PLAN.md"])
def test_a_note_named_like_a_team_file_is_written_to_memory(
    team: TeamFolder, path: Path, name: str
) -> None:
    before = (path / name).read_text()
    assert notes_of(team).write(name, "owned", today=TODAY).path == f"memory/{name}"
    assert (path / name).read_text() == before


def test_a_link_is_not_followed(team: TeamFolder, path: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    (path / "memory/knowledge/out").symlink_to(outside)
    (path / "memory/link.md").symlink_to(outside / "secret.md")
    kept = notes_of(team)
    with pytest.raises(OutOfScope):
        kept.read("knowledge/out/secret.md")
    with pytest.raises(OutOfScope):
        kept.write("knowledge/out/new.md", "owned", today=TODAY)
    assert "secret" not in str(kept.files())
    kept.write("link.md", "mine now", today=TODAY)  # the link is replaced, its target is unchanged
    assert (outside / "secret.md").read_text() == "secret"
    assert sorted(p.name for p in outside.iterdir()) == ["secret.md"]


def test_too_long_empty_or_too_many_notes_are_refused_with_what_to_do(
    team: TeamFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = notes_of(team)
    with pytest.raises(Refused, match="divide it by subject"):
        kept.write("knowledge/all.md", "x" * (notes.LONGEST + 1), today=TODAY)
    with pytest.raises(Refused, match="the rest in memory/"):
        kept.write("MEMORY.md", "x" * notes.LONGEST_SUMMARY, today=TODAY)
    with pytest.raises(Refused, match="An empty note says nothing"):
        kept.write("knowledge/all.md", " \n", today=TODAY)
    with pytest.raises(NotFound):
        kept.read("knowledge/none.md")
    monkeypatch.setattr(notes, "MOST", 3)
    kept.write("a.md", "a", today=TODAY)
    kept.write("b.md", "b", today=TODAY)
    with pytest.raises(Refused, match="put some of them together"):
        kept.write("c.md", "c", today=TODAY)
    kept.write("a.md", "still mine to change", today=TODAY)


def test_files_that_a_person_wrote_by_hand_are_notes(team: TeamFolder, path: Path) -> None:
    (path / "memory/preferences/tone.md").write_text("Be brief.")
    (path / "memory/broken.md").write_bytes(b"\xff\xfe no text")
    (path / "memory/picture.png").write_bytes(b"\x89PNG")
    found = notes_of(team).files()
    assert found["preferences/tone.md"] == "Be brief."
    assert "no text" in found["broken.md"]
    assert "picture.png" not in found
