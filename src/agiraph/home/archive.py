"""Archive: a home's files and the rows that belong to them in one file, with a hash of each.

No token, no lock and no database file is in it: rows come as lines, and whoever unpacks it gets a
token of their own.
"""

import contextlib
import hashlib
import io
import os
import re
import tarfile
import tempfile
import zlib
from collections.abc import Generator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, BinaryIO

import orjson

from agiraph.domain.errors import NotFound, Refused
from agiraph.home.layout import Home

ROWS, MANIFEST, FILES = "rows.jsonl", "manifest.json", "home/"
FORM = 1
LEFT_OUT = ("token", "lock", "agiraph.db")
"""Names at the top of a home that stay there, and whatever begins like the last."""
MOST_FILES = 5_000_000
CHUNK = 1 << 20
IN_MEMORY = 8 << 20
_PASSWORD = re.compile(rb"://[^/@\s:]*:[^/@\s]+@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    schema: int
    made_at: str
    made_by: str
    rows: int
    form: int = FORM
    files: dict[str, str] = field(default_factory=dict[str, str])
    """The SHA-256 of every member but this one."""
    left_out: list[str] = field(default_factory=list[str])


def pack(target: Path, home: Home, rows: BinaryIO, about: Manifest) -> Manifest:
    """Write the archive whole or not at all; a file that is there is never written over."""
    if target.exists():
        raise Refused(f"{str(target)!r} is there already; name another file.")
    if not target.parent.is_dir():
        raise Refused(f"There is no folder {str(target.parent)!r} to put the backup into.")
    fd, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    partial = Path(name)
    try:
        with os.fdopen(fd, "wb") as file:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=3) as tar:
                manifest = _fill(tar, home, rows, about)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(partial, target)
        except FileExistsError as error:
            raise Refused(f"{str(target)!r} is there already; name another file.") from error
    finally:
        partial.unlink()
    return manifest


def _fill(tar: tarfile.TarFile, home: Home, rows: BinaryIO, about: Manifest) -> Manifest:
    files, left_out = {ROWS: _add(tar, ROWS, rows, mode=0o600)}, list[str]()
    for entry in home.folder.walk(limit=MOST_FILES):
        if _stays(entry.name):
            continue
        if entry.kind != "file":
            left_out.append(f"{entry.name}: {entry.kind}")
            continue
        try:
            with home.folder.open_file(entry.name) as file:
                if entry.name == home.config_path.name and _PASSWORD.search(file.read()):
                    left_out.append(f"{entry.name}: it holds a password")
                    continue
                file.seek(0)
                mode = os.fstat(file.fileno()).st_mode & 0o777
                name = FILES + entry.name
                files[name] = _add(tar, name, file, mode=mode)
        except (NotFound, Refused):
            left_out.append(f"{entry.name}: it was gone before it could be read")
    manifest = replace(about, files=files, left_out=left_out)
    _add(tar, MANIFEST, io.BytesIO(orjson.dumps(asdict(manifest))), mode=0o600)
    return manifest


def _stays(name: str) -> bool:
    top = name.partition("/")[0]
    return top in LEFT_OUT or top.startswith(LEFT_OUT[-1])


def _add(tar: tarfile.TarFile, name: str, source: IO[bytes], *, mode: int) -> str:
    """Somebody may be writing to it: what is hashed is what is kept, from a copy of our own."""
    digest = hashlib.sha256()
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as copy:
        while piece := source.read(CHUNK):
            digest.update(piece)
            copy.write(piece)
        info = tarfile.TarInfo(name)
        info.size, info.mode = copy.tell(), mode
        copy.seek(0)
        tar.addfile(info, copy)
    return digest.hexdigest()


@contextlib.contextmanager
def opened(path: Path) -> Generator[tuple[tarfile.TarFile, Manifest]]:
    """An archive that is what its manifest says, to the last byte; refused otherwise."""
    with contextlib.ExitStack() as files:
        try:
            tar = files.enter_context(tarfile.open(path, "r:gz"))
            manifest = _verified(tar, path)
        except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
            raise _not_a_backup(path, str(error)) from error
        yield tar, manifest


def _verified(tar: tarfile.TarFile, path: Path) -> Manifest:
    found: dict[str, str] = {}
    manifest: Manifest | None = None
    for member in tar:
        file = tar.extractfile(member) if member.isreg() else None
        if file is None or member.name in found:
            raise _not_a_backup(path, f"{member.name!r} is no plain file, or there twice")
        if member.name == MANIFEST:
            manifest = _manifest(file.read(), path)
        else:
            found[member.name] = _digest(file)
    if manifest is None:
        raise _not_a_backup(path, "it has no manifest, so it was not finished")
    if wrong := sorted(
        name for name in {*found, *manifest.files} if found.get(name) != manifest.files.get(name)
    ):
        raise _not_a_backup(path, f"{wrong[0]!r} is not as it was written down")
    return manifest


def _digest(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := file.read(CHUNK):
        digest.update(piece)
    return digest.hexdigest()


def _manifest(data: bytes, path: Path) -> Manifest:
    try:
        manifest = Manifest(**orjson.loads(data))
    except (ValueError, TypeError) as error:
        raise _not_a_backup(path, "its manifest cannot be read") from error
    if manifest.form != FORM:
        raise _not_a_backup(path, f"it has form {manifest.form}, this agiraph knows {FORM}")
    return manifest


def _not_a_backup(path: Path, why: str) -> Refused:
    return Refused(f"{str(path)!r} is damaged or no backup: {why}. Nothing was changed.")


def rows(tar: tarfile.TarFile) -> IO[bytes]:
    file = tar.extractfile(ROWS)
    assert file is not None
    return file


def unpack(tar: tarfile.TarFile, home: Home) -> int:
    """Put the files into a home; how many there were."""
    count = 0
    for member in tar:
        if not member.name.startswith(FILES):
            continue
        file = tar.extractfile(member)
        assert file is not None
        name = member.name.removeprefix(FILES)
        with home.folder.create_file(name, mode=member.mode & 0o777) as copy:
            while piece := file.read(CHUNK):
                copy.write(piece)
            copy.flush()
            os.fsync(copy.fileno())
        count += 1
    return count


def is_empty(home: Home) -> bool:
    """Whether nothing would be in the way: settings and a token may be there."""
    taken = {entry.name for entry in home.folder.list()}
    return not (taken - {"token", "lock", "agiraph.toml"})
