"""Passages: sections of texts in a full-text index, searched and ranked.

Texts are tokenized here and not by the databases, so that both find the same: SQLite indexes the
words in an FTS5 table, PostgreSQL in a tsvector, and each ranks the matches.
"""

import hashlib
from collections.abc import Collection, Iterable
from itertools import islice
from typing import NamedTuple

from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text.passages import (
    EVERYONE,
    Owner,
    Passage,
    PassageKind,
    search_words,
    sections,
    words,
)
from agiraph.core.store.rows import Table, to_label, to_text
from agiraph.core.store.tx import Tx

PASSAGES = Table("passages", Passage)

CANDIDATES = 40
"""How many of the best matches are ranked again here, by how many of the words they contain."""
MOST_WORDS = 16_000
"""The most words of one passage; PostgreSQL's tsvector counts positions up to 16,383."""
_OFTEN = 250
"""The most positions of one word; PostgreSQL keeps 255."""
_PREFIXED = 4
"""A word of at least this many letters also matches as a prefix: async finds asyncio."""

_COLUMNS = ", ".join(f"p.{field}" for field in PASSAGES.fields)
# A word of the title weighs more: 4.0 for FTS5, the label A in the tsvector. The query is cast, not
# parsed by to_tsquery, whose dictionary would change words that are tokenized here.
_FIND = {
    "sqlite": (
        f"select {_COLUMNS} from passage_words w join passages p on p.id = w.rowid"
        " where passage_words match :query and {scope}"
        " order by bm25(passage_words, 4.0, 1.0), p.created_at desc, p.id limit :limit"
    ),
    "postgres": (
        f"select {_COLUMNS} from passage_words w join passages p on p.id = w.id"
        " where w.words @@ cast(:query as tsquery) and {scope}"
        " order by ts_rank_cd(w.words, cast(:query as tsquery), 1) desc, p.created_at desc, p.id"
        " limit :limit"
    ),
}


class Prepared(NamedTuple):
    """A section of a text with the words that it is found by."""

    title: str
    text: str
    title_words: list[str]
    words: list[str]


class PreparedText(NamedTuple):
    """A text with the sections as which it is indexed."""

    text: str
    sections: list[Prepared]


def prepare(text: str, title: str = "") -> PreparedText:
    """Return a text with its sections as they are indexed. For a long text of strangers this is
    done in a thread, before the transaction."""
    found: list[Prepared] = []
    for section in sections(to_text(text)):
        name = " · ".join(dict.fromkeys(t for t in (to_text(title), section.title) if t))
        found.append(_prepared(name, section.text))
    return PreparedText(text, found)


def _prepared(title: str, text: str) -> Prepared:
    named, said = islice(_plain(words(title)), 200), islice(_plain(words(text)), MOST_WORDS)
    return Prepared(title, text, [*named], [*said])


def put(
    tx: Tx,
    *,
    team_id: TeamId,
    kind: PassageKind,
    ref: str,
    text: str | PreparedText,
    title: str = "",
    owner: Owner = EVERYONE,
    label: Label = CLEAN,
) -> bool:
    """Index a text, section by section, in place of an older text with the same ref.

    Return False if the same text is indexed already. `prepare` may have been called for it before.
    """
    # The hash is of the text as given: `notes.is_stale` compares it with files, which
    # hold the text before redaction.
    whole = text.text if isinstance(text, PreparedText) else text
    ref, digest = to_text(ref), fingerprint(title, whole)
    if known(tx, team_id=team_id, kind=kind, owner=owner, ref=ref).get(ref) == digest:
        return False
    drop(tx, team_id=team_id, kind=kind, ref=ref, owner=owner)
    prepared = text if isinstance(text, PreparedText) else prepare(text, title)
    for part, section in enumerate(prepared.sections):
        passage = Passage(
            id=_id(team_id, owner, kind, ref, part),
            team_id=team_id,
            owner=owner,
            kind=kind,
            ref=ref,
            part=part,
            title=section.title,
            text=section.text,
            label=label,
            hash=digest,
            created_at=tx.now,
        )
        PASSAGES.insert(tx, passage)
        _index(tx, passage.id, section)
    return True


