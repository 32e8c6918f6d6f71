"""Fixtures of the command line's tests: `agiraph` with an empty home, forked or executed."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def agiraph(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "home").prepared()


@pytest.fixture
def executed(tmp_path: Path) -> Shell:
    """`agiraph` as people start it: each command imports the program itself."""
    return Shell(tmp_path / "home", is_forked=False)


@pytest.fixture
def either(tmp_path: Path, is_lean: bool) -> Shell:
    """`agiraph`, executed; in a lean run forked, which takes a tenth of the time."""
    return Shell(tmp_path / "home", is_forked=is_lean)


@pytest.fixture
def is_lean(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--lean"))
