"""Command output: cuts the output of a command to the size that a model is shown."""

import os
from pathlib import Path

SHOWN_BYTES = 16 * 1024
"""The most bytes of an output that a model sees, from its head and its tail."""
SHOWN_END_BYTES = 8000


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
