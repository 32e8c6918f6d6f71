"""The documents name only modules, names, settings, commands and words that exist."""

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import cast

import click
import pytest

from agiraph.cli import agiraph
from agiraph.location import known_tables

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/agiraph"
PAGES = sorted(SOURCE.glob("features/*/README.md"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")), *PAGES]
GLOSSARY = ROOT / "docs/glossary.md"
FOLDERS = (ROOT, SOURCE, ROOT / "web/src", ROOT / "docs")
"""The folders that a path in a document may be relative to, besides the document's own."""

CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PATH = re.compile(r"[a-z_][\w-]*(/[\w.-]+)+/?")
DOTTED = re.compile(r"(?:\w+\.)*(\w+)\.(\w+)(?:\(.*\))?")
CLASS = re.compile(r"[A-Z]\w*[a-z]\w*")
VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
TABLE = re.compile(r"\[(\w+)(?:\..+)?\]")
WORD = re.compile(r"[a-z]\w*_\w+")
COMMAND = re.compile(r"(?:^|[\s`])agiraph ((?:[a-z]+ ?)+)(.*)")
OPTION = re.compile(r"--[a-z][a-z-]+")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

OF_A_HOME = re.compile(
    r"^(agents|nodes|memory|published|scratch|spool|restored-settings|build)/"
    r"|^\w+(\.\w+)*\.(toml|db|jsonl|md|json)\b"
)
"""Files of a home or of a build, which are in no checkout."""
NOT_OURS = frozenset(
    {
        *("tmp_path", "SSL_CERT_FILE", "max_connections", "integrity_check", "foreign_key_check"),
        *("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"),
    }
)
"""Names of pytest, OpenSSL, the databases and OpenTelemetry."""
NAME_OF: dict[type[ast.AST], str] = {
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), "name"),
    **dict.fromkeys((ast.arg, ast.keyword), "arg"),
    **{ast.Name: "id", ast.Attribute: "attr"},
}
"""The attribute that contains the identifier, by the type of a node: to match each of a million
nodes against patterns takes three times as long. Of `**keywords` the attribute is None."""


class Names:
    """Every name that the source defines or uses."""

    def __init__(self, sources: Iterable[tuple[Path, str]]) -> None:
        self.members: dict[str, set[str]] = defaultdict(set)
        """The names that each module, package and class defines, by its own name."""
        self.identifiers: set[str] = set()
        self.texts: set[str] = set()
        """Texts without spaces: statuses, variables, JSON fields, paths."""
        for path, text in sources:
            module = path.parent if path.stem == "__init__" else path.with_suffix("")
            self.members[module.parent.name].add(module.name)
            tree = ast.parse(text)
            self._define([module.name], tree)
            self.identifiers.add(module.name)
            for node in ast.walk(tree):
                if (name := getattr(node, NAME_OF.get(type(node), ""), None)) is not None:
                    self.identifiers.add(name)
                elif isinstance(node, ast.Constant):
                    self.texts.update(_text(node.value))

    def _define(self, owners: list[str], tree: ast.AST) -> None:
        """Add the names that a module or class defines. A module has its classes' members, too."""
        for node in ast.iter_child_nodes(tree):
            defined = set(_defined(node))
            for owner in owners:
                self.members[owner] |= defined
            if isinstance(node, ast.ClassDef):
                self._define([*owners, node.name], node)

    @property
    def parts(self) -> set[str]:
        """The parts of all identifiers: `check_lease` has check and lease."""
        return {part.lower() for word in self.identifiers for part in PARTS.findall(word)}


