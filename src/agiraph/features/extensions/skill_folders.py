"""Skill folders: reads, hashes and copies folders with a SKILL.md.

Nothing in them is run here. The folder may come from outside, or agents may be able to write to it,
so links are not followed and sizes are bounded. An enabled skill is used from a copy in the home
that was written from the very bytes that were hashed.
"""

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.records.skills import MOST_BYTES, TOP, Skill
from agiraph.core.home import front_matter
from agiraph.core.home.layout import Home
from agiraph.core.home.safe_folder import Folder

COPIES = "enabled-skills"
"""The folder of a home with the copies of enabled skills, each below its hash."""
MOST_FILES = 200
LONGEST_TOP = 64 * 1024
LONGEST_DESCRIPTION = 1024
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFiles:
    """The content of a skill's folder, with its hash."""

    name: str
    description: str
    sha256: str
    files: Mapping[str, bytes] = field(repr=False)
    programs: frozenset[str] = frozenset()
    """The files that are executable."""


def read(base: Path, rel: str = "") -> SkillFiles:
    """Return the files of the skill in the folder `rel` of `base`, a trusted path; raise `Refused`
    with what is wrong. No link in `rel` or below it is followed."""
    try:
        with Folder.open(base) as opened, opened.sub(rel) as folder:
            files, programs = _files(folder)
    except OSError as error:
        raise Refused(f"it cannot be opened: {error.strerror}.") from error
    top = files.get(TOP)
    if top is None:
        raise Refused(f"it has no {TOP}.")
    name, description = about(top, (base / rel).name)
    return SkillFiles(
        name=name,
        description=description,
        sha256=_hash(files, programs),
        files=files,
        programs=programs,
    )


def _files(folder: Folder) -> tuple[dict[str, bytes], frozenset[str]]:
    entries = [entry for entry in folder.tree(limit=MOST_FILES * 2) if entry.kind != "folder"]
    if len(entries) > MOST_FILES:
        raise Refused(f"it has more than {MOST_FILES} files.")
    files: dict[str, bytes] = {}
    programs: set[str] = set()
    left = MOST_BYTES
    for entry in sorted(entries, key=lambda entry: entry.name):
        if entry.kind != "file":
            raise Refused(f"{entry.name!r} in it is not a regular file; replace links by files.")
        with folder.open_file(entry.name) as file:
            data = file.read(left + 1)
            if os.fstat(file.fileno()).st_mode & stat.S_IXUSR:
                programs.add(entry.name)
        left -= len(data)
        if left < 0:
            raise Refused(f"it is larger than {MOST_BYTES // 2**20} MiB.")
        files[entry.name] = data
    return files, frozenset(programs)


def about(top: bytes, folder: str) -> tuple[str, str]:
    """Return the name and description of a SKILL.md in this folder; raise `Refused` with what is
    wrong."""
    if len(top) > LONGEST_TOP:
        raise Refused(
            f"its {TOP} is longer than {LONGEST_TOP // 1024} KiB: move parts of it to other files."
        )
    settings, _ = front_matter.split(top.decode(errors="replace"))
    name = str(settings.get("name") or folder).strip().lower()
    if not _NAME.fullmatch(name):
        raise Refused(f"its name {name!r} is not made of small letters, digits, - and _.")
    description = " ".join(str(settings.get("description") or "").split())
    if not description:
        raise Refused("it has no description: say when to use it.")
    if len(description) > LONGEST_DESCRIPTION:
        raise Refused(f"its description has over {LONGEST_DESCRIPTION} characters: shorten it.")
    return name, description


def _hash(files: Mapping[str, bytes], programs: frozenset[str]) -> str:
    digest = hashlib.sha256()
    for name, data in files.items():
        mark = "x" if name in programs else "-"
        digest.update(f"{name}\n{mark}\n{hashlib.sha256(data).hexdigest()}\n".encode())
    return digest.hexdigest()


def stamp(base: Path, rel: str) -> tuple[object, ...]:
    """Return a value that changes whenever a file of the folder does, without reading the files."""
    try:
        with Folder.open(base) as opened, opened.sub(rel) as folder:
            entries = list(folder.tree(limit=MOST_FILES * 2))
    except (OSError, Refused):
        return ()
    return tuple(sorted((e.name, e.kind, e.size, e.modified.timestamp()) for e in entries))


def names(base: Path, rel: str) -> list[str]:
    """Return the names of the folders in `rel` of `base`; none if it does not exist."""
    try:
        with Folder.open(base) as opened, opened.sub(rel) as folder:
            return [e.name for e in folder.list() if e.kind == "folder" and e.name[0] != "."]
    except (OSError, Refused):
        return []


def keep_copy(home: Home, skill: SkillFiles) -> None:
    """Write the copy from which an enabled skill is used, unless it exists undamaged."""
    place = f"{COPIES}/{skill.sha256}"
    if enabled_copy(home, skill.sha256) is not None:
        return
    if home.folder.exists(place):
        home.folder.remove(place)
    partial = f"{COPIES}/.{skill.sha256}.{os.getpid()}"
    if home.folder.exists(partial):  # a crash left it
        home.folder.remove(partial)
    with home.folder.sub(partial, create=True) as folder:
        for name, data in skill.files.items():
            with folder.create_file(name, mode=0o700 if name in skill.programs else 0o600) as file:
                file.write(data)
    home.folder.rename(partial, place)


def enabled_copy(home: Home, sha256: str) -> Skill | None:
    """Return an enabled skill from its copy; None if the copy is missing or damaged."""
    path = home.path.resolve() / COPIES / sha256
    try:
        found = read(path)
    except (Refused, NotFound):
        return None
    if found.sha256 != sha256:
        return None
    files = tuple(name for name in found.files if name != TOP)
    return Skill(
        name=found.name, description=found.description, sha256=sha256, path=path, files=files
    )
