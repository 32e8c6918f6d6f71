"""Kept writes: writes files that outlive a node as the thread's label and the team's trust allow.

A clean thread writes every file of its scope. A thread with untrusted text writes its plan, its
notebook and the log with its label; what it adds to MEMORY.md are unverified lines; a note becomes
an unverified one; and its identity and preferences wait for a person, while the thread goes on.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.features import brought
from agiraph.core.domain.outcomes import Done
from agiraph.core.domain.records.notes import unverified_lines, with_lines_kept
from agiraph.core.domain.text.fence import QUOTE, neutral
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.value import dataclass
from agiraph.core.home import file_lock, file_versions
from agiraph.core.home.file_lock import to_the_end
from agiraph.core.home.file_versions import (
    LONGEST_SUMMARY,
    NO_SECRETS,
    Kind,
    check_name,
    full_path,
    kind_of,
    waits_for_person,
)
from agiraph.core.home.layout import MEMORY
from agiraph.core.run_context import RunContext
from agiraph.core.store.texts import file_labels as rows
from agiraph.core.tools.files import file_labels, given_folders
from agiraph.redaction import looks_secret

MARKED_LINES = " Its new lines are marked as unverified, because this thread holds words from {by}."
STAY = (
    " It still has {lines} that you left out: a person decides about confirmed lines, and others "
    "go if you were shown them."
)
MARKED = " It is marked as unverified, because this thread holds words from {by}."
CHANGED = "Not edited: {path} was written meanwhile. Read it, and make the edit again if it fits."
FILE_BYTES = 4 * 2**20
"""The largest file that is written or edited in one call."""
NOT_KEPT = (
    "Not written: this thread holds words from {by}, and {path!r} is read as the team's own word."
)
OF_THE_RUNTIME = "{path!r} is kept by the runtime. Write a note instead, say knowledge/NAME.md."


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of one file."""

    path: str
    """As the model wrote it."""
    after: bytes
    edit: Callable[[str], str | None] | None = None
    """The same edit on another text, None where it does not fit; without it the file is written
    whole."""
    before: bytes = b""
    """What the file held when it was edited."""


async def write(ctx: RunContext, change: Change, done: str) -> Done:
    """Write a file outside of scratch/; return the answer for the model, which is `done` if the
    file was written as the model named it."""
    spot = ctx.scope.locate(change.path)
    check_name(spot)
    _check_scope(ctx, change.path)
    path = full_path(spot)
    await given_folders.keep(ctx, change.path, change.after)
    label = ctx.label if spot.given is None else given_folders.label_outside(ctx, spot.given)
    if not label:
        async with file_lock.hold(ctx.home, ctx.team.id):
            stay = await write_clean(ctx, path, change)
        return Done(done + stay)
    kind = kind_of(spot, leads=ctx.scope.role == "coordinator")
    if kind is Kind.RUNTIME:
        raise Refused(OF_THE_RUNTIME.format(path=change.path))
    if waits_for_person(kind, ctx.team.trust) or (kind is Kind.NOTE and ctx.team.trust != "open"):
        if not (keepers := brought("sets_aside")):
            raise Refused(NOT_KEPT.format(path=change.path, by=sources(ctx)))
        return await keepers[0](ctx, change, kind)
    async with file_lock.hold(ctx.home, ctx.team.id):
        before = await asyncio.to_thread(_current, ctx, change)
        joined, lines, stay = change.edit is not None, None, ""
        if is_kept_by_line(ctx, kind):
            text = change.after.decode(errors="replace")
            memory = await compose_memory(ctx, path, before, text, is_labelled=True, is_edit=joined)
            change = replace(change, after=memory.data(change.after))
            joined, lines, stay = True, memory.unverified, memory.stay
        await file_labels.record(ctx, path, change.after, before=before, joined=joined, lines=lines)
        await to_the_end(put, ctx, change)
    marked = MARKED if lines is None else MARKED_LINES
    return Done(done + marked.format(by=sources(ctx)) + stay)


def is_kept_by_line(ctx: RunContext, kind: Kind) -> bool:
    """Whether only the lines that a labelled thread adds to such a file are unverified."""
    return kind is Kind.MEMORY and ctx.team.trust == "standard"


@dataclass(frozen=True, slots=True)
class Memory:
    """What MEMORY.md holds after a write."""

    content: str
    """What the thread writes."""
    text: str
    confirmed: str
    """The lines of it that are clean."""

    @property
    def unverified(self) -> int:
        return len(unverified_lines(self.text, self.confirmed))

    @property
    def stay(self) -> str:
        """A sentence about the lines that the thread left out and that stay; empty without any."""
        count = len(unverified_lines(self.text, self.content))
        return STAY.format(lines=counted(count, "line")) if count else ""

    def data(self, written: bytes) -> bytes:
        """Return the bytes of the file; `written` are those of the content."""
        return written if self.text == self.content else self.text.encode(errors="replace")


