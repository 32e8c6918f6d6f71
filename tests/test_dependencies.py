"""Every package that the source imports is declared in pyproject.toml and locked."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.statements import statements

ROOT = Path(__file__).parents[1]
BESIDE = {"confinement", "kernel", "landlock", "processes", "root_folder", "warden"}
"""Modules of home/ that the supervisor, which runs as a script, imports from its own folder."""


def imported(path: Path) -> Iterator[str]:
    """Return the top-level names of the modules that a file imports, also inside functions."""
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


@pytest.fixture(scope="module")
def declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    optional = [extras[name] for name in ("semantic", "otel", "pdf", "browser")]
    runtime = [*project["dependencies"], *chain.from_iterable(optional)]
    return [Requirement(line) for line in runtime]


@pytest.mark.slow
def test_every_imported_package_is_declared(declared: list[Requirement]) -> None:
    ours = sys.stdlib_module_names | BESIDE | {"agiraph"}
    names = {canonicalize_name(requirement.name) for requirement in declared}
    # The API of opentelemetry is a dependency of its SDK, which is declared.
    names |= {canonicalize_name("opentelemetry-api")} if "opentelemetry-sdk" in names else set()
    owners = packages_distributions()
    missing: dict[str, str] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for module in set(imported(path)) - ours:
            found = {canonicalize_name(owner) for owner in owners.get(module, ())}
            if not found & names:
                missing[module] = str(path.relative_to(ROOT))

    assert missing == {}


def pins(lock: str) -> dict[str, str]:
    """Return the version of each package that a lock file names."""
    found = re.findall(
        r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)", (ROOT / lock).read_text(), re.MULTILINE
    )
    return {canonicalize_name(name): version for name, version in found}


def test_what_agiraph_runs_with_is_installed_without_extras_and_tools_of_the_tests() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = chain.from_iterable(project["optional-dependencies"].values())
    needed = {canonicalize_name(Requirement(line).name) for line in project["dependencies"]}
    added = {canonicalize_name(Requirement(line).name) for line in extras} - needed
    run, tests = pins("requirements.lock"), pins("requirements-tests.lock")

    assert needed - run.keys() == set()
    assert added & run.keys() == set()
    assert run.items() - tests.items() == set()


def test_every_declared_package_is_locked_at_a_version_that_is_allowed(
    declared: list[Requirement],
) -> None:
    locked = pins("requirements-tests.lock")
    wrong = {
        str(requirement): locked.get(canonicalize_name(requirement.name), "not locked")
        for requirement in declared
        if not requirement.specifier.contains(
            locked.get(canonicalize_name(requirement.name), "0"), prereleases=True
        )
    }

    assert wrong == {}
