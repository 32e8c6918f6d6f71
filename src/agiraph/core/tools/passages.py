"""Passages: finds sections of notes, pages, reports and insights, and shows them to a thread."""

import asyncio
from typing import Annotated, Any

from pydantic import Field

from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.text.fence import OF_TEAM, enclose_foreign, enclose_retold, one_line
from agiraph.core.domain.text.passages import Passage, PassageKind
from agiraph.core.run_context import RunContext
from agiraph.core.store.texts import passages
from agiraph.models.embeddings import embeddings

MAX_HITS = 10
MAX_SHOWN_CHARS = 16_000
"""Characters of all hits together."""
HIT_CHARS = 2000
"""Characters of one hit; the agent can read the rest in its source."""

Query = Annotated[str, Field(max_length=2000, description="A few words that stand in it")]


async def find_passages(
    ctx: RunContext, query: str, kinds: tuple[PassageKind, ...]
) -> list[Passage]:
    """Return passages with the query's words, then, if embeddings are installed, similar ones."""
    scope: dict[str, Any] = {"team_id": ctx.team.id, "owner": ctx.agent.id, "kinds": kinds}
    found = await ctx.store.read(passages.find, query, **scope, limit=MAX_HITS)
    # In a thread: loading the vectors takes seconds, and comparing them keeps a processor busy.
    model = await asyncio.to_thread(embeddings)
    if model is None or len(found) >= MAX_HITS:
        return found
    known = {hit.id for hit in found}
    others = {p.id: p for p in await ctx.store.read(passages.visible, **scope) if p.id not in known}
    texts = [(p.id, f"{p.title}\n{p.text}") for p in others.values()]
    near = await asyncio.to_thread(model.nearest, query, texts, limit=MAX_HITS - len(found))
    return found + [others[number] for number in near]


def as_hit(number: int, hit: Passage, thread: str) -> str:
    """Return a search hit as text. Untrusted text and its title stand between the marker lines of a
    fence."""
    about = [hit.kind, one_line(hit.ref), f"{hit.created_at:%Y-%m-%d}"]
    text = hit.text if len(hit.text) <= HIT_CHARS else f"{hit.text[:HIT_CHARS]}…"
    if hit.label:
        text = f"{hit.title}\n{text}" if hit.title else text
        fence = foreign if hit.kind == "page" else retold
        shown = fence(text, hit.label, thread)
        return f"[{number}] ({', '.join([*about, 'UNVERIFIED'])})\n{shown}"
    title = f" {one_line(hit.title)}" if hit.title else ""
    return f"[{number}]{title} ({', '.join(about)})\n{text}"


def foreign(text: str, label: Label, thread: str) -> str:
    """Return a text that others wrote; with a label, in a fence."""
    return enclose_foreign(text, thread=thread, source=str(label)) if label else text


def retold(text: str, label: Label, thread: str, *, source: str = "") -> str:
    """Return words of the team; with a label, in a fence, because they may repeat untrusted
    text."""
    if not label:
        return text
    return enclose_retold(text, thread=thread, author=OF_TEAM, source=source or str(label))


def join_hits(shown: list[str]) -> str:
    """Join as many whole hits as fit; the first one is always shown."""
    kept, room = shown[:1], MAX_SHOWN_CHARS - len(shown[0])
    for hit in shown[1:]:
        room -= len(hit)
        if room < 0:
            break
        kept.append(hit)
    left = len(shown) - len(kept)
    more = f"\n\n({left} more; ask with more words to see them.)" if left else ""
    return "\n\n---\n\n".join(kept) + more
