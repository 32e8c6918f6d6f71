"""File labels, as rows: the sources of the words in the files of a team.

A label stays on a path until a person confirms the file or a clean thread writes it whole. A thread
that writes untrusted text stores the label before it writes the file, and a clean thread stores
that a file is clean after it has written it: a crash in between leaves a clean file with a label,
and never untrusted text without one.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from agiraph.domain.ids import TeamId, ThreadId, new_id
from agiraph.domain.labels import CLEAN, Label
from agiraph.domain.value import value
from agiraph.store.rows import Table, from_label, to_micros, to_text
from agiraph.store.tx import Tx


@value
class FileLabel:
    """What is known of the words in one file of a team."""

    id: str
    team_id: TeamId
    path: str
    """In the team's folder."""
    hash: str
    """The SHA-256 of the bytes that were written with this label."""
    created_at: datetime
    label: Label = CLEAN
    thread_id: ThreadId | None = None
    """The thread that wrote it."""
    confirmed_at: datetime | None = None
    confirmed_text: str | None = None
    """What the file held when its words were last clean; a clean thread is shown this."""


FILE_LABELS = Table("file_labels", FileLabel)
# The text of the last clean version is kept until the file is clean again.
_PUT = (
    "insert into file_labels"
    " (id, team_id, path, hash, label, thread_id, created_at, confirmed_text) values"
    " (:id, :team_id, :path, :sha, :label, :thread_id, :now, :clean_text)"
    " on conflict (team_id, path) do update set hash = excluded.hash, label = excluded.label,"
    " thread_id = excluded.thread_id, created_at = excluded.created_at, confirmed_at = null,"
    " confirmed_text = case when file_labels.label is null then excluded.confirmed_text"
    " else file_labels.confirmed_text end"
)


def digest(data: bytes) -> str:
    """Return the hash by which a row knows the bytes of its file."""
    return hashlib.sha256(data).hexdigest()


def find(tx: Tx, team_id: TeamId, path: str) -> FileLabel | None:
    """Return the row with a file's label; None if the file holds no untrusted text."""
    where = "team_id = :team_id and path = :path and label is not null"
    found = FILE_LABELS.select(tx, where, team_id=team_id, path=to_text(path))
    return found[0] if found else None


def of(tx: Tx, team_id: TeamId, paths: Collection[str]) -> dict[str, FileLabel]:
    """Return the rows of those of these files that carry a label, by path."""
    # Letters, not numbers: the name of a parameter consists of letters and underscores.
    named = {f"path_{chr(ord('a') + n)}": path for n, path in enumerate(paths)}
    marks = ", ".join(f":{name}" for name in named)
    where = f"team_id = :team_id and label is not null and path in ({marks})"
    return {f.path: f for f in FILE_LABELS.select(tx, where, team_id=team_id, **named)}


def under(tx: Tx, team_id: TeamId, prefix: str = "") -> list[FileLabel]:
    """Return the labelled files whose paths begin with this."""
    where = "team_id = :team_id and label is not null and substr(path, 1, :size) = :prefix"
    return FILE_LABELS.select(
        tx, f"{where} order by path", team_id=team_id, prefix=prefix, size=len(prefix)
    )


def put(
    tx: Tx,
    team_id: TeamId,
    path: str,
    data: bytes,
    *,
    label: Label,
    thread_id: ThreadId | None = None,
    clean_text: str | None = None,
) -> None:
    """Record that these bytes are about to be written with a label. `clean_text` is what the file
    holds before, if that is clean."""
    text = None if clean_text is None else to_text(clean_text)
    _put(tx, team_id, path, digest(data), label=label, thread_id=thread_id, clean_text=text)


def put_hash(
    tx: Tx, team_id: TeamId, path: str, sha: str, *, label: Label, thread_id: ThreadId | None
) -> None:
    """Record the label of a file, or of everything in a folder, that a command may have written."""
    _put(tx, team_id, path, sha, label=label, thread_id=thread_id, clean_text=None)


def _put(
    tx: Tx,
    team_id: TeamId,
    path: str,
    sha: str,
    *,
    label: Label,
    thread_id: ThreadId | None,
    clean_text: str | None,
) -> None:
    tx.run(
        _PUT,
        id=new_id("file"),
        team_id=team_id,
        path=to_text(path),
        sha=sha,
        label=from_label(label),
        thread_id=thread_id,
        now=to_micros(tx.now),
        clean_text=clean_text,
    )


def remove(tx: Tx, team_id: TeamId, path: str) -> None:
    """Remove the row of a path."""
    sql = "delete from file_labels where team_id = :team_id and path = :path"
    tx.run(sql, team_id=team_id, path=to_text(path))


def amend(tx: Tx, file: FileLabel, data: bytes, *, clean_text: str | None) -> None:
    """Record that a clean thread is about to change a part of a labelled file. The label stays;
    the last clean version has the change, too."""
    FILE_LABELS.update(tx, file.id, hash=digest(data), confirmed_text=clean_text)


def clear(tx: Tx, file: FileLabel, data: bytes, thread_id: ThreadId | None = None) -> None:
    """Record that a clean thread or a person has written a labelled file whole.

    If another thread has labelled the file since `file` was read, its label stays.
    """
    tx.run(
        "update file_labels set label = null, confirmed_text = null, hash = :sha,"
        " thread_id = :thread_id, created_at = :now where id = :id and hash = :before",
        id=file.id,
        sha=digest(data),
        thread_id=thread_id,
        now=to_micros(tx.now),
        before=file.hash,
    )


def copy(tx: Tx, team_id: TeamId, moved: Mapping[str, str]) -> None:
    """Give files that are about to be moved or copied the label of the old path at the new one."""
    for old, new in moved.items():
        if (file := find(tx, team_id, old)) is not None:
            remove(tx, team_id, new)
            FILE_LABELS.insert(tx, replace(file, id=new_id("file"), path=new))
