"""Note writes: writes notes as the thread's label and the team's trust allow, and brings their rows
and files together."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import date

from agiraph.api.feature_views.known import Note
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Done
from agiraph.core.home import file_lock
from agiraph.core.home.file_lock import to_the_end
from agiraph.core.home.file_versions import ARCHIVE, UNVERIFIED, Kind, full_path, kind_of_note
from agiraph.core.run_context import RunContext
from agiraph.core.store.texts import file_labels as label_rows
from agiraph.core.store.tx import Tx
from agiraph.core.tools.files import file_labels
from agiraph.core.tools.files.kept_writes import (
    MARKED,
    MARKED_LINES,
    Change,
    compose_memory,
    is_kept_by_line,
    sources,
    write_clean,
)
from agiraph.features.knowledge import rows
from agiraph.features.knowledge.model import front_line
from agiraph.features.knowledge.note_files import Notes, Written, earlier_of
from agiraph.features.knowledge.verbs import notes

PENDING = (
    "Kept as {id} until a person confirms it: this thread holds words from {by}, and {path} is "
    "read as the team's own word. Go on; you need not write it again."
)
KEPT_UNVERIFIED = (
    "Kept as {path}, unverified: this thread holds words from {by}. It is found by memory_search, "
    "and a person can confirm it. Go on; you need not write it again."
)


async def refresh_notes(ctx: RunContext) -> dict[str, str]:
    """Bring note files and rows together, index changed files, and return all notes by path."""
    kept = Notes(ctx.scope, await labelled_names(ctx))
    for note in await ctx.store.read(rows.notes_to_file, ctx.agent.id):
        with suppress(Refused):  # the notes may be full by now; the row stays as it is
            await _file_note(ctx, kept, note)
            # After the file: a crash in between does the same once more, which changes nothing.
            await ctx.store.write(notes.mark_filed, note)
    if old := await asyncio.to_thread(kept.old_logs, today_of(ctx)):
        async with file_lock.hold(ctx.home, ctx.team.id):
            # Before the files are moved, so that none is without its label.
            moved = {kept.full(name): kept.full(f"{ARCHIVE}/{name}") for name in old}
            await ctx.store.write(label_rows.copy, ctx.team.id, moved)
            await to_the_end(kept.archive, today_of(ctx))
    files = await asyncio.to_thread(files_of, kept)
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
            await ctx.store.write(label_rows.put, ctx.team.id, made.path, data, label=note.label)
            await asyncio.to_thread(kept.write_unverified, note.path, note.content, front)
        case "confirmed":
            await write_confirmed(ctx, kept, note.path, note.content, today_of(ctx))
        case _:
            pass
    if note.filed_at is not None:
        path = kept.full(f"{UNVERIFIED}/{note.path}")
        known = await ctx.store.read(label_rows.find, ctx.team.id, path)
        digest = "" if known is None else known.hash
        await asyncio.to_thread(kept.remove_unverified, note.path, digest)


def files_of(kept: Notes) -> dict[str, str]:
    return {kept.full(name): text for name, text in kept.files().items()}


def today_of(ctx: RunContext) -> date:
    return ctx.clock.now().date()


async def set_aside(ctx: RunContext, change: Change, kind: Kind) -> Done:
    """Keep a note or a lasting file of a labelled thread where no later thread reads it as the
    team's own word."""
    content = change.after.decode(errors="replace")
    kept = Notes(ctx.scope)
    spot = ctx.scope.locate(change.path)
    is_note = spot.rest != ("IDENTITY.md",) and not (
        ctx.scope.role == "coordinator" and full_path(spot).startswith("agents/")
    )
    name = kept.name(change.path) if is_note else full_path(spot)
    if kind is Kind.NOTE:
        return await keep_unverified(ctx, name, content)
    return await keep_pending(ctx, name, content)


async def keep_pending(ctx: RunContext, name: str, content: str) -> Done:
    """Keep a lasting note until a person confirms it."""
    note = await ctx.store.write(
        notes.keep_pending,
        ctx.agent,
        path=name,
        content=content,
        thread_id=ctx.lease.thread_id,
        label=ctx.label,
    )
    return Done(PENDING.format(id=note.id, by=sources(ctx), path=name))


