"""Path lookup: finds the file of a team that a text names, as agents name files."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agiraph.core.domain.ids import NodeId
from agiraph.core.home.node_folder import PUBLISHED, SCRATCH
from agiraph.core.home.safe_folder import Folder
from agiraph.core.home.safe_open import split

_PLACE = re.compile(r":\d+(:\d+)?$")
"""A line, and perhaps a column, after a path: `report.py:12:3`."""
_OWN = ("history", "spool")
"""Folders of the runtime: they are in no text of an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPath:
    path: str
    """In the team's folder."""
    kind: Literal["file", "folder"]


@dataclass(frozen=True, slots=True)
class PathLookup:
    folder: Folder
    """The team's folder."""
    root: str
    """Its path on this machine, by which commands know it."""
    nodes: Sequence[NodeId]
    """The nodes in whose folders a path may lie, the likeliest first."""

    def find(self, text: str) -> FoundPath | None:
        """Return the file or folder that a text names; None if there is none. Raise `Refused` for a
        text that can be no path. A path that leads through a link is not found."""
        name = text.strip().removeprefix(f"{self.root}/").removeprefix("./").rstrip("/")
        if name.startswith("/") or not name.strip("./"):
            return None
        for path in self._candidates("/".join(split(name))):
            entry = self.folder.find(path)
            if entry is not None and entry.kind != "other":
                return FoundPath(path=path, kind=entry.kind)
        return None

    def _candidates(self, name: str) -> Iterator[str]:
        plain = _PLACE.sub("", name)
        for one in dict.fromkeys((name, plain)):
            if one.split("/")[0] not in _OWN:
                yield one
            below = one.removeprefix(f"{SCRATCH}/").removeprefix(f"{PUBLISHED}/")
            for node in self.nodes:
                # What was published stays as it is; a scratch file may be gone tomorrow.
                yield f"nodes/{node}/{PUBLISHED}/{below}"
                yield f"nodes/{node}/{SCRATCH}/{below}"
