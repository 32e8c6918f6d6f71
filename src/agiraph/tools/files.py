"""File tools: read, write and list the files in the agent's scope."""

import asyncio
import hashlib
from codecs import getincrementaldecoder
from typing import Annotated

from pydantic import Field

from agiraph.domain.chat import ToolCall
from agiraph.domain.errors import Refused
from agiraph.domain.fence import enclose_foreign, enclose_words, one_line
from agiraph.domain.ids import NodeId, ThreadId
from agiraph.domain.labels import CLEAN, Label
from agiraph.domain.outcomes import Answer, Done
from agiraph.domain.sinks import Sink, WayOut
from agiraph.domain.tools import EVERY_ROLE, ON_DEMAND
from agiraph.home.scopes import Area
from agiraph.run_context import RunContext
from agiraph.services.board import labels
from agiraph.store import threads
from agiraph.tools.base import NO_TEXT, Known, tool
from agiraph.tools.nearest_lines import explain_miss, explain_several

PAGE_BYTES = 16 * 1024
"""Bytes of a file that one call returns; the model asks for more with an offset."""
FILE_BYTES = 4 * 2**20
"""The largest file that is written or edited in one call."""
PAGES, RESULTS = "pages", "results"
"""Folders on an agent's desk: web pages it read, and answers too long for its thread."""
SAVED = Label(("page",))

Path = Annotated[str, Field(description="In scratch/, or a team path")]


