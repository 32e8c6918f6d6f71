"""Features: what is left of agiraph without one of them still imports and has no fault of types.

In `make test` one feature is taken away, chosen by the seed; `--long` takes away each.
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
from agiraph.features.research.model import evidence, jobs

ROOT = Path(__file__).parents[2]
IMPORT_ALL = """
import importlib, pkgutil, agiraph
for found in pkgutil.walk_packages(agiraph.__path__, "agiraph."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
from agiraph.api.app import routes
from agiraph.cli import agiraph as commands
import click
assert routes().openapi()["paths"]
context = click.Context(commands)
for name in commands.list_commands(context):
    assert commands.get_command(context, name) is not None, name
print("imported")
"""


def without(feature: str, folder: Path) -> Path:
    """Return a copy of the product without the feature's folder and its name in the list."""
    source = folder / "src"
    ignored = shutil.ignore_patterns("__pycache__", "web_dist")
    shutil.copytree(ROOT / "src", source, ignore=ignored)
    shutil.rmtree(source / "agiraph" / "features" / feature)
    names = source / "agiraph" / "features" / "__init__.py"
    text = names.read_text()
    assert f'    "{feature}",\n' in text
    names.write_text(text.replace(f'    "{feature}",\n', ""))
    (source / "agiraph" / "web_dist").mkdir()
    return source


def check(feature: str, folder: Path) -> None:
    """Raise `AssertionError` unless agiraph without this feature is whole."""
    source = without(feature, folder)
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    told = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stdout.endswith("imported\n"), told.stderr[-3000:]
    settings = (ROOT / "pyproject.toml").read_text()
    only = settings.replace('["src", "tests", "bench"]', '["src"]')
    (folder / "pyproject.toml").write_text(only.replace('["src", "."]', '["src"]'))
    checker = Path(sys.executable).with_name("pyrefly")
    command = [checker, "check", "--summary=none", "--python-interpreter-path", sys.executable]
    types = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert types.returncode == 0, types.stdout[-3000:]


@pytest.mark.slow
def test_agiraph_is_whole_without_a_feature(seed: int, tmp_path: Path) -> None:
    check(random.Random(seed).choice(sorted(NAMES)), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("feature", sorted(NAMES))
def test_agiraph_is_whole_without_each_feature(feature: str, tmp_path: Path) -> None:
    check(feature, tmp_path)


def test_a_feature_that_others_need_is_found(tmp_path: Path) -> None:
    """The check can fail: the settings name MCP servers."""
    with pytest.raises(AssertionError, match=r"agiraph\.features\.mcp"):
        check("mcp", tmp_path)


def test_each_feature_says_its_own_name() -> None:
    assert tuple(feature.name for feature in installed()) == NAMES


def test_the_views_of_research_name_what_research_knows() -> None:
    """The views must do without the feature, so both write these words down."""
    assert [get_args(each) for each in (views.Depth, views.Kind, views.Phase)] == [
        get_args(each) for each in (jobs.Depth, jobs.Kind, jobs.Phase)
    ]
    assert [get_args(each) for each in (views.SourceClass, views.Stance, views.Checked)] == [
        get_args(each) for each in (evidence.SourceClass, evidence.Stance, evidence.Checked)
    ]
