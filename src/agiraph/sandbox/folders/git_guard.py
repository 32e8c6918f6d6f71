"""Git guard: lets no command change what git runs as the person, in a folder of that person.

Hooks and settings of a repository run outside of any sandbox whenever the person uses git there. So
commands see all that git reads of them as read-only, wherever it lies: a `.git` folder, the folder
that a `.git` file or a link names, a bare repository, a folder of hooks in the working tree. They
cannot move it away either, nor a folder around it. A repository that a command makes is switched
off when the command has ended, since nothing can keep a command from making one.
"""

# ruff: noqa: PTH101, PTH110, PTH111, PTH112, PTH113, PTH115, PTH118, PTH119
# ruff: noqa: PTH120 - git reads paths as texts; thousands of them are compared at each command

import os
import re
import secrets
import shlex
import stat
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from agiraph.core.domain.provenance.confinement import Level
from agiraph.core.domain.value import dataclass
from agiraph.core.home.safe_folder import FOLDER, best_opener, open_real_folder
from agiraph.sandbox.folders.git_settings import Setting, read_text, settings

MOST_MOUNTS = 200
MOST_BYTES = 16 * 1024
"""Limits of what is protected one by one: the command line of a supervisor names all of it."""
MOST_LINKS = 40
_OCTAL = re.compile(r"\\(\d{3})")
"""How the kernel writes a blank or a line break in the path of a mount."""
_MARKS = (("HEAD", "objects", "refs"), ("HEAD", "commondir"))
"""The names by which git takes a folder for a repository's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What of one folder no command may change."""

    root: str
    frozen: frozenset[str] = frozenset()
    """Absolute paths. If it holds the root itself, commands can only read the folder."""
    mounted: frozenset[str] = frozenset()
    """Other file systems in the folder, which nothing was looked for in."""
    why: str = ""
    """Why commands can only read the whole folder, as the rest of a sentence."""

    @property
    def is_whole(self) -> bool:
        return self.root in self.frozen

    def frozen_at(self, level: Level) -> frozenset[str]:
        """Return what a level must protect. Our own namespaces show no other file system in it."""
        return self.frozen if level == "namespaces" else self.frozen | self.mounted

    def covers(self, path: str) -> bool:
        return any(_is_in(path, one) for one in self.frozen | self.mounted)


def find(root: str) -> Guard:
    """Return what git reads in a folder, as it is now. Raise OSError if it cannot be looked at."""
    finder = _Finder(root)
    finder.read_settings_of_person(root)
    mounted = frozenset(_mounts_in(root))
    with _opened(open_real_folder(root)) as top:
        for at, _, names in _folders(top, root, mounted, finder.unreadable.append):
            finder.visit(at, names)
    for path in finder.unreadable:
        finder.protect(path if os.path.lexists(path) else os.path.dirname(path))
    return _limited(replace(finder.guard(), mounted=mounted))


def belongs_to_git(root: str, names: Sequence[str]) -> bool:
    """Whether a file that a tool is about to write is read by git as a hook or setting, or would
    make a repository of the folder that it lies in."""
    finder, at = _Finder(root), root
    for name in names:
        if name.casefold() == ".git" or any(
            all(mark == name or os.path.lexists(f"{at}/{mark}") for mark in marks)
            for marks in _MARKS
        ):
            return True
        if os.path.lexists(f"{at}/.git"):
            finder.look_at(f"{at}/.git", at)
        at = f"{at}/{name}"
    return any(_is_in(at, one) for one in finder.read)


_running: list[Guard] = []
_lock = threading.Lock()


@contextmanager
def running(found: Guard) -> Generator[Guard]:
    """Count a command as running in a folder; yield what it may not change.

    Whatever a command that runs already may change is left out: it could put a link in the place of
    a folder, and have another command mount what the link leads to.
    """
    with _lock:
        movable = {
            path
            for path in found.frozen
            for other in _running
            if _is_in(path, other.root) and not other.covers(path)
        }
        guard = replace(found, frozen=found.frozen - movable)
        _running.append(guard)
    try:
        yield guard
    finally:
        with _lock:
            _running.remove(guard)


