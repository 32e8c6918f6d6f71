"""SQLite connections: opens a database file; the first connection checks and upgrades it."""

import contextlib
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from agiraph.core.domain.errors import StoreDamaged
from agiraph.core.store.engine import migrate
from agiraph.core.store.engine.sqlite_errors import damaged, explain, is_environment_error

BUSY_SECONDS = 5.0
"""How long a connection waits for another program's lock on the file."""
PAGE_BYTES = 1024
"""A commit writes whole pages and a turn is small: 18 KiB per turn, against 34 with 4096 bytes."""
WORDS = {"dialect": "sqlite", "serial": "integer", "bigint": "integer"}
"""What migrations write for this database."""
CHECKED_BYTES = 256 * 2**20
"""Databases up to this size are checked whole when opened."""


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open a connection. Without `create`, a missing file is an error and is not created."""
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode={'rwc' if create else 'rw'}",
        uri=True,
        timeout=BUSY_SECONDS,
        # None: sqlite3 begins no transaction by itself; the store begins and commits its own.
        isolation_level=None,
        # The event loop and the writer thread use one connection, never at the same time: `_busy`
        # passes it from one to the other.
        check_same_thread=False,
        cached_statements=512,
    )
    # SQLite's own `lower` knows the letters A to Z only. No index may hold it: other programs that
    # open the file have the original one.
    connection.create_function("lower", 1, _lower, deterministic=True)
    return connection


def _lower(value: object) -> str | None:
    return None if value is None else str(value).lower()


def ready(path: Path) -> sqlite3.Connection:
    """Open the writer's connection: create the file if needed, check it and migrate its schema.

    Raise `StoreDamaged`, `StoreFull`, `StoreLocked` or `StoreUnavailable` with the reason.
    """
    with contextlib.ExitStack() as opening:
        try:
            connection = connect(path, create=True)
            # Closed if anything fails: it would hold its locks against the next attempt.
            opening.callback(connection.close)
            _set_up(connection, path)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if not is_environment_error(error):  # what is there is not what its version says
                raise damaged(path, str(error)) from error
            raise explain(error, path) from error
        opening.pop_all()
        return connection


def _set_up(connection: sqlite3.Connection, path: Path) -> None:
    # Only before the first table and before WAL mode; later it changes nothing.
    connection.execute(f"pragma page_size = {PAGE_BYTES}")
    connection.execute("pragma journal_mode = wal")
    # In WAL mode NORMAL does not sync at a commit: a power cut would lose
    # acknowledged transactions.
    connection.execute("pragma synchronous = full")
    # Off by default, and a setting of the connection, not of the file.
    connection.execute("pragma foreign_keys = on")
    connection.execute("pragma cache_size = -16000")
    # 4000 pages of 1 KiB are as much as SQLite's default, 1000 pages of 4 KiB.
    connection.execute("pragma wal_autocheckpoint = 4000")
    _check(connection, path)
    connection.execute("begin immediate")
    # Under the write lock: of two processes that open an old file, the second
    # waits and finds it migrated.
    current = connection.execute("pragma user_version").fetchone()[0]
    if current > migrate.newest():
        raise StoreDamaged(
            f"{path} was written by a newer agiraph (schema {current}, this one "
            f"knows {migrate.newest()}). Upgrade agiraph; nothing was changed."
        )
    migrate.upgrade(
        connection.execute,
        current=current,
        words=WORDS,
        record=lambda version: connection.execute(f"pragma user_version = {version}"),
    )
    connection.execute("commit")
    connection.execute("pragma busy_timeout = 0")  # the loop must not wait for a lock


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size > CHECKED_BYTES:
        return
    [verdict] = connection.execute("pragma quick_check(1)").fetchone()
    if verdict != "ok":
        raise damaged(path, verdict)
