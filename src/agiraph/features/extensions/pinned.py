"""Pinned items: files, packages and skills that a person has enabled, each pinned by its hash.

Consents are a file of the home, `consents.json`. No agent can reach it: commands do not see the
home, file tools see a team's folder alone, and the API changes it for the owner's token only.
"""

import fcntl
import hashlib
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.messages import Notice
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import Home
from agiraph.core.home.safe_folder import Folder

FILE = "consents.json"
COPIES = "enabled-code"
"""The folder of a home with the files that a person has enabled, each named by its hash."""
_LONGEST = 4 * 2**20
_LOCK = "consents.lock"
State = Literal["off", "on", "changed", "faulty"]
"""off: no person has enabled it. changed: a person has enabled other content under its name, so it
is off again. faulty: enabled, but it cannot be used."""


class Consent(BaseModel):
    """A person has enabled exactly these bytes."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    at: datetime


_WRITTEN: TypeAdapter[dict[Literal["enabled"], dict[str, Consent]]] = TypeAdapter(
    dict[Literal["enabled"], dict[str, Consent]]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consents:
    """What a person has enabled, by id."""

    enabled: Mapping[str, Consent] = field(default_factory=dict[str, Consent])
    problem: str = ""
    """Why the file could not be read; nothing is enabled then."""

    def allows(self, item: "Item") -> bool:
        """Whether a person has enabled this, with exactly this content."""
        found = self.enabled.get(item.id)
        return found is not None and found.sha256 == item.sha256


def read(home: Home) -> Consents:
    """Return the consents of a home. A file that cannot be trusted or read enables nothing."""
    try:
        with home.folder.open_file(FILE) as file:
            found = os.fstat(file.fileno())
            if found.st_mode & 0o022 or found.st_uid != os.geteuid():
                return _broken("others can change it; remove it and enable again what you use")
            raw = file.read(_LONGEST + 1)
    except NotFound:
        return Consents()
    except (Refused, OSError) as error:
        return _broken(str(error))
    try:
        return Consents(enabled=_WRITTEN.validate_json(raw).get("enabled", {}))
    except ValidationError:
        return _broken("it is damaged; remove it and enable again what you use")


def stamp(path: Path) -> tuple[int, int, int]:
    """Return inode, modification time and size of a file; zeros if there is no file."""
    try:
        found = path.lstat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def enable(home: Home, identity: str, sha256: str, *, at: datetime) -> None:
    """Store a person's consent to this content. It replaces an earlier consent with the same id."""
    with changing(home) as enabled:
        enabled[identity] = Consent(sha256=sha256, at=at)


def disable(home: Home, *ids: str) -> str:
    """Remove the first consent with one of these ids and return its id; raise `Refused` if there
    is none."""
    with changing(home) as enabled:
        for identity in ids:
            if enabled.pop(identity, None) is not None:
                return identity
    raise Refused(f"{ids[0]!r} is not enabled; nothing was changed.")


@contextmanager
def changing(home: Home) -> Generator[dict[str, Consent]]:
    """Yield the consents for changes, with the lock file locked; write them in one rename when the
    block ends."""
    # The lock is on a file of its own: a rename replaces consents.json, and a lock on it is lost.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(home.path / _LOCK, flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        consents = read(home)
        if consents.problem:
            raise Refused(consents.problem)
        enabled = dict(consents.enabled)
        yield enabled
        written = _WRITTEN.dump_python({"enabled": enabled}, mode="json")
        data = orjson.dumps(written, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        home.folder.write(FILE, data + b"\n")
    finally:
        os.close(lock)


def _broken(why: str) -> Consents:
    return Consents(problem=f"{FILE} in the home cannot be used: {why}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of one item, as lists show it to people."""

    id: str
    state: State
    sha256: str = ""
    problem: str = ""
    enabled_at: datetime | None = None

    @property
    def about(self) -> str:
        """Return what it offers, in words; empty if that is not known."""
        return ""

    @property
    def summary(self) -> str:
        """Return in one sentence what a person must know of it."""
        match self.state:
            case "changed":
                return "changed since it was enabled, so it is off; enable it again to use it"
            case "on":
                return self.about
            case "off":
                return self.problem or self.about or "not enabled"
            case "faulty":
                return self.problem


@dataclass(slots=True)
class Notices:
    """Notices for a person that were not sent yet. Each change is added once."""

    _found: dict[Notice, None] = field(default_factory=dict[Notice, None])
    _taken: int = 0

    def add(self, one: Status, *, command: Literal["tools", "skills"]) -> None:
        """Add that an item, which a person has enabled, has changed or cannot be used."""
        text = (
            f"{one.id} has changed since you enabled it, so agents no longer have it. Look at it, "
            f"and enable it again if you want: agiraph {command} enable {one.id}"
            if one.state == "changed"
            else f"{one.id} cannot be used: {one.problem} Agents do without it; nothing else is "
            "affected."
        )
        # Its key is the change itself: after a restart it is found again, and not sent again.
        change = hashlib.sha256(f"{one.id}\n{one.sha256}\n{text}".encode()).hexdigest()[:24]
        self._found[Notice(key=f"own:{change}", title=f"{one.id} is off", text=text)] = None

    def take(self) -> list[Notice]:
        """Return the notices that were not taken yet."""
        new = [*self._found][self._taken :]
        self._taken += len(new)
        return new


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What a person may enable, as it is now."""

    id: str
    sha256: str = ""
    problem: str = ""
    """Why it cannot be enabled; empty if it can."""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    """The files that a consent covers. Those of a package are not held."""

    def check(self, seen: str) -> None:
        """Raise `Refused` if it cannot be enabled, and `Conflict` if its hash is not the one that
        a person has seen."""
        if self.problem:
            raise Refused(f"{self.id} cannot be enabled: {self.problem}")
        if seen not in ("", self.sha256):
            raise Conflict(f"{self.id} has changed since you looked at it; look again.")


def keep_copy(home: Home, item: Item) -> None:
    """Keep the bytes of an enabled file, so that a later change can be shown beside them."""
    for data in filter(None, item.files.values()):
        home.folder.write(f"{COPIES}/{item.sha256}", data)


def copy(home: Home, identity: str) -> dict[str, bytes]:
    """Return the file that was enabled under this id, from its copy; empty if there is none or it
    was changed."""
    given = read(home).enabled.get(identity)
    if given is None:
        return {}
    try:
        with Folder.open(home.path) as folder:
            data = folder.read(f"{COPIES}/{given.sha256}", limit=_LONGEST)
    except (NotFound, Refused, OSError):
        return {}
    return {identity: data} if hashlib.sha256(data).hexdigest() == given.sha256 else {}
