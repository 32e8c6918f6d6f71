"""Copies: delivered files that hold, byte for byte, what was there before their work began.

A copy may be what was asked for, so it is no fault. But it does not show that anything was made.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from agiraph.domain.errors import AgiraphError
from agiraph.domain.work import WorkNode
from agiraph.home.layout import UPLOADS
from agiraph.home.safe_folder import Entry, Folder
from agiraph.run_context import RunContext
from agiraph.services.board import texts
from agiraph.store import nodes
from agiraph.store.tx import Tx
from agiraph.tools.file_names import base

FEWEST_BYTES = 20
"""Smaller files, such as a single number, are alike by chance."""
MOST_BYTES = 16 * 2**20
"""Bytes that are read to find the copies of one result, of delivered files and of earlier ones."""
MOST_ENTRIES = 20_000
"""Entries that are looked at in each place where earlier files lie."""
MOST_NODES = 200


def published_before(tx: Tx, node: WorkNode) -> dict[str, str]:
    """Return the hashes of the files that other work had published when this node was created,
    each with what to call the file."""
    return {
        digest: f"{name!r} of {texts.subject_of(other)!r}"
        for other in nodes.ended_lately(tx, node.team_id, limit=MOST_NODES)
        if other.ended_at is not None and other.ended_at <= node.created_at and other.id != node.id
        for name, digest in other.manifest.items()
    }


def find(ctx: RunContext, names: Collection[str], published: Mapping[str, str]) -> dict[str, str]:
    """Return which of these delivered files are copies, each with what it is a copy of.

    Files of a person's folders and uploads are compared if they are as large as a delivered one and
    were not changed since the work began.
    """
    wanted = {base(name) for name in names}
    if not wanted:
        return {}
    room = MOST_BYTES
    digests: dict[str, str] = {}
    folder, _ = ctx.scope.resolve("scratch", "w")
    with folder:
        delivered = [
            entry
            for entry in folder.walk()
            if base(entry.name) in wanted and entry.size >= FEWEST_BYTES
        ]
        for entry in delivered:
            if entry.size <= room:
                room -= entry.size
                digests[entry.name] = _digest(folder, entry)
    sizes = {entry.size for entry in delivered if entry.name in digests}
    known = dict(published)
    for place in [f"folders/{given.name}" for given in ctx.team.folders] + [UPLOADS]:
        room = _read_place(ctx, place, sizes, known, room)
    return {base(name): known[digest] for name, digest in digests.items() if digest in known}


def _read_place(
    ctx: RunContext, place: str, sizes: Collection[int], known: dict[str, str], room: int
) -> int:
    """Add the hashes of the earlier files of this place that have one of these sizes; return how
    many bytes may still be read."""
    with suppress(AgiraphError):  # there is no such place, or it has too many entries
        folder, rest = ctx.scope.resolve(place, "r")
        with folder, folder.sub(rest) as there:
            for entry in _earlier(there, ctx.node):
                if entry.size in sizes and entry.size <= room:
                    room -= entry.size
                    known.setdefault(_digest(there, entry), repr(f"{place}/{entry.name}"))
    return room


def _earlier(folder: Folder, node: WorkNode) -> Iterator[Entry]:
    for entry in folder.tree(MOST_ENTRIES):
        if entry.kind == "file" and entry.modified <= node.created_at:
            yield entry


def _digest(folder: Folder, entry: Entry) -> str:
    """Return the SHA-256 of a file as it was listed, as manifests have it."""
    return hashlib.sha256(folder.read(entry.name, limit=entry.size)).hexdigest()


def told(copied: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return a sentence for each of these files that is a copy."""
    return [f"{n!r} is a copy of {copied[base(n)]}" for n in names if base(n) in copied]
