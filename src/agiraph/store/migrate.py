"""Migrations: numbered SQL files, applied once each, in order, the same for both databases."""

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import NamedTuple


class Migration(NamedTuple):
    version: int
    name: str
    sql: str

    def statements(self, words: Mapping[str, str]) -> list[str]:
        """Its statements, with each `{word}` as this database has it."""
        lines = [line for line in self.sql.splitlines() if not line.lstrip().startswith("--")]
        script = "\n".join(lines).format_map(words)
        return [statement.strip() for statement in script.split(";") if statement.strip()]


def migrations() -> list[Migration]:
    folder = files("agiraph.store") / "migrations"
    names = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    return [Migration(int(n[:4]), n, (folder / n).read_text()) for n in names]


def newest() -> int:
    return migrations()[-1].version


def upgrade(
    execute: Callable[[str], object],
    *,
    current: int,
    words: Mapping[str, str],
    record: Callable[[int], object],
) -> list[str]:
    """Apply what is missing; the names of what was applied."""
    missing = [m for m in migrations() if m.version > current]
    for migration in missing:
        for statement in migration.statements(words):
            execute(statement)
        record(migration.version)
    return [m.name for m in missing]