async def keep_unverified(ctx: RunContext, name: str, content: str) -> Done:
    """Write a note of a labelled thread to memory/unverified/."""
    kept = Notes(ctx.scope, await labelled_names(ctx))
    name = name.removeprefix(f"{UNVERIFIED}/")
    front = front_line(ctx.label, ctx.clock.now())
    composed = await asyncio.to_thread(kept.compose_unverified, name, content, front)

    def keep(tx: Tx) -> None:
        thread_id, label = ctx.lease.thread_id, ctx.label
        notes.keep_unverified(
            tx,
            ctx.agent,
            path=name,
            content=content,
            thread_id=thread_id,
            label=label,
            is_filed=True,
        )
        data = composed.after.encode(errors="replace")
        label_rows.put(tx, ctx.team.id, composed.path, data, label=label, thread_id=thread_id)
        notes.index_one(tx, ctx.agent, composed.path, composed.after, label)

    # Before the file: a crash in between must not leave untrusted text without a label.
    await ctx.store.write(keep)
    written = await asyncio.to_thread(kept.write_unverified, name, content, front)
    return Done(KEPT_UNVERIFIED.format(path=written.path, by=sources(ctx)))


async def write_note(
    ctx: RunContext, kept: Notes, name: str, content: str, today: date
) -> tuple[Written, str]:
    """Write a note as the model named it, in a clean thread or where the label goes with it; return
    what was written and remarks on it for the model."""
    async with file_lock.hold(ctx.home, ctx.team.id):
        return await _write_note(ctx, kept, name, content, today, is_labelled=bool(ctx.label))


async def _write_note(
    ctx: RunContext, kept: Notes, name: str, content: str, today: date, *, is_labelled: bool
) -> tuple[Written, str]:
    """Write a note and its label. The caller holds the file lock."""
    composed = await asyncio.to_thread(kept.compose, name, content, today=today)
    known = await file_labels.find(ctx, composed.path)
    kind = kind_of_note(composed.name)
    is_log, lines, stay = kind is Kind.WORKING, None, ""
    before = composed.before.encode(errors="replace") if composed.before else None
    clean = composed.after
    if is_log and known is not None:
        clean = kept.logged(composed.name, known.confirmed_text or "", content.strip(), today)
    elif is_kept_by_line(ctx, kind) if is_labelled else kind is Kind.MEMORY and known is not None:
        memory = await compose_memory(
            ctx, composed.path, before, composed.after, is_labelled=is_labelled
        )
        composed = await asyncio.to_thread(kept.compose, name, memory.text, today=today)
        content, lines, stay = memory.text, memory.unverified, memory.stay
    data = composed.after.encode(errors="replace")
    if known is not None and not is_log and composed.before:
        moved = {composed.path: kept.full(earlier_of(composed.name))}
        await ctx.store.write(label_rows.copy, ctx.team.id, moved)  # the earlier text is kept there
    stays_labelled = is_log or bool(stay)
    if is_labelled:
        joined = is_log or lines is not None
        await file_labels.record(
            ctx, composed.path, data, before=before, joined=joined, lines=lines
        )
        kept = replace(kept, labelled=kept.labelled | {composed.name})
    elif known is not None and stays_labelled:
        await ctx.store.write(label_rows.amend, known, data, clean_text=clean, lines=lines)
    elif known is not None:
        kept = replace(kept, labelled=kept.labelled - {composed.name})
    written = await to_the_end(kept.write, composed.name, content, today=today)
    if known is not None and not is_labelled and not stays_labelled:
        # After the file: a crash in between leaves a label on clean words.
        await ctx.store.write(label_rows.clear, known, data, ctx.lease.thread_id)
    marked = MARKED if lines is None else MARKED_LINES
    return written, (marked.format(by=sources(ctx)) if is_labelled else "") + stay


async def write_confirmed(
    ctx: RunContext, kept: Notes, path: str, content: str, today: date
) -> None:
    """Write a note that a person confirmed to its file, which is clean then."""
    async with file_lock.hold(ctx.home, ctx.team.id):
        if path.startswith("agents/"):
            await write_clean(ctx, path, Change(path=path, after=content.encode(errors="replace")))
        else:
            name = kept.accepted_name(path, today)
            await _write_note(ctx, kept, name, content, today, is_labelled=False)


async def labelled_names(ctx: RunContext) -> frozenset[str]:
    """Return the names of the agent's notes that carry a label."""
    root = Notes(ctx.scope).root
    found = await ctx.store.read(label_rows.under, ctx.team.id, root)
    paths = (file.path.removeprefix(root) for file in found)
    return frozenset(path.removeprefix("memory/") for path in paths)
