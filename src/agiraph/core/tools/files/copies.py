"""Copies: delivered files that hold, byte for byte, what was there before their work began.

A copy may be what was asked for, so it is no fault. But it does not show that anything was made.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from agiraph.core.domain.errors import AgiraphError
from agiraph.core.domain.work import WorkNode
from agiraph.core.home.layout import UPLOADS
from agiraph.core.home.safe_folder import Entry, Folder
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import texts
from agiraph.core.store import nodes
from agiraph.core.store.tx import Tx
from agiraph.core.tools.files.file_names import base

FEWEST_BYTES = 20
"""Smaller files, such as a single number, are alike by chance."""
MOST_BYTES = 16 * 2**20
"""Bytes that are read of the delivered files, and of the earlier ones in each place."""
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
    known = dict(published)
    folder, _ = ctx.scope.resolve("scratch", "w")
    with folder:
        entries = (e for e in folder.walk() if base(e.name) in wanted and e.size >= FEWEST_BYTES)
        delivered = list(_readable(entries))
        digests = {entry.name: _digest(folder, entry) for entry in delivered}
    sizes = {entry.size for entry in delivered}
    for place in [f"folders/{given.name}" for given in ctx.team.folders] + [UPLOADS]:
        known = _in_place(ctx, place, sizes) | known
    return {base(name): known[digest] for name, digest in digests.items() if digest in known}


def _in_place(ctx: RunContext, place: str, sizes: Collection[int]) -> dict[str, str]:
    """Return the hashes of the earlier files of this place that have one of these sizes."""
    found: dict[str, str] = {}
    with suppress(AgiraphError):  # there is no such place, or it has too many entries
        folder, _ = ctx.scope.resolve(place, "r")
        with folder:
            alike = (e for e in folder.tree(MOST_ENTRIES) if _is_alike(e, ctx.node, sizes))
            for entry in _readable(alike):
                found[_digest(folder, entry)] = repr(f"{place}/{entry.name}")
    return found


def _is_alike(entry: Entry, node: WorkNode, sizes: Collection[int]) -> bool:
    return entry.kind == "file" and entry.size in sizes and entry.modified <= node.created_at


def _readable(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield those of the files that can be read within `MOST_BYTES`."""
    room = MOST_BYTES
    for entry in entries:
        if entry.size <= room:
            room -= entry.size
            yield entry


def _digest(folder: Folder, entry: Entry) -> str:
    """Return the SHA-256 of a file as it was listed, as manifests have it."""
    return hashlib.sha256(folder.read(entry.name, limit=entry.size)).hexdigest()


def told(copied: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return a sentence for each of these files that is a copy."""
    return [f"{n!r} is a copy of {copied[base(n)]}" for n in names if base(n) in copied]
