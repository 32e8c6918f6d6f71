"""Deletions: the rows of teams that were deleted for good, and the removal of all their rows."""

from agiraph.core.domain.features import brought
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.records.deletions import Deletion
from agiraph.core.store.rows import Table, from_json
from agiraph.core.store.tx import Tx

DELETIONS = Table("deletions", Deletion, key="team_id")
BATCH_ROWS = 5000
"""Turns, events and passages that one transaction removes: other writers wait for it."""
CALLS_ROWS = 500
"""Turns whose calls are read at once: a call may hold the text of a whole file."""

# 1099511627776 is 2^40 and 4294967296 is 2^32: see `store.events` and `store.threads`.
_LARGE = (
    "delete from turns where place in (select u.place from threads t join turns u"
    " on u.place > t.number * 4294967296 and u.place < (t.number + 1) * 4294967296"
    " where t.team_id = :team limit :batch)",
    "delete from events where place in (select e.place from teams t join events e"
    " on e.place > t.number * 1099511627776 and e.place < (t.number + 1) * 1099511627776"
    " where t.id = :team limit :batch)",
)
_PASSAGES = "(select id from passages where team_id = :team order by id limit :batch)"
_NODES = "(select id from nodes where team_id = :team)"
_TRIGGERS = "(select id from triggers where team_id = :team)"
_MESSAGES = "(select id from messages where team_id = :team)"
_SUBJECTS = ("nodes", "stages", "triggers", "messages")
"""The tables whose rows timers are about."""
_STATEMENTS = (
    # All teams share the timer of a day.
    "delete from timers where kind = 'wait' and id in (select subject from waits"
    f" where kind = 'time' and node_id in {_NODES})",
    f"update daily_limits set question_id = null where question_id in {_MESSAGES}",
    "update channels set agent_id = null"
    " where agent_id in (select id from agents where team_id = :team)",
    f"delete from errands where trigger_id in {_TRIGGERS}",
    f"delete from firings where trigger_id in {_TRIGGERS}",
    f"delete from received where message_id in {_MESSAGES}",
    f"delete from waits where node_id in {_NODES}",
    f"delete from dependencies where node_id in {_NODES} or needs_id in {_NODES}",
)
_TABLES = (
    *(table.name for tables in brought("tables") for table in tables),
    "deliveries", "triggers", "attached_files", "messages", "conversation_summaries",
    "folder_changes", "link_fetches", "file_labels", "grants", "spend", "threads", "nodes",
    "stages", "agents",
)  # fmt: skip
"""The tables with a column `team_id`, those that refer to others first."""


def every(tx: Tx) -> list[Deletion]:
    """Return the teams that are still being removed, oldest first."""
    return DELETIONS.select(tx, "true order by created_at, team_id")


def is_at_work(tx: Tx, team_id: TeamId) -> bool:
    """Whether a live process still runs a node of the team."""
    sql = "select 1 from nodes where team_id = :team and status = 'running' and owner is not null"
    return tx.one(f"{sql} limit 1", team=team_id) is not None


def threads(tx: Tx, team_id: TeamId) -> list[tuple[str, int]]:
    """Return the id and the number of each thread of the team."""
    sql = "select id, number from threads where team_id = :team order by number"
    return [(row[0], row[1]) for row in tx.all(sql, team=team_id)]


def calls(tx: Tx, number: int, *, after: int = 0) -> list[tuple[int, list[str]]]:
    """Return the next turns of a thread that made tool calls: the place of each turn, and the ids
    of its calls."""
    found = tx.all(
        "select place, calls from turns where place > :after and place < :end"
        " and calls is not null order by place limit :batch",
        after=max(after, number * 4294967296),
        end=(number + 1) * 4294967296,
        batch=CALLS_ROWS,
    )
    return [(row[0], [str(call["id"]) for call in from_json(row[1])]) for row in found]


def drop_batch(tx: Tx, team_id: TeamId) -> bool:
    """Delete some rows of the large tables; return False if there were none left."""
    for sql in _LARGE:
        if tx.run(sql, team=team_id, batch=BATCH_ROWS):
            return True
    of = {"team": team_id, "batch": BATCH_ROWS}
    if tx.dialect == "sqlite":  # PostgreSQL removes the words with their passage
        tx.run(f"delete from passage_words where rowid in {_PASSAGES}", **of)
    return tx.run(f"delete from passages where id in {_PASSAGES}", **of) > 0


def drop_team(tx: Tx, team_id: TeamId) -> None:
    """Delete the team and all its rows that `drop_batch` leaves."""
    tx.run("delete from timers where subject = :team", team=team_id)
    for table in _SUBJECTS:
        ids = f"(select id from {table} where team_id = :team)"
        tx.run(f"delete from timers where subject in {ids}", team=team_id)
    for sql in _STATEMENTS:
        tx.run(sql, team=team_id)
    # Responses to requests with an Idempotency-Key hold what the team was told.
    tx.run("delete from answered where body like :held", held=f"%{team_id}%")
    for table in _TABLES:
        tx.run(f"delete from {table} where team_id = :team", team=team_id)
    tx.run("delete from teams where id = :team", team=team_id)


def drop(tx: Tx, team_id: TeamId) -> None:
    """Delete the record of a deletion: nothing of the team is left."""
    tx.run("delete from deletions where team_id = :team", team=team_id)
