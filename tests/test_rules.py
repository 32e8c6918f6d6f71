"""Rules about the source that neither the linter nor the type checker can express."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import agiraph

SOURCE = Path(agiraph.__file__).parent
SQL = re.compile(
    r"\bselect\b.+\bfrom\b|\binsert into\b|\bupdate \w+ set\b|\bdelete from\b|\border by \w"
    r"|\b(and|or|where) \w+ (is|is not) null\b|\w = :\w|\bbegin immediate\b|\bpragma \w+",
    re.DOTALL,
)
"""Text that looks like a statement, or like the condition of one."""
STATEMENTS = ("run", "one", "all")
"""The methods of a transaction that take a statement."""


def outside_store() -> Iterator[Path]:
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] != "store":
            yield path


def sql_in(tree: ast.AST) -> Iterator[int]:
    """The lines on which a statement or part of one is written or run; docstrings do not count."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings and SQL.search(text):
                yield node.lineno
            case ast.Call(func=ast.Attribute(value=ast.Name(id="tx"), attr=method)) if (
                method in STATEMENTS
            ):
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr="select"), args=[ast.Name(id="tx"), *_]):
                yield node.lineno
            case _:
                pass


def test_the_search_finds_sql_and_leaves_other_text_alone() -> None:
    found = (
        "AGENTS.select(tx, where, team=team)",
        "tx.run(statement, id=1)",
        'where = "team_id = :team and retired_at is not null"',
        'x = "select id from nodes"',
        'f"update nodes set owner = null where id = {id}"',
    )
    left_alone = ('"""select one from many"""', 'x = "Choose an item from the list."', "a.all(b)")
    assert [list(sql_in(ast.parse(line))) != [] for line in found] == [True] * len(found)
    assert [list(sql_in(ast.parse(line))) for line in left_alone] == [[]] * len(left_alone)


def test_only_the_store_contains_sql() -> None:
    """Another package that builds conditions would have to change with every column and index."""
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in outside_store()
        for line in sql_in(ast.parse(path.read_text()))
    ]
    assert found == [], "Move the statement into a named function of agiraph.store."
