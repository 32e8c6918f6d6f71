"""Insight index: finds an owner's insights by words and by meaning, in memory.

The full-text index of the database compares each query with the passages of all teams: with 10,000
insights a search takes about 100 ms. This index holds one owner's insights, is built at the first
search of a process and follows the rows: their number and the newest one tell when they changed.
"""

import math
from collections.abc import Collection, KeysView, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

from agiraph.core.domain.events.knowledge import KnowledgeStatus
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.text.passages import Owner, words
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import rows
from agiraph.features.knowledge.rows import OwnerVersion
from agiraph.models.embeddings import Embeddings

MAX_INDEXES = 64
"""Owners and statuses that are kept in memory; the one that was used longest ago goes first."""
STEM_CHARACTERS = 5
"""A longer word also counts by its beginning, so that inflected words match."""
COMMON, FEW = 0.05, 50
"""A word in more than this share of the insights, and in more than a few, is left out of a query:
it tells nothing, and it is what makes a search slow."""

MOST_COMPARED = 2500
"""How often a search without numpy compares a word with an insight that contains it."""

Asked = Mapping[str, float]
"""The words of a query, each with its weight."""


class Match(NamedTuple):
    """How well an insight fits a query."""

    id: str
    words: float
    """The weight of the common words; 0 if there are none."""
    text: str
    meaning: float = 0.0
    """The cosine of the vectors, if embeddings are installed."""


def features(text: str) -> dict[str, bool]:
    """Return the words of a text and the beginnings of long ones; True for whole words."""
    found: dict[str, bool] = {}
    for word in words(text):
        found[word] = True
        if len(word) > STEM_CHARACTERS:
            # No word ends with "-", so this replaces none.
            found[word[:STEM_CHARACTERS] + "-"] = False
    return found


class OwnerIndex:
    """The insights of one owner with one status."""

    def __init__(self) -> None:
        self.version: OwnerVersion | None = None
        self._slots: dict[str, int] = {}
        self._ids: list[str | None] = []
        self._texts: list[str] = []
        self._sizes: list[float] = []
        self._holders: dict[str, list[int]] = {}
        self.rivals: dict[str, list[str]] = {}
        """Those that contradict an insight, by its id."""
        self._arrays: dict[str, Any] = {}
        """The slots of words that were searched for, as arrays."""
        self._size_array: Any = ()
        self._matrix: Any = None
        """The vectors of the first slots, one row each; of those that were added later none yet."""

    @property
    def ids(self) -> KeysView[str]:
        return self._slots.keys()

    def add(self, id: str, text: str) -> None:
        slot = len(self._ids)
        found = features(text)
        self._slots[id] = slot
        self._ids.append(id)
        self._texts.append(text)
        self._sizes.append(math.sqrt(len(found)) or 1.0)
        for feature in found:
            self._holders.setdefault(feature, []).append(slot)

    def remove(self, id: str) -> None:
        self._ids[self._slots.pop(id)] = None

    @property
    def is_sparse(self) -> bool:
        """Whether so much was removed that it should be built anew."""
        return len(self._ids) > 2 * len(self._slots) + 100

    def search(self, asked: Asked, *, limit: int, numpy: Any = None) -> list[Match]:
        """Return the insights with words of the query, best first. With `numpy` all its words are
        compared; else the rarest, which tell most."""
        total = max(1, len(self._slots))
        most = max(FEW, total * COMMON)
        holders = {f: self._holders[f] for f in asked if f in self._holders}
        weights = {
            feature: asked[feature] * math.log(1 + total / len(slots))
            for feature, slots in holders.items()
            if len(slots) <= most
        }
        weigh = self._weigh if numpy is None else partial(self._weigh_all, numpy)
        found = ((self._ids[slot], score, slot) for slot, score in weigh(weights, limit))
        return [Match(id, score, self._texts[slot]) for id, score, slot in found if id is not None]

    def _weigh(self, weights: Asked, limit: int) -> list[tuple[int, float]]:
        """Return the index slots of the best insights and their scores, best first.

        The rarest words are compared first, and no more than `MOST_COMPARED` pairs of word and
        insight, because this runs without numpy.
        """
        scores: dict[int, float] = {}
        room = MOST_COMPARED
        for feature in sorted(weights, key=lambda f: len(self._holders[f])):
            room -= len(self._holders[feature])
            if room < 0:
                break
            for slot in self._holders[feature]:
                scores[slot] = scores.get(slot, 0.0) + weights[feature]
        for slot in scores:
            scores[slot] /= self._sizes[slot]
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:limit]
        return [(slot, scores[slot]) for slot in best]

    def _weigh_all(self, numpy: Any, weights: Asked, limit: int) -> list[tuple[int, float]]:
        """Return the index slots of the best insights and their scores, comparing all words."""
        if not weights:
            return []
        for feature in weights:
            held = self._arrays.get(feature)
            if held is None or len(held) != len(self._holders[feature]):
                self._arrays[feature] = numpy.array(self._holders[feature])
        if len(self._size_array) != len(self._sizes):
            self._size_array = numpy.array(self._sizes)
        arrays = [self._arrays[feature] for feature in weights]
        values = numpy.repeat(list(weights.values()), [len(held) for held in arrays])
        scores = numpy.bincount(numpy.concatenate(arrays), values, len(self._sizes))
        scores /= self._size_array
        best = numpy.argpartition(-scores, min(limit, len(scores) - 1))[:limit]
        best = best[scores[best] > 0]
        best = best[(-scores[best]).argsort(kind="stable")]
        return list(zip(best.tolist(), scores[best].tolist(), strict=True))

    def near(self, model: Embeddings, query: str, *, limit: int) -> list[Match]:
        """Return the insights with a similar meaning, best first."""
        done = 0 if self._matrix is None else len(self._matrix)
        if done < len(self._texts):
            self._matrix = model.matrix(self._texts[done:], above=self._matrix)
        near = model.similar(query, self._matrix, limit=limit)
        found = [(self._ids[place], cosine, place) for place, cosine in near]
        return [
            Match(id, 0.0, self._texts[place], cosine)
            for id, cosine, place in found
            if id is not None
        ]


