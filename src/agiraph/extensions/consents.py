"""Consents: which files, packages and skills a person has enabled, each pinned by its hash.

They are a file of the home, `consents.json`. No agent can reach it: commands do not see the home,
file tools see a team's folder alone, and the API changes it for the owner's token only.
"""

import fcntl
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agiraph.domain.errors import NotFound, Refused
from agiraph.home.layout import Home

FILE = "consents.json"
_LONGEST = 4 * 2**20
_LOCK = "consents.lock"


class Consent(BaseModel):
    """A person has enabled exactly these bytes."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    at: datetime


class _Written(BaseModel):
    model_config = ConfigDict(extra="forbid")

    enabled: dict[str, Consent] = Field(default_factory=dict[str, Consent])


@dataclass(frozen=True, slots=True, kw_only=True)
class Consents:
    """What a person has enabled, by id."""

    enabled: Mapping[str, Consent] = field(default_factory=dict[str, Consent])
    problem: str = ""
    """Why the file could not be read; nothing is enabled then."""

    def allows(self, identity: str, sha256: str) -> bool:
        """Whether a person has enabled this, with exactly this content."""
        found = self.enabled.get(identity)
        return found is not None and found.sha256 == sha256


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
        return Consents(enabled=_Written.model_validate_json(raw).enabled)
    except ValidationError:
        return _broken("it is damaged; remove it and enable again what you use")


def stamp(home: Home) -> tuple[int, int, int]:
    """Return a value that changes whenever `consents.json` does."""
    return stamp_of(home.path / FILE)


def stamp_of(path: Path) -> tuple[int, int, int]:
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


def disable(home: Home, identity: str) -> bool:
    """Remove a consent; return whether there was one."""
    with changing(home) as enabled:
        return enabled.pop(identity, None) is not None


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
        written: dict[str, Any] = _Written(enabled=enabled).model_dump(mode="json")
        data = orjson.dumps(written, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        home.folder.write(FILE, data + b"\n")
    finally:
        os.close(lock)


def _broken(why: str) -> Consents:
    return Consents(problem=f"{FILE} in the home cannot be used: {why}.")
