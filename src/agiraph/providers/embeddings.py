"""Meanings: texts that say alike, though in other words, by word vectors that ship in a package.

An extra, `agiraph[semantic]`: without it there are no meanings, and searches go by words alone.
Nothing is downloaded: the weights and the tokenizer are read from where the package lies.
"""

import importlib.util
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

LEAST = 0.25
"""How near a text must be to count, as the cosine of the two; strangers are at about 0."""
LONGEST = 2000
"""Characters of a text that are looked at: what it is about stands at its beginning."""
MOST_KEPT = 20_000


class Meanings:
    """Vectors for texts, kept as long as there is room: a note is asked about again and again."""

    def __init__(self, vectors: Any, tokenizer: Any, numpy: Any) -> None:
        self._vectors = vectors
        self._tokenizer = tokenizer
        self._numpy = numpy
        self._kept: dict[str, Any] = {}

    def nearest(self, query: str, texts: Iterable[tuple[int, str]], *, limit: int) -> list[int]:
        """Which of the texts are near to the query, by their numbers, the nearest first."""
        wanted = self._vector(query)
        if wanted is None:
            return []
        near: list[tuple[float, int]] = []
        for number, text in texts:
            vector = self._vector(text[:LONGEST])
            likeness = 0.0 if vector is None else float(wanted @ vector)
            if likeness >= LEAST:
                near.append((likeness, number))
        return [number for _, number in sorted(near, reverse=True)[:limit]]

    def _vector(self, text: str) -> Any | None:
        if text not in self._kept:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[text] = self._made(text)
        return self._kept[text]

    def _made(self, text: str) -> Any | None:
        pieces = self._tokenizer.encode(text, add_special_tokens=False).ids
        if not pieces:
            return None
        mean = self._vectors[pieces].mean(0)
        length = float(self._numpy.linalg.norm(mean))
        return mean / length if length else None


@cache
def meanings() -> Meanings | None:
    """What the extra brings; None where it is not installed. Loaded once, when first asked for."""
    if (found := importlib.util.find_spec("wordllama")) is None:
        return None
    root = Path(next(iter(found.submodule_search_locations or ())))
    weights = next(root.glob("weights/*.safetensors"), None)
    words = next(root.glob("tokenizers/*.json"), None)
    if weights is None or words is None:
        return None
    numpy = import_module("numpy")
    [vectors] = import_module("safetensors.numpy").load_file(weights).values()
    tokenizer = import_module("tokenizers").Tokenizer.from_file(str(words))
    return Meanings(vectors.astype(numpy.float32), tokenizer, numpy)
