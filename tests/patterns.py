"""Patterns: finds every regular expression of the package, and strings on which it may be slow."""

import ast
import importlib
import re
import re._constants as sre  # pyright: ignore[reportMissingImports]
import re._parser as parser  # pyright: ignore[reportMissingImports]
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import agiraph
from agiraph.late_patterns import LatePattern

PACKAGE = Path(agiraph.__file__).parent
FUNCTIONS = frozenset(
    ("compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
)
ANCHORED = frozenset(("match", "fullmatch"))
PLAIN = ("a", " ", "\n", "\t", "1", "#", "-", "(", "[", "<", "_", "*", ".", "/", "0a")
"""Units that are pumped for every pattern, whatever it holds."""
FEW = 6
"""Characters that are taken of each class."""


@dataclass(frozen=True)
class Found:
    """A pattern with the place where it stands."""

    place: str
    """The module and the name, or the line of code without its indentation."""
    pattern: re.Pattern[Any]
    methods: frozenset[str]
    """The methods by which the package uses it."""

    def run(self, text: str) -> None:
        """Use the pattern in the slowest way in which the package uses it."""
        given: Any = text if isinstance(self.pattern.pattern, str) else text.encode()
        if "match" in self.methods:
            self.pattern.match(given)
        if "fullmatch" in self.methods:
            self.pattern.fullmatch(given)
        if not self.methods or self.methods - ANCHORED:
            for _ in self.pattern.finditer(given):
                pass


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def _uses() -> dict[str, set[str]]:
    """Return, for each name, the methods of patterns that any module calls on it."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Attribute) and node.attr in FUNCTIONS:
                owner = node.value
                name = owner.id if isinstance(owner, ast.Name) else ""
                name = owner.attr if isinstance(owner, ast.Attribute) else name
                own = f"{path.relative_to(PACKAGE)}:{name}" if name.startswith("_") else name
                found.setdefault(own, set()).add(node.attr)
    return found


def in_package() -> tuple[list[Found], list[str]]:
    """Return all patterns, and the places of those that are put together when the code runs."""
    found: list[Found] = []
    made: list[str] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        if "import re\n" not in text and "late_patterns import" not in text:
            continue
        name = str(path.relative_to(PACKAGE))
        module = importlib.import_module(f"agiraph.{name[:-3].replace('/', '.')}")
        held = dict(_held(module))
        found += [
            Found(f"{name}:{key}", pattern, _methods(name, key)) for key, pattern in held.items()
        ]
        lines = text.splitlines()
        for call, method in _calls(_tree(path)):
            line = f"{name}: {lines[call.lineno - 1].strip()}"
            pattern = _constant(call)
            if pattern is None:
                made.append(line)
            elif method != "compile":
                found.append(Found(line, re.compile(pattern), frozenset([method])))
    return found, made


def _methods(module: str, key: str) -> frozenset[str]:
    name = key.partition("[")[0]
    uses = _uses().get(f"{module}:{name}" if name.startswith("_") else name, set())
    return frozenset(uses)


def _held(module: Any) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Yield the patterns in a module's constants."""
    for name, value in vars(module).items():
        yield from _within(name, value)


def _within(name: str, value: object) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield name, value
    elif isinstance(value, LatePattern):
        yield name, value.compiled()
    elif isinstance(value, tuple | list):
        for number, each in enumerate(value):
            yield from _within(f"{name}[{number}]", each)
    elif isinstance(value, dict) and not name.startswith("__"):
        for key, each in value.items():
            yield from _within(f"{name}[{key!r}]", each)


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls of `re` inside functions, and those of `re` whose result is used at once."""
    for top in tree.body:
        is_constant = isinstance(top, ast.Assign | ast.AnnAssign)
        for node in ast.walk(top):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=method)):
                    if method in FUNCTIONS and not is_constant:
                        yield node, method
                case _:
                    pass


def _constant(call: ast.Call) -> str | bytes | None:
    first = call.args[0] if call.args else None
    value = first.value if isinstance(first, ast.Constant) else None
    return value if isinstance(value, str | bytes) else None


def pumped(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield beginnings, units and ends: a slow pattern is slow on `beginning + n * unit + end`."""
    text = pattern.pattern
    parsed = parser.parse(text, pattern.flags & ~re.DEBUG)
    repeats = list(_repeats(parsed, ""))
    # A beginning that is repeated itself: each of them is looked at anew.
    units = {unit for start, body in repeats for unit in (start, *body) if unit}
    starts = {start for start, _ in repeats} | {""}
    for start in sorted(starts, key=len)[:8]:
        for unit in sorted(units | set(PLAIN))[:60]:
            for end in ("\x00", ""):
                yield start, unit, end


def _repeats(parsed: Any, before: str) -> Iterator[tuple[str, list[str]]]:
    """Yield, for each repeat without a small limit, a text that leads to it, and texts of one
    round."""
    for kind, given in parsed:
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            low, high, body = given
            if high > 8:
                samples = [s for s in _samples(body) if s]
                yield before, samples
                yield before, [f"{a}{b}" for a in samples[:3] for b in samples[:3] if a != b]
            yield from _repeats(body, before)
            before += (_sample(body) * max(low, 1))[:200]
        elif kind is sre.SUBPATTERN:
            yield from _repeats(given[3], before)
            before += _sample(given[3])
        elif kind is sre.BRANCH:
            for branch in given[1]:
                yield from _repeats(branch, before)
            before += _sample(given[1][0])
        elif kind is sre.ATOMIC_GROUP:
            yield from _repeats(given, before)
            before += _sample(given)
        elif kind in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _repeats(given[1], before)
        else:
            before += _sample([(kind, given)])


def _sample(parsed: Any) -> str:
    return next(iter(_samples(parsed)), "")


def _samples(parsed: Any) -> list[str]:
    """Return some texts that the pattern matches, shortest choices first."""
    texts = [""]
    for kind, given in parsed:
        choices = _choices(kind, given)
        texts = [f"{text}{choice}" for choice in choices[:FEW] for text in texts[:FEW]]
    return texts


def _choices(kind: Any, given: Any) -> list[str]:
    if kind is sre.LITERAL:
        return [chr(given)]
    if kind in (sre.NOT_LITERAL, sre.ANY):
        return [c for c in "a 1" if kind is sre.ANY or ord(c) != given]
    if kind is sre.IN:
        return _members(given)
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return [s * max(given[0], 1) for s in _samples(given[2])]
    if kind is sre.SUBPATTERN:
        return _samples(given[3])
    if kind is sre.ATOMIC_GROUP:
        return _samples(given)
    if kind is sre.BRANCH:
        return [s for branch in given[1] for s in _samples(branch)[:2]]
    return [""]


def _members(given: Iterable[Any]) -> list[str]:
    """Return characters of a class, of each kind of its members some."""
    classes = {
        sre.CATEGORY_DIGIT: "1", sre.CATEGORY_NOT_DIGIT: "a ", sre.CATEGORY_SPACE: " \n\t",
        sre.CATEGORY_NOT_SPACE: "a1#-", sre.CATEGORY_WORD: "a1_", sre.CATEGORY_NOT_WORD: " -#",
    }  # fmt: skip
    found: list[str] = []
    if next(iter(given))[0] is sre.NEGATE:
        return ["a", " ", "1", "-", "\n", "#"]
    for kind, value in given:
        if kind is sre.LITERAL:
            found.append(chr(value))
        elif kind is sre.RANGE:
            found.append(chr(value[0]))
        elif kind is sre.CATEGORY:
            found += classes[value]
    return list(dict.fromkeys(found)) or [""]
