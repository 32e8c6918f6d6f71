"""Fixtures of the command line's tests: `agiraph` with an empty home, forked or executed."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def agiraph(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "home")


@pytest.fixture
def executed(tmp_path: Path) -> Shell:
    """`agiraph` as people start it: each command imports the program itself."""
    return Shell(tmp_path / "home", is_forked=False)
