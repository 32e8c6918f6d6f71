"""Recall: what an agent knows, as it is put before it."""

from collections.abc import Sequence

from agiraph.domain.ids import AgentId
from agiraph.domain.knowledge import Insight
from agiraph.services.knowledge import items
from agiraph.store.knowledge import INSIGHTS, Item
from agiraph.store.tx import Tx

MOST = 40
"""Insights in a prompt; list_insights and knowledge_search find the others."""
MOST_CHARACTERS = 8000


def for_work(tx: Tx, agent_id: AgentId, task: str) -> list[Insight]:
    """The insights an agent is given with a task: what is about it first, then what is newest."""
    fitting = items.insights(tx, agent_id, query=task, limit=MOST)
    newest = items.insights(tx, agent_id, limit=2 * MOST)
    known = {insight.id: insight for insight in (*fitting, *newest)}
    chosen: dict[str, Insight] = {}
    room = MOST_CHARACTERS
    for insight in known.values():
        if insight.id in chosen:
            continue
        # Of two that oppose each other, one alone would mislead.
        rivals = [i for i in known.values() if i.contradicts == insight.id]
        other = insight.contradicts and INSIGHTS.find(tx, insight.contradicts)
        rivals += [other] if other and other.status == "active" else []
        group = [i for i in (insight, *rivals) if i.id not in chosen]
        room -= sum(len(i.content) for i in group)
        if room < 0 or len(chosen) + len(group) > MOST:
            break
        chosen |= {i.id: i for i in group}
    return list(chosen.values())


def as_lines(known: Sequence[Item], *, ids: bool = True) -> list[str]:
    """Items for a prompt, one a line; those that oppose each other as a pair."""
    by_id = {item.id: item for item in known}
    pairs = {item.id: item.contradicts for item in known if item.contradicts in by_id}
    told: set[str] = set()
    lines: list[str] = []
    for item in known:
        if item.id in told:
            continue
        other = pairs.get(item.id) or next((a for a, b in pairs.items() if b == item.id), None)
        if other is None or other in told:
            lines.append(f"- {_line(item, ids=ids)}")
            told.add(item.id)
            continue
        newer, older = sorted((item, by_id[other]), key=lambda i: i.created_at, reverse=True)
        lines.append(
            "- These two do not go together; check which one holds before you rely on either:\n"
            f"  - {_line(newer, ids=ids)}\n  - {_line(older, ids=ids)}"
        )
        told |= {item.id, other}
    return lines


def _line(item: Item, *, ids: bool) -> str:
    said = " ".join(item.content.split())
    about = [item.id] if ids else []
    if isinstance(item, Insight):
        about.append(item.type)
        if item.confidence is not None:
            about.append(f"confidence {item.confidence:.2g}")
    about.append(f"{item.created_at:%Y-%m-%d}")
    return f"{said} ({', '.join(about)})"
