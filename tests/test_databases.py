"""The list of tests that run on SQLite only names modules and tests that exist."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.databases import SQLITE_SUFFICES

HERE = Path(__file__).parent


def functions_in(module: str) -> set[str]:
    tree = ast.parse((HERE / module).read_text())
    functions = (n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return {function.name for function in functions}


@pytest.mark.slow
def test_every_listed_module_and_test_exists() -> None:
    missing = {
        module: {name.partition("[")[0] for name in kept} - functions_in(module)
        for module, kept in SQLITE_SUFFICES.items()
    }
    assert {module: names for module, names in missing.items() if names} == {}


@pytest.mark.slow
def test_every_listed_case_exists() -> None:
    cases = {
        f"tests/{module}::{name}"
        for module, kept in SQLITE_SUFFICES.items()
        for name in kept
        if "[" in name
    }
    modules = sorted({case.partition("::")[0] for case in cases})
    listed = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-p",
            "no:cacheprovider",
            *modules,
        ],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    known = {
        line.replace("[postgres-", "[") for line in listed.splitlines() if "[postgres-" in line
    }
    assert cases - known == set()