_indexes: dict[tuple[TeamId, Owner, KnowledgeStatus], OwnerIndex] = {}
_lock = Lock()


def search(
    tx: Tx,
    team_id: TeamId,
    owners: Sequence[Owner],
    status: KnowledgeStatus,
    asked: Asked,
    *,
    text: str = "",
    model: Embeddings | None = None,
    limit: int = 100,
) -> dict[str, Match]:
    """Return insights of these owners that fit the words or, if a model of embeddings is given, the
    text's meaning."""
    versions = rows.versions(tx, team_id, owners, status)
    numpy = None if model is None else model.numpy
    found: dict[str, Match] = {}
    # Verbs of several threads read the same index.
    with _lock:
        for owner in owners:
            if (version := versions.get(owner)) is None:
                continue
            index = _current(tx, team_id, owner, status, version)
            found |= {m.id: m for m in index.search(asked, limit=limit, numpy=numpy)}
            if model is None or not text:
                continue
            for match in index.near(model, text, limit=limit):
                known = found.get(match.id)
                found[match.id] = match if known is None else match._replace(words=known.words)
    return found


def rivals(team_id: TeamId, owners: Sequence[Owner], ids: Collection[str]) -> list[str]:
    """Return the active insights that contradict any of these, as of the last search."""
    with _lock:
        kept = [_indexes.get((team_id, owner, "active")) for owner in owners]
        return [
            rival for i in kept if i is not None for id in ids for rival in i.rivals.get(id, ())
        ]


def _current(
    tx: Tx, team_id: TeamId, owner: Owner, status: KnowledgeStatus, version: OwnerVersion
) -> OwnerIndex:
    """Return the index as the rows are now. The caller holds the lock."""
    key = (team_id, owner, status)
    index = _indexes.pop(key, None)
    if index is None or index.is_sparse:
        index = OwnerIndex()
    _indexes[key] = index
    if len(_indexes) > MAX_INDEXES:
        del _indexes[next(iter(_indexes))]
    if index.version == version:
        return index
    since = None if index.version is None else index.version.newest
    added = rows.contents(tx, team_id, owner, status, since=since)
    for id in added.keys() - index.ids:
        index.add(id, added[id])
    if len(index.ids) != version.number:  # some were removed, or are back with their old date
        _match_rows(tx, index, team_id, owner, status)
    index.rivals = rows.disputes(tx, team_id, owner, status)
    index.version = version
    return index


def _match_rows(
    tx: Tx, index: OwnerIndex, team_id: TeamId, owner: Owner, status: KnowledgeStatus
) -> None:
    """Make the index hold exactly the owner's insights, whenever they were stored."""
    known = rows.ids_of(tx, team_id, owner, status)
    for id in index.ids - known:
        index.remove(id)
    missing = rows.by_ids(tx, sorted(known - index.ids))
    for insight in missing:
        index.add(insight.id, insight.content)