def switch_off(guard: Guard) -> list[str]:
    """Make git not see the repositories that the guard does not know; return their paths.

    Their HEAD is renamed, or the file or link that leads to them. Nothing of them is lost.
    """
    made: list[str] = []
    unreadable: list[str] = []
    with _opened(open_real_folder(guard.root)) as top:
        for at, folder, names in _folders(
            top, guard.root, guard.frozen | guard.mounted, unreadable.append, opens=True
        ):
            made += [
                f"{at}/{name}"
                for name, is_folder in names.items()
                if name.casefold() == ".git" and not is_folder and _rename(folder, name)
            ]
            if _is_git_folder(names) and _rename(folder, "HEAD"):
                made.append(at)
    return sorted([*made, *unreadable])


class _Finder:
    """Collects what git reads of the repositories in one folder."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._frozen: dict[str, str] = {}
        """Paths that are made read-only, with the reason."""
        self._seen: set[tuple[str, str]] = set()
        self.read: set[str] = set()
        """Paths of the folder that git reads, or would read if they existed."""
        self.unreadable: list[str] = []

    def guard(self) -> Guard:
        outer = [path for path in self._frozen if not _is_below_any(path, self._frozen)]
        why = self._frozen.get(self._root, "")
        return Guard(root=self._root, frozen=frozenset(outer), why=why)

    def protect(self, path: str, why: str = "it belongs to a git repository itself") -> None:
        if _is_in(path, self._root):
            self._frozen.setdefault(path, why)

    def visit(self, folder: str, names: Iterable[str]) -> None:
        """Protect the repositories of a folder, by the names in it."""
        for name in names:
            if name.casefold() == ".git":
                self.look_at(f"{folder}/{name}", folder)
        if _is_git_folder(names):
            self.protect(folder)
            self.look_into(folder, folder)

    def look_at(self, path: str, tree: str) -> None:
        """Protect a `.git` of a working tree, be it a folder, a file or a link."""
        found = self._pin(path)
        if found and os.path.isfile(found):
            named = read_text(found).removeprefix("gitdir:").strip()
            found = self._pin(os.path.join(os.path.dirname(found), named)) if named else ""
        if found:
            self.look_into(found, tree)

    def look_into(self, folder: str, tree: str) -> None:
        """Protect what the own folder of a repository names outside of itself."""
        if (folder, tree) in self._seen or not os.path.isdir(folder):
            return
        self._seen.add((folder, tree))
        self._pin_links(folder)
        self._look_at_hooks(f"{folder}/hooks")
        if named := read_text(f"{folder}/commondir").strip():
            self.look_into(self._pin(os.path.join(folder, named)), tree)
        for name in ("config", "config.worktree"):
            if os.path.lexists(f"{folder}/{name}"):
                self._read_settings(f"{folder}/{name}", tree)
        self.read_settings_of_person(tree)

    def read_settings_of_person(self, tree: str) -> None:
        """Protect what settings for all repositories name."""
        home = Path.home()
        config = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
        own = (f"{config}/git/config", f"{home}/.gitconfig")
        named = os.environ.get("GIT_CONFIG_GLOBAL")
        for path in ("/etc/gitconfig", *((named,) if named else own)):
            if os.path.exists(path):
                self._read_settings(path, tree)

    def _read_settings(self, path: str, tree: str) -> None:
        if (path, tree) in self._seen:
            return
        self._seen.add((path, tree))
        if found := self._pin(path):
            for setting in settings(read_text(found)):
                self._look_at_setting(setting, path, tree)

    def _look_at_setting(self, setting: Setting, path: str, tree: str) -> None:
        match setting:
            case Setting("core", "hookspath", value):
                self._look_at_hooks(_resolved(value, tree))
            case Setting("include" | "includeif", "path", value):
                self._read_settings(_resolved(value, os.path.dirname(path)), tree)
            case Setting(_, _, value):
                for word in _words(value):
                    if "/" in word and os.path.isfile(named := _resolved(word, tree)):
                        self._pin(named)

    def _look_at_hooks(self, path: str) -> None:
        found = self._pin(path)
        if not found or not os.path.isdir(found):
            return
        self._pin_links(found)
        if os.path.basename(found) == "_":  # husky: its hooks run those in the folder around them
            self._pin(os.path.dirname(found))

    def _pin_links(self, folder: str) -> None:
        with suppress(OSError), os.scandir(folder) as entries:
            for link in [entry.path for entry in entries if entry.is_symlink()]:
                self._pin(link)

    def _pin(self, path: str) -> str:
        """Protect a path, and every link on the way to it. Return the path without links; empty if
        there is no such file, whose place is protected then."""
        at, links, left = "", 0, path.split("/")
        while left:
            name = left.pop(0)
            if name in ("", "."):
                continue
            if name == "..":
                at = os.path.dirname(at).rstrip("/")
                continue
            step = f"{at}/{name}"
            try:
                found = os.lstat(step)
            except OSError:
                self._note(step, at, f"its git settings name {step!r}, which does not exist")
                return ""
            if not stat.S_ISLNK(found.st_mode):
                at = step
                continue
            self._note(step, at, f"its git settings are reached through the link {step!r}")
            target = os.readlink(step)
            at, left = "" if target.startswith("/") else at, [*target.split("/"), *left]
            if (links := links + 1) > MOST_LINKS:
                return ""
        self._note(at, at, "its git settings name the whole of it")
        return at

    def _note(self, path: str, frozen: str, why: str) -> None:
        if _is_in(path, self._root):
            self.read.add(path)
            self.protect(frozen, why)


def _folders(
    top: int,
    root: str,
    left_out: Iterable[str],
    unreadable: Callable[[str], None],
    *,
    opens: bool = False,
) -> Iterator[tuple[str, int, dict[str, bool]]]:
    """Yield path, open descriptor and names of each folder below a root, and of each name whether
    it is a folder. No link is followed. With `opens`, folders are opened that were closed."""
    skipped = frozenset(left_out)
    todo = [root] if root not in skipped else []
    while todo:
        at = todo.pop()
        names = [name for name in at[len(root) :].split("/") if name]
        try:
            folder = _open(top, names, opens=opens)
        except PermissionError:
            unreadable(at)
            continue
        except OSError:
            continue  # it was moved or replaced, or its path is longer than any program can use
        with _opened(folder):
            with os.scandir(folder) as entries:
                found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
            found = {name: kind for name, kind in found.items() if f"{at}/{name}" not in skipped}
            yield at, folder, found
            todo += [f"{at}/{name}" for name, is_folder in found.items() if is_folder]


@contextmanager
def _opened(descriptor: int) -> Generator[int]:
    """Close a descriptor at the end."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(top: int, names: list[str], *, opens: bool) -> int:
    try:
        return best_opener()(top, names, FOLDER)
    except PermissionError:
        if not opens:
            raise
    # A command may have closed it to hide what is in it. Its owner may open it again.
    handle = best_opener()(top, names, os.O_PATH | os.O_DIRECTORY)
    with _opened(handle):
        os.chmod(f"/proc/self/fd/{handle}", 0o700)
    return best_opener()(top, names, FOLDER)


