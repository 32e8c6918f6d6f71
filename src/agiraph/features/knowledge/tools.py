"""Knowledge tools: write, search and remove an agent's notes, memories and insights."""

import asyncio
from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.provenance.labels import Label, join
from agiraph.core.domain.text.passages import search_words
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.tools import ON_DEMAND
from agiraph.core.home.file_versions import (
    NO_SECRETS,
    UNVERIFIED,
    Kind,
    is_unverified,
    kind_of_note,
    waits_for_person,
)
from agiraph.core.run_context import RunContext
from agiraph.core.tools.base import NO_TEXT, Tool, tool
from agiraph.core.tools.files.file_labels import fenced, label_of, note_use
from agiraph.core.tools.passages import Query, as_hit, find_passages, join_hits, retold
from agiraph.features.knowledge.note_files import Notes, Written
from agiraph.features.knowledge.note_writes import (
    files_of,
    keep_pending,
    keep_unverified,
    labelled_names,
    refresh_notes,
    today_of,
    write_note,
)
from agiraph.features.knowledge.verbs import notes
from agiraph.redaction import looks_secret

PAGE_CHARS = 16 * 1024
SMALL_BYTES = 20 * 1024
"""Notes below this total size are shown whole: reading finds more than searching."""

NotePath = Annotated[
    str,
    Field(
        min_length=1,
        description="MEMORY.md (always shown), YYYY-MM-DD.md (today's log), knowledge/NAME.md, …",
    ),
]


@tool(
    effect="repeatable",
    in_sight=ON_DEMAND,
    saves="facts for later tasks as notes",
)
async def memory_write(
    ctx: RunContext, path: NotePath, content: Annotated[str, Field(min_length=1)]
) -> Answer:
    """Save a note for later work. Facts with sources go into knowledge/, what worked into
    experiences/, wishes of the person into preferences/. It replaces the whole file, so read it
    first; only today's log is added to. Write statements, not orders, and nothing secret.
    """
    if looks_secret(content):
        raise Refused(NO_SECRETS)
    kept = Notes(ctx.scope, await labelled_names(ctx))
    name = kept.name(path).removeprefix(f"{UNVERIFIED}/")
    # Checked now, while the model can correct it: nobody should confirm a note that cannot be
    # written.
    await asyncio.to_thread(kept.compose, name, content, today=today_of(ctx))
    kind = kind_of_note(name)
    if ctx.label and waits_for_person(kind, ctx.team.trust):
        return await keep_pending(ctx, name, content)
    if ctx.label and kind is Kind.NOTE and ctx.team.trust != "open":
        return await keep_unverified(ctx, name, content)
    written, remarks = await write_note(ctx, kept, name, content, today_of(ctx))
    files = await asyncio.to_thread(files_of, kept)
    await ctx.store.write(notes.record_write, ctx.agent, written.path, files)
    size = len(files.get(written.path, "").encode(errors="replace"))
    said = f"Wrote {written.path} ({size:,} bytes); index.md lists it."
    return Done(said + remarks + _replaced(written))


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
    kept = Notes(ctx.scope)
    name = await asyncio.to_thread(_existing, kept, kept.name(path))
    full = kept.full(name)
    # Before and after: another thread may write the note, and its label, in between.
    label = await label_of(ctx, full)
    text = await asyncio.to_thread(kept.read, name)
    label |= await label_of(ctx, full)
    page = text.replace("\0", NO_TEXT)[offset : offset + PAGE_CHARS]
    if not page:
        return Done(f"(nothing from character {offset} on)" if offset else "(empty)")
    await note_use(ctx, full)
    if page == text:
        return Done(await fenced(ctx, full, page, label), label=label, is_fenced=True)
    page = retold(page, label, ctx.lease.thread_id, source=ctx.describe(label))
    if offset + PAGE_CHARS < len(text):
        page += f"\n… there is more: memory_read({path!r}, offset={offset + PAGE_CHARS})"
    return Done(page, label=label, is_fenced=True)


def _existing(kept: Notes, name: str) -> str:
    """Return the name of a note, or of its unverified version if there is no other."""
    return name if kept.exists(name) or not kept.exists(u := f"{UNVERIFIED}/{name}") else u


@tool(
    effect="repeatable",
    in_sight=ON_DEMAND,
)
async def memory_search(ctx: RunContext, query: Query) -> Answer:
    """Search your notes. Use words that stand in them; you get whole sections, the best first."""
    files = await refresh_notes(ctx)
    if not files:
        return Done("You have no notes yet.")
    labels = await ctx.store.read(notes.labels_of, ctx.agent, files)
    if sum(len(text.encode(errors="replace")) for text in files.values()) < SMALL_BYTES:
        shown = [_note(ctx, path, text, labels[path]) for path, text in sorted(files.items())]
        await _note_uses(ctx, files)
        said = "All your notes, since they are few:\n\n" + "\n\n---\n\n".join(shown)
        return Done(said, label=join(labels.values()), is_fenced=True)
    found = await find_passages(ctx, query, ("note",))
    if not found:
        clean = sorted(path for path in files if not labels[path])
        names = "\n".join(f"- {path}" for path in clean)[:PAGE_CHARS]
        left = len(files) - len(clean)
        more = (
            f"\n\nAnd {counted(left, 'unverified one')}; use words that stand in them."
            if left
            else ""
        )
        return Done(f"No note holds any of these words. This is what there is:\n\n{names}{more}")
    await _note_uses(ctx, [hit.ref for hit in found])
    shown = [_note(ctx, hit.ref, hit.text, hit.label) for hit in found]
    return Done(join_hits(shown), label=join(hit.label for hit in found), is_fenced=True)


def _note(ctx: RunContext, path: str, text: str, label: Label) -> str:
    """Return a note, or a section of one; with untrusted text, also in its name, in a fence."""
    if not label:
        return f"**{path}**\n{text.strip()}"
    source = ctx.describe(label)
    return retold(f"**{path}**\n{text.strip()}", label, ctx.lease.thread_id, source=source)


async def _note_uses(ctx: RunContext, paths: Iterable[str]) -> None:
    """Record that work has read these notes: unverified ones last as long again."""
    mark = f"memory/{UNVERIFIED}/"
    if names := {path.partition(mark)[2] for path in paths if is_unverified(path)}:
        await ctx.store.write(notes.record_use, ctx.agent.id, names)


@tool(
    effect="repeatable",
    in_sight=ON_DEMAND,
)
async def knowledge_search(ctx: RunContext, query: Query) -> Answer:
    """Find what the team already knows: notes, insights, pages read, reports. Look here before the
    web. Check what is marked as unverified.
    """
    if not search_words(query):
        raise Refused("There is no word in that query; name what you look for in a few words.")
    await refresh_notes(ctx)
    found = await find_passages(ctx, query, ("note", "page", "insight", "report"))
    if not found:
        return Done("Nothing known holds any of these words. Try others, or find it out.")
    thread = ctx.lease.thread_id
    shown = [as_hit(number, hit, thread) for number, hit in enumerate(found, start=1)]
    await _note_uses(ctx, [hit.ref for hit in found if hit.kind == "note"])
    label = join(hit.label for hit in found)
    return Done(join_hits(shown), label=label, is_fenced=True)


TOOLS: tuple[Tool, ...] = (memory_write, memory_read, memory_search, knowledge_search)
