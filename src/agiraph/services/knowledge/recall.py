"""Recall: choose insights for a prompt, and format what an agent knows as lines."""

from collections.abc import Collection, Sequence

from agiraph.domain.ids import AgentId
from agiraph.domain.knowledge import Insight
from agiraph.domain.similarity import Statements, interleave, segments
from agiraph.providers.embeddings import embeddings
from agiraph.services.knowledge import items, merging
from agiraph.store.knowledge import INSIGHTS, Item
from agiraph.store.tx import Tx

MAX_INSIGHTS = 40
"""Insights in a prompt; list_insights and knowledge_search find the others."""
MAX_CHARS = 8000
EACH = 6
"""Known insights that are looked up for each sentence of a text."""
NEAR = 0.5
"""The cosine from which a person is asked whether two statements go together."""


def for_work(tx: Tx, agent_id: AgentId, task: str) -> list[Insight]:
    """Return the insights for a prompt about this task: matching ones first, then the newest."""
    fitting = items.insights(tx, agent_id, query=task, limit=MAX_INSIGHTS)
    newest = items.insights(tx, agent_id, limit=2 * MAX_INSIGHTS)
    known = {insight.id: insight for insight in (*fitting, *newest)}
    chosen: dict[str, Insight] = {}
    room = MAX_CHARS
    for insight in known.values():
        if insight.id in chosen:
            continue
        # Both insights that contradict each other are shown, or none: one alone would mislead.
        rivals = [i for i in known.values() if i.contradicts == insight.id]
        other = insight.contradicts and INSIGHTS.find(tx, insight.contradicts)
        rivals += [other] if other and other.status == "active" else []
        group = [i for i in (insight, *rivals) if i.id not in chosen]
        room -= sum(len(i.content) for i in group)
        # The best ones come first, so the rest is left out and not squeezed in.
        if room < 0 or len(chosen) + len(group) > MAX_INSIGHTS:
            break
        chosen |= {i.id: i for i in group}
    return list(chosen.values())


def candidates(text: str, known: Collection[Insight], *, limit: int) -> list[str]:
    """Return the ids of the insights nearest to any sentence of a text, best first.

    By words and letters, and by embeddings if they are installed, in turn. Loading embeddings takes
    a while, so callers run this in a thread.
    """
    said = segments(text)
    statements = {insight.id: insight.content for insight in known}
    by_words = Statements(statements).nearest_to_any(said, each=EACH, limit=limit)
    if (model := embeddings()) is None:
        return by_words
    by_meaning = model.nearest_to_any(said, statements, each=EACH, limit=limit)
    return interleave(by_words, by_meaning, limit=limit)


def nearest(tx: Tx, item: Item) -> Item | None:
    """Return the known item that is so near to this one that they may contradict each other."""
    others = {other.id: other for other in merging.peers(tx, item) if other.id != item.id}
    known = Statements({other.id: other.content for other in others.values()})
    found = known.nearest(item.content, limit=1)
    return others[found[0][0]] if found and found[0][1] >= NEAR else None


def as_lines(known: Sequence[Item], *, ids: bool = True) -> list[str]:
    """Return items as lines of a prompt; two that contradict each other share an entry."""
    by_id = {item.id: item for item in known}
    pairs = {item.id: item.contradicts for item in known if item.contradicts in by_id}
    shown: set[str] = set()
    lines: list[str] = []
    for item in known:
        if item.id in shown:
            continue
        other = pairs.get(item.id) or next((a for a, b in pairs.items() if b == item.id), None)
        if other is None or other in shown:
            lines.append(f"- {_line(item, ids=ids)}")
            shown.add(item.id)
            continue
        newer, older = sorted((item, by_id[other]), key=lambda i: i.created_at, reverse=True)
        lines.append(
            "- These two do not go together; check which one holds before you rely on either:\n"
            f"  - {_line(newer, ids=ids)}\n  - {_line(older, ids=ids)}"
        )
        shown |= {item.id, other}
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
