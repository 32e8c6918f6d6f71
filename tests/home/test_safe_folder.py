"""Safe folder: atomic writes, listings, limits, and no leaked file descriptors."""

import ctypes
import os
import signal
import socket
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agiraph import faultpoints
from agiraph.core.domain.errors import AgiraphError, NotFound, Refused, StoreFull
from agiraph.core.home.safe_folder import PARTIAL, Entry, Folder, Opener, best_opener, by_walk

SECRET = b"the secret outside"
NEW_USER_AND_MOUNTS = 0x10000000 | 0x00020000
NOBODY = 65534

OPENERS = {"walk": by_walk, "best": best_opener()}
"""The best opener is openat2, if the kernel has it."""


@pytest.fixture(params=OPENERS)
def opener(request: pytest.FixtureRequest) -> Opener:
    return OPENERS[request.param]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(SECRET)
    inside = tmp_path / "inside"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "b" / "plain.txt").write_bytes(b"plain")
    (inside / "link").symlink_to("../outside")
    (inside / "file").symlink_to("../outside/secret")
    return inside


@pytest.fixture
def folder(root: Path, opener: Opener) -> Iterator[Folder]:
    with Folder.open(root, opener=opener) as opened:
        yield opened


def result_or_refusal(action: Callable[[], object]) -> object:
    """Return the result of an action or its refusal; any other error fails the test."""
    try:
        return action()
    except (AgiraphError, FileExistsError) as refusal:
        return refusal


def fork_child(action: Callable[[], object]) -> int:  # pyrefly: ignore[bad-return]
    """Run an action in a forked process; return its pid."""
    if pid := os.fork():
        return pid
    try:
        action()
    finally:
        os._exit(70)


def test_pipes_and_sockets_are_refused_at_once(
    folder: Folder, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)  # the path of a Unix socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name in ("pipe", "socket"):
            with pytest.raises(Refused, match=f"'{name}' is not a regular file"):
                folder.read(name, limit=1)
    kinds = {entry.name: entry.kind for entry in folder.list()}
    assert (kinds["pipe"], kinds["socket"]) == ("other", "other")
    assert [entry.name for entry in folder.walk()] == ["a/b/plain.txt"]
    assert not folder.exists("pipe")


def test_a_file_is_read_from_an_offset(folder: Folder) -> None:
    folder.write("new/deep/file", b"0123456789")
    pieces = [
        folder.read("new/deep/file", limit=4),
        folder.read("./new//deep/file/", offset=4, limit=4),
        folder.read("new/deep/file", offset=8, limit=4),
        folder.read("new/deep/file", offset=99, limit=4),
        folder.read("new/deep/file", offset=-5, limit=1 << 40),
    ]
    assert pieces == [b"0123", b"4567", b"89", b"", b"0123456789"]


@pytest.mark.slow
def test_a_reader_sees_the_whole_old_or_the_whole_new_file(folder: Folder) -> None:
    old, new = b"o" * 100_000, b"n" * 150_000
    folder.write("file.txt", old)
    writing = threading.Event()
    writing.set()
    seen: Counter[bytes] = Counter()

    def read_until_done() -> None:
        while writing.is_set():
            seen[folder.read("file.txt", limit=1_000_000)] += 1

    reader = threading.Thread(target=read_until_done)
    reader.start()
    for _ in range(150):
        folder.write("file.txt", new)
        folder.write("file.txt", old)
    writing.clear()
    reader.join()

    assert set(seen) <= {old, new}
    assert seen.total() > 0