def _defined(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            yield from _set_on_self(node)
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            pass


def _set_on_self(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            yield inner.attr


def _text(value: object) -> Iterator[str]:
    if isinstance(value, str) and re.fullmatch(r"[\w./:-]+", value):
        yield value


@cache
def source() -> Names:
    return Names((path, path.read_text()) for path in sorted(SOURCE.rglob("*.py")))


@cache
def known_words() -> frozenset[str]:
    """Return all identifiers, the words of texts without spaces, and those of the schema."""
    tables = [path.read_text() for path in SOURCE.glob("core/store/migrations/*.sql")]
    words = re.findall(r"\w+", "\n".join([*source().texts, *tables]))
    return frozenset(source().identifiers.union(words))


@cache
def names_of_tests() -> frozenset[str]:
    files = (path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    return frozenset(re.findall(r"^(?:async )?def (test_\w+)", "\n".join(files), re.MULTILINE))


def is_unknown(code: str, beside: Path) -> bool:
    """Return whether a text in backticks names a part of agiraph that does not exist. Its paths may
    be relative to the folder `beside` it."""
    if re.fullmatch(r"test_\w+", code):
        return code not in names_of_tests()
    if code in NOT_OURS or OF_A_HOME.search(code) or code in source().texts:
        return False
    if PATH.fullmatch(code):
        return _is_unknown_path(code, (*FOLDERS, beside))
    if match := TABLE.fullmatch(code):
        return match[1] not in known_tables()
    if VARIABLE.fullmatch(code) or CLASS.fullmatch(code) or WORD.fullmatch(code):
        return code not in known_words()
    members = source().members
    if (match := DOTTED.fullmatch(code)) and match[1] in members:
        return match[2] not in members[match[1]]
    return False


def _is_unknown_path(path: str, folders: Sequence[Path]) -> bool:
    is_ours = Path(path).suffix or any((f / path.partition("/")[0]).is_dir() for f in folders)
    candidates = (folder / f"{path}{suffix}" for folder in folders for suffix in ("", ".py"))
    return bool(is_ours) and not any(found.exists() for found in candidates)


def unknown_names(text: str, beside: Path = ROOT) -> list[str]:
    return [code for code in CODE.findall(text) if is_unknown(code, beside)]


def name_of(path: Path) -> str:
    return path.parent.name if path in PAGES else path.name


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_documents_name_only_code_that_exists(path: Path) -> None:
    assert unknown_names(path.read_text(), path.parent) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`core/services/board/planning.py`, `core/runtime/steps`, `docs/testing.md`", []),
        ("`services/ringing.py`", ["services/ringing.py"]),
        ("`core/runtime/ticker`", ["core/runtime/ticker"]),
        ("`waiting.settle`, `Steps.recover`, `AcmeModel`", ["AcmeModel"]),
        ("`waiting.ring`", ["waiting.ring"]),
        ("`Dispatcher.go`", ["Dispatcher.go"]),
        ("`AGIRAPH_HOME`, `AGIRAPH_HOUSE`", ["AGIRAPH_HOUSE"]),
        ("`[server]`, `[servers.NAME]`, `[houses]`", ["[houses]"]),
        ("`check_lease`, `mend_lease`", ["mend_lease"]),
    ],
)
def test_the_check_of_names_finds_missing_names(text: str, found: list[str]) -> None:
    assert unknown_names(text) == found


def code_map(document: str) -> list[tuple[list[str], list[str]]]:
    """Return the names in the first and in the second column of the code map, row by row."""
    section = document.partition("## Code map")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    return [(CODE.findall(first), CODE.findall(second)) for first, second in rows]


def modules_in(folder: Path) -> set[str]:
    """Return the modules and packages in a folder."""
    paths = [path for path in folder.iterdir() if path.suffix == ".py" or [*path.glob("*.py")]]
    return {path.stem for path in paths} - {"__init__", "__main__"}


def test_the_code_map_names_every_package_and_no_missing_module() -> None:
    rows = code_map((ROOT / "ARCHITECTURE.md").read_text())
    named = [package for packages, _ in rows for package in packages]
    core = {f"core/{name}" for name in modules_in(SOURCE / "core")}
    assert sorted(named) == sorted((modules_in(SOURCE) - {"core"}) | core)
    gone = [
        f"{package}: {name}"
        for packages, names in rows
        for package in packages[:1]
        for name in names
        if name.isidentifier() and name.islower() and name not in _below(packages)
    ]
    assert gone == []


def _below(packages: list[str]) -> set[str]:
    """Return the modules and packages in these packages."""
    folders = [SOURCE / name for name in packages]
    return {name for path in folders if path.is_dir() for name in modules_in(path)}


def test_the_map_names_every_package_of_services() -> None:
    named = set(CODE.findall((ROOT / "ARCHITECTURE.md").read_text()))
    assert modules_in(SOURCE / "core/services") - named == set()


def test_every_feature_is_named_and_has_a_page() -> None:
    features = modules_in(SOURCE / "features")
    named = set(CODE.findall((ROOT / "ARCHITECTURE.md").read_text()))
    assert {f"features/{name}" for name in features} - named == set()
    assert {page.parent.name for page in PAGES} == features


def test_the_map_is_one_page() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 250


def wrong_commands(text: str) -> list[str]:
    """Return the commands and options in a text that `agiraph` does not have."""
    wrong: list[str] = []
    for line in [*CODE.findall(text), *re.findall(r"^\$ (.+)$", text, re.MULTILINE)]:
        for called, rest in COMMAND.findall(line.partition("#")[0]):
            wrong += _wrong_parts(called.split(), rest)
    return wrong


def _wrong_parts(called: list[str], rest: str) -> Iterator[str]:
    command: click.Command = agiraph
    context = click.Context(agiraph)
    for name in called:
        if not isinstance(command, click.Group):
            break
        found = command.get_command(context, name)
        if found is None:
            yield name
            return
        command = found
    options = {option for parameter in command.params for option in parameter.opts}
    yield from (option for option in OPTION.findall(rest) if option not in options | {"--help"})


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_documents_name_only_commands_and_options_that_exist(path: Path) -> None:
    assert wrong_commands(path.read_text()) == []


def test_the_check_of_commands_finds_missing_commands_and_options() -> None:
    text = "`agiraph tokens new NAME --scope read`, `agiraph ring`, `agiraph stop --none`\n"
    assert wrong_commands(text) == ["ring", "--none"]


def test_make_targets_in_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        target
        for path in DOCUMENTS
        for code in CODE.findall(path.read_text())
        for target in re.findall(r"^make ([a-z-]+)", code)
    }
    assert named
    assert named <= targets


