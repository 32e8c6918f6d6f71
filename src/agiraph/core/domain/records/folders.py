"""Folders: folders of a person that a team may read, or read and change."""

import re
from dataclasses import replace
from typing import Literal

from agiraph.core.domain.value import value

Access = Literal["ro", "rw"]
GIVEN = "folders"
"""The first part of every path in a given folder, as agents and the API know it."""
MOST_FOLDERS = 16
_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@value
class GivenFolder:
    """A folder that a person gave to a team. Agents see it as `folders/<name>`."""

    name: str
    path: str
    """Absolute, without a symbolic link in it."""
    access: Access = "ro"

    @property
    def is_writable(self) -> bool:
        return self.access == "rw"

    @property
    def source(self) -> str:
        """Return what a grant names that trusts the words in this folder."""
        return f"folder:{self.path}"

    def __str__(self) -> str:
        return f"{self.path}:{self.access}"


def seen_by(folders: tuple[GivenFolder, ...], *, reviews: bool) -> tuple[GivenFolder, ...]:
    """Return a team's folders as an agent sees them: a reviewer changes nothing in them."""
    return tuple(replace(one, access="ro") for one in folders) if reviews else folders


def split_access(text: str) -> tuple[str, Access]:
    """Split `PATH[:ro|rw]`; without an ending the folder can only be read."""
    if text.endswith(":rw"):
        return text[:-3], "rw"
    return text.removesuffix(":ro"), "ro"


def name_for(folder: str, taken: frozenset[str]) -> str:
    """Return the name of a folder in the team's paths: its last part, made plain and unique."""
    plain = _NAME.sub("-", folder).strip("-.") or "folder"
    number, name = 1, plain[:60]
    while name.casefold() in taken:
        number += 1
        name = f"{plain[:60]}-{number}"
    return name
