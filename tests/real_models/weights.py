"""Weights: writes a model file of four-bit numbers anew with floats, which are faster to use.

Runs in the environment that `tests/install` makes, not in the tests' own:

    python weights.py FROM TO

Where llama.cpp is built without instructions for small integers, a prompt is read faster this way.
The numbers stay the same, so the model says the same. The format is GGUF, version 3.

The file also claims a longer training than the model had: llama.cpp's server offers no wider window
than a model was trained on, and an agent must be tried in wider ones. What the model says there
means nothing, but that is so in narrow windows, too.
"""

import struct
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np  # pyright: ignore[reportMissingImports]

F32, Q4_1, Q8_0 = 0, 3, 8
BLOCK = 32
"""Numbers of a block, which share a scale and a minimum."""
ALIGNMENT = 32
CONTEXT_LENGTH = b"llama.context_length"
LONGEST_WINDOW = 32_768
TEXT, LIST = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value of each kind that has a fixed size."""


@dataclass(frozen=True, slots=True)
class Tensor:
    name: bytes
    shape: tuple[int, ...]
    kind: int
    start: int

    @property
    def count(self) -> int:
        return int(np.prod(self.shape))


class File:
    """A model file, read from its beginning to its end."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def number(self, form: str) -> int:
        (found,) = struct.unpack_from(f"<{form}", self.content, self.at)
        self.at += struct.calcsize(form)
        return int(found)

    def text(self) -> bytes:
        size = self.number("Q")
        self.at += size
        return self.content[self.at - size : self.at]

    def skip(self, kind: int) -> None:
        """Pass over a value."""
        if kind == TEXT:
            self.text()
        elif kind == LIST:
            inner, count = self.number("I"), self.number("Q")
            for _ in range(count):
                self.skip(inner)
        else:
            self.at += SIZES[kind]

    def tensor(self) -> Tensor:
        name, dimensions = self.text(), self.number("I")
        shape = tuple(self.number("Q") for _ in range(dimensions))
        return Tensor(name, shape, self.number("I"), self.number("Q"))


def main(source: Path, target: Path) -> None:
    file = File(source.read_bytes())
    assert file.content[:4] == b"GGUF"
    file.at = 8
    tensors, values = file.number("Q"), file.number("Q")
    head = bytearray()
    for _ in range(values):
        key, kind = file.text(), file.number("I")
        if key == CONTEXT_LENGTH:
            head += file.content[len(head) : file.at] + struct.pack("<I", LONGEST_WINDOW)
        file.skip(kind)
    head += file.content[len(head) : file.at]
    found = [file.tensor() for _ in range(tensors)]
    data = _aligned(file.at)
    infos, start = b"", 0
    for tensor in found:
        infos += struct.pack("<Q", len(tensor.name)) + tensor.name
        infos += struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
        infos += struct.pack("<IQ", F32, start)
        start = _aligned(start + tensor.count * 4)
    with target.with_suffix(".part").open("wb") as written:
        written.write(bytes(head + infos).ljust(_aligned(len(head + infos)), b"\0"))
        for tensor in found:
            floats = _floats(file.content, data + tensor.start, tensor).tobytes()
            written.write(floats.ljust(_aligned(len(floats)), b"\0"))
    target.with_suffix(".part").rename(target)


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT


def _floats(content: bytes, start: int, tensor: Tensor) -> "np.ndarray":
    """Return the numbers of a tensor; raise if they are stored in a form that is not known."""
    if tensor.kind == F32:
        return np.frombuffer(content, "<f4", tensor.count, start)
    if tensor.kind == Q8_0:
        form = np.dtype([("scale", "<f2"), ("bytes", "i1", BLOCK)])
        blocks = np.frombuffer(content, form, tensor.count // BLOCK, start)
        return blocks["bytes"].astype("<f4") * blocks["scale"].astype("<f4")[:, None]
    if tensor.kind != Q4_1:
        raise SystemExit(f"{tensor.name!r} has kind {tensor.kind}, which this program cannot read")
    form = np.dtype([("scale", "<f2"), ("least", "<f2"), ("nibbles", "u1", BLOCK // 2)])
    blocks = np.frombuffer(content, form, tensor.count // BLOCK, start)
    nibbles = np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=1)
    scale, least = (blocks[name].astype("<f4")[:, None] for name in ("scale", "least"))
    return nibbles.astype("<f4") * scale + least


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
