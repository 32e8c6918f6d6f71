"""Changes: whatever alters what an agent knows is written down so that it can be undone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agiraph.domain.agents import Agent
from agiraph.domain.events.knowledge import KnowledgeChanged
from agiraph.domain.ids import new_id
from agiraph.domain.knowledge import Change, ChangedItem, ChangeVerb, Insight, NoteDraft
from agiraph.store import knowledge as rows
from agiraph.store import passages
from agiraph.store.knowledge import CHANGES, Item
from agiraph.store.tx import Tx

RISE = 0.2
"""Of what is missing to certainty, so much is gained when another source says the same."""
_MUTABLE = ("status", "superseded_by", "confidence", "sources", "contradicts")


def store(tx: Tx, item: Item, *, is_new: bool) -> None:
    if not is_new:
        alter(tx, item, **_state(item))
        return
    rows.table_of(item.id).insert(tx, item)
    _index(tx, item)


def alter(tx: Tx, item: Item, **changes: Any) -> Any:
    fields = {f: tuple(v) if f == "sources" else v for f, v in changes.items()}
    rows.table_of(item.id).update(tx, item.id, **fields)
    changed = replace(item, **fields)
    _index(tx, changed)
    return changed


def _index(tx: Tx, item: Item) -> None:
    """Insights can be searched for at work; memories never can."""
    if not isinstance(item, Insight):
        return
    team_id, owner = item.team_id, item.agent_id
    if item.status != "active":
        passages.drop(tx, team_id=team_id, owner=owner, kind="insight", ref=item.id)
        return
    passages.put(
        tx,
        team_id=team_id,
        owner=owner,
        kind="insight",
        ref=item.id,
        title=item.type,
        text=item.content,
    )


def _state(item: Item) -> dict[str, Any]:
    return {field: getattr(item, field) for field in _MUTABLE if hasattr(item, field)}


def record(
    tx: Tx,
    about: Item | Agent,
    verb: ChangeVerb,
    author: str,
    touched: Sequence[tuple[Item, Item | None]],
) -> Change:
    kept = tuple(
        ChangedItem(id=item.id, before=None if before is None else _state(before))
        for item, before in touched
    )
    return write(tx, about, verb, author, kept)


def write(
    tx: Tx,
    about: Item | NoteDraft | Agent,
    verb: ChangeVerb,
    author: str,
    touched: tuple[ChangedItem, ...],
) -> Change:
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


def joined(kept: Item, other: Item) -> dict[str, Any]:
    """What two items with one meaning have together: their sources, and more confidence."""
    sources = tuple(dict.fromkeys((*kept.sources, *other.sources)))
    joined: dict[str, Any] = {"sources": sources}
    if isinstance(kept, Insight) and isinstance(other, Insight):
        sure = [c for c in (kept.confidence, other.confidence) if c is not None]
        if sure:
            # Only another source adds to it: what is merely repeated gets no truer.
            is_new = len(sources) > max(len(kept.sources), len(other.sources))
            joined["confidence"] = round(max(sure) + (1 - max(sure)) * RISE * is_new, 4)
    return joined
