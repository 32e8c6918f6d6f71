"""Node folder: results are published completely or not at all, and never change."""

import json
import os
import signal
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from agiraph import faultpoints
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import WorkNode
from agiraph.core.home.node_folder import Manifest, NodeFolder
from agiraph.core.home.safe_folder import Folder

NODE = WorkNode(
    id=NodeId("node_1"),
    team_id=TeamId("team_1"),
    task="Find what it costs.\n",
    title="Price",
    source="delegation",
    creator_id=OWNER,
    created_at=datetime(2026, 2, 11, tzinfo=UTC),
    acceptance=("a number", "its source"),
)

RESULTS = {"price.md": b"40 euro", "data/raw/table.csv": b"a,b\n1,2\n", "empty": b""}
HASHES = {name: sha256(data).hexdigest() for name, data in RESULTS.items()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "node").mkdir()
    return tmp_path / "node"


@pytest.fixture
def node(path: Path) -> NodeFolder:
    folder = NodeFolder(id=NODE.id, folder=Folder.open(path))
    folder.prepare(NODE, {})
    return folder


def write_results(node: NodeFolder) -> None:
    for name, data in RESULTS.items():
        node.folder.write(f"scratch/{name}", data)


def files_in(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_task_and_references_are_written_once(path: Path) -> None:
    node = NodeFolder(id=NODE.id, folder=Folder.open(path))
    node.prepare(NODE, {"spec": "nodes/node_0/published/spec.md"})
    written = {p.name: p.stat().st_ino for p in path.iterdir()}
    node.prepare(NODE, {"spec": "nodes/node_0/published/spec.md"})

    assert files_in(path) == {
        "_spec.md": b"# Price\n\nFind what it costs.\n\n"
        b"## Accepted when\n\n- a number\n- its source\n",
        "_refs.json": b'{\n  "spec": "nodes/node_0/published/spec.md"\n}\n',
    }
    assert {p.name: p.stat().st_ino for p in path.iterdir()} == written
    assert (path / "scratch").is_dir()


def test_changed_references_are_written_again(node: NodeFolder, path: Path) -> None:
    node.prepare(NODE, {"more": "nodes/node_2/published"})
    assert json.loads((path / "_refs.json").read_bytes()) == {"more": "nodes/node_2/published"}


def test_published_files_are_the_scratch_files_with_their_hashes(
    node: NodeFolder, path: Path
) -> None:
    write_results(node)
    assert node.publish("It costs 40 euro.") == HASHES

    published = files_in(path / "published")
    manifest = json.loads(published.pop("_manifest.json"))
    assert published == RESULTS
    assert manifest == {"summary": "It costs 40 euro.", "partial": False, "files": HASHES}
    assert node.manifest() == Manifest(summary="It costs 40 euro.", files=HASHES)
    assert node.verify() == []
    assert sorted(p.name for p in path.iterdir()) == [
        *("_refs.json", "_spec.md", "published", "scratch")
    ]


def test_copies_of_published_files_can_be_changed_and_programs_can_be_run(
    node: NodeFolder, path: Path
) -> None:
    write_results(node)
    program = path / "scratch" / "run.sh"
    program.write_text("echo")
    program.chmod(0o700)
    node.publish("done")
    files = (file for file in (path / "published").rglob("*") if file.is_file())
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}
    assert modes.pop("run.sh") == 0o755
    assert set(modes.values()) == {0o644}


def test_an_empty_scratch_folder_publishes_its_summary(node: NodeFolder, path: Path) -> None:
    assert node.publish("There is nothing.") == {}
    assert list(files_in(path / "published")) == ["_manifest.json"]
    assert node.verify() == []


def test_a_summary_may_contain_lone_surrogates_and_null_characters(node: NodeFolder) -> None:
    node.publish("half a \ud83d smile, \0 and é")
    assert node.manifest().summary == "half a \ud83d smile, \0 and é"