def index_all(tx: Tx) -> None:
    """Rebuild the full-text index from all passages, after a dump was loaded."""
    tx.run("delete from passage_words")
    for passage in PASSAGES.select(tx, "id is not null"):
        _index(tx, passage.id, _prepared(passage.title, passage.text))


def drop(tx: Tx, *, team_id: TeamId, kind: PassageKind, ref: str, owner: Owner = EVERYONE) -> int:
    """Delete all sections of one ref; return how many there were."""
    where = "team_id = :team_id and owner = :owner and kind = :kind and ref = :ref"
    of = {"team_id": team_id, "owner": owner, "kind": kind, "ref": to_text(ref)}
    if tx.dialect == "sqlite":  # PostgreSQL removes the words with their passage
        tx.run(
            f"delete from passage_words where rowid in (select id from passages where {where})",
            **of,
        )
    return tx.run(f"delete from passages where {where}", **of)


def known(
    tx: Tx, *, team_id: TeamId, kind: PassageKind, owner: Owner, ref: str | None = None
) -> dict[str, str]:
    """Return the hash of each indexed text of this kind, by ref; of one ref, or of all."""
    only = "" if ref is None else " and ref = :ref"
    rows = tx.all(
        "select ref, hash from passages where team_id = :team_id and owner = :owner"
        f" and kind = :kind{only} and part = 0",
        team_id=team_id,
        owner=owner,
        kind=kind,
        **({} if ref is None else {"ref": ref}),
    )
    return {row[0]: row[1] for row in rows}


def labels(tx: Tx, *, team_id: TeamId, kind: PassageKind, owner: Owner) -> dict[str, Label]:
    """Return the label of each indexed text of this kind that carries one, by ref."""
    rows = tx.all(
        "select ref, label from passages where team_id = :team_id and owner = :owner"
        " and kind = :kind and part = 0 and label is not null",
        team_id=team_id,
        owner=owner,
        kind=kind,
    )
    return {row[0]: to_label(row[1]) for row in rows}


def of_ref(
    tx: Tx, *, team_id: TeamId, kind: PassageKind, ref: str, owner: Owner = EVERYONE
) -> list[Passage]:
    """Return all sections of one text, in their order."""
    where = "team_id = :team and owner = :owner and kind = :kind and ref = :ref order by part"
    return PASSAGES.select(tx, where, team=team_id, owner=owner, kind=kind, ref=ref)


def find(
    tx: Tx,
    query: str,
    *,
    team_id: TeamId,
    owner: Owner | Collection[Owner],
    kinds: Collection[PassageKind] = ("note", "page", "insight", "report"),
    limit: int = 10,
) -> list[Passage]:
    """Return sections that these owners may see, best match first; any text is a valid query."""
    terms = search_words(query)
    if not terms or not kinds or limit < 1:
        return []
    scope, named = _scope(owner, kinds, "p.")
    rows = tx.all(
        _FIND[tx.dialect].format(scope=scope),
        query=_query(tx, terms),
        team_id=team_id,
        limit=max(CANDIDATES, limit),
        **named,
    )
    return _best([PASSAGES.load(row) for row in rows], terms)[:limit]


def find_anywhere(tx: Tx, query: str, *, team_id: TeamId | None, limit: int) -> list[Passage]:
    """Return sections of any owner, of one team or of all, best match first."""
    terms = search_words(query)
    if not terms:
        return []
    rows = tx.all(
        _FIND[tx.dialect].format(scope="(:team_id = '' or p.team_id = :team_id)"),
        query=_query(tx, terms),
        team_id=team_id or "",
        limit=max(CANDIDATES, limit),
    )
    return _best([PASSAGES.load(row) for row in rows], terms)[:limit]


def visible(
    tx: Tx,
    *,
    team_id: TeamId,
    owner: Owner | Collection[Owner],
    kinds: Collection[PassageKind] = ("note", "page", "insight", "report"),
    limit: int = 3000,
) -> list[Passage]:
    """Return the passages these owners may see, newest first; for a search by embeddings."""
    scope, named = _scope(owner, kinds)
    where = f"{scope} order by created_at desc, id limit :limit"
    return PASSAGES.select(tx, where, team_id=team_id, limit=limit, **named)


