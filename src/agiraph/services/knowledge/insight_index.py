"""Insight index: finds an owner's insights by words and by meaning, in memory.

The full-text index of the database compares each query with the passages of all teams: with 10,000
insights a search takes about 100 ms. This index holds one owner's insights, is built at the first
search of a process and follows the rows: their number and the newest one tell when they changed.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

from agiraph.domain.ids import TeamId
from agiraph.domain.knowledge import KnowledgeStatus
from agiraph.domain.passages import Owner, words
from agiraph.providers.embeddings import Embeddings
from agiraph.store import knowledge as rows
from agiraph.store.knowledge import OwnerVersion
from agiraph.store.tx import Tx

MAX_INDEXES = 64
"""Owners and statuses that are kept in memory; the one that was used longest ago goes first."""
STEM_CHARACTERS = 5
"""A longer word also counts by its beginning, so that inflected words match."""
COMMON, FEW = 0.05, 50
"""A word in more than this share of the insights, and in more than a few, is left out of a query:
it tells nothing, and it is what makes a search slow."""

MOST_COMPARED = 2500
"""How often a search compares a word with an insight that contains it."""

Asked = Mapping[str, float]
"""The words of a query, each with its weight."""


class Match(NamedTuple):
    """How well an insight fits a query."""

    id: str
    words: float
    """The weight of the common words; 0 if there are none."""
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
        self._matrix: Any = None
        """The vectors of the first slots, one row each; of those that were added later none yet."""

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(self._slots)

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

    def search(self, asked: Asked, *, limit: int) -> list[Match]:
        """Return the insights with words of the query, best first."""
        total = max(1, len(self._slots))
        most = max(FEW, total * COMMON)
        holders = {feature: self._holders[feature] for feature in asked if feature in self._holders}
        scores: dict[int, float] = {}
        room = MOST_COMPARED
        # The rarest first: they tell most, and the others are left out of a long query.
        for feature in sorted(holders, key=lambda feature: len(holders[feature])):
            slots = holders[feature]
            room -= len(slots)
            if len(slots) > most or room < 0:
                break
            value = asked[feature] * math.log(1 + total / len(slots))
            for slot in slots:
                scores[slot] = scores.get(slot, 0.0) + value
        sizes = self._sizes
        fits = [(score / sizes[slot], slot) for slot, score in scores.items()]
        found = ((self._ids[slot], score) for score, slot in heapq.nlargest(limit, fits))
        return [Match(id, score) for id, score in found if id is not None]

    def near(self, model: Embeddings, query: str, *, limit: int) -> list[tuple[str, float]]:
        """Return the insights with a similar meaning, each with its cosine, best first."""
        done = 0 if self._matrix is None else len(self._matrix)
        if done < len(self._texts):
            self._matrix = model.matrix(self._texts[done:], above=self._matrix)
        near = model.similar(query, self._matrix, limit=limit)
        found = [(self._ids[place], cosine) for place, cosine in near]
        return [(id, cosine) for id, cosine in found if id is not None]


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
    """Return insights of these owners that fit the words, or the text's meaning if a model of
    embeddings is given."""
    versions = rows.versions(tx, team_id, owners, status)
    found: dict[str, Match] = {}
    # Verbs of several threads read the same index.
    with _lock:
        for owner in owners:
            if (version := versions.get(owner)) is None:
                continue
            index = _current(tx, team_id, owner, status, version)
            found |= {match.id: match for match in index.search(asked, limit=limit)}
            if model is None:
                continue
            for id, cosine in index.near(model, text, limit=limit):
                found[id] = Match(id, found[id].words if id in found else 0.0, cosine)
    return found


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
    active = rows.ids_of(tx, team_id, owner, status)
    for id in index.ids - active:
        index.remove(id)
    new = active - index.ids
    known = rows.contents(tx, team_id, owner, status) if len(new) > 200 else None
    if known is None:
        known = {insight.id: insight.content for insight in rows.by_ids(tx, sorted(new))}
    for id, content in known.items():
        if id in new:
            index.add(id, content)
    index.version = version
    return index
