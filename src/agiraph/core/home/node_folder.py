"""Node folder: the files of one node, and its results, published atomically."""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, field
from io import BufferedReader, BufferedWriter
from pathlib import PurePosixPath
from typing import Any

from agiraph.core.domain.errors import Conflict, NotFound, Refused, StoreFull
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import WorkNode
from agiraph.core.home.safe_folder import Entry, Folder
from agiraph.faultpoints import fault
from agiraph.redaction import redact

SPEC = "_spec.md"
REFS = "_refs.json"
SCRATCH = "scratch"
PUBLISHED = "published"
MANIFEST = "_manifest.json"

MOST_FILES = 10_000
MOST_BYTES = 1024**3

_STAGE = "_stage"
_REPLACED = "_replaced"
_CHUNK = 1024 * 1024
_LONGEST_MANIFEST = 64 * 1024 * 1024
# Writable, so that a copy of a published file can be changed. The published file itself is
# protected by the agents' scopes, and by the sandbox, which mounts its folder read-only.
_PUBLISHED_FILE, _PUBLISHED_PROGRAM = 0o644, 0o755


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The published files with their SHA-256 hashes, and a summary."""

    summary: str
    partial: bool = False
    files: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFolder:
    id: NodeId
    folder: Folder

    def prepare(self, node: WorkNode, refs: Mapping[str, str]) -> bool:
        """Write the node's spec and its references to the files of other nodes; idempotent.

        Return whether the folder is new.
        """
        is_new = self.folder.make_folders(SCRATCH)
        if not is_new:
            self.folder.remove_partial_files()
        self.folder.update(SPEC, _spec(node).encode(errors="replace"))
        self.folder.update(REFS, _json(dict(refs)))
        return is_new

    def publish(self, summary: str, partial: bool = False) -> dict[str, str]:
        """Copy `scratch/` and rename the copy to `published/`; return its files and their hashes.

        If the node has published before, return that: a crash may come after the rename and before
        the commit, and the call is then repeated. Only a partial result is replaced, and only if
        the files have changed since.
        """
        fault("fx:before:publish")
        # Left by a crash in the middle of a copy; its files may be incomplete.
        if self.folder.exists(_STAGE):
            self.folder.remove(_STAGE)
        before = self._published_before()
        if before is not None and not before.partial:
            return before.files
        try:
            manifest = self._stage(redact(summary), partial)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise StoreFull(f"There is no room on the disk to publish {self.id}.") from error
        fault("fx:staged:publish")
        if before is not None and partial and before.files == manifest.files:
            self.folder.remove(_STAGE)
            return before.files
        if before is not None:
            self._set_aside()
        # The commit point: until here a crash leaves nothing that a reader could see.
        self.folder.rename(_STAGE, PUBLISHED)
        fault("fx:after:publish")
        return manifest.files

    def manifest(self) -> Manifest:
        """Return the manifest of `published/`; raise `NotFound` if the node has not published."""
        found = _parsed(self.folder.read(f"{PUBLISHED}/{MANIFEST}", limit=_LONGEST_MANIFEST))
        if found is None:
            raise Conflict(f"{PUBLISHED}/{MANIFEST} of {self.id} cannot be read.")
        return found

    def verify(self) -> list[str]:
        """Return the differences between `published/` and its manifest, as sentences."""
        try:
            return self._differences(self.manifest().files)
        except NotFound:
            return [f"There is no {PUBLISHED}/{MANIFEST}."]
        except Refused as error:
            return [str(error)]

    def _differences(self, promised: dict[str, str]) -> list[str]:
        with self.folder.sub(PUBLISHED) as published:
            found = {entry.name for entry in published.walk(limit=MOST_FILES + 1)} - {MANIFEST}
            kept = sorted(found & promised.keys())
            changed = [name for name in kept if _digest(published, name) != promised[name]]
        return [
            *(f"{name!r} is missing." for name in sorted(promised.keys() - found)),
            *(f"{name!r} was changed." for name in changed),
            *(f"{name!r} was added." for name in sorted(found - promised.keys())),
        ]

    def _published_before(self) -> Manifest | None:
        if not self.folder.exists(PUBLISHED):
            return None
        if problems := self.verify():
            raise Conflict(
                f"{PUBLISHED}/ of {self.id} is there but not as it was published: "
                f"{' '.join(problems[:5])} A person has to look at it; use ask_human."
            )
        return self.manifest()

    def _stage(self, summary: str, partial: bool) -> Manifest:
        """Make a complete, synced copy of the scratch folder beside it.

        Files and folders are synced before the rename: `published/` must be complete after a power
        cut as soon as its name is there.
        """
        with (
            self.folder.sub(SCRATCH, create=True) as scratch,
            self.folder.sub(_STAGE, create=True) as stage,
        ):
            files = _copy_all(_within_limits(scratch), scratch, stage)
            manifest = Manifest(summary=summary, partial=partial, files=files)
            with stage.create_file(MANIFEST, mode=_PUBLISHED_FILE) as file:
                file.write(_json(asdict(manifest)))
                _settle(file)
            for folder in {"", *(str(up) for name in files for up in PurePosixPath(name).parents)}:
                stage.sync(folder)
        return manifest

    def _set_aside(self) -> None:
        """Rename a partial result, which a reader may refer to, instead of deleting it."""
        taken = {entry.name for entry in self.folder.list()}
        number = next(n for n in range(1, len(taken) + 2) if f"{_REPLACED}-{n}" not in taken)
        self.folder.rename(PUBLISHED, f"{_REPLACED}-{number}")
        fault("fx:replaced:publish")


def _parsed(data: bytes) -> Manifest | None:
    """Return the manifest in this file; None if it is something else."""
    try:
        found = json.loads(data)
        return Manifest(
            summary=str(found["summary"]),
            partial=bool(found["partial"]),
            files={str(name): str(digest) for name, digest in found["files"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _within_limits(scratch: Folder) -> list[Entry]:
    """Return the files to publish. The manifest of another task is none: whoever copies all that a
    task has published copies that, too."""
    try:
        files = scratch.walk(limit=MOST_FILES)
    except Refused as error:
        raise Refused(
            f"{error} At most {MOST_FILES:,} can be published: remove what is not a result "
            "(dependencies, caches, build output), or pack it into an archive."
        ) from error
    own = [entry for entry in files if entry.name != MANIFEST]
    if own != files and _parsed(scratch.read(MANIFEST, limit=_LONGEST_MANIFEST)) is None:
        raise Refused(
            f"{SCRATCH}/{MANIFEST} has a name that publishing needs; remove it or rename it."
        )
    if sum(entry.size for entry in own) > MOST_BYTES:
        raise _too_large()
    return own


def _copy_all(files: list[Entry], scratch: Folder, stage: Folder) -> dict[str, str]:
    digests: dict[str, str] = {}
    room = MOST_BYTES
    for entry in files:
        with (
            # A command that still runs may swap a file for a link after the walk. `open_file`
            # refuses links, so no file from outside of the folder can be published.
            scratch.open_file(entry.name) as source,
            stage.create_file(entry.name, mode=_published_mode(source)) as copy,
        ):
            digests[entry.name] = _copy(source, copy, room)
            room -= copy.tell()
            _settle(copy)
    return digests


def _published_mode(source: BufferedReader) -> int:
    is_program = os.fstat(source.fileno()).st_mode & stat.S_IXUSR
    return _PUBLISHED_PROGRAM if is_program else _PUBLISHED_FILE


def _copy(source: BufferedReader, copy: BufferedWriter, room: int) -> str:
    digest = hashlib.sha256()
    while chunk := source.read(_CHUNK):
        room -= len(chunk)
        if room < 0:  # it has grown since it was measured: a process still writes to it
            raise _too_large()
        digest.update(chunk)
        copy.write(chunk)
    return digest.hexdigest()


def _settle(file: BufferedWriter) -> None:
    file.flush()
    os.fsync(file.fileno())


def _digest(folder: Folder, name: str) -> str:
    with folder.open_file(name) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _too_large() -> Refused:
    return Refused(
        f"{SCRATCH}/ holds more than {MOST_BYTES // 1024**3} GiB, which is all that can be "
        "published: remove what is not a result, or compress it."
    )


def _spec(node: WorkNode) -> str:
    title = node.title or node.id
    parts = [f"# {title}", node.task.strip()]
    if node.lines_to_prove:
        parts.append(
            "## Accepted when\n\n" + "\n".join(f"- {item}" for item in node.lines_to_prove)
        )
    return "\n\n".join(parts) + "\n"


def _json(value: Mapping[str, Any]) -> bytes:
    # ASCII escapes, because a model's text may contain lone surrogates, which UTF-8 cannot encode.
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()
