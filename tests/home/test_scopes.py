"""Scopes: each role reads and writes exactly the areas that the access table grants."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import NotFound, OutOfScope
from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.home.layout import Home, TeamFolder
from agiraph.core.home.scopes import ACCESS, Area, Scope, Want

P = Area
TEAM = Team(
    id=TeamId("team_1"),
    name="Prices",
    goal="Find the price",
    created_at=datetime(2026, 2, 11, tzinfo=UTC),
)

FILES: dict[str, Area] = {
    "nodes/own/_spec.md": P.OWN_SPEC,
    "nodes/own/_refs.json": P.OWN_SPEC,
    "nodes/own/scratch/draft.md": P.OWN_SCRATCH,
    "nodes/own/scratch/deep/draft.md": P.OWN_SCRATCH,
    "nodes/own/published/result.md": P.OWN_PUBLISHED,
    "nodes/own/_stage/result.md": P.UNKNOWN,
    "nodes/other/published/result.md": P.PUBLISHED,
    "nodes/other/published/deep/result.md": P.PUBLISHED,
    "nodes/other/_spec.md": P.OTHER_NODE,
    "nodes/other/scratch/draft.md": P.OTHER_NODE,
    "agents/ada/NOTEBOOK.md": P.OWN_DESK,
    "agents/bob/NOTEBOOK.md": P.OTHER_DESK,
    "SOUL.md": P.SOUL,
    "GOAL.md": P.SOUL,
    "PLAN.md": P.PLAN,
    "MEMORY.md": P.TEAM_MEMORY,
    "memory/index.md": P.TEAM_MEMORY,
    "memory/knowledge/prices.md": P.TEAM_MEMORY,
    "user_uploads/prices.csv": P.UPLOADS,
}
"""Files in every area; the content of each is its own path."""

GRANTED = {
    "coordinator": {
        "r": {*P} - {P.OTHER_DESK, P.UNKNOWN},
        "w": {P.OWN_SCRATCH, P.OWN_DESK, P.PLAN, P.TEAM_MEMORY},
    },
    "worker": {
        "r": {P.OWN_SPEC, P.OWN_SCRATCH, P.OWN_PUBLISHED, P.PUBLISHED, P.OWN_DESK, P.SOUL, P.PLAN}
        | {P.UPLOADS},
        "w": {P.OWN_SCRATCH, P.OWN_DESK},
    },
}
GRANTED["researcher"] = GRANTED["worker"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "teams" / "team_1"


@pytest.fixture
def team(tmp_path: Path, path: Path) -> Iterator[TeamFolder]:
    opened = Home.open(tmp_path / "home").team(TEAM.id)
    opened.prepare(TEAM)
    for file in FILES:
        opened.folder.write(file, file.encode())
    with opened.folder:
        yield opened


def scope(team: TeamFolder, role: str = "worker") -> Scope:
    return Scope(role=role, agent="ada", node=NodeId("own"), team=team)


def read(at: Scope, path: str) -> str:
    folder, rest = at.resolve(path, "r")
    with folder:
        return folder.read(rest, limit=1000).decode()


def write(at: Scope, path: str) -> None:
    folder, rest = at.resolve(path, "w")
    with folder:
        folder.write(rest, b"written")


def files_in(path: Path) -> dict[str, str]:
    return {str(p.relative_to(path)): p.read_text() for p in path.rglob("*") if p.is_file()}


def test_the_access_table_has_an_entry_for_every_area() -> None:
    assert {role: set(row) for role, row in ACCESS.items()} == {
        "coordinator": {*P},
        "worker": {*P},
    }
    assert {right for row in ACCESS.values() for right in row.values()} == {"", "r", "rw"}


@pytest.mark.parametrize("role", GRANTED)
@pytest.mark.parametrize("file", FILES)
def test_a_role_reads_only_what_the_table_grants(team: TeamFolder, role: str, file: str) -> None:
    at = scope(team, role)
    assert at.locate(file).area == FILES[file]
    if FILES[file] in GRANTED[role]["r"]:
        assert read(at, file) == file
    else:
        with pytest.raises(OutOfScope, match=f"^You may not read '{file}'. You may read these: "):
            read(at, file)


@pytest.mark.parametrize("role", GRANTED)
@pytest.mark.parametrize("file", FILES)
def test_a_role_writes_only_what_the_table_grants(
    team: TeamFolder, path: Path, role: str, file: str
) -> None:
    before = files_in(path)
    if FILES[file] in GRANTED[role]["w"]:
        write(scope(team, role), file)
        assert files_in(path) == before | {file: "written"}
    else:
        with pytest.raises(OutOfScope, match=f"^You may not write '{file}'. You may write these: "):
            write(scope(team, role), file)
        assert files_in(path) == before


@pytest.mark.parametrize(
    ("short", "file"),
    [
        ("_spec.md", "nodes/own/_spec.md"),
        ("./_refs.json", "nodes/own/_refs.json"),
        ("scratch/draft.md", "nodes/own/scratch/draft.md"),
        ("published/result.md", "nodes/own/published/result.md"),
        ("draft.md", "nodes/own/scratch/draft.md"),
        ("deep/draft.md", "nodes/own/scratch/deep/draft.md"),
        ("./deep//draft.md/", "nodes/own/scratch/deep/draft.md"),
        (".//SOUL.md/", "SOUL.md"),
        ("nodes/./other//published/./result.md", "nodes/other/published/result.md"),
    ],
)
def test_short_and_unnormalized_paths_are_resolved(team: TeamFolder, short: str, file: str) -> None:
    assert read(scope(team), short) == file


LOOKALIKES = [
    *("soul.md", "Soul.md", "SOUL.MD", "goal.md", "GOAL.md ", " GOAL.md", "SOUL.md\n", "SOUL.md."),
    *("plan.md", "memory.md", "Memory/index.md", "MEMORY/index.md", "memory /index.md"),
    *("Nodes/other/scratch/draft.md", "NODES/other/_spec.md", "nodes\\other\\scratch\\draft.md"),
    *("Agents/bob/NOTEBOOK.md", "agents\u2215bob", "agents\uff0fbob\uff0fNOTEBOOK.md"),
    *("\uff33OUL.md", "S\u039fUL.md", "S\u041eUL.md", "memor\u0443/index.md", "PLAN.md\u200b"),
    *("\ufeffSOUL.md", "n\u043edes/other/scratch/draft.md", "me\u0301mory/x", "_spec.md\u200d"),
    *("_SPEC.md", "_Refs.json", "Published/result.md", "%53OUL.md", "SOUL%2emd", "~/SOUL.md"),
]


@pytest.mark.parametrize("role", ["coordinator", "worker"])
@pytest.mark.parametrize("name", LOOKALIKES)
def test_a_name_that_only_resembles_another_area_is_a_scratch_file(
    team: TeamFolder, path: Path, role: str, name: str
) -> None:
    before = files_in(path)
    at = scope(team, role)
    with pytest.raises(NotFound, match="It was looked for in 'nodes/own/scratch'"):
        read(at, name)
    write(at, name)
    assert files_in(path) == before | {f"nodes/own/scratch/{name}": "written"}


@pytest.mark.parametrize(
    "name",
    [
        *("nodes/Own/scratch/draft.md", "nodes/own /scratch/draft.md"),
        *("nodes/other/Published/result.md", "nodes/other/published./result.md", "nodes", "nodes/"),
        *("nodes/other", "nodes/other/", "nodes/other//scratch", "nodes/./other/./_spec.md"),
        *("agents", "agents/", "agents/Ada/NOTEBOOK.md", "agents/ADA", "agents/ada /x", "agents/."),
        *("agents//bob/NOTEBOOK.md", "agents/./bob", "agents/\u0430da/NOTEBOOK.md"),
        *("memory", "memory/", "memory//index.md", "./memory/index.md", "MEMORY.md/"),
        *("SOUL.md/x", "PLAN.md/x", "_spec.md/x", "_refs.json/x", "nodes/own/other"),
        *("scratch/../_spec.md", "..", "../other/_spec.md", "scratch/../../other/scratch/draft.md"),
        *("nodes/own/../other/scratch/draft.md", "/SOUL.md", "//SOUL.md", "SOUL.md\0", "./../x"),
        *("nodes/own/_stage/result.md", "nodes/own/scratch/../_stage/result.md"),
    ],
)
@pytest.mark.parametrize("want", ["r", "w"])
def test_no_spelling_of_a_path_opens_a_closed_area_to_a_worker(
    team: TeamFolder, path: Path, name: str, want: Want
) -> None:
    before = sorted(path.rglob("*"))
    with pytest.raises(OutOfScope):
        scope(team).resolve(name, want)
    assert sorted(path.rglob("*")) == before


@pytest.mark.parametrize("role", ["coordinator", "worker"])
@pytest.mark.parametrize("want", ["r", "w"])
def test_a_link_made_by_a_command_opens_no_other_area(
    team: TeamFolder, path: Path, role: str, want: Want
) -> None:
    scratch = path / "nodes/own/scratch"
    (scratch / "desk").symlink_to(path / "agents/bob")
    (scratch / "soul.md").symlink_to(path / "SOUL.md")
    (path / "nodes/other/published/way-out").symlink_to(path / "agents/bob")
    before = files_in(path)
    act = read if want == "r" else write

    for name in ("desk/NOTEBOOK.md", "scratch/desk/new", "nodes/other/published/way-out/x"):
        with pytest.raises(OutOfScope):
            act(scope(team, role), name)
    with pytest.raises(OutOfScope):
        read(scope(team, role), "soul.md")
    assert files_in(path) == before


def test_an_empty_path_is_the_own_scratch_folder(team: TeamFolder) -> None:
    for name in ("", ".", "./", "scratch", "scratch/", "nodes/own/scratch"):
        folder, rest = scope(team).resolve(name, "r")
        with folder:
            assert [entry.name for entry in folder.list(rest)] == ["deep", "draft.md"]


def test_the_own_node_can_be_listed(team: TeamFolder) -> None:
    folder, rest = scope(team).resolve("nodes/own", "r")
    with folder:
        assert [entry.name for entry in folder.list(rest)] == [
            *("_refs.json", "_spec.md", "_stage", "published", "scratch")
        ]


def test_a_refusal_lists_what_may_be_read_or_written(team: TeamFolder) -> None:
    with pytest.raises(OutOfScope) as refusal:
        scope(team).resolve("memory/index.md", "w")
    assert str(refusal.value) == (
        "You may not write 'memory/index.md'. You may write these: scratch/…, agents/ada/…."
    )
    with pytest.raises(OutOfScope) as refusal:
        scope(team).resolve("agents/bob/NOTEBOOK.md", "r")
    assert str(refusal.value) == (
        "You may not read 'agents/bob/NOTEBOOK.md'. You may read these: scratch/…, agents/ada/…, "
        "PLAN.md, _spec.md, _refs.json, published/…, nodes/<node>/published/…, SOUL.md, GOAL.md."
    )


def test_an_unpublished_result_of_another_node_is_not_found(team: TeamFolder) -> None:
    with pytest.raises(NotFound, match="There is no folder 'nodes/none/published'"):
        scope(team).resolve("nodes/none/published/result.md", "r")
