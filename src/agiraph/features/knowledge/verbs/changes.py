"""Changes: write memories and insights, each change with a record by which it can be undone."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from agiraph.api.feature_views.known import Change, ChangedItem, ChangeVerb, Insight, Note
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.events.knowledge import KnowledgeChanged, KnowledgeStatus
from agiraph.core.domain.ids import new_id
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.store.texts import passages
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import rows
from agiraph.features.knowledge.rows import CHANGES, Item

CONFIDENCE_GAIN = 0.2
"""The share of the missing confidence that another source with the same statement adds."""
FOUND: frozenset[KnowledgeStatus] = frozenset({"active", "unverified"})
"""The statuses of insights that a search finds."""
_MUTABLE = (
    "status",
    "superseded_by",
    "confidence",
    "sources",
    "contradicts",
    "label",
    "valid_until",
)


def store(tx: Tx, item: Item, *, is_new: bool) -> None:
    """Insert a new item, or update the changeable columns of a known one."""
    if not is_new:
        alter(tx, item, **_state(item))
        return
    rows.table_of(item.id).insert(tx, item)
    index(tx, item)


def alter(tx: Tx, item: Item, **changes: Any) -> Any:
    """Update columns of an item and its entry in the search index. Return the changed item."""
    rows.table_of(item.id).update(tx, item.id, **changes)
    changed = replace(item, **changes)
    index(tx, changed)
    return changed


def restore(tx: Tx, item: Item, before: dict[str, Any]) -> None:
    """Set the columns of an item to the state that a change has recorded."""
    state = dict(before)
    if "sources" in state:
        state["sources"] = tuple(state["sources"])
    if "label" in state:
        state["label"] = Label.from_list(state["label"])
    if state.get("valid_until") is not None:
        state["valid_until"] = datetime.fromisoformat(state["valid_until"])
    alter(tx, item, **state)


def index(tx: Tx, item: Item) -> None:
    """Put an active or unverified insight into the search index, with its label; take any other
    out. Memories are never in it."""
    if not isinstance(item, Insight):
        return
    team_id, owner = item.team_id, item.owner
    # Dropped in any case: `put` keeps the entry of a text that is the same, and its old label.
    passages.drop(tx, team_id=team_id, owner=owner, kind="insight", ref=item.id)
    if item.status not in FOUND:
        return
    passages.put(
        tx,
        team_id=team_id,
        owner=owner,
        kind="insight",
        ref=item.id,
        title=item.type,
        text=item.content,
        label=item.label,
    )


def _state(item: Item) -> dict[str, Any]:
    """Return the columns that a change may alter, as they are now."""
    return {field: getattr(item, field) for field in _MUTABLE if hasattr(item, field)}


def _recorded(item: Item) -> dict[str, Any]:
    """Return the state of an item in the form that the record of a change holds as JSON."""
    until = item.valid_until
    return {
        **_state(item),
        "label": item.label.to_list(),
        "valid_until": None if until is None else until.isoformat(),
    }


def record(
    tx: Tx,
    about: Item | Agent,
    verb: ChangeVerb,
    author: str,
    touched: Sequence[tuple[Item, Item | None]],
) -> Change:
    """Record a change of items, each given with its state before; None if it is new."""
    kept = tuple(
        ChangedItem(id=item.id, before=None if before is None else _recorded(before))
        for item, before in touched
    )
    return write(tx, about, verb, author, kept)


def write(
    tx: Tx,
    about: Item | Note | Agent,
    verb: ChangeVerb,
    author: str,
    touched: tuple[ChangedItem, ...],
) -> Change:
    """Insert a change, and emit an event unless it only adds something."""
    change = Change(
        id=new_id("change"),
        team_id=about.team_id,
        agent_id=about.id if isinstance(about, Agent) else about.agent_id,
        verb=verb,
        author=author,
        created_at=tx.now,
        touched=touched,
    )
    CHANGES.insert(tx, change)
    if verb != "learned" and touched:
        tx.emit(
            about.team_id,
            KnowledgeChanged(
                verb=verb,
                change_id=change.id,
                ids=[t.id for t in touched],
            ),
        )
    return change


def combined(kept: Item, other: Item) -> dict[str, Any]:
    """Return the columns of `kept` after a merge: the sources of both, and a higher confidence.

    What strangers say adds nothing to a clean item. Two labelled ones have the labels of both.
    """
    if other.label and not kept.label:
        return {"sources": kept.sources}
    sources = tuple(dict.fromkeys((*kept.sources, *other.sources)))
    columns: dict[str, Any] = {"sources": sources}
    if kept.label:
        columns["label"] = kept.label | other.label
    if kept.status == "unverified" and kept.valid_until and other.valid_until:
        columns["valid_until"] = max(kept.valid_until, other.valid_until)
    if isinstance(kept, Insight) and isinstance(other, Insight):
        sure = [c for c in (kept.confidence, other.confidence) if c is not None]
        if sure:
            # Only a new source adds confidence: a repetition by the same source proves nothing.
            is_new = len(sources) > max(len(kept.sources), len(other.sources))
            columns["confidence"] = round(max(sure) + (1 - max(sure)) * CONFIDENCE_GAIN * is_new, 4)
    return columns
