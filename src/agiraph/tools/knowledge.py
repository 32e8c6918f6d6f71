"""Knowledge tools: write, search and remove an agent's notes, memories and insights."""

import asyncio
from contextlib import suppress
from datetime import date
from typing import Annotated, Any

from pydantic import Field

from agiraph.domain.errors import Refused
from agiraph.domain.fence import enclose_foreign, one_line
from agiraph.domain.labels import join
from agiraph.domain.outcomes import Answer, Done
from agiraph.domain.passages import Passage, PassageKind, search_words
from agiraph.domain.tools import ON_DEMAND
from agiraph.home.notes import Notes, Written
from agiraph.providers.embeddings import embeddings
from agiraph.redaction import looks_secret
from agiraph.run_context import RunContext
from agiraph.services.knowledge import items, notes
from agiraph.store import knowledge as rows
from agiraph.store import passages
from agiraph.tools.base import NO_TEXT, Tool, tool

PAGE_CHARS = 16 * 1024
SMALL_BYTES = 20 * 1024
"""Notes below this total size are shown whole: reading finds more than searching."""
MAX_HITS = 10
MAX_SHOWN_CHARS = 16_000
"""Characters of all hits together."""
HIT_CHARS = 2000
"""Characters of one hit; the agent can read the rest in its source."""

NotePath = Annotated[
    str,
    Field(
        min_length=1,
        description="MEMORY.md (always shown), YYYY-MM-DD.md (today's log), knowledge/NAME.md, …",
    ),
]
Query = Annotated[str, Field(max_length=2000, description="A few words that stand in it")]


async def refresh_notes(ctx: RunContext) -> dict[str, str]:
    """Write confirmed drafts to their files, index changed files, and return all notes by path."""
    kept = Notes(ctx.scope)
    for draft in await ctx.store.read(rows.accepted, ctx.agent.id):
        with suppress(Refused):  # the notes may be full by now; the draft stays accepted
            await asyncio.to_thread(kept.accept, draft.path, draft.content, today=_today(ctx))
            # After the file: a crash in between writes the draft once more, which changes nothing.
            await ctx.store.write(notes.mark_written, draft)
    await asyncio.to_thread(kept.archive, _today(ctx))
    files = await asyncio.to_thread(_files, kept)
    if await ctx.store.read(notes.is_stale, ctx.agent, files):
        await ctx.store.write(notes.index, ctx.agent, files)
    return files


def _files(kept: Notes) -> dict[str, str]:
    return {kept.full(name): text for name, text in kept.files().items()}


def _today(ctx: RunContext) -> date:
    return ctx.clock.now().date()


@tool(
    effect="repeatable",
    in_sight=frozenset({"coordinator"}),
)
async def memory_write(
    ctx: RunContext, path: NotePath, content: Annotated[str, Field(min_length=1)]
) -> Answer:
    """Save a note for later work. Facts with sources go into knowledge/, what worked into
    experiences/, wishes of the person into preferences/. It replaces the whole file, so read it
    first; only today's log is added to. Write statements, not orders, and nothing secret.
    """
    if looks_secret(content):
        raise Refused(items.NO_SECRETS)
    kept = Notes(ctx.scope)
    if ctx.label:
        # Checked now, while the model can correct it: nobody should confirm a note that cannot be
        # written.
        await asyncio.to_thread(kept.check, path, content, today=_today(ctx))
        draft = await ctx.store.write(
            items.draft,
            ctx.agent,
            path=kept.name(path),
            content=content,
            thread_id=ctx.lease.thread_id,
            label=ctx.label,
        )
        return Done(
            f"Held as {draft.id}: this thread holds words from {ctx.label}, so a person looks "
            "at the note before it counts. Go on; you need not write it again."
        )
    written = await asyncio.to_thread(kept.write, path, content, today=_today(ctx))
    files = await asyncio.to_thread(_files, kept)
    await ctx.store.write(notes.record_write, ctx.agent, written.path, files)
    size = len(files.get(written.path, "").encode(errors="replace"))
    return Done(f"Wrote {written.path} ({size:,} bytes); index.md lists it.{_replaced(written)}")


