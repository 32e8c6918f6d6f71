"""Skills: finds folders with a SKILL.md, and offers to a team those that a person has enabled.

A skill is in the home, in a team's folder, or in `.claude/skills` of a folder that a person gave to
the team. It is used from a copy in the home that was written from the very bytes that were hashed;
once its files differ from that copy, it is off until a person enables it again.

Nothing in a skill is run here. Its folder may come from outside, or agents may be able to write to
it, so links are not followed and sizes are bounded.
"""

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import datetime
from pathlib import Path

from agiraph.core.domain.agents import GivenFolder, Team
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.records.skills import MOST_BYTES, TOP, Skill
from agiraph.core.domain.value import dataclass
from agiraph.core.home import front_matter
from agiraph.core.home.layout import Home
from agiraph.core.home.safe_folder import Folder
from agiraph.features.extensions import pinned
from agiraph.features.extensions.pinned import (
    Consent,
    Consents,
    Item,
    Notices,
    State,
    Status,
)

IN_HOME = "skills"
IN_FOLDER = ".claude/skills"
SKILL_CONSENT = "Agents then follow it as they follow you. Read its files first."
"""What a person is told before they enable a skill."""
MOST_OF_TEAM = 100
_OWN = re.compile(rf"(teams/[A-Za-z0-9_-]+/)?{IN_HOME}/[a-z0-9][a-z0-9_-]*")
"""The places of skills in a home."""
COPIES = "enabled-skills"
"""The folder of a home with the copies of enabled skills, each below its hash."""
MOST_FILES = 200
LONGEST_TOP = 64 * 1024
LONGEST_DESCRIPTION = 1024
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFiles(Item):
    """The content of a skill's folder, with its hash."""

    name: str
    description: str
    programs: frozenset[str] = frozenset()
    """The files that are executable."""


@dataclass(frozen=True, slots=True)
class SkillPlace:
    """Where a skill is: a folder `rel` below a trusted path."""

    base: Path
    rel: str = ""

    @property
    def id(self) -> str:
        """The skill's id in lists and consents: its path, relative to the home if it is inside."""
        return self.rel if self.rel.startswith((IN_HOME, "teams/")) else str(self.base / self.rel)

    def read(self) -> SkillFiles:
        """Return the files of the skill; raise `Refused` with what is wrong. No link in `rel` or
        below it is followed."""
        try:
            with Folder.open(self.base) as opened, opened.sub(self.rel) as folder:
                files, programs = _files(folder)
        except OSError as error:
            raise Refused(f"it cannot be opened: {error.strerror}.") from error
        top = files.get(TOP)
        if top is None:
            raise Refused(f"it has no {TOP}.")
        name, description = about(top, (self.base / self.rel).name)
        return SkillFiles(
            id=self.id,
            name=name,
            description=description,
            sha256=_hash(files, programs),
            files=files,
            programs=programs,
        )

    def stamp(self) -> tuple[object, ...]:
        """Return a value that changes whenever a file of the folder does, without reading them."""
        try:
            with Folder.open(self.base) as opened, opened.sub(self.rel) as folder:
                entries = list(folder.tree(limit=MOST_FILES * 2))
        except (OSError, Refused):
            return ()
        return tuple(sorted((e.name, e.kind, e.size, e.modified.timestamp()) for e in entries))


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillStatus(Status):
    """The state of one skill."""

    name: str = ""
    description: str = ""

    @property
    def about(self) -> str:
        return self.description


