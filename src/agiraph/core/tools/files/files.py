"""File tools: read, write and list the files in the agent's scope."""

import asyncio
import hashlib
import re
from codecs import getincrementaldecoder
from collections import Counter
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import accumulate
from typing import Annotated

from pydantic import Field

from agiraph.core.domain.chat import LEFT_OUT, ToolCall
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.provenance.sinks import Sink, WayOut
from agiraph.core.domain.text.fence import enclose_foreign, enclose_words, one_line
from agiraph.core.domain.tools import EVERY_ROLE, ON_DEMAND
from agiraph.core.home.file_versions import full_path
from agiraph.core.home.scopes import Area
from agiraph.core.run_context import RunContext
from agiraph.core.tools.base import NO_TEXT, Known, tool
from agiraph.core.tools.files import given_folders, kept_writes
from agiraph.core.tools.files.file_labels import fenced, label_of, note_use
from agiraph.core.tools.files.kept_writes import FILE_BYTES, Change

EXAMINED_CHARACTERS = 128 * 1024
"""The part of a file that is compared; the rest is left to the model's own search."""
MOST_LINES = 12
"""Lines that are shown."""
_LINE_CHARACTERS = 200
_CANDIDATES = 4
_ALIKE = 0.5
"""How much of two texts must agree, from 0 to 1, for one to be shown as near the other."""
_SHORTEST_NEW = 8
"""A shorter text may stand in any file by chance."""
_BY_CHARACTER, _TOKENS = 120, 120
"""Up to how many characters texts are compared letter by letter; of longer ones, so many words."""
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"\w+")


def explain_miss(text: str, old: str, new: str, name: str) -> str:
    """Return why an edit cannot be made, with the lines that it may mean, and what to do."""
    parts = [f"{old[:80]!r} does not stand in {name}, so nothing was changed."]
    if (line := _line_of(text, new)) is not None:
        parts.append(
            f"The new text stands there already, at line {line}: the edit may have been made "
            "before. Then go on."
        )
    start, ratio = _nearest(text, old)
    if ratio < _ALIKE:
        parts.append("Nothing in it is much like it. Read the file and copy the piece.")
        return " ".join(parts)
    if ratio == 1:
        parts.append("It stands there with other white space.")
    shown = numbered(text, start, old.count("\n") + 1)
    parts.append(f"The nearest lines are these; copy from them what is behind the bar:\n{shown}")
    return " ".join(parts)


def explain_several(text: str, old: str, name: str) -> str:
    """Return that a text stands in a file more than once, with the lines, and what to do."""
    found, at = list[int](), text.find(old)
    while at >= 0 and len(found) < MOST_LINES:
        found.append(text.count("\n", 0, at))
        at = text.find(old, at + len(old))
    count = text.count(old)
    lines = ", ".join(str(line + 1) for line in found)
    more = " and further" if count > len(found) else ""
    first = found[0] if found else 0
    return (
        f"{old[:80]!r} stands {count} times in {name}, at lines {lines}{more}, so nothing was "
        "changed. Take more of the lines around the one that you mean, so that it is the only one. "
        f"Around the first:\n{numbered(text, first, old.count(chr(10)) + 1)}"
    )


def numbered(text: str, start: int, count: int) -> str:
    """Return lines of a text with their numbers, and two lines before and behind them."""
    first = max(start - 2, 0)
    lines = text.split("\n", first + MOST_LINES)[: first + MOST_LINES]
    shown = lines[first : min(start + count + 2, first + MOST_LINES)]
    return "\n".join(
        f"{first + index + 1:>5} | {line[:_LINE_CHARACTERS]}{'…' * (len(line) > _LINE_CHARACTERS)}"
        for index, line in enumerate(shown)
    )


def _line_of(text: str, new: str) -> int | None:
    if len(new.strip()) < _SHORTEST_NEW or (at := text.find(new)) < 0:
        return None
    return text.count("\n", 0, at) + 1


