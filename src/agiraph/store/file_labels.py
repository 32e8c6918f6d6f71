"""File labels, as rows: the sources of the words in the files of a team.

A label stays on a path until a person confirms the file or a clean thread writes it whole.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from agiraph.domain.ids import TeamId, ThreadId, new_id
from agiraph.domain.labels import CLEAN, Label, join
from agiraph.domain.value import value
from agiraph.store.rows import Table
from agiraph.store.tx import Tx


@value
class FileLabel:
    """What is known of the words in one file of a team."""

    id: str
    team_id: TeamId
    path: str
    """In the team's folder."""
    sha256: str
    """Of the bytes that were written with this label."""
    created_at: datetime
    label: Label = CLEAN
    thread_id: ThreadId | None = None
    """The thread that wrote it."""
    confirmed_at: datetime | None = None
    confirmed_text: str | None = None
    """What the file held when its words were last clean; a clean thread is shown this."""


FILE_LABELS = Table("file_labels", FileLabel)


def find(tx: Tx, team_id: TeamId, path: str) -> FileLabel | None:
    found = FILE_LABELS.select(
        tx, "team_id = :team_id and path = :path", team_id=team_id, path=path
    )
    return found[0] if found else None


def under(tx: Tx, team_id: TeamId, prefix: str = "") -> list[FileLabel]:
    """Return the labelled files whose paths begin with this."""
    where = "team_id = :team_id and label is not null and substr(path, 1, :size) = :prefix"
    return FILE_LABELS.select(
        tx, f"{where} order by path", team_id=team_id, prefix=prefix, size=len(prefix)
    )


def of_paths(tx: Tx, team_id: TeamId, paths: Iterable[str]) -> Label:
    """Return the label of all these files together."""
    labels = {file.path: file.label for file in under(tx, team_id)}
    return join(labels.get(path, CLEAN) for path in paths)


def put(
    tx: Tx,
    team_id: TeamId,
    path: str,
    data: bytes,
    *,
    label: Label,
    thread_id: ThreadId | None = None,
    clean_text: str | None = None,
) -> FileLabel:
    """Record who wrote a file. `clean_text` is what it held before, if that was clean; the text of
    the last clean version is kept until the file is clean again."""
    before = find(tx, team_id, path)
    digest = hashlib.sha256(data).hexdigest()
    if before is None:
        file = FileLabel(
            id=new_id("file"),
            team_id=team_id,
            path=path,
            sha256=digest,
            created_at=tx.now,
            label=label,
            thread_id=thread_id,
            confirmed_text=clean_text if label else None,
        )
        return FILE_LABELS.insert(tx, file)
    kept = None if not label else before.confirmed_text if before.label else clean_text
    changes = {
        "sha256": digest,
        "created_at": tx.now,
        "label": label,
        "thread_id": thread_id,
        "confirmed_text": kept,
    }
    FILE_LABELS.update(tx, before.id, **changes)
    return replace(before, **changes)