async def compose_memory(
    ctx: RunContext,
    path: str,
    before: bytes | None,
    content: str,
    *,
    is_labelled: bool,
    is_edit: bool = False,
) -> Memory:
    """Return MEMORY.md as a write leaves it. Words with a label take out no confirmed line, and no
    thread takes out an unverified line that it was not shown. The caller holds the file lock."""
    if is_labelled and looks_secret(content):
        raise Refused(NO_SECRETS)
    known, now = await file_labels.find(ctx, path), (before or b"").decode(errors="replace")
    clean = now if known is None else known.confirmed_text or ""
    shown, lines = _shown_lines(ctx), unverified_lines(now, clean)
    unseen = [line for line in lines if not is_edit and neutral(line).strip() not in shown]
    must_stay = clean if is_labelled and clean.strip() != MEMORY.strip() else ""
    text = with_lines_kept(content, confirmed=must_stay, others=unseen, longest=LONGEST_SUMMARY)
    return Memory(content, text, clean if is_labelled else content)


def _shown_lines(ctx: RunContext) -> frozenset[str]:
    """Return the lines that stand in the thread: in what it was shown, and in calls that it
    made."""
    turns = ctx.transcript.turns
    values = (v for turn in turns for call in turn.calls for v in call.arguments.values())
    texts = (*(turn.text for turn in turns), *map(str, values))
    lines = (line for text in texts for line in neutral(text).splitlines())
    return frozenset(line.strip().removeprefix(QUOTE) for line in lines)


def sources(ctx: RunContext) -> str:
    """Name the sources of the thread's label for its prompt."""
    return ctx.describe(ctx.label)


async def write_clean(ctx: RunContext, path: str, change: Change) -> str:
    """Write a file of a clean thread; return a remark for the model. A file that it writes whole is
    clean afterwards; one of which it changes a part, and MEMORY.md while it has unverified lines,
    keeps its label. The caller holds the file lock."""
    kind = kind_of(ctx.scope.locate(change.path), leads=ctx.scope.role == "coordinator")
    before: bytes | None = None
    if change.edit is not None or kind is Kind.MEMORY:
        before = await asyncio.to_thread(_current, ctx, change)
    if (known := await file_labels.find(ctx, path)) is None:
        await to_the_end(put, ctx, change)
        return ""
    clean, lines, stay = known.confirmed_text, known.unverified_lines, ""
    if change.edit is not None:
        edited = None if clean is None else change.edit(clean)
        clean = clean if edited is None else edited
    elif kind is Kind.MEMORY:
        text = change.after.decode(errors="replace")
        memory = await compose_memory(ctx, path, before, text, is_labelled=False)
        change = replace(change, after=memory.data(change.after))
        clean, lines, stay = memory.content, memory.unverified, memory.stay
    if change.edit is None and not stay:
        await to_the_end(put, ctx, change)
        # After the file: a crash in between leaves a label on clean words.
        await ctx.store.write(rows.clear, known, change.after, ctx.lease.thread_id)
    else:
        await ctx.store.write(rows.amend, known, change.after, clean_text=clean, lines=lines)
        await to_the_end(put, ctx, change, is_labelled=True)
    return stay


def _check_scope(ctx: RunContext, path: str) -> None:
    """Raise `OutOfScope` if the agent may not write there."""
    folder, _ = ctx.scope.resolve(path, "w")
    folder.close()


def _current(ctx: RunContext, change: Change) -> bytes | None:
    """Return what the file of a change holds now, None without a file. Raise `Refused` if it was
    edited, and somebody has written it since: their words, and their label, would be lost."""
    folder, name = ctx.scope.resolve(change.path, "r")
    with folder:
        try:
            now = folder.read(name, limit=FILE_BYTES)
        except NotFound:
            now = None
    if change.edit is not None and now != change.before:
        raise Refused(CHANGED.format(path=change.path))
    return now


def put(ctx: RunContext, change: Change, *, is_labelled: bool = False) -> None:
    """Write the file of a change. `is_labelled`: it keeps the label that it had before a clean
    thread changed a part of it."""
    folder, name = ctx.scope.resolve(change.path, "w")
    with folder:
        folder.write(name, change.after)
    spot = ctx.scope.locate(change.path)
    if spot.given is None:
        team, path = ctx.scope.team.folder, full_path(spot)
        by, is_labelled = ctx.agent.name, is_labelled or bool(ctx.label)
        file_versions.keep(team, path, change.after, author=by, is_labelled=is_labelled)
