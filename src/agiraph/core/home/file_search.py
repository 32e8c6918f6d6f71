"""File search: finds files of teams whose name or text contains all of some words, newest first.

No index holds the text of files. They are read for each search, so every step of it is limited: how
many folders and files are listed, how many are read, and for how long.
"""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Literal

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import UPLOADS, Home
from agiraph.core.home.node_folder import MANIFEST, PUBLISHED, SCRATCH
from agiraph.core.home.safe_folder import Entry, Folder, split

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


MOST_ENTRIES = 1000
"""Files and folders that are listed of one task, or of the uploads of one team."""
MOST_READ = 400
"""Files that are read, the newest ones."""
MOST_BYTES = 100_000
"""The size of the largest file that is read. A larger one is found by its name only."""
MOST_SECONDS = 0.5
"""For the lists of all files, and as long again for their texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    team_id: TeamId
    folder: str
    """The uploads or the folder of a task, in the team's folder."""
    name: str
    """Its path in that folder."""
    size: int
    modified: datetime
    text: str = ""
    """What it contains; empty if it is not text or too large."""

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}"


def find(
    home: Home,
    team_ids: Sequence[TeamId],
    tasks: Sequence[tuple[TeamId, NodeId]],
    words: Sequence[str],
    *,
    limit: int,
) -> list[FoundFile]:
    """Return at most `limit` files that persons uploaded for these teams or that belong to these
    tasks: first those with all words in their name, then those with all words in their name and
    text. `words` are in lower case."""
    known = _files(home, team_ids, tasks)
    known.sort(key=lambda file: file.modified, reverse=True)
    named = [file for file in known if _holds(file.name, words)][:limit]
    found = [_with_text(home, file) for file in named]
    readable = [file for file in known if file.size <= MOST_BYTES and file not in named]
    end = time.monotonic() + MOST_SECONDS
    for file in readable[:MOST_READ]:
        if len(found) >= limit or time.monotonic() > end:
            break
        read = _with_text(home, file)
        if _holds(f"{read.name}\n{read.text}", words):
            found.append(read)
    return found


def _holds(text: str, words: Sequence[str]) -> bool:
    lowered = text.lower()
    return all(word in lowered for word in words)


def _files(
    home: Home, team_ids: Sequence[TeamId], tasks: Sequence[tuple[TeamId, NodeId]]
) -> list[FoundFile]:
    end = time.monotonic() + MOST_SECONDS
    folders = [(team_id, (UPLOADS,)) for team_id in team_ids] + [
        # Published files are copies of those in the working folder.
        (team_id, (f"nodes/{task_id}/{PUBLISHED}", f"nodes/{task_id}/{SCRATCH}"))
        for team_id, task_id in tasks
    ]
    found: list[FoundFile] = []
    for team_id, options in folders:
        if time.monotonic() > end:
            break
        at, entries = _first(home, team_id, options)
        found += [
            FoundFile(team_id=team_id, folder=at, name=e.name, size=e.size, modified=e.modified)
            for e in entries
            if e.kind == "file" and e.name != MANIFEST
        ]
    return found


def _first(home: Home, team_id: TeamId, folders: Sequence[str]) -> tuple[str, list[Entry]]:
    """Return the first of these folders that exists, and what is in it; of a folder that is too
    large, the first entries."""
    found: list[Entry] = []
    for at in folders:
        with suppress(Refused, OSError), home.folder.sub(f"teams/{team_id}/{at}") as folder:
            with suppress(Refused):
                found.extend(folder.tree(MOST_ENTRIES))
            return at, found
    return "", found


def _with_text(home: Home, file: FoundFile) -> FoundFile:
    """Return the file with its text, if it is a short text."""
    data = b""
    if file.size <= MOST_BYTES:
        # It may be gone since, or a link by now.
        with suppress(Refused, OSError):
            data = home.folder.read(f"teams/{file.team_id}/{file.path}", limit=MOST_BYTES)
    text = "" if b"\0" in data else data.decode(errors="replace")
    return replace(file, text=text)