def kill_at(point: str) -> Callable[[str], None]:
    def kill_if_reached(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return kill_if_reached


@pytest.mark.parametrize(
    ("point", "left"),
    [("fx:before:write", b"old"), ("fx:in:write", b"old"), ("fx:after:write", b"new")],
)
def test_a_crash_during_a_write_leaves_the_old_or_the_new_file(
    folder: Folder, root: Path, point: str, left: bytes
) -> None:
    folder.write("notes/file.md", b"old")

    def write_and_die() -> None:
        faultpoints.armed = kill_at(point)
        folder.write("notes/file.md", b"new")

    _, status = os.waitpid(fork_child(write_and_die), 0)

    assert os.WTERMSIG(status) == signal.SIGKILL
    assert folder.read("notes/file.md", limit=100) == left
    assert [entry.name for entry in folder.list("notes")] == ["file.md"]
    folder.remove_partial_files()
    assert [p.name for p in (root / "notes").iterdir()] == ["file.md"]


def test_a_failed_write_leaves_no_partial_file(folder: Folder, root: Path) -> None:
    with pytest.raises(Refused, match="'a' is a folder"):
        folder.write("a", b"x")
    assert [p.name for p in root.iterdir() if p.name.startswith(PARTIAL)] == []


def test_a_write_replaces_a_link_instead_of_following_it(folder: Folder, root: Path) -> None:
    folder.write("file", b"mine")
    assert (folder.read("file", limit=10), (root / "file").is_symlink()) == (b"mine", False)
    assert (root.parent / "outside" / "secret").read_bytes() == SECRET


def test_an_executable_file_stays_executable_and_files_are_private(
    folder: Folder, root: Path
) -> None:
    folder.write("made/run.sh", b"echo old")
    (root / "made" / "run.sh").chmod(0o755)
    folder.write("made/run.sh", b"echo new")
    folder.write("made/notes.md", b"x")
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (root / "made").iterdir()}
    assert modes == {"run.sh": 0o700, "notes.md": 0o600}
    assert stat.S_IMODE((root / "made").stat().st_mode) == 0o700


def test_appends_of_many_threads_are_all_kept(folder: Folder) -> None:
    def add(number: int) -> None:
        for count in range(10):
            folder.append("log/today.md", f"{number}.{count}\n".encode())

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = folder.read("log/today.md", limit=10_000).decode().split()
    assert sorted(lines) == sorted(f"{n}.{c}" for n in range(8) for c in range(10))


def test_a_listing_has_names_kinds_sizes_and_times(folder: Folder, root: Path) -> None:
    folder.write("box/b.txt", b"four")
    folder.write("box/folder/x", b"")
    (root / "box" / "a-link").symlink_to("b.txt")
    (root / "box" / f"{PARTIAL}0").write_bytes(b"half")
    (root / os.fsdecode(b"box/\xff.txt")).write_bytes(b"")
    moment = datetime(2026, 2, 11, 12, tzinfo=UTC)
    for path in (root / "box").iterdir():
        os.utime(path, (moment.timestamp(), moment.timestamp()), follow_symlinks=False)

    assert [(e.name, e.kind) for e in folder.list("box")] == [
        ("a-link", "other"),
        ("b.txt", "file"),
        ("folder", "folder"),
        ("\ufffd.txt", "other"),
    ]
    assert folder.list("box")[1] == Entry(name="b.txt", kind="file", size=4, modified=moment)
    assert [e.name for e in folder.walk()] == ["a/b/plain.txt", "box/b.txt", "box/folder/x"]


def test_a_modification_time_out_of_range_does_not_break_a_listing(
    folder: Folder, root: Path
) -> None:
    (root / "a" / "b" / "plain.txt").touch()
    os.utime(root / "a" / "b" / "plain.txt", (0, 2**40))
    [entry] = [e for e in folder.list("a/b") if e.kind == "file"]
    assert entry.modified.tzinfo is UTC


def test_a_listing_over_the_limit_is_refused_and_not_cut(folder: Folder) -> None:
    for number in range(4):
        folder.write(f"many/{number}", b"")
    with folder.sub("many") as many:
        assert len(many.walk(limit=4)) == len(many.list(limit=4)) == 4
        with pytest.raises(Refused, match="more than 3 files in 'many'"):
            many.walk(limit=3)
        with pytest.raises(Refused, match="too many files in 'many'"):
            many.list(limit=3)


def test_a_walk_of_too_many_empty_folders_is_refused(folder: Folder) -> None:
    for number in range(21):
        folder.sub(f"many/{number}", create=True).close()
    with folder.sub("many") as many, pytest.raises(Refused, match="too many files"):
        many.walk(limit=2)


def test_files_and_folders_exist_until_they_are_removed(folder: Folder) -> None:
    folder.write("tree/branch/leaf", b"x")
    paths = ["tree", "tree/branch/leaf", "tree/none", "tree/branch/leaf/none", "link", "file", ""]
    assert [folder.exists(p) for p in paths] == [True, True, False, False, False, False, True]

    folder.remove("link")
    folder.remove("tree/branch/leaf")
    folder.remove("tree")

    assert [folder.exists(p) for p in ("link", "tree")] == [False, False]
    with pytest.raises(NotFound):
        folder.remove("tree")