def test_links_pipes_and_half_written_files_are_not_published(
    node: NodeFolder, path: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    scratch = path / "scratch"
    (scratch / "real.md").write_bytes(b"real")
    (scratch / "link.md").symlink_to(tmp_path / "secret")
    (scratch / "folder").symlink_to(tmp_path)
    (scratch / ".agiraph-part-00").write_bytes(b"half")
    os.mkfifo(scratch / "pipe")

    assert node.publish("done") == {"real.md": sha256(b"real").hexdigest()}
    assert sorted(files_in(path / "published")) == ["_manifest.json", "real.md"]


def test_a_published_result_is_never_changed_by_publishing_again(
    node: NodeFolder, path: Path
) -> None:
    write_results(node)
    node.publish("first")
    before = files_in(path / "published")
    node.folder.write("scratch/late.md", b"late")

    assert node.publish("second") == HASHES
    assert node.publish("third", partial=True) == HASHES
    assert files_in(path / "published") == before


def test_a_partial_result_is_replaced_when_files_have_changed_and_kept_aside(
    node: NodeFolder, path: Path
) -> None:
    node.folder.write("scratch/draft.md", b"half")
    assert node.publish("so far", partial=True) == {"draft.md": sha256(b"half").hexdigest()}
    # A crash after the rename repeats the call.
    assert node.publish("so far", partial=True) == {"draft.md": sha256(b"half").hexdigest()}
    node.folder.write("scratch/draft.md", b"more")
    again = node.publish("still so far", partial=True)
    assert again == {"draft.md": sha256(b"more").hexdigest()}

    node.folder.write("scratch/draft.md", b"whole")
    assert node.publish("all of it") == {"draft.md": sha256(b"whole").hexdigest()}
    assert node.manifest().summary == "all of it"
    assert files_in(path / "_replaced-1")["draft.md"] == b"half"
    assert files_in(path / "_replaced-2")["draft.md"] == b"more"


def run_until_killed_at(point: int, action: Callable[[], object]) -> list[str]:
    """Run an action in a process that is killed at its point-th fault point.

    Return the fault points that it reached.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        passed: list[str] = []

        def kill_at_point(name: str) -> None:
            passed.append(name)
            os.write(writing, f"{name}\n".encode())
            if len(passed) == point:
                os.kill(os.getpid(), signal.SIGKILL)

        faultpoints.armed = kill_at_point
        try:
            action()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        passed = told.read().decode().split()
    os.waitpid(pid, 0)
    return passed


FIRST = ["fx:before:publish", "fx:staged:publish", "fx:after:publish"]
AFTER_PARTIAL = [*FIRST[:2], "fx:replaced:publish", FIRST[2]]


@pytest.mark.parametrize("point", range(1, 4))
def test_a_crash_while_publishing_leaves_nothing_or_everything(
    node: NodeFolder, path: Path, point: int
) -> None:
    write_results(node)
    assert run_until_killed_at(point, lambda: node.publish("done")) == FIRST[:point]

    assert (path / "published").exists() == (point == 3)
    assert not (path / "published").exists() or node.verify() == []
    node.folder.write("scratch/later.md", b"later")
    later = {} if point == 3 else {"later.md": sha256(b"later").hexdigest()}
    assert node.publish("done") == HASHES | later
    assert node.verify() == []
    assert not (path / "_stage").exists()


@pytest.mark.parametrize("second", range(1, 5))
@pytest.mark.parametrize("first", range(1, 5))
def test_two_crashes_while_replacing_a_partial_result_lose_nothing(
    node: NodeFolder, path: Path, first: int, second: int
) -> None:
    node.publish("so far", partial=True)
    write_results(node)
    assert run_until_killed_at(first, lambda: node.publish("done")) == AFTER_PARTIAL[:first]
    assert not (path / "published").exists() or node.verify() == []
    run_until_killed_at(second, lambda: node.publish("done"))
    assert not (path / "published").exists() or node.verify() == []

    assert node.publish("done") == HASHES
    assert (node.verify(), node.manifest().summary) == ([], "done")
    assert sorted(p.name for p in path.iterdir()) == [
        *("_refs.json", "_replaced-1", "_spec.md", "published", "scratch")
    ]


def test_partial_files_of_a_crash_are_removed_when_the_node_is_prepared_again(
    node: NodeFolder, path: Path
) -> None:
    assert run_until_killed_at(2, lambda: node.folder.write("scratch/a/b.md", b"half")) == [
        *("fx:before:write", "fx:in:write")
    ]
    assert len(list((path / "scratch" / "a").iterdir())) == 1
    node.prepare(NODE, {})
    assert list((path / "scratch" / "a").iterdir()) == []


def test_every_difference_from_the_manifest_is_reported(node: NodeFolder, path: Path) -> None:
    assert node.verify() == ["There is no published/_manifest.json."]
    write_results(node)
    node.publish("done")
    (path / "published" / "price.md").chmod(0o644)
    (path / "published" / "price.md").write_bytes(b"50 euro")
    (path / "published" / "empty").unlink()
    (path / "published" / "extra").touch()

    assert node.verify() == [
        "'empty' is missing.",
        "'price.md' was changed.",
        "'extra' was added.",
    ]
    with pytest.raises(Conflict, match=r"not as it was published: 'empty' is missing\."):
        node.publish("again")


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"null", b'{"summary": 1}', b"\xff\xfe"])
def test_a_damaged_manifest_is_reported(node: NodeFolder, path: Path, damage: bytes) -> None:
    node.publish("done")
    (path / "published" / "_manifest.json").unlink()
    (path / "published" / "_manifest.json").write_bytes(damage)
    assert node.verify() == ["published/_manifest.json of node_1 cannot be read."]


def test_a_node_that_published_nothing_has_no_manifest(node: NodeFolder) -> None:
    with pytest.raises(NotFound):
        node.manifest()


@pytest.mark.slow
def test_more_than_10000_files_are_refused_and_nothing_is_published(
    node: NodeFolder, path: Path
) -> None:
    for number in range(10_001):
        (path / "scratch" / str(number)).touch()
    with pytest.raises(Refused, match=r"more than 10,000 files .* remove what is not a result"):
        node.publish("done")
    assert not (path / "published").exists()
    (path / "scratch" / "0").unlink()
    assert len(node.publish("done")) == 10_000


def test_more_than_a_gibibyte_is_refused(node: NodeFolder, path: Path) -> None:
    with (path / "scratch" / "huge").open("wb") as file:
        file.truncate(1024**3 + 1)
    with pytest.raises(Refused, match="more than 1 GiB"):
        node.publish("done")
    assert not (path / "published").exists()


def test_the_manifest_in_a_copy_of_published_files_is_left_out(node: NodeFolder) -> None:
    node.folder.write("scratch/a.md", b"a")
    other = {"summary": "Made a.md.", "partial": False, "files": {"a.md": "0" * 64}}
    node.folder.write("scratch/_manifest.json", json.dumps(other).encode())
    assert list(node.publish("done")) == ["a.md"]
    assert node.manifest().summary == "done"


def test_a_scratch_file_with_the_manifests_name_is_refused(node: NodeFolder) -> None:
    node.folder.write("scratch/_manifest.json", b"{}")
    with pytest.raises(Refused, match="has a name that publishing needs; remove it or rename it"):
        node.publish("done")
