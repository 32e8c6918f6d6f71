"""Command output: passes it on while it grows, and cuts it to the size that a model is shown."""

import os
from collections.abc import Callable
from pathlib import Path

SHOWN_BYTES = 16 * 1024
"""The most bytes of an output that a model sees, from its head and its tail."""
SHOWN_END_BYTES = 8000
LIVE_MAX = 1024 * 1024
"""Bytes by which a listener may fall behind before it misses output."""
CHUNK = 64 * 1024


class OutputListener:
    """Passes new output from the spool's file to a callback."""

    def __init__(self, path: Path, tell: Callable[[bytes], None] | None) -> None:
        self.path = path
        self.tell = tell
        self.seen: int = 0

    def hear(self, ticks: int) -> None:
        os.read(ticks, CHUNK)
        self.catch_up()

    def catch_up(self) -> None:
        if self.tell is None or not self.path.exists():
            return
        with self.path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            self.seen = file.seek(max(self.seen, size - LIVE_MAX))
            # The file may grow faster than we read: stop here, the rest comes with the next tick.
            while self.seen < size and (piece := file.read(CHUNK)):
                self.seen += len(piece)
                self.tell(piece)


def excerpt(path: Path, total: int) -> str:
    """Return the output for a model: all of it, or head and tail with a note between."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size == total <= SHOWN_BYTES:
            text = file.read().decode(errors="replace")
            if len(text.encode()) <= SHOWN_BYTES:
                return text
        note = "\n… {} bytes left out; the whole output is in {} …\n"
        half = min(SHOWN_END_BYTES, (SHOWN_BYTES - len(note.format(total, path).encode())) // 2)
        file.seek(0)
        head = _fitting(file.read(half), half, from_end=False)
        file.seek(max(len(head), size - half))
        tail = _fitting(file.read(half), half, from_end=True)
    left_out = note.format(total - len(head) - len(tail), path)
    return head.decode(errors="replace") + left_out + tail.decode(errors="replace")


def _fitting(raw: bytes, limit: int, *, from_end: bool) -> bytes:
    """Cut bytes so that they fit the limit as text; an invalid byte becomes three bytes."""
    while (excess := len(raw.decode(errors="replace").encode()) - limit) > 0:
        cut = excess // 3 + 1
        raw = raw[cut:] if from_end else raw[:-cut]
    return raw
