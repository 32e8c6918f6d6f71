"""What tests of commands share: a home of their own."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def agiraph(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "home")
