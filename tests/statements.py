"""Statements: walks over the statements of a parsed file, which are a tenth of its nodes."""

import ast
from collections.abc import Iterator

INNER = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of a statement that hold statements."""


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the node and all statements below it. Functions and imports are statements."""
    left = [tree]
    while left:
        yield (node := left.pop())
        for name in INNER:
            left += getattr(node, name, ())
