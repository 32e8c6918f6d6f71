"""Dump validation: checks every line of a dump before it becomes a row."""

import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NewType, Union, cast, get_args, get_origin, get_type_hints

import orjson

from agiraph.core.domain.chat import Role
from agiraph.core.domain.errors import Refused, StoreDamaged
from agiraph.core.domain.events import EventType
from agiraph.core.domain.features import brought
from agiraph.core.domain.ids import ThreadId
from agiraph.core.domain.value import dataclass
from agiraph.core.store import (
    access,
    channels,
    deletions,
    deliveries,
    grants,
    messages,
    nodes,
    spend,
    stages,
    teams,
    threads,
    triggers,
    waits,
)
from agiraph.core.store.engine.sqlite_errors import is_environment_error
from agiraph.core.store.rows import Table, from_json, from_micros
from agiraph.core.store.texts import file_labels, folder_changes, link_fetches, passages
from agiraph.core.store.tx import Tx

# A backup is untrusted: parsing one line must not exhaust the memory.
LONGEST_LINE = 256 << 20
_LARGEST = 2**63 - 1
_TABLES: dict[str, Table[Any]] = {
    table.name: cast(Table[Any], table)
    for table in (
        teams.TEAMS, teams.AGENTS, stages.STAGES, nodes.NODES, threads.THREADS, waits.WAITS,
        messages.MESSAGES, triggers.TRIGGERS, triggers.FIRINGS, spend.SPEND, passages.PASSAGES,
        deliveries.DELIVERIES, access.AUDIT, teams.PERSONS, spend.DAILY_LIMITS,
        grants.GRANTS, file_labels.FILE_LABELS, link_fetches.LINK_FETCHES,
        threads.SUMMARIES,
        folder_changes.FOLDER_CHANGES,
        channels.CHANNELS, channels.RECEIVED,
        *(table for tables in brought("tables") for table in tables),
        deletions.DELETIONS,
    )
}  # fmt: skip
_TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,), "integer": (int,), "bigint": (int,), "double precision": (int, float),
}  # fmt: skip
_WORDS = {str: "text", int: "a whole number", float: "a number"}


@dataclass(frozen=True, slots=True)
class Column:
    types: tuple[type, ...]
    is_nullable: bool

    def complaint(self, value: Any) -> str:
        """Return what is wrong with a value for this column; empty if nothing is."""
        if value is None:
            return "" if self.is_nullable else "it is empty and must not be"
        # `bool` is a subclass of `int`, but both databases store 0 or 1.
        if isinstance(value, bool) or not isinstance(value, self.types):
            return f"it is not {_WORDS[self.types[-1]]}"
        # SQLite stores a NUL, PostgreSQL refuses it. A dump must load into either.
        if isinstance(value, str) and "\0" in value:
            return "it holds a NUL character"
        # Both databases have 64-bit integers; JSON and Python have no limit.
        if isinstance(value, int) and abs(value) > _LARGEST:
            return "it is too large"
        if isinstance(value, float) and not math.isfinite(value):
            return "it is not finite"
        return ""


def columns_of(tx: Tx, table: str) -> dict[str, Column]:
    """Return the columns of a table in the database's order."""
    if tx.dialect == "sqlite":
        found = [
            # SQLite does not report a primary key as `not null`, so the
            # flag for the key counts as well.
            (row[1], row[2], not row[3] and not row[5])
            for row in tx.all(f"pragma table_info({table})")
        ]
    else:
        found = tx.all(
            "select column_name, data_type, is_nullable = 'YES' from information_schema.columns"
            " where table_name = :name and table_schema = current_schema()"
            " order by ordinal_position",
            name=table,
        )
    return {
        str(name): Column(_TYPES[str(kind).lower()], bool(is_nullable))
        for name, kind, is_nullable in found
    }


