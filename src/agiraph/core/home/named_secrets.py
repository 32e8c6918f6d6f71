"""Named secrets: the values behind the names in `[secrets]` of agiraph.toml, and those of a person.

A tool or a server is handed a secret by its name. The settings say where the value is, in an
environment variable or in a file that only its owner can read. What a person enters in the composer
or in a chat is in the home's file of keys. Every value is remembered for redaction before anybody
gets it, so that it is written into no row, log or answer.
"""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, cast

from agiraph.core.domain.errors import Conflict, Misconfigured, Refused
from agiraph.core.domain.value import dataclass
from agiraph.core.home import stored_keys
from agiraph.core.home.layout import Home
from agiraph.redaction import SHORTEST_SECRET, keep

TABLE = "secrets"
EXAMPLE = 'NAME = "env:VARIABLE" or NAME = "file:/path/to/a/file"'
FEWEST_CHARACTERS = 4
"""Different characters that an entered secret has at least."""
LONGEST_BYTES = 64 * 1024
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
Kind = Literal["env", "file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretSource:
    """Where the value of one secret is."""

    kind: Kind
    place: str
    """The environment variable, or the path of the file."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSecrets:
    """The secrets of an installation by name."""

    sources: Mapping[str, SecretSource] = field(default_factory=dict[str, SecretSource])
    environ: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The values of the variables that the sources name."""
    home: Path | None = None
    """The home, whose file of keys has what a person entered."""

    def knows(self, name: str) -> bool:
        """Whether there is a secret of this name, now."""
        return name in self.sources or name in self._entered()

    @property
    def names(self) -> frozenset[str]:
        """The names of all secrets that there are now."""
        return frozenset((*self.sources, *self._entered()))

    def _entered(self) -> Mapping[str, str]:
        return {} if self.home is None else stored_keys.read(self.home).named

    def get(self, name: str) -> str:
        """Return the value of a secret, or raise `Misconfigured` with what to do.

        A file is read anew each time, so that a replaced secret counts at once.
        """
        source = self.sources.get(name)
        if source is None and (entered := self._entered().get(name)):
            value = entered
        elif source is None:
            raise Misconfigured(
                f"There is no secret {name!r}: write {EXAMPLE} into [{TABLE}] of agiraph.toml."
            )
        elif source.kind == "env":
            value = self.environ.get(source.place, "")
            if not value:
                raise Misconfigured(f"The secret {name!r} is empty: set {source.place}.")
        else:
            value = _read(name, Path(source.place))
        if len(value) < SHORTEST_SECRET:
            raise Misconfigured(
                f"The secret {name!r} is shorter than {SHORTEST_SECRET} characters, too short to "
                "be kept out of logs and threads; use a longer one."
            )
        # The name has a space, so that it never becomes a variable of an environment.
        keep({f"secret {name}": value})
        return value

    def problem(self, name: str) -> str:
        """Return why a secret cannot be used; empty if it can."""
        try:
            self.get(name)
        except Misconfigured as error:
            return str(error)
        return ""


def named_secrets(path: Path, written: Any, environ: Mapping[str, str]) -> NamedSecrets:
    """Return the secrets of a settings file, or raise `Misconfigured` with the wrong entry.

    Values of variables are remembered for redaction at once, those of files when they are read.
    """
    if not isinstance(written, dict):
        raise Misconfigured(f"{path}: [{TABLE}] is a table: {EXAMPLE}.")
    sources = {
        name: _source(f"{path}: {TABLE}.{name}", name, value)
        for name, value in cast(dict[str, Any], written).items()
    }
    wanted = {source.place for source in sources.values() if source.kind == "env"}
    values = {name: environ[name] for name in wanted if environ.get(name)}
    keep(values)
    return NamedSecrets(sources=sources, environ=values, home=path.parent)


def enter(home: Home, secrets: NamedSecrets, name: str, value: str) -> None:
    """Keep a secret that a person has entered, by its name, and redact it from now on.

    Raise `Refused` if it cannot be kept out of texts, and `Conflict` if agiraph.toml has that name.
    """
    if not _NAME.fullmatch(name):
        raise Refused("A secret's name is made of letters, digits, - and _, a letter first.")
    if len(value) < SHORTEST_SECRET or len(set(value)) < FEWEST_CHARACTERS:
        raise Refused(
            f"A secret has at least {SHORTEST_SECRET} characters, {FEWEST_CHARACTERS} of them "
            "different: a shorter one stands in ordinary texts and numbers, too."
        )
    if name in secrets.sources:
        raise Conflict(f"agiraph.toml has a secret {name!r} already; choose another name.")
    stored = stored_keys.read(home.path).with_named(name, value)
    keep(stored.secrets)
    stored_keys.write(home, stored)


def _source(where: str, name: str, value: Any) -> SecretSource:
    if not _NAME.fullmatch(name):
        raise Misconfigured(f"{where}: a name is made of letters, digits, - and _.")
    # The value is not quoted in a message: somebody may have written the secret itself.
    kind, _, place = value.partition(":") if isinstance(value, str) else ("", "", "")
    if kind == "env" and place.strip():
        return SecretSource(kind="env", place=place.strip())
    if kind == "file" and Path(place).expanduser().is_absolute():
        return SecretSource(kind="file", place=str(Path(place).expanduser()))
    raise Misconfigured(
        f"{where} must say where the secret is, never the secret itself: {EXAMPLE}, with a whole "
        "path."
    )


def _read(name: str, path: Path) -> str:
    """Return the text of a secret's file. Mode and owner are checked on the open descriptor."""
    try:
        # O_NONBLOCK: opening a FIFO must not block the runtime.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise Misconfigured(
            f"The secret {name!r} cannot be read from {str(path)!r}: {error.strerror}."
        ) from error
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise Misconfigured(f"The secret {name!r}: {str(path)!r} is not a regular file.")
        if found.st_mode & 0o077 or found.st_uid not in (os.geteuid(), 0):
            raise Misconfigured(
                f"The secret {name!r}: others can read or change {str(path)!r}. Make it yours "
                f"alone: chmod 600 {path}"
            )
        raw = file.read(LONGEST_BYTES + 1)
    try:
        text = raw.decode().strip()
    except UnicodeDecodeError:
        raise Misconfigured(f"The secret {name!r}: {str(path)!r} is not text.") from None
    if not text or len(raw) > LONGEST_BYTES or "\0" in text:
        raise Misconfigured(
            f"The secret {name!r}: {str(path)!r} must hold one text of at most "
            f"{LONGEST_BYTES // 1024} KiB."
        )
    return text
