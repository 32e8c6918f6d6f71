"""Files: a person confirms a file that holds untrusted text, or writes it anew."""

from dataclasses import replace
from datetime import datetime

from agiraph.api.feature_views.known import ChangedItem
from agiraph.core.domain.errors import Conflict
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.provenance.labels import CLEAN, Label, join
from agiraph.core.home.file_versions import is_unverified
from agiraph.core.store import teams
from agiraph.core.store.texts import file_labels
from agiraph.core.store.texts.file_labels import FILE_LABELS, FileLabel
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge.verbs import changes

LEAST_HASH = 16
"""Characters of a file's hash that say which words a person has read."""
_WEB = frozenset({"page", "search", "network"})
"""Kinds of sources that are sites."""


def labelled(tx: Tx, team_id: TeamId) -> list[FileLabel]:
    """Return, by path, the team's files that hold untrusted text and that later threads read: plan,
    notebooks, logs, MEMORY.md and, if the team's setting `trust` is `open`, notes. Leave out
    unverified notes and the files of a single node or thread."""
    return [
        file
        for file in file_labels.under(tx, team_id)
        if not is_unverified(file.path) and not _belongs_to_work(file.path)
    ]


def _belongs_to_work(path: str) -> bool:
    names = path.split("/")
    return names[0] == "nodes" or (names[0] == "agents" and names[2:3] in (["pages"], ["results"]))


def remark_on_memory(tx: Tx, team_id: TeamId, *, since: datetime) -> str:
    """Return a sentence for the person about the lines that labelled threads wrote to MEMORY.md
    since then and that nobody has confirmed; empty without any."""
    written = [
        file
        for file in file_labels.under(tx, team_id)
        if file.unverified_lines and file.created_at >= since
    ]
    if not (count := sum(file.unverified_lines or 0 for file in written)):
        return ""
    label = join(file.label for file in written)
    is_web = {source.partition(":")[0] for source in label.sources} <= _WEB
    origin = "the web" if is_web else str(label)
    if count == 1:
        return f"1 line in MEMORY.md comes from {origin}, and nobody has checked it."
    return f"{count:,} lines in MEMORY.md come from {origin}, and nobody has checked them."


def confirm(tx: Tx, file_id: str, *, author: str, digest: str) -> FileLabel:
    """Take the label off a file: a person confirms its words. `digest` is the hash of the words
    that the person has read, or its first 16 characters or more; if the file was written since,
    raise `Conflict`. The change can be undone."""
    file = FILE_LABELS.get(tx, file_id, lock=True)
    if not file.label:
        raise Conflict(f"The file {file.path!r} holds no unverified words: nothing to confirm.")
    if len(digest) < LEAST_HASH or not file.hash.startswith(digest):
        raise Conflict(f"The file {file.path!r} has changed since; read it again first.")
    before = {"label": file.label.to_list(), "confirmed_text": file.confirmed_text}
    FILE_LABELS.update(tx, file_id, label=CLEAN, confirmed_text=None, confirmed_at=tx.now)
    touched = (ChangedItem(id=file_id, before=before),)
    changes.write(
        tx, teams.coordinator(tx, file_labels.team_of(tx, file)), "confirmed", author, touched
    )
    return replace(file, label=CLEAN, confirmed_text=None, confirmed_at=tx.now)


def undo(tx: Tx, touched: ChangedItem) -> None:
    """Put the label back on a file that a person had confirmed; a label that came since stays."""
    file, before = FILE_LABELS.get(tx, touched.id, lock=True), touched.before or {}
    label = Label.from_list(before.get("label", ())) | file.label
    text = before.get("confirmed_text") if not file.label else file.confirmed_text
    FILE_LABELS.update(tx, file.id, label=label, confirmed_text=text, confirmed_at=None)
