"""Knowledge tools: write, search and remove an agent's notes, memories and insights."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from typing import Annotated, Any

from pydantic import Field

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.provenance.labels import Label, join
from agiraph.core.domain.records.notes import Note, front_line
from agiraph.core.domain.text.fence import OF_TEAM, enclose_foreign, enclose_retold, one_line
from agiraph.core.domain.text.passages import Passage, PassageKind, search_words
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.tools import ON_DEMAND
from agiraph.core.home import file_lock
from agiraph.core.home.file_lock import to_the_end
from agiraph.core.home.kept_files import (
    ARCHIVE,
    UNVERIFIED,
    Kind,
    is_unverified,
    kind_of_note,
    waits_for_person,
)
from agiraph.core.home.notes import Notes, Written
from agiraph.core.run_context import RunContext
from agiraph.core.services.knowledge import notes
from agiraph.core.store.texts import file_labels, passages
from agiraph.core.store.texts import notes as note_rows
from agiraph.core.tools.base import NO_TEXT, Tool, tool
from agiraph.core.tools.files import kept_writes
from agiraph.core.tools.files.file_labels import fenced, label_of, note_use
from agiraph.models.embeddings import embeddings
from agiraph.redaction import looks_secret

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
    """Bring note files and rows together, index changed files, and return all notes by path."""
    kept = Notes(ctx.scope, await kept_writes.labelled_names(ctx))
    for note in await ctx.store.read(note_rows.to_file, ctx.agent.id):
        with suppress(Refused):  # the notes may be full by now; the row stays as it is
            await _file_note(ctx, kept, note)
            # After the file: a crash in between does the same once more, which changes nothing.
            await ctx.store.write(notes.mark_filed, note)
    if old := await asyncio.to_thread(kept.old_logs, _today(ctx)):
        async with file_lock.hold(ctx.home, ctx.team.id):
            # Before the files are moved, so that none is without its label.
            moved = {kept.full(name): kept.full(f"{ARCHIVE}/{name}") for name in old}
            await ctx.store.write(file_labels.copy, ctx.team.id, moved)
            await to_the_end(kept.archive, _today(ctx))
    files = await asyncio.to_thread(_files, kept)
    if await ctx.store.read(notes.is_stale, ctx.agent, files):
        await ctx.store.write(notes.index, ctx.agent, files)
    return files


async def _file_note(ctx: RunContext, kept: Notes, note: Note) -> None:
    """Make the files of a note as its status says."""
    match note.status:
        case "unverified":
            front = front_line(note.label, note.created_at)
            made = await asyncio.to_thread(kept.compose_unverified, note.path, note.content, front)
            data = made.after.encode(errors="replace")
            await ctx.store.write(file_labels.put, ctx.team.id, made.path, data, label=note.label)
            await asyncio.to_thread(kept.write_unverified, note.path, note.content, front)
        case "confirmed":
            await kept_writes.write_confirmed(ctx, kept, note.path, note.content, _today(ctx))
        case _:
            pass
    if note.filed_at is not None:
        path = kept.full(f"{UNVERIFIED}/{note.path}")
        known = await ctx.store.read(file_labels.find, ctx.team.id, path)
        digest = "" if known is None else known.hash
        await asyncio.to_thread(kept.remove_unverified, note.path, digest)


def _files(kept: Notes) -> dict[str, str]:
    return {kept.full(name): text for name, text in kept.files().items()}


def _today(ctx: RunContext) -> date:
    return ctx.clock.now().date()


@tool(
    effect="repeatable",
    in_sight=ON_DEMAND,
)
async def memory_write(
    ctx: RunContext, path: NotePath, content: Annotated[str, Field(min_length=1)]
) -> Answer:
    """Save a note for later work. Facts with sources go into knowledge/, what worked into
    experiences/, wishes of the person into preferences/. It replaces the whole file, so read it
    first; only today's log is added to. Write statements, not orders, and nothing secret.
    """
    if looks_secret(content):
        raise Refused(notes.NO_SECRETS)
    kept = Notes(ctx.scope, await kept_writes.labelled_names(ctx))
    name = kept.name(path).removeprefix(f"{UNVERIFIED}/")
    # Checked now, while the model can correct it: nobody should confirm a note that cannot be
    # written.
    await asyncio.to_thread(kept.compose, name, content, today=_today(ctx))
    kind = kind_of_note(name)
    if ctx.label and waits_for_person(kind, ctx.team.trust):
        return await kept_writes.keep_pending(ctx, name, content)
    if ctx.label and kind is Kind.NOTE and ctx.team.trust != "open":
        return await kept_writes.keep_unverified(ctx, name, content)
    written, remarks = await kept_writes.write_note(ctx, kept, name, content, _today(ctx))
    files = await asyncio.to_thread(_files, kept)
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


WORK: tuple[Tool, ...] = (memory_write, memory_read, memory_search, knowledge_search)
