"""Team threads: what a reply to a person reads of the threads of its team's work."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agiraph.core.domain.chat import Turn
from agiraph.core.domain.ids import AgentId, NodeId, TeamId, ThreadId
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.store.rows import from_json, from_micros, to_label, to_micros
from agiraph.core.store.threads import TURN_COLUMNS, read_turn
from agiraph.core.store.tx import Tx

# In the SQL, 4294967296 is 2^32: the places of a thread's turns begin at its number times that.
_COLUMNS = ", ".join(f"u.{column}" for column in TURN_COLUMNS)
_CUT_COLUMNS = _COLUMNS.replace("u.text", "substr(u.text, 1, :characters)")
_OF_THREAD = "u.place > t.number * 4294967296 and u.place < (t.number + 1) * 4294967296"
_LETTERS = "abcdefgh"
"""The names of parameters consist of letters and underscores."""


def tails(tx: Tx, team_id: TeamId, *, turns: int, characters: int) -> dict[ThreadId, list[Turn]]:
    """Return the last turns of each thread whose work runs or waits, with the beginning of their
    texts, oldest first. One statement: a person waits for the reply that needs it."""
    rows = tx.all(
        f"select t.id, {_CUT_COLUMNS} from nodes n join threads t on t.id = n.thread_id"
        f" join turns u on {_OF_THREAD} and u.place > (select max(w.place) from turns w"
        " where w.place > t.number * 4294967296 and w.place < (t.number + 1) * 4294967296) - :turns"
        " where n.team_id = :team and n.lane = 'work' and n.status in ('running', 'waiting')"
        " order by u.place",
        team=team_id,
        turns=turns,
        characters=characters,
    )
    found: dict[ThreadId, list[Turn]] = {}
    for thread_id, *row in rows:
        found.setdefault(thread_id, []).append(read_turn(thread_id, row))
    return found


def labels(tx: Tx, team_id: TeamId, *, ended_since: datetime) -> dict[NodeId, Label]:
    """Return the label of each labelled thread whose node is open or has ended since then."""
    rows = tx.all(
        "select n.id, t.label from nodes n join threads t on t.id = n.thread_id"
        " where n.team_id = :team and n.lane = 'work' and t.label is not null and (n.status in"
        " ('pending', 'assigned', 'running', 'waiting') or n.ended_at >= :since)",
        team=team_id,
        since=to_micros(ended_since),
    )
    return {row[0]: to_label(row[1]) for row in rows}


def said_with(
    tx: Tx, team_id: TeamId, words: Sequence[str], *, limit: int
) -> list[tuple[Turn, Label]]:
    """Return the newest turns of the team's work with one of these words in them, and the label of
    each one's thread. Prompts, which hold insights, are left out."""
    named = {f"word_{letter}": f"%{word}%" for letter, word in zip(_LETTERS, words, strict=False)}
    if not named:
        return []
    # `coalesce`: without it a turn without calls would be null, which is neither true nor false.
    said = " or ".join(f"lower(u.text || coalesce(u.calls, '')) like :{name}" for name in named)
    rows = tx.all(
        f"select t.id, t.label, {_COLUMNS} from threads t join turns u on {_OF_THREAD}"
        " where t.team_id = :team and t.kind = 'work' and u.role in ('assistant', 'tool')"
        f" and ({said}) order by u.at desc, u.place desc limit :limit",
        team=team_id,
        limit=limit,
        **named,
    )
    return [(read_turn(row[0], row[2:]), to_label(row[1])) for row in rows]


def newest_calls(
    tx: Tx, team_id: TeamId, *, limit: int
) -> list[tuple[AgentId, datetime, list[dict[str, Any]]]]:
    """Return the newest turns with tool calls of the team's threads: who made them, when, and the
    calls as they are stored. The newest come first."""
    rows = tx.all(
        f"select t.agent_id, u.at, u.calls from threads t join turns u on {_OF_THREAD}"
        " where t.team_id = :team and u.calls is not null"
        " order by u.at desc, u.place desc limit :limit",
        team=team_id,
        limit=limit,
    )
    return [(row[0], from_micros(row[1]), from_json(row[2])) for row in rows]