class DumpReader:
    """Reads, checks and inserts the rows of a dump; knows its line for error messages.

    In an older dump the tables may come in another order, and what the values mean is not checked.
    """

    def __init__(self, tx: Tx, tables: Iterable[str], *, is_older: bool = False) -> None:
        self._tx = tx
        self._expected = list(tables)
        self._is_older = is_older
        self._columns: dict[str, Column] = {}
        self._names: list[str] = []
        self._insert = ""
        self.table: str = ""
        self.line: int = 0
        self.count: int = 0

    def rows(self, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
        """Yield each row once it is checked; raise `Refused` at the first bad one."""
        for line in lines:
            self.line += 1
            if len(line) > LONGEST_LINE:
                raise self.refusal("the line is too long")
            try:
                value: Any = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise self.refusal(f"it is not JSON ({error})") from error
            if isinstance(value, dict):
                self._begin(cast(dict[str, Any], value))
                continue
            yield self._checked(value)
            self.count += 1
        if self._expected:
            raise self.refusal(f"the rows of {self._expected[0]!r} are missing")

    def insert(self, row: dict[str, Any]) -> None:
        self.put(self._insert, row)

    def put(self, sql: str, values: dict[str, Any]) -> None:
        try:
            self._tx.run(sql, **values)
        except (sqlite3.Error, OverflowError) as error:
            # psycopg's errors pass through: the transaction is aborted then, and
            # `refuse_rejected_rows` explains the error to the person.
            if is_environment_error(error):
                raise
            raise self.refusal(f"the database refuses this row ({error})") from error

    def refusal(self, why: str, column: str = "") -> Refused:
        where = f" ({self.table}{f'.{column}' if column else ''})" if self.table else ""
        return Refused(
            f"rows.jsonl, line {self.line}{where}: {why[:300]}. Nothing was changed; use another "
            "backup."
        )

    def _begin(self, header: dict[str, Any]) -> None:
        """Check the header of the next table in a dump, and prepare to insert its rows.

        Raises `Refused` if it is not the next table in the order of `dump.write`, or if its columns
        differ from those of the database.
        """
        table, names = header.get("table"), header.get("columns")
        if set(header) != {"table", "columns"} or not isinstance(table, str):
            raise self.refusal("a table must begin with its name and its columns")
        if table not in (self._expected if self._is_older else self._expected[:1]):
            raise self.refusal(f"the table {table[:60]!r} is not expected here")
        self._expected.remove(table)
        self.table = table
        self._columns = columns_of(self._tx, self.table)
        known = sorted(self._columns)
        if not isinstance(names, list) or sorted(map(str, cast(list[Any], names))) != known:
            raise self.refusal(f"its columns must be {', '.join(known)}")
        self._names = cast(list[str], names)
        marks = ", ".join(f":{name}" for name in self._names)
        self._insert = f"insert into {self.table} ({', '.join(self._names)}) values ({marks})"

    def _checked(self, value: Any) -> dict[str, Any]:
        if not self.table:
            raise self.refusal("a row comes before the name of its table")
        if not isinstance(value, list) or len(cast(list[Any], value)) != len(self._names):
            raise self.refusal(f"a row must be a list of {len(self._names)} values")
        row = dict(zip(self._names, cast(list[Any], value), strict=True))
        for name, held in row.items():
            if complaint := self._columns[name].complaint(held):
                raise self.refusal(complaint, name)
        if self._is_older:
            return row
        for name, choices in _choices(self.table).items():
            if row[name] not in choices:
                raise self.refusal(f"{str(row[name])[:60]!r} is not known", name)
        try:
            _READERS.get(self.table, _read_value)(self.table, row)
        except (StoreDamaged, ValueError, TypeError, OverflowError, RecursionError) as error:
            # RecursionError: JSON in a column may be nested as deeply as its author likes.
            said = str(error).partition("\n")[0]
            raise self.refusal(f"it cannot be read ({said})") from error
        return row


@cache
def _choices(table: str) -> dict[str, frozenset[Any]]:
    """Return the columns with a fixed set of values, and those values."""
    if table == "turns":
        return {"role": frozenset(get_args(Role))}
    if table == "events":
        return {"type": frozenset(get_args(EventType))}
    if table not in _TABLES:
        return {}
    hints = get_type_hints(_TABLES[table].value_type)
    found = {name: _words(hints[name]) for name in _TABLES[table].fields}
    return {name: words for name, words in found.items() if words}


def _words(hint: Any) -> frozenset[Any]:
    if isinstance(hint, NewType):
        return frozenset()
    if get_origin(hint) is Literal:
        return frozenset(get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        words = frozenset(word for part in get_args(hint) for word in _words(part))
        return words | {None} if words and NoneType in get_args(hint) else words
    return frozenset()


def _read_value(table: str, row: dict[str, Any]) -> None:
    if (described := _TABLES.get(table)) is not None:
        described.load([row[name] for name in described.fields])


def _read_turn(table: str, row: dict[str, Any]) -> None:
    threads.read_turn(ThreadId("of the backup"), [row[name] for name in threads.TURN_COLUMNS])


def _read_event(table: str, row: dict[str, Any]) -> None:
    from_micros(row["at"])
    if not isinstance(from_json(row["data"]), dict):
        raise ValueError("its data is not an object")


_READERS: dict[str, Callable[[str, dict[str, Any]], None]] = {
    "turns": _read_turn,
    "events": _read_event,
}