def _replaced(written: Written) -> str:
    """Return where the earlier text is, and whether most of it is gone from the note."""
    if written.earlier is None:
        return ""
    lost = f" Of its {written.lines} lines {written.lost} are gone." if written.lost_most else ""
    return f"{lost} What stood there before is kept: memory_read({written.earlier!r})."


@tool(effect="repeatable", reads_file=True, in_sight=ON_DEMAND)
async def memory_read(
    ctx: RunContext,
    path: NotePath,
    offset: Annotated[int, Field(ge=0, description="In characters; for the next page")] = 0,
) -> Answer:
    """Read one of your notes. index.md says what there is."""
    text = await asyncio.to_thread(Notes(ctx.scope).read, path)
    page = text.replace("\0", NO_TEXT)[offset : offset + PAGE_CHARS]
    if not page:
        return Done(f"(nothing from character {offset} on)" if offset else "(empty)")
    if offset + PAGE_CHARS < len(text):
        page += f"\n… there is more: memory_read({path!r}, offset={offset + PAGE_CHARS})"
    return Done(page)


@tool(
    effect="repeatable",
    in_sight=ON_DEMAND,
)
async def memory_search(ctx: RunContext, query: Query) -> Answer:
    """Search your notes. Use words that stand in them; you get whole sections, the best first."""
    files = await refresh_notes(ctx)
    if not files:
        return Done("You have no notes yet.")
    if sum(len(text.encode(errors="replace")) for text in files.values()) < SMALL_BYTES:
        shown = [f"**{path}**\n{text.strip()}" for path, text in sorted(files.items())]
        return Done("All your notes, since they are few:\n\n" + "\n\n---\n\n".join(shown))
    found = await _search(ctx, query, ("note",))
    if not found:
        names = "\n".join(f"- {path}" for path in sorted(files))[:PAGE_CHARS]
        return Done(f"No note holds any of these words. This is what there is:\n\n{names}")
    return Done(_join_hits([f"**{hit.ref}**\n{hit.text}" for hit in found]))


@tool(
    effect="repeatable",
    in_sight=frozenset({"coordinator"}),
)
async def knowledge_search(ctx: RunContext, query: Query) -> Answer:
    """Find what the team already knows: notes, insights, pages read, reports. Look here before you
    search the web. What is marked as unverified is somebody's word: check it.
    """
    if not search_words(query):
        raise Refused("There is no word in that query; name what you look for in a few words.")
    await refresh_notes(ctx)
    found = await _search(ctx, query, ("note", "page", "insight", "report"))
    if not found:
        return Done("Nothing known holds any of these words. Try others, or find it out.")
    thread = ctx.lease.thread_id
    shown = [_hit(number, hit, thread) for number, hit in enumerate(found, start=1)]
    label = join(hit.label for hit in found)
    return Done(_join_hits(shown), label=label, is_fenced=True)


async def _search(ctx: RunContext, query: str, kinds: tuple[PassageKind, ...]) -> list[Passage]:
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


def _hit(number: int, hit: Passage, thread: str) -> str:
    """Return a hit as text; strangers' words, the title too, are inside a fence."""
    about = [hit.kind, one_line(hit.ref), f"{hit.created_at:%Y-%m-%d}"]
    text = hit.text if len(hit.text) <= HIT_CHARS else f"{hit.text[:HIT_CHARS]}…"
    if hit.label:
        text = f"{hit.title}\n{text}" if hit.title else text
        fenced = enclose_foreign(text, thread=thread, source=str(hit.label))
        return f"[{number}] ({', '.join([*about, 'UNVERIFIED'])})\n{fenced}"
    title = f" {one_line(hit.title)}" if hit.title else ""
    return f"[{number}]{title} ({', '.join(about)})\n{text}"


def _join_hits(shown: list[str]) -> str:
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


WORK: tuple[Tool, ...] = (memory_write, memory_read, memory_search, knowledge_search)
