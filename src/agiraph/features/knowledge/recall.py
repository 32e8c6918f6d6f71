"""Recall: choose insights for a prompt, and format what an agent knows as lines."""

import math
import re
from collections.abc import Collection, Iterable, KeysView, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple

from agiraph.api.feature_views.known import Insight
from agiraph.core.domain.agents import Agent, Team
from agiraph.core.domain.events.knowledge import KnowledgeStatus
from agiraph.core.domain.ids import AgentId, TeamId
from agiraph.core.domain.text.passages import STOP_WORDS, Owner, words
from agiraph.core.domain.text.similarity import Statements, interleave, segments
from agiraph.core.domain.work import WorkNode
from agiraph.core.prompts import prompt
from agiraph.core.store import messages
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import rows
from agiraph.features.knowledge.model import visible_to
from agiraph.features.knowledge.rows import Item, OwnerVersion
from agiraph.features.knowledge.verbs import items, merging
from agiraph.models.embeddings import Embeddings, embeddings

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


def rivals_of(team_id: TeamId, owners: Sequence[Owner], ids: Collection[str]) -> list[str]:
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


MAX_INSIGHTS = 40
"""Insights in a prompt; list_insights and knowledge_search find the others."""
MAX_CHARS = 8000
MAX_UNVERIFIED = 10
"""Unverified facts in a prompt, besides the insights."""
EACH = 6
"""Known insights that are looked up for each sentence of a text."""
NEAR = 0.5
"""The cosine from which a person is asked whether two statements go together."""
MAX_WORDS = {"task": 60, "news": 30, "goal": 20}
"""Words of each part of a query; a long task says at its beginning what it is about."""
WEIGHTS = {"task": 1.0, "news": 0.7, "goal": 0.4}
LEAST_SHARED_WORDS = 2
"""How many words an unverified fact and the query must share: being shown it labels the thread."""
MEANING = 0.5
"""The weight of a similar meaning, beside the words that are the same."""
SPARE = 15
"""Further matches that are weighed, because confidence, use and age may raise them."""
OLD_DAYS = 180
"""After so many days without use an insight has lost most of what its age can cost it."""

_FRAMES = ("cycle", "heartbeat", "woken", "promise", "maintenance")
"""Prompt files that tasks are made from."""
_LINES = re.compile(
    r"^(?:<<<|>>>) [0-9a-f]{16}:[^\n]*$"
    r"|^\[(?:Runtime|Task)\][^\n]*$"
    r"|\[Message from [^\]\n]{0,200}\]"
    r"|^(?:Id|From|Limits|Status|Files|To read with read_ref): [^\n]*$"
    r"|^(?:Title|Not confirmed|Done means):"
    r"|^[ ]*agents/[^\s/]+[ ]*$",
    re.MULTILINE,
)


class Query(NamedTuple):
    """What a prompt needs insights for."""

    task: str
    news: str = ""
    goal: str = ""


def query_for(tx: Tx, team: Team, node: WorkNode) -> Query | None:
    """Return what a node is about: its task, the messages to it, and the team's goal; None if the
    team has no insights, or if the node reviews a result, which is judged by itself.

    The sentences that the runtime puts around them are left out, because every task has them.
    """
    if not node.kind.recalls or not rows.has_insights(tx, team.id):
        return None
    said = [message.text for message in messages.of_node(tx, node.id)]
    task = without_frames(f"{node.title}\n{node.task}").replace(team.goal, " ")
    return Query(task, without_frames("\n".join(said)), team.goal)


def without_frames(text: str) -> str:
    """Return a text without the runtime's own sentences and marks."""
    for sentence in _sentences():
        text = text.replace(sentence, "\n")
    return _LINES.sub("", text).strip()


@cache
def _sentences() -> tuple[str, ...]:
    """Return the fixed parts of the prompt files that tasks are made from, longest first."""
    parts = {part.strip() for name in _FRAMES for part in re.split(r"\{\w*\}|\$\w+", prompt(name))}
    return tuple(sorted((part for part in parts if len(part) >= 8), key=len, reverse=True))


