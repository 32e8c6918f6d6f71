"""The list of tests that run on SQLite only names modules and tests that exist."""

import ast
from pathlib import Path

from tests.databases import SQLITE_SUFFICES

HERE = Path(__file__).parent


def functions_in(module: str) -> set[str]:
    tree = ast.parse((HERE / module).read_text())
    functions = (n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return {function.name for function in functions}


def test_every_listed_module_and_test_exists() -> None:
    missing = {
        module: {name.partition("[")[0] for name in kept} - functions_in(module)
        for module, kept in SQLITE_SUFFICES.items()
    }
    assert {module: names for module, names in missing.items() if names} == {}