@dataclass(slots=True, kw_only=True)
class Skills:
    """The skills of a home."""

    home: Home
    _known: dict[str, tuple[object, Skill | None]] = field(
        default_factory=dict[str, tuple[object, Skill | None]]
    )
    """Enabled skills by id, each with the stamp of the files and consent that it was read with."""
    _consents: tuple[object, Consents] = ((), Consents())
    notices: Notices = field(default_factory=Notices)

    async def offered(self, team: Team) -> tuple[Skill, ...]:
        """Return the enabled skills of a team, by name. A team's own skill comes before one of a
        folder, and that before one of the home with the same name."""
        consents = self._read_consents()
        if not consents.enabled:
            return ()
        every = (*self._of_team(team.id), *_of_folders(team.folders), *self._of_home())
        places = [place for place in every if place.id in consents.enabled]
        if not places:
            return ()
        found = await asyncio.to_thread(self._current, places, consents)
        return tuple(sorted(found, key=lambda skill: skill.name))

    def _read_consents(self) -> Consents:
        stamp = pinned.stamp(self.home.path / pinned.FILE)
        if self._consents[0] != stamp:
            self._consents = (stamp, pinned.read(self.home))
        return self._consents[1]

    def _of_home(self) -> list[SkillPlace]:
        return _in(self.home.path, IN_HOME)

    def _of_team(self, team_id: str) -> list[SkillPlace]:
        return _in(self.home.path, f"teams/{team_id}/{IN_HOME}")

    def _current(self, places: Sequence[SkillPlace], consents: Consents) -> list[Skill]:
        """Return the skills whose files are still those that a person enabled."""
        found: dict[str, Skill] = {}
        for place in places[:MOST_OF_TEAM]:
            skill = self._unchanged(place, consents.enabled[place.id].sha256)
            if skill is not None:
                found.setdefault(skill.name, skill)
        return list(found.values())

    def _unchanged(self, place: SkillPlace, sha256: str) -> Skill | None:
        stamp = (sha256, place.stamp())
        known = self._known.get(place.id)
        if known is None or known[0] != stamp:
            known = self._known[place.id] = (stamp, self._checked(place, sha256))
        return known[1]

    def _checked(self, place: SkillPlace, sha256: str) -> Skill | None:
        try:
            found = place.read().sha256
        except Refused:
            found = ""
        if found == sha256:
            return enabled_copy(self.home, sha256)
        self.notices.add(Status(id=place.id, state="changed", sha256=found), command="skills")
        return None

    def listed(self, folders: Iterable[GivenFolder] = ()) -> list[SkillStatus]:
        """Return the status of every skill: those of the home, of its teams and of these
        folders."""
        teams = names(self.home.path, "teams")
        places = [*self._of_home(), *(p for team in teams for p in self._of_team(team))]
        consents = pinned.read(self.home)
        found = {place.id: place for place in (*places, *_of_folders(folders))}
        # Enabled skills in other folders are listed, too.
        for identity in consents.enabled:
            if identity.startswith("/") and identity not in found:
                found[identity] = _at(identity)
        return [self._status(found[identity], consents) for identity in sorted(found)]

    def _status(self, place: SkillPlace, consents: Consents) -> SkillStatus:
        given = consents.enabled.get(place.id)
        at = None if given is None else given.at
        try:
            found = place.read()
        except Refused as error:
            state: State = "off" if given is None else "faulty"
            return SkillStatus(id=place.id, state=state, problem=str(error), enabled_at=at)
        state = "off"
        if given is not None:
            state = "on" if consents.allows(found) else "changed"
        return SkillStatus(
            id=place.id,
            state=state,
            name=found.name,
            description=found.description,
            sha256=found.sha256,
            enabled_at=at,
        )

    def enable(self, identity: str, *, sha256: str = "", at: datetime) -> SkillStatus:
        """Enable a skill as a person wants it; raise `Refused` if it cannot be used.

        `identity` is its id, its name if it is in the home, or the absolute path of its folder.
        """
        place, found = self._read(identity)
        found.check(sha256)
        # Under the lock of the consents, as `forget_below` removes copies that none of them names.
        with pinned.changing(self.home) as enabled:
            keep_copy(self.home, found)
            enabled[place.id] = Consent(sha256=found.sha256, at=at)
        return self._status(place, pinned.read(self.home))

    def content(self, identity: str) -> tuple[SkillFiles, Mapping[str, bytes]]:
        """Return a skill as it is now, with its files as they were enabled."""
        place, found = self._read(identity)
        given = pinned.read(self.home).enabled.get(place.id)
        before: Mapping[str, bytes] = {}
        if given is not None:
            with suppress(Refused):  # the copy is gone: nothing can be compared
                before = SkillPlace(self.home.path, f"{COPIES}/{given.sha256}").read().files
        return found, before

    def disable(self, identity: str) -> str:
        """Remove the consent to a skill; return its id, or raise `Refused` if there was none."""
        in_home, path = f"{IN_HOME}/{identity}", str(_path(identity))
        return pinned.disable(self.home, identity, in_home, path)

    def files_of(self, identity: str) -> tuple[SkillFiles, bool]:
        """Return the files of a skill, and whether it lies in the home, where a person can change
        it; raise `Refused` if it cannot be read."""
        place, found = self._read(identity)
        return found, place.base == self.home.path

    def write_top(self, identity: str, text: str) -> SkillStatus:
        """Write the SKILL.md of a skill in the home, a new one if there is none. Its files are then
        others than those that were enabled, so it is off until a person enables it again."""
        place = self._place(identity)
        if place.base != self.home.path:
            raise Refused(f"{place.id} lies in a folder of yours; change the file there.")
        if not _OWN.fullmatch(place.rel):
            raise Refused(f"{identity!r} is not the path of a skill; write skills/NAME.")
        data = text.encode(errors="replace")
        try:
            about(data, place.rel.rpartition("/")[2])
        except Refused as error:
            raise Refused(f"The file cannot be used: {error}") from error
        self.home.folder.sub(place.rel, create=True).close()
        self.home.folder.write(f"{place.rel}/{TOP}", data)
        return self._status(place, pinned.read(self.home))

    def _read(self, identity: str) -> tuple[SkillPlace, SkillFiles]:
        place = self._place(identity)
        try:
            return place, place.read()
        except NotFound as error:
            raise Refused(f"There is no skill at {place.id!r}.") from error
        except Refused as error:
            raise Refused(f"{place.id} cannot be enabled: {error}") from error

    def _place(self, identity: str) -> SkillPlace:
        path = _path(identity)
        if path.is_absolute():
            return _at(str(path))
        inside = identity.startswith((f"{IN_HOME}/", "teams/"))
        return SkillPlace(self.home.path, identity if inside else f"{IN_HOME}/{identity}")


