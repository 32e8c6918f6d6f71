"""The schema of a new SQLite file is what the migrations make; run as a program, this writes it.

.venv/bin/python -m tests.store.test_schema
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import agiraph.core.store
from agiraph.core.store.engine import migrate, sqlite_files

SCHEMA = Path(agiraph.core.store.__file__).parent / "schema.sql"
OWNER = """INSERT INTO persons (id, name, role, created_at)
    VALUES ('human', 'human', 'owner', cast(strftime('%s', 'now') as integer) * 1000000)"""
"""The only row that the migrations write into a new database."""


def migrated() -> sqlite3.Connection:
    """Return a database in memory that got all migrations, one after the other."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    for migration in migrate.migrations():
        for statement in migration.statements(sqlite_files.WORDS):
            database.execute(statement)
    return database


def created() -> sqlite3.Connection:
    """Return a database in memory that got the schema as a whole."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    migrate.upgrade(database.execute, current=0, words=sqlite_files.WORDS)
    return database


def schema_of(database: sqlite3.Connection) -> str:
    """Return the statements that make the database's tables and indexes, and the first row."""
    # SQLite makes the tables behind a virtual table by itself.
    shadows = "select name from pragma_table_list where type = 'shadow'"
    made = database.execute(
        f"select sql from sqlite_schema where sql is not null and tbl_name not in ({shadows})"
        " order by rowid"
    )
    whole = "".join(f"{statement};\n\n" for (statement,) in made)
    return f"-- {migrate.newest()}\n{whole}{OWNER};\n"


def content_of(database: sqlite3.Connection) -> dict[str, Any]:
    """Return all that the database holds, but for when its first person was added."""
    made = database.execute("select type, name, tbl_name, sql from sqlite_schema").fetchall()
    tables = [name for kind, name, _, _ in made if kind == "table"]
    held: dict[str, Any] = {
        name: database.execute(f"select * from {name}").fetchall() for name in tables
    }
    columns = [row[1] for row in database.execute("pragma table_info(persons)")]
    held["persons"] = [
        {
            column: field
            for column, field in zip(columns, row, strict=True)
            if column != "created_at"
        }
        for row in held["persons"]
    ]
    return {"schema": sorted(made, key=str), **held}


def test_a_new_file_is_what_the_migrations_make() -> None:
    """After a new migration, run this module as a program: it writes the schema anew."""
    with closing(migrated()) as database:
        assert SCHEMA.read_text() == schema_of(database)
        with closing(created()) as other:
            assert content_of(other) == content_of(database)


if __name__ == "__main__":
    with closing(migrated()) as whole:
        SCHEMA.write_text(schema_of(whole))
