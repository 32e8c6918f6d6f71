"""Skills: finds folders with a SKILL.md, and offers to a team those that a person has enabled.

A skill is in the home, in a team's folder, or in `.claude/skills` of a folder that a person gave to
the team. It is used from the copy that was made when it was enabled; once its files differ from
that copy, it is off until a person enables it again.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.messages import Notice
from agiraph.core.domain.records.folders import GivenFolder
from agiraph.core.domain.records.skills import TOP, Skill
from agiraph.core.home.layout import Home
from agiraph.features.extensions import pinned, skill_folders
from agiraph.features.extensions.pinned import (
    Consent,
    Consents,
    Content,
    FileText,
    Notices,
    State,
    Status,
)
from agiraph.features.extensions.skill_folders import SkillFiles

IN_HOME = "skills"
IN_FOLDER = ".claude/skills"
MOST_OF_TEAM = 100
_OWN = re.compile(rf"(teams/[A-Za-z0-9_-]+/)?{IN_HOME}/[a-z0-9][a-z0-9_-]*")
"""The places of skills in a home."""


@dataclass(frozen=True, slots=True)
class SkillPlace:
    """Where a skill is: a folder `rel` below a trusted path."""

    base: Path
    rel: str

    @property
    def id(self) -> str:
        """The skill's id in lists and consents: its path, relative to the home if it is inside."""
        return self.rel if self.rel.startswith((IN_HOME, "teams/")) else str(self.base / self.rel)


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

    def take_notices(self) -> list[Notice]:
        """Return and clear what the person is to be told of what is off now."""
        return self.notices.take()

    async def offered(self, team: Team) -> tuple[Skill, ...]:
        """Return the enabled skills of a team, by name. A team's own skill comes before one of a
        folder, and that before one of the home with the same name."""
        consents = self._read_consents()
        if not consents.enabled:
            return ()
        places = [place for place in self._places(team) if place.id in consents.enabled]
        if not places:
            return ()
        found = await asyncio.to_thread(self._current, places, consents)
        return tuple(sorted(found, key=lambda skill: skill.name))

    def _read_consents(self) -> Consents:
        stamp = pinned.stamp(self.home)
        if self._consents[0] != stamp:
            self._consents = (stamp, pinned.read(self.home))
        return self._consents[1]

    def _places(self, team: Team) -> list[SkillPlace]:
        return [*self._of_team(team.id), *_of_folders(team.folders), *self._of_home()]

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
        stamp = (sha256, skill_folders.stamp(place.base, place.rel))
        known = self._known.get(place.id)
        if known is None or known[0] != stamp:
            known = self._known[place.id] = (stamp, self._checked(place, sha256))
        return known[1]

    def _checked(self, place: SkillPlace, sha256: str) -> Skill | None:
        try:
            found = skill_folders.read(place.base, place.rel).sha256
        except Refused:
            found = ""
        if found == sha256:
            return skill_folders.enabled_copy(self.home, sha256)
        self.notices.add(Status(id=place.id, state="changed", sha256=found), command="skills")
        return None

    def listed(self, folders: Iterable[GivenFolder] = ()) -> list[SkillStatus]:
        """Return the status of every skill: those of the home, of its teams and of these
        folders."""
        teams = skill_folders.names(self.home.path, "teams")
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
            found = skill_folders.read(place.base, place.rel)
        except Refused as error:
            state: State = "off" if given is None else "faulty"
            return SkillStatus(id=place.id, state=state, problem=str(error), enabled_at=at)
        state = "off"
        if given is not None:
            state = "on" if given.sha256 == found.sha256 else "changed"
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
        if sha256 not in ("", found.sha256):
            raise Conflict(f"{place.id} has changed since you looked at it; look again.")
        # Under the lock of the consents, as `forget_below` removes copies that none of them names.
        with pinned.changing(self.home) as enabled:
            skill_folders.keep_copy(self.home, found)
            enabled[place.id] = Consent(sha256=found.sha256, at=at)
        return self._status(place, pinned.read(self.home))

    def content(self, identity: str) -> Content:
        """Return the files of a skill, as they were enabled and as they are now."""
        place, found = self._read(identity)
        given = pinned.read(self.home).enabled.get(place.id)
        before: dict[str, bytes] = {}
        if given is not None:
            try:
                copy = skill_folders.read(self.home.path, f"{skill_folders.COPIES}/{given.sha256}")
                before = dict(copy.files)
            except Refused:
                pass  # the copy is gone: nothing can be compared
        names = sorted({*before, *found.files})
        return Content(
            sha256=found.sha256,
            files=tuple(
                FileText(
                    path=name,
                    before=pinned.text_of(before[name]) if name in before else None,
                    now=pinned.text_of(found.files[name]) if name in found.files else None,
                )
                for name in names
            ),
        )

    def disable(self, identity: str) -> str:
        """Remove the consent to a skill; return its id, or raise `Refused` if there was none."""
        ids = [identity, f"{IN_HOME}/{identity}", str(_path(identity))]
        for one in ids:
            if pinned.disable(self.home, one):
                return one
        raise Refused(f"{identity!r} is not enabled; nothing was changed.")

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
            skill_folders.about(data, place.rel.rpartition("/")[2])
        except Refused as error:
            raise Refused(f"The file cannot be used: {error}") from error
        self.home.folder.sub(place.rel, create=True).close()
        self.home.folder.write(f"{place.rel}/{TOP}", data)
        return self._status(place, pinned.read(self.home))

    def _read(self, identity: str) -> tuple[SkillPlace, SkillFiles]:
        place = self._place(identity)
        try:
            return place, skill_folders.read(place.base, place.rel)
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
    copies = set(skill_folders.names(home.path, skill_folders.COPIES))
    if known.problem or not (copies or known.enabled):
        return
    with pinned.changing(home) as enabled:
        for identity in [one for one in enabled if one.startswith(prefix)]:
            del enabled[identity]
        named = {consent.sha256 for consent in enabled.values()}
        for copy in copies - named:
            home.folder.remove(f"{skill_folders.COPIES}/{copy}")


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
    return [SkillPlace(base, f"{rel}/{name}") for name in skill_folders.names(base, rel)]


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
