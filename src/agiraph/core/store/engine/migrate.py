"""Migrate: applies numbered SQL files once each, in order; the same files for both databases.

Statements for one database follow a line `-- only sqlite` or `-- only postgres`, up to `-- both`.
A new SQLite file gets `schema.sql`, which is what all of them make: one after the other they change
most tables many times, which takes ten times as long.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Migration(NamedTuple):
    version: int
    name: str
    read: Callable[[], str]
    """Returns its SQL: most files are up to date, so that none is read."""

    def statements(self, words: Mapping[str, str]) -> list[str]:
        """Return the SQL statements for one dialect; `words` gives the value of each `{name}`."""
        # Comments are dropped first, because a brace or a semicolon in one would break
        # the next two steps. A brace that belongs to the SQL is doubled, and no
        # statement may contain a semicolon.
        script = "\n".join(self._lines(words["dialect"])).format_map(words)
        return [statement.strip() for statement in script.split(";") if statement.strip()]

    def _lines(self, dialect: str) -> Iterator[str]:
        only = ""
        for line in self.read().splitlines():
            match line.split():
                case ["--", "only", name]:
                    only = name
                case ["--", "both"]:
                    only = ""
                case [word, *_] if word.startswith("--"):
                    pass
                case _ if only in ("", dialect):
                    yield line
                case _:
                    pass


@cache
def migrations() -> tuple[Migration, ...]:
    folder = files("agiraph.core.store") / "migrations"
    names = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    return tuple(Migration(int(n[:4]), n, (folder / n).read_text) for n in names)


def newest() -> int:
    return migrations()[-1].version


def whole_schema() -> tuple[int, list[str]]:
    """Return the SQL statements that make a SQLite database as all migrations make it, and the
    version of the last of these."""
    first, _, rest = (files("agiraph.core.store") / "schema.sql").read_text().partition("\n")
    made = [statement.strip() for statement in rest.split(";\n") if statement.strip()]
    return int(first.removeprefix("-- ")), made


def upgrade(
    execute: Callable[[str], object],
    *,
    current: int,
    words: Mapping[str, str],
    record: Callable[[int], object] = lambda version: None,
    until: int | None = None,
) -> list[str]:
    """Apply the missing migrations, up to this one or all; return their names.

    The caller holds a lock against others.
    """
    # The caller's transaction contains all of them. Both databases roll back schema changes, so a
    # migration that fails leaves the old schema.
    last = newest() if until is None else until
    missing = [m for m in migrations() if current < m.version <= last]
    if current == 0 and words["dialect"] == "sqlite":
        version, made = whole_schema()
        if version == last:
            for statement in made:
                execute(statement)
            record(last)
            return [m.name for m in missing]
    for migration in missing:
        for statement in migration.statements(words):
            execute(statement)
        record(migration.version)
    return [m.name for m in missing]
