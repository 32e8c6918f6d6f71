"""Embeddings: finds texts with a similar meaning, by the word vectors of the `wordllama` package.

They are an extra, `agiraph[semantic]`. Without it there are none, and a search compares words only.
Nothing is downloaded: weights and tokenizer are read from the installed package.
"""

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

MIN_SIMILARITY = 0.25
"""The smallest cosine of two vectors that counts as similar; unrelated texts have about 0."""
MAX_TEXT_CHARS = 2000
"""How much of a text is compared: its beginning says what it is about."""
MAX_CACHED_VECTORS = 20_000
BATCH_TEXTS = 250
"""Texts whose vectors are computed at once; the vectors of all their words are in memory then."""


class Embeddings:
    """Vectors of texts. They are cached, because every search compares the same notes again."""

    def __init__(self, word_vectors: Any, tokenizer: Any, numpy: Any) -> None:
        self._word_vectors = word_vectors
        self._tokenizer = tokenizer
        self.numpy: Any = numpy
        self._cache: dict[str, Any] = {}

    def nearest(self, query: str, texts: Iterable[tuple[int, str]], *, limit: int) -> list[int]:
        """Return the numbers of the texts that are similar to the query, the most similar first."""
        wanted = self._vector(query)
        if wanted is None:
            return []
        near: list[tuple[float, int]] = []
        for number, text in texts:
            vector = self._vector(text[:MAX_TEXT_CHARS])
            similarity = 0.0 if vector is None else float(wanted @ vector)
            if similarity >= MIN_SIMILARITY:
                near.append((similarity, number))
        return [number for _, number in sorted(near, reverse=True)[:limit]]

    def nearest_to_any(
        self, queries: Sequence[str], texts: Mapping[str, str], *, each: int, limit: int
    ) -> list[str]:
        """Return the keys of the texts that are similar to any of the queries, best first.

        Of every query the `each` nearest are taken.
        """
        vectors = {key: self._vector(text[:MAX_TEXT_CHARS]) for key, text in texts.items()}
        keys = [key for key, vector in vectors.items() if vector is not None]
        asked = [v for v in map(self._vector, queries) if v is not None]
        if not keys or not asked:
            return []
        cosines = self.numpy.stack(asked) @ self.numpy.stack([vectors[key] for key in keys]).T
        best: dict[str, float] = {}
        for row in cosines:
            for place in row.argsort()[::-1][:each]:
                key, cosine = keys[int(place)], float(row[place])
                if cosine >= MIN_SIMILARITY:
                    best[key] = max(best.get(key, 0.0), cosine)
        return sorted(best, key=lambda key: -best[key])[:limit]

    def matrix(self, texts: Sequence[str], *, above: Any = None) -> Any:
        """Return the vectors of texts as the rows of a matrix, below the rows of another one; zeros
        for a text without words."""
        pieces = [] if above is None else [above]
        pieces += [
            self._rows(texts[start : start + BATCH_TEXTS])
            for start in range(0, len(texts), BATCH_TEXTS)
        ]
        if not pieces:
            return self.numpy.zeros((1, self._word_vectors.shape[1]), self._word_vectors.dtype)
        return pieces[0] if len(pieces) == 1 else self.numpy.vstack(pieces)

    def _rows(self, texts: Sequence[str]) -> Any:
        """Return the vectors of some texts as rows: as `_compute` does it, for all at once."""
        numpy = self.numpy
        shortened = [text[:MAX_TEXT_CHARS] for text in texts]
        encoded = self._tokenizer.encode_batch_fast(shortened, add_special_tokens=False)
        tokens = [each.ids for each in encoded]
        sizes = numpy.array([len(ids) for ids in tokens])
        # A short text is filled up with word 0, which is taken out of its sum again.
        width = int(sizes.max())
        if width == 0:
            return numpy.zeros((len(texts), self._word_vectors.shape[1]), numpy.float32)
        padded = numpy.array([ids + [0] * (width - len(ids)) for ids in tokens])
        sums = self._word_vectors[padded].sum(1)
        sums -= (width - sizes)[:, None] * self._word_vectors[0]
        sums[sizes == 0] = 0
        # The sum points where the mean does, and only the direction counts.
        lengths = numpy.linalg.norm(sums, axis=1, keepdims=True)
        return (sums / numpy.where(lengths > 0, lengths, 1)).astype(numpy.float32)

    def similar(self, query: str, matrix: Any, *, limit: int) -> list[tuple[int, float]]:
        """Return the rows of a matrix that are similar to the query, with their cosines."""
        if (wanted := self._vector(query[:MAX_TEXT_CHARS])) is None:
            return []
        # Not `matrix @ wanted`: for one vector the threads of the library cost more than they save.
        cosines = self.numpy.einsum("ij,j->i", matrix, wanted)
        best = self.numpy.argpartition(-cosines, min(limit, len(cosines) - 1))[:limit]
        best = best[cosines[best] >= MIN_SIMILARITY]
        best = best[(-cosines[best]).argsort()]
        return list(zip(best.tolist(), cosines[best].tolist(), strict=True))

    def _vector(self, text: str) -> Any | None:
        """Return the text's vector of length 1, from the cache if possible; None without words."""
        if text not in self._cache:
            # All entries are dropped, not the oldest one: a search reads all texts in the same
            # order, so an LRU cache that is one entry too small would miss every time.
            if len(self._cache) >= MAX_CACHED_VECTORS:
                self._cache.clear()
            self._cache[text] = self._compute(text)
        return self._cache[text]

    def _compute(self, text: str) -> Any | None:
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
        if not tokens:
            return None
        mean = self._word_vectors[tokens].mean(0)
        length = float(self.numpy.linalg.norm(mean))
        return mean / length if length else None


@cache
def embeddings() -> Embeddings | None:
    """Load the word vectors, once per process. Return None if the extra is not installed."""
    if (found := importlib.util.find_spec("wordllama")) is None:
        return None
    root = Path(next(iter(found.submodule_search_locations or ())))
    weights = next(root.glob("weights/*.safetensors"), None)
    vocabulary = next(root.glob("tokenizers/*.json"), None)
    if weights is None or vocabulary is None:
        return None
    numpy = import_module("numpy")
    [vectors] = import_module("safetensors.numpy").load_file(weights).values()
    tokenizer = import_module("tokenizers").Tokenizer.from_file(str(vocabulary))
    return Embeddings(vectors.astype(numpy.float32), tokenizer, numpy)
