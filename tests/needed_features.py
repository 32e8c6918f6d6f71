"""Needed features: which tests need a feature of the product, so that the others run without it.

A file that imports from `agiraph.features.NAME`, itself or through a module of the tests, needs
NAME. What needs it in another way says so with a mark: `pytest.mark.needs("research")`.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FEATURES = "agiraph.features."


@cache
def imported(path: Path) -> frozenset[str]:
    """Return the features whose modules a file of the tests imports, or a module that it imports.

    Two files may import each other: each has then the features of both, whichever is asked first.
    """
    found, left, seen = set[str](), [path], set[Path]()
    while left:
        if (file := left.pop()) in seen:
            continue
        seen.add(file)
        for name in _imports(file):
            if name.startswith(FEATURES):
                found.add(name.removeprefix(FEATURES).partition(".")[0])
            else:
                left += _file_of(name)
    return frozenset(found)


@cache
def _imports(path: Path) -> tuple[str, ...]:
    return tuple(_named(ast.parse(path.read_text())))


def _named(parsed: ast.Module) -> Iterator[str]:
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file_of(name: str) -> list[Path]:
    """Return the file of the tests' module that this name is, or that has it."""
    parts = name.split(".")
    if parts[0] != "tests":
        return []
    made = (ROOT.joinpath(*parts[:end]).with_suffix(".py") for end in (len(parts), len(parts) - 1))
    return [file for file in made if file.is_file()][:1]


def needs(item: pytest.Item, feature: str) -> bool:
    """Whether a mark says that this test needs a feature."""
    return any(feature in mark.args for mark in item.iter_markers("needs"))
