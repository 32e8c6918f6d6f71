"""Archive reading: checks an untrusted archive completely before any byte of it is used."""

import contextlib
import gzip
import hashlib
import re
import tarfile
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any, cast

import orjson
from pydantic import TypeAdapter, ValidationError

from agiraph.core.domain.errors import OutOfScope, Refused
from agiraph.core.home.safe_folder import split
from agiraph.features.backup.archive import CHUNK, FILES, FORM, MANIFEST, MOST_FILES, ROWS, Manifest

MOST_AT_ONCE = 16 << 20
"""The most bytes of one read. A header that claims to be larger is refused."""
LONGEST_MANIFEST = 512 << 20
_HASH = re.compile(r"[0-9a-f]{64}")
_DAMAGE = (
    tarfile.TarError, EOFError, OSError, zlib.error, ValueError, OverflowError, MemoryError,
    RecursionError,
)  # fmt: skip
"""Exceptions of Python's gzip and tar readers on damaged data."""


class Archive:
    """A backup whose content matches its manifest."""

    def __init__(self, tar: tarfile.TarFile, manifest: Manifest, members: list[tarfile.TarInfo]):
        self._tar = tar
        self.manifest = manifest
        self.files: dict[str, tarfile.TarInfo] = {
            member.name.removeprefix(FILES): member
            for member in members
            if member.name.startswith(FILES)
        }
        """The files of the home, by path."""

    def open(self, member: str) -> IO[bytes]:
        file = self._tar.extractfile(member)
        assert file is not None
        return file

    @property
    def rows(self) -> IO[bytes]:
        return self.open(ROWS)

    def file(self, name: str) -> IO[bytes]:
        return self.open(FILES + name)


@contextlib.contextmanager
def opened(path: Path, *, room: int) -> Generator[Archive]:
    """Yield the checked archive or raise `Refused`; unpacked it may take `room` bytes."""
    with contextlib.ExitStack() as files:
        try:
            # Decompressed by gzip and read as a plain tar: tarfile's own decompression ("r:gz")
            # knows no size limit.
            packed = files.enter_context(gzip.open(path))
            bounded = _Bounded(packed, path, room)
            tar = files.enter_context(tarfile.open(fileobj=cast(Any, bounded), mode="r:"))
            archive = _verified(tar, bounded, path)
        except _DAMAGE as error:
            raise not_a_backup(path, str(error) or type(error).__name__) from error
        yield archive


class _Bounded:
    """A gzip reader with a size limit, against decompression bombs."""

    def __init__(self, packed: gzip.GzipFile, path: Path, room: int) -> None:
        self._packed = packed
        self._path = path
        self._room = room

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MOST_AT_ONCE:
            raise not_a_backup(self._path, "a header in it is too large")
        return self._within(self._packed.read(size))

    def drain(self) -> None:
        """Read to the end: zeros after the last member, then gzip's checksum."""
        while piece := self.read(CHUNK):
            if piece.strip(b"\0"):
                raise not_a_backup(self._path, "something follows its end")

    def seek(self, place: int) -> int:
        if place > self._room:
            raise self._too_large()
        return self._packed.seek(place)

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._packed.tell()

    def _within(self, piece: bytes) -> bytes:
        if self._packed.tell() > self._room:
            raise self._too_large()
        return piece

    def _too_large(self) -> Refused:
        return Refused(
            f"{str(self._path)!r} takes more than the {self._room:,} bytes that are free on the "
            "disk. Nothing was changed; make room, or restore it elsewhere."
        )


def _verified(tar: tarfile.TarFile, bounded: _Bounded, path: Path) -> Archive:
    found: dict[str, str] = {}
    members: list[tarfile.TarInfo] = []
    manifest: Manifest | None = None
    for member in tar:
        _check_member(member, found, path)
        if len(members) > MOST_FILES:
            raise not_a_backup(path, f"it holds more than {MOST_FILES:,} files")
        file = tar.extractfile(member)
        assert file is not None
        members.append(member)
        if member.name == MANIFEST:
            found[MANIFEST], manifest = "", _manifest(file, member.size, path)
        else:
            found[member.name] = _digest(file, member.size, path)
    bounded.drain()
    if manifest is None:
        raise not_a_backup(path, "it has no manifest, so it was not finished")
    del found[MANIFEST]
    if ROWS not in found:
        raise not_a_backup(path, f"it has no {ROWS}")
    if wrong := sorted(
        name for name in {*found, *manifest.files} if found.get(name) != manifest.files.get(name)
    ):
        raise not_a_backup(path, f"{wrong[0]!r} is not as it was written down")
    _check_paths(found, path)
    return Archive(tar, manifest, members)


def _check_member(member: tarfile.TarInfo, found: dict[str, str], path: Path) -> None:
    name = member.name
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
        raise not_a_backup(path, f"{name[:200]!r} is a link, a device or no plain file")
    if name in found:
        raise not_a_backup(path, f"{name[:200]!r} is there twice")
    if name in (ROWS, MANIFEST):
        return
    inside = name.removeprefix(FILES)
    try:
        # Only the canonical spelling: "a//b" and "a/./b" would be more members for the path "a/b",
        # which the check for double names does not find.
        is_plain = name.startswith(FILES) and inside == "/".join(split(inside)) != ""
    except OutOfScope as error:
        raise not_a_backup(path, str(error).rstrip(".")) from error
    if not is_plain:
        raise not_a_backup(path, f"{name[:200]!r} is not the path of a file in a home")


def _check_paths(names: dict[str, str], path: Path) -> None:
    """Refuse a path that is both a file and a folder."""
    for name in names:
        folder = name.rpartition("/")[0]
        while folder:
            if folder in names:
                raise not_a_backup(path, f"{folder!r} is a file and a folder")
            folder = folder.rpartition("/")[0]


def _digest(file: IO[bytes], size: int, path: Path) -> str:
    digest, seen = hashlib.sha256(), 0
    while piece := file.read(CHUNK):
        digest.update(piece)
        seen += len(piece)
    if seen != size:
        raise not_a_backup(path, "it ends in the middle of a file")
    return digest.hexdigest()


def _manifest(file: IO[bytes], size: int, path: Path) -> Manifest:
    if size > LONGEST_MANIFEST:
        raise not_a_backup(path, "its manifest is too large")
    pieces: list[bytes] = []
    while piece := file.read(CHUNK):
        pieces.append(piece)
    try:
        manifest = Manifest(**orjson.loads(data := b"".join(pieces)))  # no unknown fields
        TypeAdapter(Manifest).validate_json(data, strict=True)
    except (ValidationError, ValueError, TypeError) as error:
        raise not_a_backup(path, "its manifest cannot be read") from error
    if manifest.form != FORM:
        raise not_a_backup(path, f"it has form {manifest.form}, this agiraph knows {FORM}")
    if not all(_HASH.fullmatch(digest) for digest in manifest.files.values()):
        raise not_a_backup(path, "its manifest has a hash that is none")
    return manifest


def not_a_backup(path: Path, why: str) -> Refused:
    return Refused(
        f"{str(path)!r} is damaged or no backup: {why}. Nothing was changed; use another backup."
    )