@contextmanager
def as_unprivileged_user(root: Path) -> Iterator[None]:
    """Run the block as an unprivileged user: root has every permission."""
    if os.geteuid() != 0:
        yield
        return
    for path in (root, *root.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_missing_permissions_are_a_refusal_and_not_a_crash(folder: Folder, root: Path) -> None:
    (root / "a" / "b").chmod(0o600)
    actions: list[Callable[[], object]] = [
        lambda: folder.read("a/b/plain.txt", limit=1),
        lambda: folder.write("a/b/plain.txt", b""),
        lambda: folder.append("a/b/plain.txt", b""),
        lambda: folder.remove("a/b/plain.txt"),
        lambda: folder.list("a/b"),
        lambda: folder.walk(),
    ]
    with as_unprivileged_user(root):
        assert [type(result_or_refusal(action)) for action in actions] == [Refused] * len(actions)
        assert not folder.exists("a/b/plain.txt")
    (root / "a" / "b").chmod(0o700)


def test_unchanged_content_is_not_written_again(folder: Folder, root: Path) -> None:
    written = [folder.update("x", data) for data in (b"one", b"one", b"on", b"one")]
    assert written == [True, False, True, True]


def test_write_if_empty_writes_a_file_once(folder: Folder, root: Path) -> None:
    (root / "cut-off").touch()
    (root / "taken").mkdir()
    assert [folder.write_if_empty(name, b"first") for name in ("new", "a/new", "cut-off")] == [
        True
    ] * 3
    assert [folder.write_if_empty(name, b"second") for name in ("new", "a/new", "cut-off")] == [
        False
    ] * 3
    assert {(root / name).read_bytes() for name in ("new", "a/new", "cut-off")} == {b"first"}
    assert not folder.write_if_empty("taken", b"first")

    assert folder.write_if_empty("file", b"first")
    assert (root / "file").read_bytes() == b"first"
    assert not (root / "file").is_symlink()
    assert (root / "../outside/secret").read_bytes() == SECRET


def test_no_file_descriptor_is_leaked(folder: Folder) -> None:
    def handles() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = handles()
    for _ in range(5):
        for path in ("x/y", "link/x", "none/none", "a/b/plain.txt/x", ""):
            result_or_refusal(lambda path=path: folder.read(path, limit=1))
            result_or_refusal(lambda path=path: folder.list(path))
            result_or_refusal(lambda path=path: folder.write(f"{path}/new", b""))
            result_or_refusal(lambda path=path: folder.sub(path))
    assert handles() == before


def test_a_closed_folder_opens_nothing(root: Path, opener: Opener) -> None:
    folder = Folder.open(root, opener=opener)
    folder.close()
    folder.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        folder.read("a/b/plain.txt", limit=1)


def mount_small_disk(at: Path) -> bool:
    """Mount a disk of 64 KiB in a new mount namespace; return whether that is possible."""
    libc = ctypes.CDLL(None)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(NEW_USER_AND_MOUNTS):
        return False
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    return libc.mount(b"none", os.fsencode(at), b"tmpfs", 0, b"size=64k") == 0


def test_a_full_disk_is_reported_and_the_old_file_stays(tmp_path: Path) -> None:
    report, disk = tmp_path / "told", tmp_path / "disk"
    report.write_text("the child reported nothing: may this user not mount a small disk?")
    disk.mkdir()

    def fill_and_report() -> None:
        if not mount_small_disk(disk):
            return
        with Folder.open(disk) as folder:
            folder.write("file", b"old")
            refusal = result_or_refusal(lambda: folder.write("file", b"x" * 1_000_000))
            left = {name: folder.read(name, limit=10) for name in [p.name for p in disk.iterdir()]}
            report.write_text(f"{refusal!r} {left}")

    os.waitpid(fork_child(fill_and_report), 0)

    full = StoreFull("There is no room on the disk for 'file'.")
    assert report.read_text() == f"{full!r} { {'file': b'old'} }"
