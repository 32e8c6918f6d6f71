"""Folder changes, as rows: what agents and persons changed in the folders that teams were given."""

from collections.abc import Sequence
from datetime import datetime

from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.value import value
from agiraph.core.store.rows import Table, to_micros
from agiraph.core.store.tx import Tx


@value
class FolderChange:
    """A file of a given folder that was made, changed or removed."""

    id: str
    team_id: TeamId
    folder: str
    """The name of the folder."""
    path: str
    """Below the folder."""
    created_at: datetime
    node_id: NodeId | None = None
    """The node whose agent did it; None: a person undid changes."""
    before: str | None = None
    """What it held, as `home.folder_history` names it; None: there was no such file."""
    after: str | None = None
    undone_at: datetime | None = None


FOLDER_CHANGES = Table("folder_changes", FolderChange)


def page(
    tx: Tx, team_id: TeamId, *, node_id: NodeId | None, before: str, limit: int
) -> list[FolderChange]:
    """Return changes of a team, newest first, older than the change with the id `before`."""
    where = "team_id = :team_id"
    where += "" if node_id is None else " and node_id = :node_id"
    where += " and id < :before" if before else ""
    return FOLDER_CHANGES.select(
        tx,
        f"{where} order by id desc limit :limit",
        team_id=team_id,
        node_id=node_id,
        before=before,
        limit=limit,
    )


def not_undone(tx: Tx, team_id: TeamId, node_id: NodeId | None = None) -> list[FolderChange]:
    """Return the changes that agents made and nobody has undone, oldest first: those of one node,
    or of all nodes of the team."""
    where = "team_id = :team_id and node_id is not null and undone_at is null"
    where += "" if node_id is None else " and node_id = :node_id"
    return FOLDER_CHANGES.select(tx, f"{where} order by id", team_id=team_id, node_id=node_id)


def of_names(tx: Tx, team_id: TeamId, names: Sequence[str]) -> list[FolderChange]:
    """Return the changes of files with one of these names, in a folder itself or below it, newest
    first; `*` in a name stands for any characters."""
    patterns = [form.replace("*", "%") for name in names for form in (name, f"*/{name}")]
    given = {
        f"like_{chr(ord('a') + n // 26)}{chr(ord('a') + n % 26)}": p for n, p in enumerate(patterns)
    }
    fits = " or ".join(f"path like :{key}" for key in given)
    where = f"team_id = :team_id and ({fits}) order by id desc"
    return FOLDER_CHANGES.select(tx, where, team_id=team_id, **given)


def mark_undone(tx: Tx, ids: Sequence[str]) -> None:
    for change_id in ids:
        tx.run(
            "update folder_changes set undone_at = :now where id = :id and undone_at is null",
            id=change_id,
            now=to_micros(tx.now),
        )


def copies_since(tx: Tx, team_id: TeamId, since: datetime) -> set[str]:
    """Return the versions that changes since then name, whose copies are still wanted."""
    rows = tx.all(
        "select before, after from folder_changes"
        " where team_id = :team_id and created_at >= :since",
        team_id=team_id,
        since=to_micros(since),
    )
    return {version for row in rows for version in row if version is not None}