def forget_below(home: Home, prefix: str) -> None:
    """Remove the consents whose id begins with this prefix, and the copies of skills that no
    consent names any more."""
    known = pinned.read(home)
    copies = set(names(home.path, COPIES))
    if known.problem or not (copies or known.enabled):
        return
    with pinned.changing(home) as enabled:
        for identity in [one for one in enabled if one.startswith(prefix)]:
            del enabled[identity]
        named = {consent.sha256 for consent in enabled.values()}
        for copy in copies - named:
            home.folder.remove(f"{COPIES}/{copy}")


def _path(identity: str) -> Path:
    """Return an id as a path, with the home folder of a user in place of `~`."""
    if "\0" in identity:
        raise Refused("The id of a skill cannot hold a NUL character; leave it out.")
    try:
        return Path(identity).expanduser()
    except RuntimeError:
        raise Refused(f"{identity!r} begins with a user that this machine does not know.") from None


def _of_folders(folders: Iterable[GivenFolder]) -> list[SkillPlace]:
    return [place for one in folders for place in _in(Path(one.path), IN_FOLDER)]


def _in(base: Path, rel: str) -> list[SkillPlace]:
    return [SkillPlace(base, f"{rel}/{name}") for name in names(base, rel)]


def _at(path: str) -> SkillPlace:
    """Return the place of a skill by its absolute path, which must lie below `.claude/skills` of a
    folder."""
    base, mark, name = path.partition(f"/{IN_FOLDER}/")
    if not mark or not name or "/" in name.strip("/"):
        raise Refused(
            f"{path!r} is not a skill of a given folder: such a path ends with {IN_FOLDER}/NAME. "
            "Skills of "
            "your own go into skills/ of the home."
        )
    return SkillPlace(Path(base).resolve(), f"{IN_FOLDER}/{name.strip('/')}")


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
        found = SkillPlace(path).read()
    except (Refused, NotFound):
        return None
    if found.sha256 != sha256:
        return None
    files = tuple(name for name in found.files if name != TOP)
    return Skill(
        name=found.name, description=found.description, sha256=sha256, path=path, files=files
    )