def _read(ctx: RunContext, path: str) -> bytes:
    folder, name = ctx.scope.resolve(path, "r")
    with folder:
        data = folder.read(name, limit=FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        limit = f"{FILE_BYTES // 2**20} MiB"
        raise Refused(f"{path} is longer than {limit}; change it with bash, say sed.")
    return data


def _write(ctx: RunContext, path: str, data: bytes) -> None:
    if len(data) > FILE_BYTES:
        raise Refused(f"A file written in one call holds {FILE_BYTES // 2**20} MiB; split it.")
    folder, name = ctx.scope.resolve(path, "w")
    with folder:
        folder.write(name, data)


async def _label_of(ctx: RunContext, path: str) -> Label:
    """Return the label of a file: that of the node or the thread that wrote it."""
    spot = ctx.scope.locate(path)
    match spot.area:
        case Area.PUBLISHED:
            owner = spot.folder.split("/")[1]
        case Area.OTHER_NODE if spot.rest:
            owner = spot.rest[0]
        case Area.OWN_DESK if spot.rest[:1] == (PAGES,):
            return SAVED
        case Area.OWN_DESK if spot.rest[:1] == (RESULTS,) and len(spot.rest) > 1:
            thread_id = ThreadId(spot.rest[1].partition("-")[0])
            return await ctx.store.read(threads.label_of, thread_id)
        case _:
            return CLEAN
    return await ctx.store.read(labels.of_nodes, [owner])


@tool(
    effect="repeatable",
    reads_file=True,
    basic_for=EVERY_ROLE,
)
async def read_file(
    ctx: RunContext,
    path: Path,
    offset: Annotated[int, Field(ge=0, description="In bytes; for the next page")] = 0,
) -> Answer:
    """Read a text file: in scratch/, _spec.md, nodes/<id>/published/… of others, or agents/<you>/….
    Long files come in pages: use the offset you are given.
    """

    label = await _label_of(ctx, path)

    def page() -> str:
        folder, name = ctx.scope.resolve(path, "r")
        with folder:
            data = folder.read(name, offset=offset, limit=PAGE_BYTES + 1)
        if not data:
            return f"(nothing from byte {offset} on)" if offset else "(empty)"
        is_last = len(data) <= PAGE_BYTES
        decoder = getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(data[:PAGE_BYTES], is_last).replace("\0", NO_TEXT)
        if label:
            text = enclose_foreign(text, thread=ctx.lease.thread_id, source=str(label))
        if is_last:
            return text
        # Bytes of a character that the page cuts in two belong to the next page.
        torn, _ = decoder.getstate()
        after = offset + PAGE_BYTES - len(torn)
        return f"{text}\n… there is more: read_file({path!r}, offset={after})"

    return Done(await asyncio.to_thread(page), label=label, is_fenced=True)


async def _way_out(ctx: RunContext, call: ToolCall) -> WayOut | None:
    path = str(call.arguments.get("path", ""))
    if ctx.scope.locate(path).area is Area.OWN_SCRATCH:
        return None
    return WayOut(
        sink=Sink.KEPT_FILE, target=path, why="later work would read what it writes there"
    )


@tool(
    effect="repeatable",
    writes_files=True,
    way_out=_way_out,
    basic_for=EVERY_ROLE,
)
async def write_file(ctx: RunContext, path: Path, content: str) -> Answer:
    """Write a text file, replacing what was there. Folders are made as needed."""
    data = content.encode()
    await asyncio.to_thread(_write, ctx, path, data)
    return Done(f"Wrote {path} ({len(data)} bytes).")


@tool(
    effect="repeatable",
    reads_file=True,
    always_granted=True,
    in_sight=frozenset({"worker"}),
)
async def read_ref(
    ctx: RunContext,
    ref_name: Annotated[str, Field(description="name or name/file")],
    offset: Annotated[int, Field(ge=0, description="In bytes; for the next page")] = 0,
) -> Answer:
    """Read what another task published for yours. Names are in your assignment; a whole task gives
    its summary and files, which you read with name/file.
    """
    name, _, rest = ref_name.partition("/")
    target = ctx.node.refs.get(ref_name) or ctx.node.refs.get(name)
    if target is None:
        known = ", ".join(ctx.node.refs) or "none"
        raise Refused(f"There is no ref {ref_name!r}. The refs of this work: {known}.")
    path = f"{target}/{rest}" if rest and ref_name not in ctx.node.refs else target
    if path.count("/") > 2:  # nodes/<id>/published/<file>
        return await read_file.act(ctx, path, offset)
    node = ctx.home.team(ctx.team.id).node(NodeId(path.split("/")[1]))
    manifest = await asyncio.to_thread(node.manifest)
    listed = (f"- {one_line(f'{name}/{file}')}" for file in sorted(manifest.files))
    files = "\n".join(listed) or "(no files)"
    summary = enclose_words(
        manifest.summary, thread=ctx.lease.thread_id, author="whoever did it", kind="its result"
    )
    said = f"{summary}\n\nFiles, to read with read_ref:\n{files}"
    return Done(said, label=await _label_of(ctx, path), is_fenced=True)


def _edited(ctx: RunContext, path: str, old: str, new: str) -> tuple[bytes, bytes]:
    """Return the file before and after the edit; raise `Refused` unless `old` occurs once."""
    before = _read(ctx, path)
    # As bytes, so that an edit leaves bytes alone that are not valid UTF-8.
    found = before.count(old.encode())
    if found != 1:
        raise Refused(_misfit(ctx, path, before, old, new))
    return before, before.replace(old.encode(), new.encode())


def _misfit(ctx: RunContext, path: str, data: bytes, old: str, new: str) -> str:
    """Return why `old` names no one place in the file; of the agent's own files, with lines."""
    text, found = data.decode(errors="replace"), data.count(old.encode())
    spot = ctx.scope.locate(path)
    is_own = spot.area is Area.OWN_SCRATCH or (
        spot.area is Area.OWN_DESK and spot.rest[:1] not in ((PAGES,), (RESULTS,))
    )
    # Lines of others' files would reach the model outside of a fence.
    if is_own:
        explain = explain_several(text, old, path) if found else explain_miss(text, old, new, path)
        return explain
    if found:
        return (
            f"{old[:80]!r} stands {found} times in {path}; take more of its surroundings with it."
        )
    return f"{old[:80]!r} does not stand in {path}; read it and copy the piece to the letter."


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _foresee_edit(ctx: RunContext, path: str, old: str, new: str) -> Known:
    """Return hashes of the file before and after, so that `_resolve_edit` can tell them apart."""
    before, after = _edited(ctx, path, old, new)
    return {"before": _hash(before), "after": _hash(after)}


async def _resolve_edit(ctx: RunContext, call: ToolCall, known: Known) -> Answer | None:
    """Answer a call that a crash cut off: the file's hash tells whether the edit was made.

    If somebody else has changed the file since, nobody can know.
    """
    path = call.arguments["path"]
    now = _hash(await asyncio.to_thread(_read, ctx, path))
    if now == known.get("after"):
        return Done(f"Edited {path}.")
    if now == known.get("before"):
        return await edit_file.act(ctx, **call.arguments)
    return None


@tool(
    # Not repeatable: after the edit `old` is gone, and the repeated call would be refused although
    # the first one had succeeded.
    effect="once",
    writes_files=True,
    way_out=_way_out,
    foresee=_foresee_edit,
    resolve=_resolve_edit,
    in_sight=frozenset({"worker"}),
)
async def edit_file(
    ctx: RunContext, path: Path, old: Annotated[str, Field(min_length=1)], new: str
) -> Answer:
    """Replace one piece of a text file. `old` must stand in it exactly once, to the letter."""

    def change() -> None:
        _, after = _edited(ctx, path, old, new)
        _write(ctx, path, after)

    await asyncio.to_thread(change)
    return Done(f"Edited {path}.")


@tool(effect="repeatable", counts_as_work=False, in_sight=ON_DEMAND)
async def list_files(ctx: RunContext, path: Path = "scratch") -> Answer:
    """List the files of a folder."""

    def listing() -> str:
        folder, name = ctx.scope.resolve(path, "r")
        with folder:
            entries = folder.list(name)
        lines = [
            f"{entry.name}/" if entry.kind == "folder" else f"{entry.name}  {entry.size} bytes"
            for entry in entries
        ]
        return "\n".join(lines) or "(empty)"

    return Done(await asyncio.to_thread(listing), label=await _label_of(ctx, path))