def test_links_between_documents_are_not_broken() -> None:
    broken = [
        f"{path.name}: {link}"
        for path in DOCUMENTS
        for link in LINK.findall(path.read_text())
        if "://" not in link and not (path.parent / link).exists()
    ]
    assert broken == []


def unused_words(glossary: str, parts: set[str]) -> list[str]:
    """Return the terms of the glossary with a word that is in no identifier of the source."""
    defined = cast(list[str], re.findall(r"\*\*([^*]+)\*\*", glossary))
    return [
        term
        for term in defined
        if not all({word, f"{word}s", word.removesuffix("s")} & parts for word in term.split())
    ]


def test_every_word_of_the_glossary_is_used_in_the_code() -> None:
    assert unused_words(GLOSSARY.read_text(), source().parts) == []


def test_the_glossary_has_at_most_forty_words() -> None:
    assert len(re.findall(r"\*\*[^*]+\*\*", GLOSSARY.read_text())) <= 40


def test_the_check_of_the_glossary_finds_an_unused_word() -> None:
    glossary = "| **yield point** | … |\n| **aftermath**, **ailment** | … |\n| **fault pint** | … |"
    assert unused_words(glossary, source().parts) == ["ailment", "fault pint"]


def test_the_readme_shows_the_kept_run_of_the_benchmark() -> None:
    run = json.loads((ROOT / "bench/kept_run.json").read_text())
    shown = (ROOT / "README.md").read_text().partition("<!-- bench -->")[2]
    table = shown.partition("<!-- end of bench -->")[0].splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table if line][2:]
    kept = [row for row in run["rows"] if row["goal"]]
    assert len(rows) >= 20
    assert [row[:3] for row in rows] == [[row["what"], row["value"], row["goal"]] for row in kept]
    assert [row[3] for row in rows] == ["" if row["met"] else "missed" for row in kept]
