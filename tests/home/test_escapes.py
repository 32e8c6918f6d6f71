"""Escapes: no path, link or race leads out of a folder, with either opener."""

import ctypes
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.wording import Wording

from agiraph.core.domain.errors import AgiraphError, NotFound, OutOfScope, Refused
from agiraph.core.home.safe_folder import PARTIAL, Folder, Opener, best_opener, by_walk, split

SECRET = b"the secret outside"
RACING_READS = (20_000, pytest.param(100_000, marks=pytest.mark.long))
RENAME_EXCHANGE = 2
AT_FDCWD = -100
PR_SET_PDEATHSIG = 1

OPENERS = {"walk": by_walk, "best": best_opener()}
"""The best opener is openat2, if the kernel has it."""


@pytest.fixture(params=OPENERS)
def opener(request: pytest.FixtureRequest) -> Opener:
    return OPENERS[request.param]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with links out of it, next to a secret."""
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "secret").write_bytes(SECRET)
    (outside / "deep" / "secret").write_bytes(SECRET)
    inside = tmp_path / "inside"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "b" / "plain.txt").write_bytes(b"plain")
    links = {
        "link": "../outside",
        "file": "../outside/secret",
        "absolute": str(outside),
        "top": "/",
        "up": "..",
        "loop": "loop",
        "dangling": "../outside/new",
        "procroot": "/proc/self/root",
        "proccwd": "/proc/self/cwd",
        "a/link": "../../outside",
        "a/b/file": "../../../outside/secret",
        "a/b/back": "../..",
    }
    for name, target in links.items():
        (inside / name).symlink_to(target)
    return inside


@pytest.fixture
def folder(root: Path, opener: Opener) -> Iterator[Folder]:
    with Folder.open(root, opener=opener) as opened:
        yield opened


def hostile_paths(root: Path) -> list[str]:
    outside = root.parent / "outside"
    ups = ["../" * depth for depth in range(1, 9)]
    targets = ["outside/secret", "outside/deep/secret", "outside", "etc/passwd", ""]
    climbs = [up + target for up in ups for target in targets]
    starts = ["./", "a/", "a/b/", "a//b//", "link/", "none/", "a/b/back/", "~/", "-/"]
    roundabout = [start + climb for start in starts for climb in climbs[5:15]]
    dots = ["..", "../", "./..", "a/..", "a/../..", "a/./../../outside/secret", "..//outside"]
    ends = ["", "/", "/.", "//", "/..", "/secret", "/deep/secret", "/deep/../secret", "/new/file"]
    links = ["link", "file", "absolute", "top", "up", "loop", "dangling", "a/link", "a/b/file"]
    through = [link + end for link in links for end in ends]
    escaped = [
        *("%2e%2e/outside/secret", "..%2foutside%2fsecret", "%2e%2e%2f", "..%c0%afoutside"),
        *("..\\outside\\secret", "\\..\\outside", "C:\\outside", "\\\\host\\outside", "..;/x"),
        *(".. /outside/secret", " ../outside/secret", "..\t/outside", "\n../outside/secret"),
        *("..\0/outside/secret", "a\0", "\0", "file\0.txt", "a/b/plain.txt\0/../../../outside"),
        *(
            "\u2024\u2024/outside",
            "\u2025/outside",
            "\uff0e\uff0e/outside",
            "..\u2215outside",
            "..\uff0fx",
        ),
        *("\ud800", "..\udcff/outside", "\udc2e\udc2e/outside/secret", "\ufeff../outside/secret"),
        *("\u202e../outside", "a\u2028../outside", "..\u200b/outside/secret"),
        *("~", "~root", "~/outside", "$HOME", "${PWD}/../outside", "`pwd`", "$(pwd)/..", "*", "?"),
        *("file:///etc/passwd", "file:../outside/secret", "http://outside/secret", "con", "nul"),
        *("....//outside/secret", "..././outside/secret", "...", "....", ".../outside", ". ./x"),
        *("x" * 256, "x" * 100_000, "a/" * 3000, "../" * 3000 + "etc/passwd", "é" * 200, "./" * 9),
        *(PARTIAL + "x", f"a/{PARTIAL}y", f"{PARTIAL}/../secret"),
    ]
    absolute = [
        *("/", "//", "///", "/.", "/..", "/etc/passwd", "//etc/passwd", "/proc/self/environ"),
        *(
            "/proc/self" + "/root" + "/etc/passwd",
            "/proc/self/fd/0",
            "/dev/zero",
            "/dev/tty",
            "/dev/stdin",
        ),
        *(str(outside / "secret"), f"/{outside}/secret", f"{root}/../outside/secret", str(root)),
    ]
    magic = [
        "procroot" + str(outside / "secret"),
        *(f"procroot/{name}" for name in ("", "etc/passwd", "proc/self/root", "dev/zero")),
        *(f"proccwd/{name}" for name in ("", "..", "../../etc/passwd", "pyproject.toml")),
    ]
    return [*climbs, *roundabout, *dots, *through, *escaped, *absolute, *magic]


def tree_of(path: Path) -> dict[str, bytes | str]:
    return {
        str(p.relative_to(path)): p.read_bytes() if p.is_file() else "folder"
        for p in sorted(path.rglob("*"))
    }


def result_or_refusal(action: Callable[[], object]) -> object:
    """Return the result of an action or its refusal; any other error fails the test."""
    try:
        return action()
    except (AgiraphError, FileExistsError) as refusal:
        return refusal


def test_no_hostile_path_reads_lists_or_changes_files_outside(folder: Folder, root: Path) -> None:
    paths = hostile_paths(root)
    outside = root.parent / "outside"
    before = tree_of(outside)
    beyond = {entry.name for entry in Path("/").iterdir()} | {"secret", "outside", "inside"}

    for path in paths:
        assert result_or_refusal(lambda path=path: folder.read(path, limit=1000)) != SECRET, path
        found = result_or_refusal(lambda path=path: {entry.name for entry in folder.list(path)})
        assert not (isinstance(found, set) and len(found & beyond) > 1), path
        result_or_refusal(lambda path=path: folder.exists(path))
    for path in paths:
        result_or_refusal(lambda path=path: folder.sub(path, create=True).close())
        result_or_refusal(lambda path=path: folder.write(f"{path}/planted", b"planted"))
        result_or_refusal(lambda path=path: folder.create_file(f"{path}/made").close())
        folder.write("victim", b"")
        result_or_refusal(lambda path=path: folder.rename("victim", f"{path}/moved"))
        result_or_refusal(lambda path=path: folder.rename(f"{path}/secret", "stolen"))
    for path in paths:
        result_or_refusal(lambda path=path: folder.remove(f"{path}/secret"))
        result_or_refusal(lambda path=path: folder.append(path, b"planted"))
    for path in paths:
        result_or_refusal(lambda path=path: folder.remove(path))

    assert len(set(paths)) >= 200
    assert tree_of(outside) == before
    assert [p.name for p in sorted(root.parent.iterdir())] == ["inside", "outside"]


REFUSED_PATHS = [
    ("", Refused),
    ("a", Refused),
    ("link/x", OutOfScope),
    ("file", OutOfScope),
    ("a/../x", OutOfScope),
    ("/x", OutOfScope),
    ("x\0y", OutOfScope),
    ("a/b/plain.txt/x", Refused),
    ("a/none", NotFound),
]


def test_the_refusal_message_is_the_same_for_every_opener(folder: Folder, wording: Wording) -> None:
    told: dict[str, str] = {}
    for path, refused in REFUSED_PATHS:
        with pytest.raises(Refused) as caught:
            folder.read(path, limit=10)
        assert type(caught.value) is refused
        told[path] = str(caught.value)
    wording(told)


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.text(
        alphabet=st.sampled_from("./ab\0\\~\u00e9\u2024\ud800-") | st.characters(), max_size=40
    )
)
def test_any_text_is_a_path_inside_the_folder_or_refused(folder: Folder, path: str) -> None:
    assert result_or_refusal(lambda: folder.read(path, limit=100)) != SECRET
    try:
        names = split(path)
    except OutOfScope:
        return
    assert not {"", ".", "..", *[n for n in names if "/" in n or "\0" in n]} & set(names)


def swap_until_killed(folder: Path) -> None:
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    one, other = os.fsencode(folder / "door"), os.fsencode(folder / "trap")
    while True:
        libc.renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE)


def fork_child(action: Callable[[], object]) -> int:  # pyrefly: ignore[bad-return]
    """Run an action in a forked process; return its pid."""
    if pid := os.fork():
        return pid
    try:
        action()
    finally:
        os._exit(70)


@pytest.fixture
def swapping(root: Path) -> Iterator[Path]:
    """A folder in which a process swaps a folder with a link to the secret, all the time."""
    (root / "door").mkdir()
    (root / "door" / "secret").write_bytes(b"inside")
    (root / "trap").symlink_to("../outside")
    pid = fork_child(lambda: swap_until_killed(root))
    yield root
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@pytest.mark.slow
@pytest.mark.parametrize("reads", RACING_READS)
def test_no_read_follows_a_link_that_is_swapped_with_a_folder(
    swapping: Path, opener: Opener, reads: int
) -> None:
    seen: Counter[bytes | str] = Counter()
    with Folder.open(swapping, opener=opener) as folder:
        for _ in range(reads):
            found = result_or_refusal(lambda: folder.read("door/secret", limit=100))
            seen[found if isinstance(found, bytes) else type(found).__name__] += 1

    # Refused: the walk found the link, and at its second look it was a folder again.
    assert {b"inside", "OutOfScope"} <= set(seen) <= {b"inside", "OutOfScope", "Refused"}
    assert seen.total() == reads


def test_no_write_follows_a_link_that_is_swapped_with_a_folder(
    swapping: Path, opener: Opener
) -> None:
    before = tree_of(swapping.parent / "outside")
    with Folder.open(swapping, opener=opener) as folder:
        for number in range(1000):
            result_or_refusal(lambda number=number: folder.write(f"door/new/{number}", b"x"))
            result_or_refusal(lambda: folder.remove("door/secret"))
            result_or_refusal(lambda: folder.sub("door/made/deep", create=True).close())

    assert tree_of(swapping.parent / "outside") == before