def _scope(
    owner: Owner | Collection[Owner], kinds: Collection[PassageKind], table: str = ""
) -> tuple[str, dict[str, str]]:
    """Return the condition for what these owners and everyone may see, and its parameters."""
    owners = sorted({EVERYONE, *((owner,) if isinstance(owner, str) else owner)})
    # Letters, not numbers: the name of a parameter consists of letters and underscores (`_NAMED`).
    kinds_named = {
        f"kind_{letter}": kind for letter, kind in zip("abcd", sorted(kinds), strict=False)
    }
    owners_named = {
        f"owner_{letter}": name for letter, name in zip("abcd", sorted(owners), strict=False)
    }
    condition = (
        f"{table}team_id = :team_id"
        f" and {table}owner in ({', '.join(f':{name}' for name in owners_named)})"
        f" and {table}kind in ({', '.join(f':{name}' for name in kinds_named)})"
    )
    return condition, kinds_named | owners_named


def fingerprint(title: str, text: str) -> str:
    return hashlib.sha256(f"{title}\n{text}".encode(errors="surrogatepass")).hexdigest()


def _id(team_id: TeamId, owner: Owner, kind: PassageKind, ref: str, part: int) -> int:
    # A hash instead of a sequence: a section that is indexed again keeps its id.
    key = "\0".join((team_id, owner, kind, ref, str(part))).encode(errors="surrogatepass")
    # Shifted by one bit, because the integers of both databases are signed.
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest()) >> 1


def _index(tx: Tx, passage_id: int, section: Prepared) -> None:
    if tx.dialect == "sqlite":
        tx.run(
            "insert into passage_words (rowid, title, text) values (:id, :title, :text)",
            id=passage_id,
            title=" ".join(section.title_words),
            text=" ".join(section.words),
        )
        return
    # `ts_rank_cd` ranks by how near the words are to each other, so their positions are needed.
    places: dict[str, list[str]] = {}
    for place, word in enumerate(section.title_words, start=1):
        places.setdefault(word, []).append(f"{place}A")
    for place, word in enumerate(section.words[: MOST_WORDS - 200], start=201):
        if len(kept := places.setdefault(word, [])) < _OFTEN:
            kept.append(str(place))
    vector = " ".join(f"{word}:{','.join(at)}" for word, at in places.items())
    tx.run(
        "insert into passage_words (id, words) values (:id, cast(:words as tsvector))",
        id=passage_id,
        words=vector,
    )


def _plain(found: Iterable[str]) -> Iterable[str]:
    """Yield words in ASCII letters and digits, which neither database splits or changes."""
    for word in found:
        if word.isascii():
            yield word[:60]
        else:
            yield "u" + "".join(f"{ord(character):05x}" for character in word[:12])


def _query(tx: Tx, terms: list[str]) -> str:
    """Return the database's query for any of these words."""
    quote, star, joint = ('"', "*", " OR ") if tx.dialect == "sqlite" else ("'", ":*", " | ")
    return joint.join(
        f"{quote}{plain}{quote}{star if _is_prefixed(term) else ''}"
        for term, plain in zip(terms, _plain(terms), strict=True)
    )


def _is_prefixed(term: str) -> bool:
    # In scripts without spaces the index holds pairs; one character finds pairs it begins.
    return len(term) >= _PREFIXED if term.isascii() else len(term) == 1 or len(term) >= _PREFIXED


def _best(found: list[Passage], terms: list[str]) -> list[Passage]:
    # The databases rank differently. How many of the words match says more than how often.
    return sorted(found, key=lambda passage: -_count_contained(passage, terms))


def _count_contained(passage: Passage, terms: list[str]) -> int:
    """Return how many of the words the passage contains."""
    contained = set(words(f"{passage.title} {passage.text}"))
    return sum(
        term in contained
        or (_is_prefixed(term) and any(word.startswith(term) for word in contained))
        for term in terms
    )
