"""Archive: writes a home's files and a dump of its rows into one file, with a hash of each.

Token, API keys, lock and database file are left out: rows are dumped as lines, and a restored home
creates a token of its own. Secrets that this process knows are redacted everywhere.
"""

import errno
import hashlib
import io
import os
import re
import tarfile
import tempfile
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import IO, BinaryIO

import orjson

from agiraph.core.domain.errors import NotFound, Refused, StoreFull
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import Home
from agiraph.redaction import Redactor, redact

ROWS, MANIFEST, FILES = "rows.jsonl", "manifest.json", "home/"
FORM = 1
LEFT_OUT = (
    *("token", "lock", "keys.json", "last-backup.json", "consents.json", "consents.lock"),
    *("mcp-tokens.json", "agiraph.db"),
)
"""Top-level names of a home that are left out, and every name that starts with the last one."""
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
    """The SHA-256 of every member except the manifest."""
    left_out: list[str] = field(default_factory=list[str])
    redacted: list[str] = field(default_factory=list[str])
    """Members in which a secret was redacted. A published file among them no longer matches the
    hash in its node's manifest."""


def pack(target: Path, home: Home, rows: BinaryIO, about: Manifest) -> Manifest:
    """Write the archive atomically; never overwrite an existing file."""
    if target.exists():
        raise Refused(f"{str(target)!r} exists already; name another file.")
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
            # A link fails if the name exists; a rename would overwrite a backup that another
            # process has just written.
            os.link(partial, target)
        except FileExistsError as error:
            raise Refused(f"{str(target)!r} exists already; name another file.") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"No room left for {str(target)!r}; nothing was written.") from error
        raise
    finally:
        partial.unlink()
    return manifest


@dataclass(slots=True)
class _Filling:
    """A tar file being written, and the data for its manifest."""

    tar: tarfile.TarFile
    files: dict[str, str] = field(default_factory=dict[str, str])
    left_out: list[str] = field(default_factory=list[str])
    redacted: list[str] = field(default_factory=list[str])

    def add(self, name: str, source: IO[bytes], *, mode: int) -> None:
        """Add a file. It is copied before it is hashed, since another process may write to it."""
        digest, redactor = hashlib.sha256(), Redactor()
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as copy:
            for piece in redactor.stream(source):
                digest.update(piece)
                copy.write(piece)
            info = tarfile.TarInfo(name)
            info.size, info.mode = copy.tell(), mode
            copy.seek(0)
            self.tar.addfile(info, copy)
        self.files[name] = digest.hexdigest()
        if redactor.count:
            self.redacted.append(name)


def _fill(tar: tarfile.TarFile, home: Home, rows: BinaryIO, about: Manifest) -> Manifest:
    filling = _Filling(tar)
    filling.add(ROWS, rows, mode=0o600)
    for entry in home.folder.walk(limit=MOST_FILES):
        if not belongs_to_one_home(entry.name):
            _add_file(filling, home, entry.name)
    manifest = replace(
        about, files=filling.files, left_out=filling.left_out, redacted=filling.redacted
    )
    # Last: an archive without a manifest is one that was cut off.
    filling.add(MANIFEST, io.BytesIO(orjson.dumps(asdict(manifest))), mode=0o600)
    return manifest


def _add_file(filling: _Filling, home: Home, name: str) -> None:
    if redact(name) != name:
        filling.left_out.append(f"{redact(name)}: its name holds a secret")
        return
    try:
        with home.folder.open_file(name) as file:
            # Redaction skips passwords with fewer than 8 characters, and does not know those of
            # URLs that this process has not used.
            if name == home.config_path.name and _PASSWORD.search(file.read()):
                filling.left_out.append(f"{name}: it holds a password")
                return
            file.seek(0)
            mode = os.fstat(file.fileno()).st_mode & 0o777
            filling.add(FILES + name, file, mode=mode)
    except (NotFound, Refused):
        filling.left_out.append(f"{name}: it was gone before it could be read")


def belongs_to_one_home(name: str) -> bool:
    """Return whether a file belongs to one home only: never backed up, never restored."""
    top = name.partition("/")[0]
    return top in LEFT_OUT or top.startswith(LEFT_OUT[-1])
