"""Search: finds teams, agents, work, files, messages, knowledge and steps by some words."""

from agiraph.domain.found import Found
from agiraph.domain.ids import PersonId, TeamId
from agiraph.store import search as rows
from agiraph.store.tx import Tx

MOST_WORDS = 8


def find(
    tx: Tx, query: str, *, person_id: PersonId, team_id: TeamId | None = None, limit: int = 8
) -> list[Found]:
    """Return what holds all words of a query, at most `limit` of each kind of thing: names first,
    then work, messages, knowledge and steps."""
    words = query.lower().split()[:MOST_WORDS]
    if not words:
        return []
    return [
        *rows.names(tx, words, team=team_id, limit=limit),
        *rows.work(tx, words, team=team_id, limit=limit),
        *rows.messages(tx, words, person=person_id, team=team_id, limit=limit),
        *rows.passages_with(tx, query, team=team_id, limit=limit),
        *rows.steps(tx, words, team=team_id, limit=limit),
    ]


def preview(text: str, query: str, *, characters: int = 200) -> str:
    """Return the part of a text around the first of the query's words, in one line."""
    line = " ".join(text.split())
    lowered = line.lower()
    places = [place for word in query.lower().split() if (place := lowered.find(word)) >= 0]
    start = max(min(places, default=0) - characters // 3, 0)
    part = line[start : start + characters]
    return f"{'…' if start else ''}{part}{'…' if start + characters < len(line) else ''}"
