"""Stored keys: API keys, named secrets and the default model that a person entered.

They are a file of the home that only its owner can read. Commands do not see the home, and backups
leave the file out. The environment and agiraph.toml take precedence over this file.
"""

import os
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agiraph.core.domain.errors import Misconfigured
from agiraph.core.home.layout import Home

FILE = "keys.json"
_LONGEST_BYTES = 2**20


class StoredKeys(BaseModel):
    """What a person entered in the web UI."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    keys: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    """API keys, by the environment variable that would hold them."""
    model: str = ""
    """The default model; empty: none was chosen."""
    named: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    """Named secrets (`home/named_secrets.py`)."""

    @property
    def secrets(self) -> dict[str, str]:
        """Keys and secrets for `redaction`, under names that no environment variable has: else they
        would count as the environment's own."""
        keys = {f"{name} in {FILE}": key for name, key in self.keys.items()}
        return keys | {f"secret {name} in {FILE}": value for name, value in self.named.items()}

    def with_key(self, variable: str, key: str) -> "StoredKeys":
        """Return these keys with one more."""
        return self.model_copy(update={"keys": {**self.keys, variable: key}})

    def with_named(self, name: str, value: str) -> "StoredKeys":
        """Return these keys with one more named secret."""
        return self.model_copy(update={"named": {**self.named, name: value}})

    def without_key(self, variable: str) -> "StoredKeys":
        """Return these keys without one of them."""
        keys = {name: key for name, key in self.keys.items() if name != variable}
        return self.model_copy(update={"keys": keys})

    def with_model(self, model: str) -> "StoredKeys":
        """Return these keys with another default model."""
        return self.model_copy(update={"model": model})


def read(home: Path) -> StoredKeys:
    """Return the stored keys of a home; raise `Misconfigured` if others can read the file."""
    path = home / FILE
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return StoredKeys()
    except OSError as error:
        raise Misconfigured(f"Cannot read {path}: {error.strerror}.") from error
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(file.fileno())
        if found.st_mode & 0o077 or found.st_uid != os.geteuid():
            raise Misconfigured(f"Others can read the API keys in {path}: run chmod 600 {path}")
        raw = file.read(_LONGEST_BYTES)
    try:
        return StoredKeys.model_validate_json(raw)
    except ValidationError:
        # Without the error's own text, which quotes the file.
        raise Misconfigured(
            f"{path} is damaged. Remove it, and enter the API keys in the web UI again."
        ) from None


def write(home: Home, stored: StoredKeys) -> None:
    """Store the keys in place of the old ones, in one rename."""
    home.folder.write(FILE, stored.model_dump_json(indent=2).encode())