def _rename(folder: int, name: str) -> bool:
    """Rename a file so that git does not know it; return whether it was there."""
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(os.fstat(folder).st_mode)
        if mode & 0o300 != 0o300:
            os.fchmod(folder, mode | 0o700)
        away = f"{name}.off-{secrets.token_hex(4)}"
        os.rename(name, away, src_dir_fd=folder, dst_dir_fd=folder)
        return True
    return False


def _limited(guard: Guard) -> Guard:
    """Return the guard; the whole folder becomes read-only if too much of it would be protected."""
    named = held(guard.root, guard.frozen)
    if len(named) <= MOST_MOUNTS and sum(len(path) for path, _ in named) <= MOST_BYTES:
        return guard
    why = "it holds too many git repositories; give single ones of them"
    return replace(guard, frozen=frozenset({guard.root}), why=why)


def held(root: str, frozen: Collection[str]) -> list[tuple[str, bool]]:
    """Return the paths that are mounted one by one, outer ones first, and whether each can be
    written: what is frozen, and the folders around it, which nobody can rename then."""
    paths = {path: False for path in frozen}
    for path in frozen:
        while _is_in(path := os.path.dirname(path), root) and path != root:
            paths.setdefault(path, True)
    return sorted(paths.items(), key=lambda item: item[0].count("/"))


def _is_git_folder(names: Iterable[str]) -> bool:
    found = set(names)
    return any(found.issuperset(marks) for marks in _MARKS)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _is_below_any(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def _resolved(value: str, base: str) -> str:
    return os.path.join(base, os.path.expanduser(value))


def _words(value: str) -> list[str]:
    """Return the words of a setting, which may be a command line."""
    try:
        return shlex.split(value.removeprefix("!"))
    except ValueError:
        return value.split()


def _mounts_in(root: str) -> Iterator[str]:
    """Yield where other file systems are mounted below a folder."""
    for line in read_text("/proc/self/mountinfo").splitlines():
        path = _OCTAL.sub(lambda found: chr(int(found[1], 8)), line.split(" ")[4])
        if path.startswith(f"{root}/"):
            yield path
