"""Search: finds teams, agents, work, files, messages, knowledge and steps by some words."""

import re
from collections.abc import Sequence
from operator import attrgetter

from agiraph.core.domain.ids import NodeId, PersonId, TeamId
from agiraph.core.domain.records.found import Found
from agiraph.core.domain.text import fence
from agiraph.core.home.file_search import FoundFile
from agiraph.core.services.board import labels, texts
from agiraph.core.store.lists import search as rows
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx

MOST_WORDS = 8
_LEAD = 24
"""Characters of a preview before the first found word. The two lines that a phone shows hold it."""
_STRAY_MARK = re.compile(r"(?:<<<|>>>) [0-9a-f]{4,16}(?::|…|$)\s?")
"""A mark of a fence in the middle of a line, or one that was cut off."""


def find(
    tx: Tx, query: str, *, person_id: PersonId, team_id: TeamId | None = None, limit: int = 8
) -> list[Found]:
    """Return what holds all words of a query, at most `limit` of each kind of thing: names first,
    then work, messages, knowledge and steps."""
    words = words_of(query)
    if not words:
        return []
    return [
        *rows.names(tx, words, team=team_id, limit=limit),
        *rows.work(tx, words, team=team_id, limit=limit, name=texts.subject_of),
        *rows.messages(tx, words, person=person_id, team=team_id, limit=limit),
        *rows.attachments(tx, words, person=person_id, team=team_id, limit=limit),
        *rows.passages_with(tx, query, team=team_id, limit=limit),
        *rows.steps(tx, words, team=team_id, limit=limit),
    ]


def words_of(query: str) -> list[str]:
    """Return the words of a query that are searched for, in lower case."""
    return query.lower().split()[:MOST_WORDS]


def with_files(
    tx: Tx, found: Sequence[Found], files: Sequence[FoundFile], *, words: Sequence[str], limit: int
) -> list[Found]:
    """Return what was found, with these files: at most `limit` of all files, first those with all
    words in their name, each part with the newest first. A file that was also found by its name in
    the database is there once, with its text."""
    known = {(file.team_id, file.path) for file in files}
    others = [one for one in found if one.kind != "file"]
    stored = [o for o in found if o.kind == "file" and (o.team_id, o.ref) not in known]
    newest = sorted(
        [*stored, *(_of_file(tx, file) for file in files)], key=attrgetter("at"), reverse=True
    )
    best = sorted(newest, key=lambda one: not rows.is_in(one.title, words))
    return others + best[:limit]


def _of_file(tx: Tx, file: FoundFile) -> Found:
    top, _, rest = file.folder.partition("/")
    node = NODES.find(tx, NodeId(rest.partition("/")[0])) if top == "nodes" else None
    return Found(
        kind="file",
        team_id=file.team_id,
        ref=file.path,
        title=file.name,
        text=file.text or ("" if node is None else texts.subject_of(node)),
        at=file.modified,
        agent_id=None if node is None else node.assignee_id,
        node_id=None if node is None else node.id,
        label=labels.of_path(tx, file.team_id, file.path),
    )


def preview(text: str, query: str, *, characters: int = 200) -> str:
    """Return the part of a text around the first of the query's words, in one line, without the
    marks of fences."""
    # Of a text in one line, all that follows a mark would be taken for the rest of the mark.
    words = fence.without_marks(text).strip() or text
    line = " ".join(_STRAY_MARK.sub("", words).split())
    lowered = line.lower()
    places = [place for word in query.lower().split() if (place := lowered.find(word)) >= 0]
    place = min(places, default=0)
    start = 0 if place <= _LEAD else line.find(" ", place - _LEAD - 1, place) + 1 or place - _LEAD
    part = line[start : start + characters]
    return f"{'…' if start else ''}{part}{'…' if start + characters < len(line) else ''}"
