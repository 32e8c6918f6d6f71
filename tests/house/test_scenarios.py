"""Scenarios speak to `World` and to the wires: none of them imports what reads rows."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FORBIDDEN = ("agiraph.core.store.", "sqlite3.", "psycopg.")
MAY_READ_ROWS = {
    "habits/aftermath.py": "checks the rows themselves for what no run may leave behind",
    "habits/planted.py": "plants bugs in the product's own verbs",
    "habits/planted_in_replies.py": "plants bugs in the product's own verbs",
}


def forbidden_imports(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                found = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), names=names):
                found = [f"{module}.{alias.name}" for alias in names]
            case _:
                continue
        yield from (name for name in found if f"{name}.".startswith(FORBIDDEN))


def test_scenarios_read_no_rows() -> None:
    files = [*TESTS.glob("scenarios/**/*.py"), *TESTS.glob("habits/**/*.py")]
    found = {
        str(path.relative_to(TESTS)) for path in files if any(forbidden_imports(path.read_text()))
    }
    assert found == MAY_READ_ROWS.keys(), "use the readers of `World`, such as `world.messages`"


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("import sqlite3", True),
        ("from agiraph.core import store", True),
        ("def f():\n    from agiraph.core.store.messages import MESSAGES", True),
        ("from agiraph.core.services.mail import bus", False),
        ("from agiraph.core import storehouse", False),
    ],
)
def test_the_check_finds_imports_of_rows(text: str, is_found: bool) -> None:
    assert any(forbidden_imports(text)) == is_found
