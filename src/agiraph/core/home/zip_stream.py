"""Zip stream: files of a team as one zip file, made while it is sent, in little memory."""

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.value import dataclass
from agiraph.core.home.safe_folder import Entry, Folder

MOST_FILES = 5_000
MOST_BYTES = 2**30
_CHUNK = 256 * 1024
_LEVEL = 3
"""Of compression: higher ones take much longer and save little."""
_UNSAFE = re.compile(
    '[\\\\:*?"<>|\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]'
)
"""Characters that mean something to the file system of a person's machine, or that hide or reorder
the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file that goes into the archive."""

    path: str
    """In the folder."""
    name: str
    """In the archive."""
    size: int
    modified: datetime
    read: Callable[[], bytes] | None = None
    """Returns the content if it is not in the folder."""


def members(folder: Folder, top: str, *, under: str = "") -> list[Member]:
    """Return the files below a folder, at most MOST_FILES with MOST_BYTES in all; raise `Refused`
    for more. `under` is the folder in the archive that they go into."""
    try:
        with folder.sub(top) as inner:
            found = inner.walk(limit=MOST_FILES)
    except Refused as error:
        raise Refused(f"{error} Download a smaller folder.") from error
    check_size(found)
    prefix = f"{top}/" if top else ""
    return [
        Member(
            path=f"{prefix}{entry.name}",
            name=f"{under}/{entry.name}" if under else entry.name,
            size=entry.size,
            modified=entry.modified,
        )
        for entry in found
    ]


def check_size(files: Iterable[Entry | Member]) -> None:
    """Raise `Refused` if the files are too much for one archive."""
    if sum(entry.size for entry in files) > MOST_BYTES:
        raise Refused(
            f"The files have more than {MOST_BYTES // 2**20} MiB in all, which is too much for one "
            "archive. Download a smaller folder, or the files one by one."
        )


def stream(folder: Folder, files: Iterable[Member]) -> Iterator[bytes]:
    """Yield the bytes of a zip file. A file that is gone, or a link by now, is left out; raise
    `Refused` if files have grown meanwhile to more than MOST_BYTES in all: a download that breaks
    off shows that it is not whole. The folder is closed at the end."""
    written, taken, budget = _Written(), set[str](), _Budget(MOST_BYTES)
    with folder, zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as out:
        for member in files:
            info = _info(_free_name(member.name, taken), member.modified)
            for _ in _pack(out, info, folder, member, budget):
                yield written.take()
    yield written.take()


@dataclass(slots=True)
class _Budget:
    """How many bytes may still be read."""

    left: int


def _pack(
    out: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Folder, member: Member, budget: _Budget
) -> Iterator[None]:
    """Write one file into the archive; yield after each chunk. One that is gone is left out."""
    try:
        file = folder.open_file(member.path) if member.read is None else io.BytesIO(member.read())
    except Refused:
        return
    with file, out.open(info, "w") as entry:
        while chunk := file.read(_CHUNK):
            budget.left -= len(chunk)
            if budget.left < 0:
                raise Refused(f"{member.path!r} has grown, and is too much for the archive now.")
            entry.write(chunk)
            yield


def safe_name(name: str) -> str:
    """Return a path that means the same on every machine, and that shows what it is."""
    parts = (_UNSAFE.sub("_", part).rstrip(". ") or "_" for part in name.split("/"))
    return "/".join(part for part in parts if part not in (".", ".."))


def _free_name(name: str, taken: set[str]) -> str:
    """Return a safe name that no other file of the archive has, in any case."""
    safe = safe_name(name)
    stem, dot, ending = safe.rpartition(".")
    number, free = 1, safe
    while free.casefold() in taken:
        number += 1
        free = f"{stem} ({number}).{ending}" if dot and stem else f"{safe} ({number})"
    taken.add(free.casefold())
    return free


def _info(name: str, modified: datetime) -> zipfile.ZipInfo:
    year = min(max(modified.year, 1980), 2107)  # all that the format can hold
    info = zipfile.ZipInfo(name, (year, *modified.timetuple()[1:6]))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o100644 << 16
    return info


class _Written(io.RawIOBase):
    """Collects what the zip file writes until it is sent. It cannot seek, so sizes follow data."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)
