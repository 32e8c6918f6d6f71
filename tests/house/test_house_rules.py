"""House rules that a machine can check: short files, short functions, little nesting."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.statements import statements

ROOT = Path(__file__).parents[2]
FILES = sorted([*ROOT.glob("src/agiraph/**/*.py"), *ROOT.glob("bench/**/*.py")])
LONGEST_FILE = 600
LONGEST_FUNCTION = 40
DEEPEST = 3
LOOP = 150
"""Lines of `core/runtime/loop.py`: the algorithm of an agent stays on one screen."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
NO_STATEMENTS = (ast.expr, ast.expr_context)
"""Most of the nodes of a function: to leave them out halves the time."""
OWN_DEPTH = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
NESTS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith)


def body_lines(function: Function) -> int:
    """Return the lines of a function's body, without its signature and its docstring."""
    has_docstring = ast.get_docstring(function, clean=False) is not None and len(function.body) > 1
    first = function.body[1 if has_docstring else 0]
    assert function.end_lineno is not None
    return function.end_lineno - first.lineno + 1


def depth(node: ast.AST, above: int = 0) -> int:
    """Return how deep control statements nest below a node. An `elif` is as deep as its `if`."""
    deepest = above
    for name, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for child in children:
            if not isinstance(child, ast.AST) or isinstance(child, (*NO_STATEMENTS, *OWN_DEPTH)):
                continue
            is_elif = isinstance(node, ast.If) and name == "orelse" and isinstance(child, ast.If)
            nests = isinstance(child, (*NESTS, ast.Match)) and not (is_elif and len(children) == 1)
            deepest = max(deepest, depth(child, above + nests))
    return deepest


def broken_rules(path: Path, text: str) -> Iterator[str]:
    lines = text.count("\n")
    longest = LOOP if path.parts[-2:] == ("runtime", "loop.py") else LONGEST_FILE
    if lines > longest:
        yield f"{path} has {lines} lines, more than {longest}: split it by subject"
    for function in statements(ast.parse(text)):
        if not isinstance(function, Function):
            continue
        where = f"{path}:{function.lineno} {function.name}"
        if (length := body_lines(function)) > LONGEST_FUNCTION:
            yield f"{where} has {length} lines, more than {LONGEST_FUNCTION}: split it"
        if (deep := depth(function)) > DEEPEST:
            yield f"{where} nests {deep} statements, more than {DEEPEST}: return early or split it"


def test_files_and_functions_stay_short_and_flat() -> None:
    found = [rule for path in FILES for rule in broken_rules(path, path.read_text())]
    assert found == []


NESTED = "def f():\n" + "".join(f"{'    ' * n}if x:\n" for n in range(1, 5)) + "    " * 5 + "pass\n"


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("x = 1\n" * 600, 0),
        ("x = 1\n" * 601, 1),
        ("def f():\n" + "    x = 1\n" * 40, 0),
        ("def f():\n" + "    x = 1\n" * 41, 1),
        ('def f():\n    """One.\n\n    Two.\n    """\n' + "    x = 1\n" * 40, 0),
        (NESTED, 1),
        ("def f():\n    if x:\n        pass\n" + "    elif x:\n        pass\n" * 5, 0),
    ],
)
def test_the_check_finds_long_files_long_functions_and_deep_nesting(text: str, broken: int) -> None:
    assert len(list(broken_rules(Path("src/a.py"), text))) == broken
