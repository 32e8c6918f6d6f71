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
SQL_WORDS = re.compile(
    r"select|insert into|update|delete from|order by|is null|is not null|\w = :|begin immediate"
    r"|pragma|\btx\.(run|one|all)\b"
)
"""Without any of these words a file need not be parsed."""
STATEMENTS = ("run", "one", "all")
"""The methods of a transaction that take a statement."""


def outside_store() -> Iterator[Path]:
    for path in sorted(SOURCE.rglob("*.py")):
        if not path.is_relative_to(SOURCE / "core" / "store") and not is_rows(path):
            yield path


def is_rows(path: Path) -> bool:
    """Whether a file is the `rows` of a feature: its SQL."""
    parts = path.relative_to(SOURCE / "features").parts if "features" in path.parts else ()
    return len(parts) > 1 and parts[1].removesuffix(".py") == "rows"


def sql_in(tree: ast.AST) -> Iterator[int]:
    """The lines on which a statement or part of one is written or run; docstrings do not count."""
    docstrings = set[int]()
    for node in ast.walk(tree):
        match node:
            case ast.Expr():  # comes before what is in it
                docstrings.add(id(node.value))
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
        if SQL_WORDS.search(text := path.read_text())
        for line in sql_in(ast.parse(text))
    ]
    assert found == [], "Move the statement into a named function of agiraph.core.store."


STARTING = {"subprocess", "multiprocessing", "pty"}
"""Modules that start processes, and the functions of `os` and `asyncio` that do."""
STARTING_WORDS = re.compile(r"subprocess|multiprocessing|pty|fork|system|popen|exec[lv]|spawn")
"""Without any of these words a file need not be parsed."""
STARTING_CALLS = re.compile(
    r"^(fork|forkpty|system|popen|exec[lv]p?e?|posix_spawnp?|spawn[lv]p?e?"
    r"|create_subprocess_(exec|shell)|subprocess_(exec|shell))$"
)
MAY_START = {
    "sandbox/inside/kernel.py": "makes a user namespace in a helper process",
    "sandbox/inside/supervisor_process.py": "starts the supervisor of every command",
    "sandbox/inside/warden.py": "is the supervisor's own part",
    "secret_variables.py": "executes agiraph anew, without the keys in its environment",
    "sandbox/gate/indexes.py": "asks the person's own pip and npm for their settings",
}


def starts_of_processes(tree: ast.AST) -> Iterator[int]:
    """The lines on which a process is started, or a module that can do so is imported."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if {n.name.split(".")[0] for n in names} & STARTING:
                yield node.lineno
            case ast.ImportFrom(module=str(name)) if name.split(".")[0] in STARTING:
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr=name)) if STARTING_CALLS.match(name):
                yield node.lineno
            case _:
                pass


def test_every_process_is_started_behind_one_door() -> None:
    """What an agent, a page or a plugin has started goes through `sandbox/commands.py`, where it is
    confined, limited, and ended with the runtime. The test kit may do what it likes."""
    found = {
        str(path.relative_to(SOURCE))
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] != "testing"
        and STARTING_WORDS.search(text := path.read_text())
        and list(starts_of_processes(ast.parse(text)))
    }
    assert found == MAY_START.keys(), "Use agiraph.sandbox.commands or agiraph.sandbox.dialogue."
