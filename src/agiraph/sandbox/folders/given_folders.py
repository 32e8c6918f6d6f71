"""Given folders: checks the folders that a person gives to a team, before any agent sees them."""

import errno
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from agiraph.core.domain.agents import MOST_FOLDERS, GivenFolder, name_for, split_access
from agiraph.core.domain.errors import Refused
from agiraph.core.home.safe_folder import Folder, best_opener, open_real_folder

MOST_SOCKETS = 5
"""Sockets that are named to the person; a walk stops there."""
MOST_SEEN = 20_000
"""Entries that the search for sockets looks at."""
_SYSTEM = ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "usr", "var")
_FOR_USERS = (("/", "dev", "shm"), ("/", "var", "tmp"))


def check(
    home: Path, folders: Sequence[str], named: Mapping[str, str] | None = None
) -> tuple[GivenFolder, ...]:
    """Return the folders that a person named as `PATH[:ro|rw]`, or raise `Refused` with the reason.

    A text may also be a key of `named`, which holds the folders of agiraph.toml. A folder must
    exist, belong to the user that the runtime runs as, and not overlap another one. Folders that
    may hold tokens, keys or files of other teams are refused: the home of agiraph and any folder
    around or inside it, a user's whole home, system folders and hidden folders.
    """
    if len(folders) > MOST_FOLDERS:
        raise Refused(f"A team works in at most {MOST_FOLDERS} folders; give one that holds them.")
    given: list[GivenFolder] = []
    for text in folders:
        path, access = split_access((named or {}).get(text, text).strip())
        real = _real_path(path)
        _check_place(real, home.resolve(), text)
        if inner := next((one for one in given if _overlap(real, Path(one.path))), None):
            raise Refused(f"{text!r} and {inner.path!r} overlap; give the outer one only.")
        taken = frozenset(one.name.casefold() for one in given)
        given.append(GivenFolder(name=name_for(real.name, taken), path=str(real), access=access))
    return tuple(given)


def _real_path(text: str) -> Path:
    try:
        path = Path(text).expanduser()
        if not text or not path.is_absolute():
            raise Refused(
                f"{text!r} is neither an absolute path nor a name in [folders] of agiraph.toml; "
                "write the path out, from / or ~ on."
            )
        real = path.resolve(strict=True)
        found = real.stat()
    except (OSError, RuntimeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Refused(f"The folder {text!r} cannot be given: {why}.") from None
    if not stat.S_ISDIR(found.st_mode):
        raise Refused(f"{text!r} is not a folder; give the folder that it lies in.")
    if found.st_uid != os.geteuid():
        raise Refused(f"{text!r} belongs to another user; give a folder of your own.")
    return real


def _check_place(real: Path, home: Path, text: str) -> None:
    if _overlap(real, home):
        raise Refused(f"{text!r} holds agiraph's own files, or lies in them; give another folder.")
    user = Path.home().resolve()
    if real == Path("/") or user.is_relative_to(real):
        raise Refused(
            f"{text!r} holds your whole home, with keys and passwords; give a folder inside of it."
        )
    if real.parts[1] in _SYSTEM and (real.parts[:3] not in _FOR_USERS or len(real.parts) < 4):
        raise Refused(f"{text!r} belongs to the system; give a folder of your own.")
    parts = real.relative_to(user).parts if real.is_relative_to(user) else ()
    if hidden := [part for part in parts if part.startswith(".")]:
        raise Refused(
            f"{text!r} lies in {hidden[0]!r} of your home, where programs keep keys and settings; "
            "move what the team needs to another folder."
        )


def open_folder(given: GivenFolder) -> Folder:
    """Open a given folder; the caller closes it. No link inside of it leads out of it.

    No link on the way to it is followed either: another team that works in a folder around it could
    put a link in its place, which leads to files that nobody gave.
    """
    try:
        fd = open_real_folder(given.path)
    except OSError as error:
        raise _refusal(given, error) from None
    folder = Folder(fd, name=f"folders/{given.name}", opener=best_opener())
    folder.is_private = False
    return folder


def check_links(folders: Iterable[GivenFolder]) -> None:
    """Raise `Refused` if a symbolic link has taken the place of one of these folders."""
    for given in folders:
        try:
            os.close(open_real_folder(given.path))
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _refusal(given, error) from None


def _refusal(given: GivenFolder, error: OSError) -> Refused:
    is_link = error.errno == errno.ELOOP
    why = "a symbolic link has taken its place" if is_link else error.strerror
    return Refused(
        f"The folder folders/{given.name} cannot be opened: {why}. The person who gave it to the "
        "team must check that it exists and can be read."
    )


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def sockets(folders: Iterable[GivenFolder]) -> list[str]:
    """Return Unix sockets in these folders, a few of them. Commands of the team cannot connect to
    any; the person is told, because programs that need them will not work."""
    paths = (
        f"{at}/{name}" for one in folders for at, _, names in os.walk(one.path) for name in names
    )
    return list(islice(filter(_is_socket, islice(paths, MOST_SEEN)), MOST_SOCKETS))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False
