"""Dump: every row as a line of JSON, as they all were at one moment, and back again.

The same lines come out of both databases and go into either.
"""

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import orjson

from agiraph.domain.errors import Refused
from agiraph.store import deliveries, nodes, passages
from agiraph.store.dump_validation import DumpReader, columns_of
from agiraph.store.tx import Tx

TABLES: dict[str, str] = {
    "teams": "number", "agents": "id", "stages": "id", "nodes": "id", "dependencies": "",
    "threads": "number", "turns": "place", "waits": "", "timers": "id", "messages": "id",
    "memories": "id", "insights": "id", "triggers": "id", "spend": "", "events": "place",
    "firings": "", "errands": "id", "drafts": "id", "knowledge_changes": "id", "passages": "id",
    "channels": "name", "deliveries": "id", "audit": "id",
}  # fmt: skip
"""What is kept, in an order in which rows find those they refer to; and what they are paged by."""
LEFT_OUT = frozenset({"about", "passes", "answered", "passage_words", "schema_version", "workers"})
"""Who may come in, answers that may hold a token, the processes that run now, and what is made
anew from the rest."""
PAGE = 2000
_ABOVE = ("parent_id", "payer_id")
"""A node may refer to one with a later id, made by a machine whose clock is ahead."""


def write(tx: Tx, out: BinaryIO) -> int:
    """All rows as they are at this moment; how many there are."""
    if tx.dialect == "postgres":
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
    select = f"select {', '.join(names)} from {table}"
    if not key:
        yield from tx.all(select)
        return
    page = tx.all(f"{select} order by {key} limit :page", page=PAGE)
    while page:
        yield from page
        last = page[-1][names.index(key)]
        sql = f"{select} where {key} > :last order by {key} limit :page"
        page = tx.all(sql, last=last, page=PAGE) if len(page) == PAGE else []


def is_empty(tx: Tx) -> bool:
    return tx.one("select 1 from teams limit 1") is None


def load(tx: Tx, lines: Iterable[bytes], *, expected: int | None = None) -> int:
    """Put the rows of a dump into an empty database; how many there were.

    `Refused` names the line, table and column that cannot be taken; nothing is kept then.
    """
    if not is_empty(tx):
        raise Refused("The database holds teams already; a backup goes into an empty one.")
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
    _begin_anew(tx)
    return reader.count


def _begin_anew(tx: Tx) -> None:
    """Whoever ran or sent something there does not do so here; and words are to be found again."""
    nodes.forget_owners(tx)
    deliveries.forget_owners(tx)
    tx.run("update errands set taken_at = null")
    passages.index_all(tx)
    if tx.dialect == "postgres":
        for table in ("teams", "threads"):
            tx.one(
                f"select setval(pg_get_serial_sequence('{table}', 'number'),"
                f" (select coalesce(max(number), 1) from {table}))"
            )