def _nearest(text: str, old: str) -> tuple[int, float]:
    """Return the first of the lines that are most like a text, and how much they agree.

    A count of common words chooses a few places in linear time, and only they are compared.
    """
    lines = text[:EXAMINED_CHARACTERS].split("\n")
    wanted = old[: MOST_LINES * _LINE_CHARACTERS].strip("\n")
    height = min(wanted.count("\n") + 1, len(lines), MOST_LINES)
    words = Counter(_WORD.findall(wanted))
    scores = [_score(line, words) for line in lines]
    sums = [0.0, *accumulate(scores)]
    starts = nlargest(
        _CANDIDATES,
        range(len(lines) - height + 1),
        key=lambda start: (sums[start + height] - sums[start], -start),
    )
    compared = [(_agreement(lines[s : s + height], wanted), -s) for s in starts]
    ratio, start = max(compared, default=(0.0, 0))
    return -start, ratio


def _score(line: str, words: Counter[str]) -> float:
    found = _WORD.findall(line[:_LINE_CHARACTERS])
    if not found:
        return 0.0
    common = sum(1 for word in set(found) if word in words)
    return common - 0.1 * (len(set(found)) - common)


def _agreement(lines: list[str], wanted: str) -> float:
    here = "\n".join(line[:_LINE_CHARACTERS] for line in lines)
    if here.split() == wanted.split():
        return 1.0
    # The time for the comparison grows with the cube of the length in the worst case.
    by_character = max(len(here), len(wanted)) <= _BY_CHARACTER
    first, second = (
        (here, wanted)
        if by_character
        else (_TOKEN.findall(here)[:_TOKENS], _TOKEN.findall(wanted)[:_TOKENS])
    )
    return min(SequenceMatcher(None, first, second, autojunk=False).ratio(), 0.99)


PAGE_BYTES = 16 * 1024
"""Bytes of a file that one call returns; the model asks for more with an offset."""

COPIED = (
    f"Not written: the text holds the line “{LEFT_OUT}”. That line stands in your earlier calls "
    "where a long text is cut; the file has the whole text. Read it with read_file, and change it "
    "with edit_file."
)

Path = Annotated[str, Field(description="In scratch/, or agents/<you>/…")]


def _read(ctx: RunContext, path: str) -> bytes:
    folder, name = ctx.scope.resolve(path, "r")
    with folder:
        data = folder.read(name, limit=FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        limit = f"{FILE_BYTES // 2**20} MiB"
        raise Refused(f"{path} is longer than {limit}; change it with bash, say sed.")
    return data


async def _write(ctx: RunContext, change: Change, done: str) -> Done:
    """Make a change and return `done`, or another answer if the file was not written as named."""
    if len(change.after) > FILE_BYTES:
        raise Refused(f"A file written in one call holds {FILE_BYTES // 2**20} MiB; split it.")
    if (mark := LEFT_OUT.encode()) in change.after and mark not in change.before:
        raise Refused(COPIED)
    if ctx.scope.locate(change.path).area is not Area.OWN_SCRATCH:
        return await kept_writes.write(ctx, change, done)
    await asyncio.to_thread(kept_writes.put, ctx, change)
    return Done(done)


@tool(
    effect="repeatable",
    reads_file=True,
    basic_for=EVERY_ROLE,
)
async def read_file(
    ctx: RunContext,
    path: str,
    offset: Annotated[int, Field(ge=0, description="In bytes")] = 0,
) -> Answer:
    """Read a text file in scratch/, or of the team, such as nodes/<id>/published/…. Long files come
    in pages: use the offset you are given.
    """

    def read() -> bytes:
        folder, name = ctx.scope.resolve(path, "r")
        with folder:
            return folder.read(name, offset=offset, limit=PAGE_BYTES + 1)

    # Before and after: another thread may write the file, and its label, in between.
    label = await label_of(ctx, path)
    data = await asyncio.to_thread(read)
    label |= await label_of(ctx, path)
    if not data:
        return Done(f"(nothing from byte {offset} on)" if offset else "(empty)")
    await note_use(ctx, path)
    return Done(await _page(ctx, path, offset, data, label), label=label, is_fenced=True)


async def _page(ctx: RunContext, path: str, offset: int, data: bytes, label: Label) -> str:
    """Return a page of a file as the model reads it; untrusted text is inside a fence."""
    is_last = len(data) <= PAGE_BYTES
    decoder = getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data[:PAGE_BYTES], is_last).replace("\0", NO_TEXT)
    if is_last and not offset:
        return await fenced(ctx, path, text, label)
    if label:
        text = enclose_foreign(text, thread=ctx.lease.thread_id, source=ctx.describe(label))
    if is_last:
        return text
    # Bytes of a character that the page cuts in two belong to the next page.
    torn, _ = decoder.getstate()
    after = offset + PAGE_BYTES - len(torn)
    return f"{text}\n… there is more: read_file({path!r}, offset={after})"


