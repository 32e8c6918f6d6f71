"""Results: what a team has delivered: reports and files of ended work, and changes of folders."""

from datetime import UTC, datetime
from typing import Literal

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.board import labels
from agiraph.core.store.lists import results as rows
from agiraph.core.store.lists.results import Before
from agiraph.core.store.nodes import NODES
from agiraph.core.store.rows import from_micros, to_micros
from agiraph.core.store.texts.folder_changes import FolderChange
from agiraph.core.store.tx import Tx

Kind = Literal["result", "changes"]
MOST_CHANGES = 20
"""Changes that one entry lists; it counts all of them."""
_LATEST = datetime.max.replace(tzinfo=UTC)
_LAST_ID = "~"
"""Greater than every id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A delivered result of a node, or what the agent of a node changed in given folders."""

    kind: Kind
    at: datetime
    node: WorkNode
    parent: WorkNode | None
    label: Label
    """Whose words the result may hold, besides those of the team."""
    changes: tuple[FolderChange, ...] = ()
    change_count: int = 0

    @property
    def cursor(self) -> str:
        """The pagination cursor of this entry."""
        return f"{to_micros(self.at)}-{self.kind}-{self.node.id}"


def page(
    tx: Tx, team_id: TeamId, *, kind: Kind | None, before: str, limit: int, with_parts: bool
) -> list[Entry]:
    """Return at most `limit` entries, newest first, after the entry whose cursor is `before`."""
    results_before, changes_before = _read_cursor(before)
    found: list[Entry] = []
    if kind != "changes":
        nodes = rows.delivered(
            tx, team_id, before=results_before, limit=limit, with_parts=with_parts
        )
        found += [_result(tx, node) for node in nodes if node.ended_at is not None]
    if kind != "result":
        groups = rows.changed(tx, team_id, before=changes_before, limit=limit)
        found += [_changes(tx, team_id, group) for group in groups]
    found.sort(key=lambda e: (e.at, e.kind == "result", e.node.id), reverse=True)
    return found[:limit]


def _read_cursor(cursor: str) -> tuple[Before, Before]:
    """Return where the results and where the changes of the next page begin. Of the same time,
    results come before changes."""
    if not cursor:
        return Before(_LATEST, _LAST_ID), Before(_LATEST, _LAST_ID)
    micros, _, rest = cursor.partition("-")
    kind, _, node_id = rest.partition("-")
    if not (micros.isascii() and micros.isdecimal() and len(micros) < 18 and node_id):
        raise Refused(f"{cursor[:80]!r} is not a valid cursor; use the `next` of a page.")
    at = from_micros(int(micros))
    if kind == "result":
        return Before(at, node_id), Before(at, _LAST_ID)
    return Before(at, ""), Before(at, node_id)


def _result(tx: Tx, node: WorkNode) -> Entry:
    assert node.ended_at is not None
    return Entry(
        kind="result",
        at=node.ended_at,
        node=node,
        parent=_parent(tx, node),
        label=labels.of_nodes(tx, [node.id]),
    )


def _changes(tx: Tx, team_id: TeamId, group: rows.Changed) -> Entry:
    node = NODES.get(tx, group.node_id)
    return Entry(
        kind="changes",
        at=group.at,
        node=node,
        parent=_parent(tx, node),
        label=labels.of_nodes(tx, [node.id]),
        changes=tuple(rows.changes_of(tx, team_id, node.id, limit=MOST_CHANGES)),
        change_count=group.files,
    )


def _parent(tx: Tx, node: WorkNode) -> WorkNode | None:
    return None if node.parent_id is None else NODES.get(tx, node.parent_id)
