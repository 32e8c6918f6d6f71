"""Folder changes: records what agents changed in given folders, and plans how to undo it."""

from collections.abc import Collection, Iterable

from agiraph.core.domain.events.work import FolderChanged
from agiraph.core.domain.ids import NodeId, TeamId, new_id
from agiraph.core.domain.value import dataclass
from agiraph.core.store.texts import folder_changes
from agiraph.core.store.texts.folder_changes import FOLDER_CHANGES, FolderChange
from agiraph.core.store.tx import Tx

NAMED = 20
"""Paths that an event names; the rows have all of them."""

Changed = tuple[str, str | None, str | None]
"""A path below its folder, what it held, and what it holds."""


def record(
    tx: Tx, team_id: TeamId, node_id: NodeId | None, folder: str, changes: Iterable[Changed]
) -> list[FolderChange]:
    """Store the changes of one folder. `node_id` is None if a person undid something."""
    stored = [
        FOLDER_CHANGES.insert(
            tx,
            FolderChange(
                id=new_id("change"),
                team_id=team_id,
                node_id=node_id,
                folder=folder,
                path=path,
                before=before,
                after=after,
                created_at=tx.now,
            ),
        )
        for path, before, after in changes
        if before != after
    ]
    if stored:
        paths = [change.path for change in stored[:NAMED]]
        tx.emit(
            team_id, FolderChanged(node_id=node_id, folder=folder, paths=paths, count=len(stored))
        )
    return stored


@dataclass(frozen=True, slots=True)
class Undo:
    """How one path gets back what it held before a node changed it."""

    folder: str
    path: str
    to: str | None
    expected: str | None
    """What it holds if nobody else has changed it since."""
    ids: tuple[str, ...]
    """The changes that are undone by it."""


def plan_undo(
    tx: Tx, team_id: TeamId, *, node_id: NodeId | None, paths: Collection[str] = ()
) -> list[Undo]:
    """Return how to undo the changes of a node, or of all, in these paths (`folder/path`) or all.

    Several changes of one path are undone at once: it gets what it held before the first.
    """
    found: dict[tuple[str, str], list[FolderChange]] = {}
    for change in folder_changes.not_undone(tx, team_id, node_id):
        if not paths or f"{change.folder}/{change.path}" in paths:
            found.setdefault((change.folder, change.path), []).append(change)
    return [
        Undo(
            folder,
            path,
            to=changes[0].before,
            expected=changes[-1].after,
            ids=tuple(change.id for change in changes),
        )
        for (folder, path), changes in found.items()
    ]


def settle(tx: Tx, team_id: TeamId, undo: Undo, held: str | None) -> None:
    """Record that a path was put back; `held` is what it held until then."""
    folder_changes.mark_undone(tx, undo.ids)
    record(tx, team_id, None, undo.folder, [(undo.path, held, undo.to)])