async def _way_out(ctx: RunContext, call: ToolCall) -> WayOut | None:
    spot = ctx.scope.locate(str(call.arguments.get("path", "")))
    if spot.given is None or spot.area is not Area.GIVEN_TO_CHANGE:
        return None
    if not given_folders.label_outside(ctx, spot.given):
        return None  # what the folder says goes back into it
    why = "a file of a person's folder would be changed"
    return WayOut(sink=Sink.GIVEN_FOLDER, target=full_path(spot), why=why)


@tool(
    effect="repeatable",
    writes_files=True,
    way_out=_way_out,
    basic_for=EVERY_ROLE,
)
async def write_file(ctx: RunContext, path: Path, content: str) -> Answer:
    """Write a text file, replacing what was there."""
    data = content.encode()
    return await _write(ctx, Change(path=path, after=data), f"Wrote {path} ({len(data)} bytes).")


@tool(
    effect="repeatable",
    reads_file=True,
    always_granted=True,
    in_sight=frozenset({"worker"}),
)
async def read_ref(
    ctx: RunContext,
    ref_name: Annotated[str, Field(description="name or name/file")],
    offset: Annotated[int, Field(ge=0, description="In bytes")] = 0,
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
    return Done(said, label=await label_of(ctx, path), is_fenced=True)


def _edited(ctx: RunContext, path: str, old: str, new: str) -> tuple[bytes, bytes]:
    """Return the file before and after the edit; raise `Refused` unless `old` occurs once."""
    before = _read(ctx, path)
    # As bytes, so that an edit leaves bytes alone that are not valid UTF-8.
    found = before.count(old.encode())
    if found != 1:
        raise Refused(_misfit(ctx, path, before, old, new))
    return before, before.replace(old.encode(), new.encode())


def _misfit(ctx: RunContext, path: str, data: bytes, old: str, new: str) -> str:
    """Return why `old` names no one place in the file; of a file in scratch/, with lines."""
    text, found = data.decode(errors="replace"), data.count(old.encode())
    # Lines of any other file may be untrusted text, and would reach the model outside of a fence.
    if ctx.scope.locate(path).area is Area.OWN_SCRATCH:
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
    foresee=_foresee_edit,
    resolve=_resolve_edit,
    way_out=_way_out,
    in_sight=frozenset({"worker"}),
)
async def edit_file(
    ctx: RunContext, path: Path, old: Annotated[str, Field(min_length=1)], new: str
) -> Answer:
    """Replace one piece of a text file. `old` must stand in it exactly once, to the letter."""

    def edit(text: str) -> str | None:
        return text.replace(old, new) if text.count(old) == 1 else None

    before, after = await asyncio.to_thread(_edited, ctx, path, old, new)
    change = Change(path=path, after=after, edit=edit, before=before)
    return await _write(ctx, change, f"Edited {path}.")


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

    return Done(await asyncio.to_thread(listing), label=await label_of(ctx, path))
