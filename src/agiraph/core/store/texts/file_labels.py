"""File labels, as rows: the sources of the words in the files of a team.

A label stays on a path until a person confirms the file or a clean thread writes it whole. A thread
that writes untrusted text stores the label before it writes the file, and a clean thread stores
that a file is clean after it has written it: a crash in between leaves a clean file with a label,
and never untrusted text without one.

Several teams may be given the same folder. So the row of a file in a given folder has no team and
the file's real path; the verbs here take and return the path by which the team knows it.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from agiraph.core.domain.agents import GIVEN, GivenFolder
from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.ids import TeamId, ThreadId, new_id
from agiraph.core.domain.provenance.labels import CLEAN, Label, from_folder, in_folder
from agiraph.core.domain.value import value
from agiraph.core.store.rows import Table, from_label, to_micros, to_text
from agiraph.core.store.teams import KEPT, TEAMS
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Tx

PREFIX = "file_"
"""How the ids of labelled files begin."""


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
    unverified_lines: int | None = None
    """Of MEMORY.md, how many of its lines are not in `confirmed_text`."""


FILE_LABELS = Table("file_labels", FileLabel)
NO_TEAM = TeamId("")
"""The team of a file in a given folder."""
# The text of the last clean version is kept until the file is clean again.
_PUT = (
    "insert into file_labels"
    " (id, team_id, path, hash, label, thread_id, created_at, confirmed_text, unverified_lines)"
    " values (:id, :team_id, :path, :sha, :label, :thread_id, :now, :clean_text, :lines)"
    " on conflict (team_id, path) do update set hash = excluded.hash, label = excluded.label,"
    " thread_id = excluded.thread_id, created_at = excluded.created_at, confirmed_at = null,"
    " unverified_lines = excluded.unverified_lines,"
    " confirmed_text = case when file_labels.label is null then excluded.confirmed_text"
    " else file_labels.confirmed_text end"
)


def digest(data: bytes) -> str:
    """Return the hash by which a row knows the bytes of its file."""
    return hashlib.sha256(data).hexdigest()


def _folders(tx: Tx, team_id: TeamId) -> tuple[GivenFolder, ...]:
    team = TEAMS.find(tx, team_id)
    return () if team is None else team.folders


def _given(tx: Tx, team_id: TeamId, path: str) -> GivenFolder | None:
    """Return the given folder that a path of a team lies in; None for a file of the team's own."""
    top, _, rest = path.partition("/")
    if top != GIVEN:
        return None
    name = rest.partition("/")[0]
    return next((one for one in _folders(tx, team_id) if one.name == name), None)


def _key(path: str, team_id: TeamId, given: GivenFolder | None) -> tuple[TeamId, str]:
    """Return the team and the path under which a row is stored."""
    if given is None:
        return team_id, path
    return NO_TEAM, given.path + path[len(f"{GIVEN}/{given.name}") :]


def _as_seen(file: FileLabel, tx: Tx, team_id: TeamId, given: GivenFolder) -> FileLabel:
    """Return a row of a given folder as a team sees it, with the path and label of that team."""
    below = file.path[len(given.path) :] if file.path.startswith(given.path) else ""
    is_own = file.thread_id is None or _team_of_thread(tx, file.thread_id) == team_id
    label = from_folder(file.label, given.name, is_own=is_own)
    return replace(file, team_id=team_id, path=f"{GIVEN}/{given.name}{below}", label=label)


def _team_of_thread(tx: Tx, thread_id: ThreadId) -> TeamId | None:
    thread = THREADS.find(tx, thread_id)
    return None if thread is None else thread.team_id


def _in_folder(tx: Tx, team_id: TeamId, given: GivenFolder) -> list[FileLabel]:
    """Return the labelled files of a given folder, whichever team wrote them, and the folders
    around it that carry a label: it is on everything in them."""
    where = (
        "team_id = :no_team and label is not null and (substr(path, 1, :size) = :prefix"
        " or substr(:prefix, 1, length(path) + 1) = path || '/') order by path"
    )
    prefix = f"{given.path}/"
    found = FILE_LABELS.select(tx, where, no_team=NO_TEAM, prefix=prefix, size=len(prefix))
    return [_as_seen(file, tx, team_id, given) for file in found]


def find(tx: Tx, team_id: TeamId, path: str) -> FileLabel | None:
    """Return the row with a file's label; None if the file holds no untrusted text."""
    given = _given(tx, team_id, path)
    stored_team, stored_path = _key(path, team_id, given)
    where = "team_id = :team_id and path = :path and label is not null"
    found = FILE_LABELS.select(tx, where, team_id=stored_team, path=to_text(stored_path))
    if not found or given is None:
        return found[0] if found else None
    return _as_seen(found[0], tx, team_id, given)


def team_of(tx: Tx, file: FileLabel) -> TeamId:
    """Return the team of a stored row; of a file in a given folder the team that wrote it, or one
    that still has the folder."""
    if file.team_id:
        return file.team_id
    writer = None if file.thread_id is None else _team_of_thread(tx, file.thread_id)
    if writer is not None:
        return writer
    for team in TEAMS.select(tx, f"{KEPT} order by id"):
        if any(f"{file.path}/".startswith(f"{one.path}/") for one in team.folders):
            return team.id
    raise NotFound("team", file.path, known="No team has this folder any more.")


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
    found = FILE_LABELS.select(
        tx, f"{where} order by path", team_id=team_id, prefix=prefix, size=len(prefix)
    )
    if prefix and not prefix.startswith(GIVEN):
        return found
    given = (file for one in _folders(tx, team_id) for file in _in_folder(tx, team_id, one))
    return [*found, *(file for file in given if file.path.startswith(prefix))]


def put(
    tx: Tx,
    team_id: TeamId,
    path: str,
    data: bytes,
    *,
    label: Label,
    thread_id: ThreadId | None = None,
    clean_text: str | None = None,
    lines: int | None = None,
) -> None:
    """Record that these bytes are about to be written with a label. `clean_text` is what the file
    holds before, if that is clean; `lines` is how many lines nobody has confirmed."""
    text, sha = None if clean_text is None else to_text(clean_text), digest(data)
    _put(tx, team_id, path, sha, label=label, thread_id=thread_id, clean_text=text, lines=lines)


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
    lines: int | None = None,
) -> None:
    given = _given(tx, team_id, path)
    stored_team, stored_path = _key(path, team_id, given)
    tx.run(
        _PUT,
        id=new_id("file"),
        team_id=stored_team,
        path=to_text(stored_path),
        sha=sha,
        label=from_label(label if given is None else in_folder(label, given.name)),
        thread_id=thread_id,
        now=to_micros(tx.now),
        clean_text=clean_text,
        lines=lines,
    )


def remove(tx: Tx, team_id: TeamId, path: str) -> None:
    """Remove the row of a path."""
    stored_team, stored_path = _key(path, team_id, _given(tx, team_id, path))
    sql = "delete from file_labels where team_id = :team_id and path = :path"
    tx.run(sql, team_id=stored_team, path=to_text(stored_path))


def amend(
    tx: Tx, file: FileLabel, data: bytes, *, clean_text: str | None, lines: int | None = None
) -> None:
    """Record that a clean thread is about to change a part of a labelled file. The label stays;
    the last clean version has the change, too."""
    text = None if clean_text is None else to_text(clean_text)
    FILE_LABELS.update(tx, file.id, hash=digest(data), confirmed_text=text, unverified_lines=lines)


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