def for_work(tx: Tx, agent_id: AgentId, query: Query | str) -> list[Insight]:
    """Return the insights for a prompt: those that fit first, then the newest, and at the end
    unverified facts that fit, unless the team's trust is strict."""
    agent = AGENTS.get(tx, agent_id)
    team = TEAMS.get(tx, agent.team_id)
    query = Query(query) if isinstance(query, str) else query
    asked = _asked(query)
    is_strict = team.trust == "strict"
    known = [i for i in _ranked(tx, agent, query, asked) if not (is_strict and i.label)]
    if len(known) < MAX_INSIGHTS and sum(len(i.content) for i in known) < MAX_CHARS:
        newest = items.insights(tx, agent_id, limit=MAX_INSIGHTS)
        ids = {i.id for i in known}
        known += [i for i in newest if i.id not in ids and not (is_strict and i.label)]
    chosen = _chosen(tx, agent, known)
    return chosen if is_strict else chosen + _unverified(tx, agent, asked)


def count_unverified(tx: Tx, agent: Agent) -> int:
    """Return how many unverified facts the agent may find."""
    found = rows.versions(tx, agent.team_id, visible_to(agent), "unverified")
    return sum(version.number for version in found.values())


def _asked(query: Query) -> dict[str, float]:
    """Return the words of a query with their weights."""
    asked: dict[str, float] = {}
    for part, text in query._asdict().items():
        room = MAX_WORDS[part]
        for feature, is_word in features(text[:20_000]).items():
            if feature in STOP_WORDS:
                continue
            asked[feature] = max(asked.get(feature, 0.0), WEIGHTS[part] * (1 if is_word else 0.5))
            room -= is_word
            if room <= 0:
                break
    return asked


def _ranked(tx: Tx, agent: Agent, query: Query, asked: dict[str, float]) -> list[Insight]:
    """Return the active insights that fit, best first."""
    found = search(
        tx,
        agent.team_id,
        visible_to(agent),
        "active",
        asked,
        text="\n".join(query),
        model=embeddings(),
        limit=2 * MAX_INSIGHTS,
    )
    return _best(tx, found.values(), limit=MAX_INSIGHTS)


def _unverified(tx: Tx, agent: Agent, asked: dict[str, float]) -> list[Insight]:
    """Return the unverified facts that fit, best first."""
    found = search(
        tx, agent.team_id, visible_to(agent), "unverified", asked, model=embeddings(), limit=50
    )
    least = min(LEAST_SHARED_WORDS, sum(not feature.endswith("-") for feature in asked))
    by_words = sorted(found.values(), key=lambda match: -match.words)
    near = (match for match in by_words if _shared(match.text, asked) >= least)
    return _best(tx, islice(near, MAX_UNVERIFIED + SPARE), limit=MAX_UNVERIFIED)


def _shared(text: str, asked: dict[str, float]) -> int:
    """Return how many words of a query a text contains, whole or by their beginning."""
    common = features(text).keys() & asked.keys()
    stems = {feature for feature in common if feature.endswith("-")}
    whole = common - stems
    return len(whole) + len(stems - {f"{word[:STEM_CHARACTERS]}-" for word in whole})


def _best(tx: Tx, found: Iterable[Match], *, limit: int) -> list[Insight]:
    """Return the valid insights of the best matches, weighed by confidence, use and age."""
    matches = {match.id: match for match in found}
    most = max((match.words for match in matches.values()), default=0.0) or 1.0

    def fits(match: Match) -> float:
        return match.words / most + MEANING * match.meaning

    best = sorted(matches.values(), key=lambda match: (-fits(match), match.id))[: limit + SPARE]
    known = rows.by_ids(tx, [match.id for match in best])
    valid = [i for i in known if i.valid_until is None or i.valid_until > tx.now]
    weighed = {i.id: fits(matches[i.id]) * weight(i, tx.now) for i in valid}
    return sorted(valid, key=lambda i: -weighed[i.id])[:limit]


