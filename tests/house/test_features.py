"""Features: what is left of agiraph without one of them still imports and has no fault of types.

In `make test` one feature is taken away, chosen by the seed. `--long` takes away each, and runs
quick tests on what is left.
"""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from agiraph.api.feature_views import research as views
from agiraph.core.domain.features import installed
from agiraph.features import NAMES
from agiraph.features.research.model import jobs

ROOT = Path(__file__).parents[2]
IMPORT_ALL = """
import importlib, pkgutil, agiraph
for found in pkgutil.walk_packages(agiraph.__path__, "agiraph."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
from agiraph.api import schema
from agiraph.cli import agiraph as commands
import click
assert schema.document()["paths"]
context = click.Context(commands)
for name in commands.list_commands(context):
    assert commands.get_command(context, name) is not None, name
print("imported")
"""


QUICK_TESTS = (
    "domain", "store", "testing", "services/test_messages.py", "services/test_waits_and_ends.py",
    "test_config.py", "test_logs.py", "test_public_api.py",
)  # fmt: skip
"""The tests that agiraph must pass without a feature, but for those that need it
(`tests/needed_features.py`). All of `make quick` would take an hour for all features."""


def without(feature: str, folder: Path) -> dict[str, str]:
    """Copy the product, its tests and its settings without the feature's folder and its name in the
    list; return the environment of programs that are to use the copy."""
    ignored = shutil.ignore_patterns("__pycache__", "web_dist", "node_modules")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    source = folder / "src" / "agiraph"
    (source / "web_dist").mkdir()
    shutil.rmtree(source / "features" / feature)
    names = source / "features" / "__init__.py"
    text = names.read_text()
    assert f'    "{feature}",\n' in text
    names.write_text(text.replace(f'    "{feature}",\n', ""))
    settings = (ROOT / "pyproject.toml").read_text()
    only = settings.replace('["src", "tests", "bench"]', '["src"]')
    (folder / "pyproject.toml").write_text(only.replace('["src", "."]', '["src"]'))
    return {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


def run(folder: Path, environment: dict[str, str], *command: str) -> str:
    """Run a Python program in the copy and return what it printed; raise `AssertionError` if it
    failed."""
    line = [sys.executable, *command]
    told = subprocess.run(
        line, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, f"{told.stdout[-3000:]}{told.stderr[-3000:]}"
    return told.stdout


def check(feature: str, folder: Path) -> dict[str, str]:
    """Raise `AssertionError` unless all of agiraph without this feature is imported and has no
    fault of types."""
    environment = without(feature, folder)
    assert run(folder, environment, "-c", IMPORT_ALL).endswith("imported\n")
    checker = ("pyrefly", "check", "--summary=none", "--python-interpreter-path", sys.executable)
    run(folder, environment, "-m", *checker)
    return environment


def check_tests(feature: str, folder: Path, environment: dict[str, str]) -> None:
    """Raise `AssertionError` unless the quick tests pass that do not need the feature."""
    tests = (f"tests/{name}" for name in QUICK_TESTS)
    options = ("-q", "-p", "no:schemathesis", "-p", "no:cacheprovider", "--quick")
    run(folder, environment, "-m", "pytest", *options, f"--without={feature}", *tests)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_agiraph_is_whole_without_a_feature(seed: int, tmp_path: Path) -> None:
    check(random.Random(seed).choice(sorted(NAMES)), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("feature", sorted(NAMES))
def test_agiraph_is_whole_without_each_feature(feature: str, tmp_path: Path) -> None:
    check_tests(feature, tmp_path, check(feature, tmp_path))


def test_a_feature_that_others_need_is_found(tmp_path: Path) -> None:
    """The check can fail."""
    environment = without("history", tmp_path)
    with (tmp_path / "src" / "agiraph" / "app.py").open("a") as app:
        app.write("from agiraph.features.history import spans\n")
    with pytest.raises(AssertionError, match=r"agiraph\.features\.history"):
        run(tmp_path, environment, "-c", IMPORT_ALL)


def test_each_feature_says_its_own_name() -> None:
    assert tuple(feature.name for feature in installed()) == NAMES


def test_the_views_of_research_name_what_research_knows() -> None:
    """The views must do without the feature, so both write these words down."""
    assert [get_args(each) for each in (views.Depth, views.Kind, views.Phase)] == [
        get_args(each) for each in (jobs.Depth, jobs.Kind, jobs.Phase)
    ]
    assert [get_args(each) for each in (views.SourceClass, views.Stance, views.Checked)] == [
        get_args(each) for each in (jobs.SourceClass, jobs.Stance, jobs.Checked)
    ]
