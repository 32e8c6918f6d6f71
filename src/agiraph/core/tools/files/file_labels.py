"""File labels: reads and records the labels of the files that an agent's tools read and write."""

from agiraph.core.domain.ids import ThreadId
from agiraph.core.domain.provenance.labels import CLEAN, UNKNOWN, Label, join
from agiraph.core.domain.records.notes import unverified_lines
from agiraph.core.domain.text.fence import OF_TEAM, enclose_foreign, enclose_retold
from agiraph.core.home.file_versions import full_path, is_unverified
from agiraph.core.home.scopes import Area, ScopedPath
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import labels
from agiraph.core.services.board.feature_verbs import find_verbs
from agiraph.core.store import threads
from agiraph.core.store.texts import file_labels as rows
from agiraph.core.store.texts.file_labels import FileLabel
from agiraph.core.store.tx import Tx

PAGES, RESULTS = "pages", "results"
"""Folders on an agent's desk: web pages it read, and answers too long for its thread."""
SAVED = Label(("page",))
_KEPT = frozenset({Area.PLAN, Area.TEAM_MEMORY, Area.OWN_DESK, Area.UPLOADS})
"""Areas whose files outlive the node that wrote them: each has a label of its own."""


async def label_of(ctx: RunContext, path: str) -> Label:
    """Return the label of a file, or of the names in a folder. Files in the node's own folder have
    none of their own: whatever wrote them is in this thread. What a command left in scratch/ may be
    a stranger's, if the thread has read any of theirs."""
    spot = ctx.scope.locate(path)
    if spot.area is Area.OWN_SCRATCH and ctx.label and not has_written(ctx, spot):
        return ctx.label
    if spot.area in (Area.OWN_SCRATCH, Area.OWN_SPEC, Area.OWN_PUBLISHED, Area.SOUL):
        return CLEAN
    return await ctx.store.read(_label, ctx, spot)


def has_written(ctx: RunContext, spot: ScopedPath) -> bool:
    """Whether a call of this thread wrote the file with words of its own."""
    calls = (call for turn in ctx.transcript.turns for call in turn.calls)
    written = (call.arguments.get("path") for call in calls if _writes(ctx, call.name))
    return any(ctx.scope.locate(str(path)) == spot for path in written if path)


def _writes(ctx: RunContext, tool_name: str) -> bool:
    properties = ctx.known_tools.get(tool_name)
    return properties is not None and properties.writes_files


def _label(tx: Tx, ctx: RunContext, spot: ScopedPath) -> Label:
    match spot.area:
        case Area.PUBLISHED | Area.REVIEWED:
            return labels.of_nodes(tx, [spot.folder.split("/")[1]])
        case Area.OTHER_NODE if spot.rest:
            return labels.of_nodes(tx, [spot.rest[0]])
        case Area.OWN_DESK if spot.rest[:1] == (PAGES,):
            return SAVED
        case Area.OWN_DESK if spot.rest[:1] == (RESULTS,) and len(spot.rest) > 1:
            of_thread = threads.label_of(tx, ThreadId(spot.rest[1].partition("-")[0]))
            return of_thread | _kept(tx, ctx, full_path(spot))
        case Area.GIVEN_TO_READ | Area.GIVEN_TO_CHANGE:
            return labels.of_given(tx, ctx.team.id, full_path(spot))
        case area if area in _KEPT:
            return _kept(tx, ctx, full_path(spot))
        case _:
            return CLEAN


def _kept(tx: Tx, ctx: RunContext, path: str) -> Label:
    """Return the label of a file, and of all files below it if it is a folder: a thread with
    untrusted text has chosen their names."""
    below = rows.under(tx, ctx.team.id, path)
    found = join(f.label for f in below if f.path == path or f.path.startswith(f"{path}/"))
    return found or (UNKNOWN if is_unverified(path) else CLEAN)


async def fenced(ctx: RunContext, path: str, text: str, label: Label) -> str:
    """Return the text of a file as a thread reads it, in a fence if it has a label. The confirmed
    lines of a whole MEMORY.md stand before the fence."""
    if not label:
        return text
    thread, source = ctx.lease.thread_id, ctx.describe(label)
    known = await find(ctx, full_path(ctx.scope.locate(path)))
    if known is None or known.unverified_lines is None or not known.confirmed_text:
        return enclose_foreign(text, thread=thread, source=source)
    lines = "\n".join(unverified_lines(text, known.confirmed_text))
    fence = enclose_retold(lines, thread=thread, author=OF_TEAM, source=source)
    return f"{known.confirmed_text.rstrip()}\n\n{fence}"


async def find(ctx: RunContext, path: str) -> FileLabel | None:
    """Return what is known of a labelled file of the team; None if its words are clean."""
    return await ctx.store.look(rows.find, ctx.team.id, path)


async def record(
    ctx: RunContext,
    path: str,
    data: bytes,
    *,
    before: bytes | None,
    joined: bool = False,
    lines: int | None = None,
) -> None:
    """Store the label of this thread for bytes that are about to be written to a team path.

    `before` is what the file holds now, None without a file. With `joined` a part of it stays, and
    so does its label. `lines` is how many lines nobody has confirmed.
    """
    clean_text = None if before is None else before.decode(errors="replace")

    def put(tx: Tx) -> None:
        kept = rows.find(tx, ctx.team.id, path) if joined else None
        rows.put(
            tx,
            ctx.team.id,
            path,
            data,
            label=ctx.label if kept is None else ctx.label | kept.label,
            thread_id=ctx.lease.thread_id,
            clean_text=clean_text,
            lines=lines,
        )

    await ctx.store.write(put)


async def note_use(ctx: RunContext, path: str) -> None:
    """Record that work has read an unverified note, so that it lasts as long again."""
    found = full_path(ctx.scope.locate(path))
    if not is_unverified(found):
        return
    for verbs in find_verbs():
        await ctx.store.write(verbs.file_read, ctx.agent, found)