def weight(insight: Insight, now: datetime) -> float:
    """Return how much an insight counts beside how well it fits, about 0.5 to 1.5: by confidence,
    by how often it was used, and by how long ago it was learned or used."""
    sure = 0.6 if insight.confidence is None else insight.confidence
    days = max(0.0, (now - (insight.used_at or insight.created_at)).total_seconds() / 86_400)
    used = min(math.log2(1 + insight.uses), 5) / 5
    return (0.7 + 0.5 * sure) * (1 + 0.2 * used) * (0.8 + 0.2 * math.exp(-days / OLD_DAYS))


def _chosen(tx: Tx, agent: Agent, known: Sequence[Insight]) -> list[Insight]:
    """Return the first insights that fit into a prompt.

    Both insights that contradict each other are shown, or none: one alone would mislead.
    """
    chosen: dict[str, Insight] = {}
    room = MAX_CHARS
    by_id = {insight.id: insight for insight in known}
    other = [i.contradicts for i in known if i.contradicts]
    other += rivals_of(agent.team_id, visible_to(agent), by_id)
    lacking = rows.by_ids(tx, [id for id in other if id not in by_id])
    by_id |= {i.id: i for i in lacking if i.status == "active"}
    rivals: dict[str, list[Insight]] = {}
    for insight in by_id.values():
        if insight.contradicts in by_id:
            rivals.setdefault(insight.contradicts, []).append(insight)
    for insight in known:
        if insight.id in chosen:
            continue
        group = [insight, *rivals.get(insight.id, ())]
        if insight.contradicts in by_id:
            group.append(by_id[insight.contradicts])
        group = [i for i in group if i.id not in chosen]
        room -= sum(len(i.content) for i in group)
        # The best ones come first, so the rest is left out and not squeezed in.
        if room < 0 or len(chosen) + len(group) > MAX_INSIGHTS:
            break
        chosen |= {i.id: i for i in group}
    return list(chosen.values())


def candidates(text: str, known: Collection[Insight], *, limit: int) -> list[str]:
    """Return the ids of the insights most similar to any sentence of a text, best first.

    Matches by words and letters alternate with matches by embeddings, if these are installed.
    Loading embeddings is slow, so callers run this in a thread.
    """
    said = segments(text)
    statements = {insight.id: insight.content for insight in known}
    by_words = Statements(statements).nearest_to_any(said, each=EACH, limit=limit)
    if (model := embeddings()) is None:
        return by_words
    by_meaning = model.nearest_to_any(said, statements, each=EACH, limit=limit)
    return interleave(by_words, by_meaning, limit=limit)


def nearest(tx: Tx, item: Item) -> Item | None:
    """Return the known item that is so near to this one that they may contradict each other."""
    others = {other.id: other for other in merging.peers(tx, item) if other.id != item.id}
    known = Statements({other.id: other.content for other in others.values()})
    found = known.nearest(item.content, limit=1)
    return others[found[0][0]] if found and found[0][1] >= NEAR else None


def as_lines(known: Sequence[Item], *, ids: bool = True) -> list[str]:
    """Return items as lines of a prompt; two that contradict each other share an entry."""
    by_id = {item.id: item for item in known}
    pairs = {item.id: item.contradicts for item in known if item.contradicts in by_id}
    shown: set[str] = set()
    lines: list[str] = []
    for item in known:
        if item.id in shown:
            continue
        other = pairs.get(item.id) or next((a for a, b in pairs.items() if b == item.id), None)
        if other is None or other in shown:
            lines.append(f"- {_line(item, ids=ids)}")
            shown.add(item.id)
            continue
        newer, older = sorted((item, by_id[other]), key=lambda i: i.created_at, reverse=True)
        lines.append(
            "- These two do not go together; check which one holds before you rely on either:\n"
            f"  - {_line(newer, ids=ids)}\n  - {_line(older, ids=ids)}"
        )
        shown |= {item.id, other}
    return lines


def _line(item: Item, *, ids: bool) -> str:
    said = " ".join(item.content.split())
    about = [item.id] if ids else []
    if isinstance(item, Insight):
        about.append(item.type)
        if item.confidence is not None:
            about.append(f"confidence {item.confidence:.2g}")
    about.append(f"{item.created_at:%Y-%m-%d}")
    return f"{said} ({', '.join(about)})"
