"""Dump: writes all rows of one snapshot as lines of JSON, and loads them again.

The format is the same for both databases; a dump of one can be loaded into the other.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.features import brought
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.store import channels, deliveries, nodes
from agiraph.core.store.engine import migrate, sqlite_files
from agiraph.core.store.engine.dump_validation import DumpReader, columns_of
from agiraph.core.store.engine.sqlite import SqliteTx
from agiraph.core.store.engine.sqlite_errors import explain, is_environment_error
from agiraph.core.store.teams import PERSONS
from agiraph.core.store.texts import passages
from agiraph.core.store.tx import Tx

TABLES: dict[str, str] = {
    "persons": "id",
    "teams": "number", "agents": "id", "stages": "id", "nodes": "id",
    "dependencies": "node_id, needs_id", "threads": "number", "turns": "place",
    "waits": "kind, subject, thread_id, call_id", "timers": "id", "messages": "id",
    "attached_files": "message_id, place",
    "triggers": "id",
    "spend": "node_id, agent_id, purpose, model, day", "daily_limits": "day",
    "events": "place", "firings": "trigger_id, slot", "errands": "id",
    "passages": "id", "channels": "name", "deliveries": "id",
    "audit": "id", "grants": "id", "file_labels": "id", "link_fetches": "id",
    "conversation_summaries": "id",
    "folder_changes": "id",
    "received": "id",
    **{table.name: table.key for tables in brought("tables") for table in reversed(tables)},
    "deletions": "team_id",
}  # fmt: skip
"""The dumped tables, in an order that satisfies foreign keys, each with the columns of its key,
by which it is read in pages."""
LEFT_OUT = frozenset({"about", "passes", "answered", "passage_words", "schema_version", "workers"})
"""Tables that are not dumped: access tokens, responses that may contain one, running processes,
and what `load` rebuilds."""
PAGE_ROWS = 2000
_ABOVE = ("parent_id", "payer_id")
"""Set after all nodes are inserted: a node may refer to one with a later id, made by a machine
whose clock is ahead."""


def write(tx: Tx, out: BinaryIO) -> int:
    """Write all rows of one snapshot; return how many."""
    if tx.dialect == "postgres":
        # Without it each statement would see a later state, and rows could refer to missing ones.
        tx.run("set transaction isolation level repeatable read")
    count = 0
    for table, key in TABLES.items():
        names = list(columns_of(tx, table))
        out.write(orjson.dumps({"table": table, "columns": names}) + b"\n")
        for row in _rows(tx, table, names, key):
            out.write(orjson.dumps(list(row)) + b"\n")
            count += 1
    return count


def _rows(tx: Tx, table: str, names: list[str], key: str) -> Iterator[Any]:
    """Yield the rows of a table by its key, at most `PAGE_ROWS` in memory at a time."""
    select = f"select {', '.join(names)} from {table}"
    columns = key.split(", ")
    last_key = ", ".join(f":{column}" for column in columns)
    page = tx.all(f"{select} order by {key} limit :page", page=PAGE_ROWS)
    while page:
        yield from page
        last = {column: page[-1][names.index(column)] for column in columns}
        sql = f"{select} where ({key}) > ({last_key}) order by {key} limit :page"
        page = tx.all(sql, **last, page=PAGE_ROWS) if len(page) == PAGE_ROWS else []


def upgrade(
    lines: Iterable[bytes], out: BinaryIO, *, schema: int, expected: int, place: Path
) -> int:
    """Write the dump of an older schema as one of this schema; return the number of its rows.

    The rows go through a new SQLite file at `place`, as the migrations need a database. Only their
    form is checked here; `load` checks what becomes of them. Raise `Refused` as `load` does.
    """
    with closing(sqlite_files.connect(place, create=True)) as connection:
        connection.execute("pragma synchronous = off")  # nobody reads it after a crash
        tx = SqliteTx(connection, SystemClock().now())
        try:
            connection.execute("begin")
            words = sqlite_files.WORDS
            migrate.upgrade(connection.execute, current=0, until=schema, words=words)
            tables = [table for table in TABLES if columns_of(tx, table)]
            if "persons" in tables:
                tx.run("delete from persons")
            reader = DumpReader(tx, tables, is_older=True)
            for row in reader.rows(lines):
                reader.insert(row)
            if reader.count != expected:
                raise reader.refusal(f"there are {reader.count:,} rows, not {expected:,}")
            migrate.upgrade(connection.execute, current=schema, words=words)
            return write(tx, out)
        except sqlite3.Error as error:
            if is_environment_error(error):
                raise explain(error, place) from error
            raise Refused(
                f"The rows of the backup cannot be upgraded ({error}). Nothing was changed; use "
                "another backup."
            ) from error


def is_empty(tx: Tx) -> bool:
    return tx.one("select 1 from teams limit 1") is None


def load(tx: Tx, lines: Iterable[bytes], *, expected: int | None = None) -> int:
    """Load the rows of a dump into an empty database; return how many.

    Raise `Refused` with the line, table and column of the first bad value; nothing is kept then.
    """
    if not is_empty(tx):
        raise Refused("The database holds teams already; a backup goes into an empty one.")
    tx.run("delete from persons")  # the migration's row of the owner: the dump has its own
    reader = DumpReader(tx, TABLES)
    above: list[dict[str, Any]] = []
    for row in reader.rows(lines):
        if reader.table == "nodes" and any(row[name] for name in _ABOVE):
            above.append({"id": row["id"], **{name: row[name] for name in _ABOVE}})
            row |= dict.fromkeys(_ABOVE)
        reader.insert(row)
    for row in above:
        reader.put(
            "update nodes set parent_id = :parent_id, payer_id = :payer_id where id = :id", row
        )
    if expected not in (None, reader.count):
        raise reader.refusal(f"there are {reader.count:,} rows; the manifest says {expected:,}")
    if PERSONS.find(tx, OWNER) is None:
        raise reader.refusal("the owner is not among the persons")
    _reset_derived(tx)
    return reader.count


def _reset_derived(tx: Tx) -> None:
    """Clear owners, who do not run here; rebuild the search index and PostgreSQL's sequences."""
    nodes.forget_owners(tx)
    deliveries.forget_owners(tx)
    channels.forget_pairings(tx)
    tx.run("update errands set taken_at = null")
    # A backup may come from elsewhere: a person gives a restored team its folders again.
    tx.run("update teams set folders = '[]'")
    passages.index_all(tx)
    if tx.dialect == "postgres":
        # The rows brought their numbers along. The sequences know nothing of them and would give
        # the same numbers to the next team and thread.
        for table in ("teams", "threads"):
            tx.one(
                f"select setval(pg_get_serial_sequence('{table}', 'number'),"
                f" (select coalesce(max(number), 1) from {table}))"
            )
